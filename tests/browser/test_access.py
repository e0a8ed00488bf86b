"""axe finds nothing serious on any type of page, in light and dark, wide and narrow."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.site import Site
from tests.browser.watch import SCHEMES, WIDTHS, Scheme, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

GRAVE = ("serious", "critical")


@cache
def axe() -> str:
    """axe-core, which the package brings along (MPL-2.0; used here, not passed on)."""
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def lines(page: str, violation: dict[str, Any]) -> list[str]:
    """A violation, one line a place (three at most)."""
    return [
        f"{page or 'home'}: {violation['impact']} {violation['id']}: {node['target']}: "
        + "; ".join(check["message"] for check in node["any"] + node["all"] + node["none"])
        for node in violation["nodes"][:3]
    ]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_serious_violation(
    browser: Browser, site: Site, base: str, scheme: Scheme, width: int
) -> None:
    found: list[str] = []
    with watched(browser, base, scheme=scheme, width=width) as tab:
        for page in site.examples:
            tab.open(page)
            tab.page.evaluate(axe())
            result = tab.page.evaluate("() => axe.run({ resultTypes: ['violations'] })")
            for violation in result["violations"]:
                if violation["impact"] in GRAVE:
                    found += lines(page, violation)
    assert found == [], "\n".join(found[:40])
