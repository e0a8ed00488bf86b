"""Each page's script policy names the theme's own scripts and nothing more."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.site import ROOT, Site
from tests.browser.watch import watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DEPTHS = (".", *("/".join([".."] * depth) for depth in range(1, 7)), "/")
"""Ways from a page to the top of the site; the last is that of 404.html."""

SCOPE = re.compile(r'^__md_scope=new URL\("([^"]*)",location\)')
"""How the one script starts that differs by the depth of a page."""


def digest(script: str) -> str:
    """A script as a policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def own_hashes(site: Site) -> list[str]:
    """Hashes of the theme's scripts, that by depth last and for all depths.

    What the theme writes is on every page. Another script is a page's own, and may be one that
    came with a result: no hash is offered for it.
    """
    pages = [set(parsed.inline_scripts) for parsed in site.parsed.values()]
    scoped = {text for texts in pages for text in texts if SCOPE.match(text)}
    shared = set.intersection(*(texts - scoped for texts in pages))
    foreign = {text for texts in pages for text in texts} - scoped - shared
    assert foreign == set(), "scripts in some pages only; move them into files"
    ways = {found[1]: (text, found.span(1)) for text in scoped if (found := SCOPE.match(text))}
    assert ways, "the theme's script that finds the top of the site has changed; see SCOPE"
    assert set(ways) <= set(DEPTHS)
    text, (start, end) = ways["."]
    deep = [digest(text[:start] + way + text[end:]) for way in DEPTHS]
    assert {digest(text) for text in scoped} <= set(deep)
    return [*sorted(map(digest, shared)), *deep]


def test_the_policy_names_the_scripts_of_the_theme(site: Site) -> None:
    hashes = own_hashes(site)
    written = re.findall(r'^    "(sha256-[^"]+)",$', theme(), re.MULTILINE)
    lines = "\n".join(f'    "{one}",' for one in hashes)
    assert written == hashes, f"put these lines into analysis/theme/main.html:\n{lines}"


def theme() -> str:
    return (ROOT / "analysis" / "theme" / "main.html").read_text("utf-8")


def test_every_page_has_the_policy_before_its_first_script(site: Site) -> None:
    sources = " ".join(["'self'", *(f"'{one}'" for one in own_hashes(site))])
    policy = f"script-src {sources}; object-src 'none'; base-uri 'self'"
    assert {page for page, parsed in site.parsed.items() if parsed.policies != [policy]} == set()


def test_no_page_has_a_script_in_an_attribute(site: Site) -> None:
    assert {page: p.handlers for page, p in site.parsed.items() if p.handlers} == {}


@pytest.mark.parametrize(
    "code",
    [
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        "document.body.append(s)",
        "document.body.insertAdjacentHTML('beforeend', '<img src=x: onerror=\"window.ran = 1\">')",
        "setTimeout('window.ran = 1', 0)",
        "const s = document.createElement('script'); s.src = 'data:text/javascript,window.ran=1';"
        "document.body.append(s)",
    ],
)
def test_the_browser_keeps_the_policy(browser: Browser, base: str, code: str) -> None:
    with watched(browser, base) as tab:
        tab.open("")
        # Run as the page itself would, from a place that the policy allows.
        tab.page.evaluate(f"() => {{ {code} }}")
        tab.page.wait_for_timeout(200)
        assert tab.page.evaluate("window.ran") is None
        assert any("Content Security Policy" in line for line in tab.troubles())
