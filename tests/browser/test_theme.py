"""What the theme's scripts do for a reader works under the policy: search, palette, copy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.site import Site
from tests.browser.watch import Scheme, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCHEME = "() => document.body.getAttribute('data-md-color-scheme')"
PALETTE = "label.md-header__button[for^='__palette']:visible"
MARKS = "figure.chart .chart-view svg text, figure.chart svg text"


def toggle_to(page: Page, scheme: str) -> None:
    """Presses the button of the palette until the page has the scheme."""
    for _ in range(3):
        if page.evaluate(SCHEME) == scheme:
            return
        page.locator(PALETTE).click()
    assert page.evaluate(SCHEME) == scheme


def test_search_lists_the_claim_whose_words_are_typed(
    browser: Browser, site: Site, base_with_search: str
) -> None:
    claims = [page for page in site.pages if site.type_of(page) == "findings/*/claims/*"]
    assert claims
    some = [claims[0], claims[len(claims) // 2], claims[-1]]
    with watched(browser, base_with_search) as tab:
        for page in some:
            tab.open(page)
            title = tab.page.locator("article h1").evaluate("e => e.firstChild.textContent")
            words = " ".join(re.findall(r"[^\W\d_]{3,}", title)[:8])
            # Key by key: the theme listens to keys and not to the change of the text.
            tab.page.locator("input.md-search__input").press_sequentially(words)
            link = f"a.md-search-result__link[href^='{base_with_search}{page}?h=']"
            tab.page.locator(link).first.wait_for(timeout=20_000)
            assert tab.troubles() == []


@pytest.mark.parametrize(("system", "other"), [("light", "slate"), ("dark", "default")])
def test_the_palette_can_be_chosen_and_is_kept(
    browser: Browser, base: str, system: Scheme, other: str
) -> None:
    colour = "() => getComputedStyle(document.querySelector('article')).color"
    with watched(browser, base, scheme=system) as tab:
        tab.open("")
        follows, before = tab.page.evaluate(SCHEME), tab.page.evaluate(colour)
        assert follows == {"light": "default", "dark": "slate"}[system]
        toggle_to(tab.page, other)
        assert tab.page.evaluate(colour) != before
        tab.open("method/")
        assert tab.page.evaluate(SCHEME) == other
        assert tab.troubles() == []


def test_code_can_be_copied(browser: Browser, base: str) -> None:
    with watched(browser, base) as tab:
        tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        tab.open("commands/")
        block = tab.page.locator(".highlight").first
        block.hover()
        block.locator("[data-md-type='copy'], .md-clipboard").first.click()
        copied = tab.page.evaluate("() => navigator.clipboard.readText()")
        assert copied.strip() == block.locator("code").inner_text().strip()
        assert tab.troubles() == []


def test_a_change_of_the_palette_draws_the_charts_anew(
    browser: Browser, site: Site, base: str
) -> None:
    fills = f"""() => [...document.querySelectorAll("{MARKS}")]
      .map(e => getComputedStyle(e).fill)"""
    with watched(browser, base) as tab:
        for page in site.with_charts:
            tab.open(page)
            toggle_to(tab.page, "default")
            light = tab.page.evaluate(fills)
            assert light, f"{page}: no text in its charts"
            toggle_to(tab.page, "slate")
            tab.page.wait_for_function(f"before => ({fills})().join() !== before", arg=light)
            dark = tab.page.evaluate(fills)
            same = [a for a, b in zip(light, dark, strict=True) if a == b]
            assert same == [], f"{page}: text of the same colour on light and dark: {same}"
            assert tab.troubles() == []
