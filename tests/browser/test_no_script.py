"""Without JavaScript every number is still on the page, and a chart tells nothing of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.browser.site import Site
from tests.browser.watch import watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CELLS = """() => [...document.querySelectorAll("article td, article th")]
  .filter(e => e.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
  .map(e => e.innerText.split(/\\s+/).filter(Boolean).join(" "))"""


def test_every_cell_of_a_table_is_shown(browser: Browser, site: Site, base: str) -> None:
    missing: list[str] = []
    with watched(browser, base, script=False) as tab:
        for page in site.pages:
            cells = [text for text in site.parsed[page].cells if re.search(r"\d", text)]
            if not cells:
                continue
            tab.page.goto(base + page, wait_until="domcontentloaded")
            shown = set(tab.page.evaluate(CELLS))
            missing += [f"{page}: {text}" for text in cells if text not in shown]
    assert missing == [], "\n".join(missing[:20])


def test_a_chart_has_a_table_and_says_so(browser: Browser, site: Site, base: str) -> None:
    with watched(browser, base, script=False) as tab:
        for page in site.with_charts:
            tab.page.goto(base + page, wait_until="domcontentloaded")
            for figure in tab.page.locator("figure.chart").all():
                assert "table" in figure.inner_text().lower(), page
            assert tab.page.locator("article td").count() > 0, page
