"""A browser page that is watched: whatever goes wrong while it is open is kept as a line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Scheme = Literal["light", "dark"]

SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTHS = (1280, 390)

ALL_DRAWN = """() => document.querySelectorAll('figure.chart').length
  === document.querySelectorAll('figure.chart[data-drawn="1"]').length"""


class Watched:
    """One tab, and the troubles of the page that is open in it."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self._base = base
        self._troubles: list[str] = []
        # A request that the browser itself gives up (because a test leaves the page) is no
        # failure; a missing file is answered, with its status.
        page.on("console", lambda m: m.type == "error" and self._add("console", m.text))
        page.on("pageerror", lambda error: self._add("page error", str(error)))
        page.on(
            "requestfailed",
            lambda r: (
                r.failure != "net::ERR_ABORTED" and self._add("failed", f"{r.url} {r.failure}")
            ),
        )
        page.on(
            "response", lambda r: r.status >= 400 and self._add("status", f"{r.status} {r.url}")
        )
        page.on(
            "request",
            lambda r: r.url.startswith((base, "data:", "blob:")) or self._add("other host", r.url),
        )

    def _add(self, kind: str, text: str) -> None:
        self._troubles.append(f"{kind}: {text}")

    def open(self, page: str) -> None:
        """Opens a page of the site and waits until its charts are drawn, five seconds at most."""
        from playwright.sync_api import TimeoutError as TooLong

        self._troubles.clear()
        self.page.goto(self._base + page, wait_until="load")
        try:
            self.page.wait_for_function(ALL_DRAWN, timeout=5000)
        except TooLong:
            self._add("charts", "not all drawn within 5 s")

    def troubles(self) -> list[str]:
        """What went wrong since `open`."""
        return list(self._troubles)


@contextmanager
def watched(
    browser: Browser,
    base: str,
    *,
    scheme: Scheme = "light",
    width: int = 1280,
    script: bool = True,
) -> Iterator[Watched]:
    """A tab of its own context: a system in light or dark mode, a window of `width` pixels."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        java_script_enabled=script,
        reduced_motion="reduce",
    )
    context.set_default_timeout(10_000)
    try:
        yield Watched(context.new_page(), base)
    finally:
        context.close()
