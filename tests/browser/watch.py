"""A browser page that is watched: whatever goes wrong while it is open is kept as a line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, Response

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
        page.on("console", self._console)
        page.on("pageerror", self._error)
        page.on("requestfailed", self._failed)
        page.on("response", self._response)
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._add("console", message.text)

    def _error(self, error: Error) -> None:
        self._add("page error", str(error))

    def _failed(self, request: Request) -> None:
        # What the browser itself gives up (as a test leaves the page) did not fail; and a missing
        # file is answered, with a status.
        if request.failure != "net::ERR_ABORTED":
            self._add("failed", f"{request.url} {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self._add("status", f"{response.status} {response.url}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self._base, "data:", "blob:")):
            self._add("other host", request.url)

    def _add(self, kind: str, text: str) -> None:
        self._troubles.append(f"{kind}: {text}")

    def open(self, page: str) -> None:
        """Opens a page of the site and waits until its charts are drawn, ten seconds at most."""
        from playwright.sync_api import TimeoutError as TooLong

        self._troubles.clear()
        self.page.goto(self._base + page, wait_until="load")
        try:
            if not self.page.evaluate(ALL_DRAWN):
                self.page.wait_for_function(ALL_DRAWN, timeout=10_000)
        except TooLong:
            self._add("charts", "not all drawn within 10 s")

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
