"""Every page, in light and dark, wide and narrow: no error, nothing from outside, no overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.site import Site
from tests.browser.watch import SCHEMES, WIDTHS, Scheme, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SHARES = 4
"""Parts of the pages, so that two processes end at about the same time."""

LAYOUT = """() => {
  const wide = document.documentElement.clientWidth;
  const scrolls = e => {
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement)
      if (["auto", "scroll"].includes(getComputedStyle(p).overflowX)) return true;
    return false;
  };
  const name = e => [e.tagName.toLowerCase(), ...e.classList].join(".")
    + " '" + (e.textContent || "").trim().slice(0, 40) + "'";
  return {
    wide,
    page: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth),
    over: [...document.querySelectorAll("article *")]
      .filter(e => !e.closest("svg") || e.tagName === "svg")
      .filter(e => e.getBoundingClientRect().right > wide + 1 && e.checkVisibility())
      .filter(e => !scrolls(e)).slice(0, 3).map(name),
    charts: [...document.querySelectorAll("figure.chart")].map(e => {
      const view = e.querySelector("svg, canvas"), box = view && view.getBoundingClientRect();
      return { drawn: e.dataset.drawn === "1" && !!view, id: e.id, width: box ? box.width : 0,
               over: box ? box.right - e.getBoundingClientRect().right : 0 };
    }),
  };
}"""


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_is_well(
    browser: Browser, site: Site, base: str, scheme: Scheme, width: int, share: int
) -> None:
    wrong: list[str] = []
    expected = {"light": "default", "dark": "slate"}[scheme]
    with watched(browser, base, scheme=scheme, width=width) as tab:
        for page in site.pages[share::SHARES]:
            tab.open(page)
            found = tab.page.evaluate(LAYOUT)
            lines = tab.troubles()
            if tab.page.locator("body").get_attribute("data-md-color-scheme") != expected:
                lines.append("does not follow the system's scheme")
            if found["page"] > found["wide"]:
                lines.append(f"{found['page']} px wide in a window of {found['wide']} px")
            lines += [f"sticks out: {name}" for name in found["over"]]
            if len(found["charts"]) != len(site.parsed[page].charts):
                lines.append("charts are missing")
            for chart in found["charts"]:
                fits = chart["over"] < 1 and (width < 1280 or chart["width"] >= 300)
                if not chart["drawn"] or not fits:
                    lines.append(f"chart: {chart}")
            wrong += [f"{page or 'home'}: {line}" for line in lines]
    assert wrong == [], f"{len(wrong)} troubles, the first: " + "\n".join(wrong[:20])


def test_there_are_charts(site: Site) -> None:
    kinds = {site.type_of(page) for page in site.with_charts}
    assert {"findings/*/claims/*", "findings/*/arms/*"} <= kinds
