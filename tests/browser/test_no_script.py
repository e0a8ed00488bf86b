"""Without JavaScript every number is still on the page, and a chart tells nothing of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.browser.site import Site
from tests.browser.watch import watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CELLS = """() => [...document.querySelectorAll("article td, article th")]
  .filter(e => e.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
  .map(e => e.innerText.split(/\\s+/).filter(Boolean).join(" "))"""

OPENED = """() => document.querySelectorAll("article details").forEach(e => { e.open = true; })"""
"""As a click on its summary does, which needs no script."""

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
UNITS = (1.0, 1e-3, 1e3, 1e-2, 1e2, 2.0**-10, 2.0**-20, 2.0**-30)
"""A chart may have another unit than the table: ms for s, % for a share, GiB for bytes."""
CLOSE = 0.006
"""Of three digits."""


def marks(spec: Any) -> Iterator[tuple[str, float]]:
    """(row, value) of each mark in the data of a specification and of its layers."""
    if isinstance(spec, list):
        for part in spec:
            yield from marks(part)
    elif isinstance(spec, dict):
        for row in (spec.get("data") or {}).get("values", []):
            for name in ("value", "x", "y"):
                if isinstance(row.get(name), (int, float)):
                    yield str(row.get("row", "")), float(row[name])
        for name, part in spec.items():
            if name != "data":
                yield from marks(part)


def test_every_cell_of_a_table_is_shown(browser: Browser, site: Site, base: str) -> None:
    missing: list[str] = []
    with watched(browser, base, script=False) as tab:
        for page in site.pages:
            cells = [text for text in site.parsed[page].cells if re.search(r"\d", text)]
            if not cells:
                continue
            tab.page.goto(base + page, wait_until="domcontentloaded")
            tab.page.evaluate(OPENED)
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


def test_the_values_of_a_chart_stand_in_its_page(site: Site) -> None:
    missing: list[str] = []
    for page, parsed in site.parsed.items():
        if not parsed.charts:
            continue
        said = [float(text.replace(",", "")) for text in NUMBER.findall(parsed.text)]
        known = [number * factor for number in said for factor in UNITS]
        missing += [
            f"{page}: {value:.6g} ({row!r})"
            for spec in parsed.charts
            for row, value in marks(json.loads(spec))
            if not any(abs(abs(value) - one) <= CLOSE * abs(value) for one in known)
        ]
    assert missing == [], f"{len(missing)} values, the first: " + "\n".join(missing[:20])
