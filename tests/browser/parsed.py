"""What a page's file holds, without a browser: links, anchors, scripts, charts, table cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

DATA = ("application/json", "application/ld+json", "text/x-template")
"""Types of script elements that no browser runs."""

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""The attribute by which an element has the browser fetch a file."""


@dataclass
class Parsed:
    """The parts of one page that tests ask about, in the order of the file."""

    links: list[str] = field(default_factory=list)
    """`href` of each `a`."""
    loads: list[str] = field(default_factory=list)
    """Addresses that the browser fetches with the page."""
    anchors: set[str] = field(default_factory=set)
    """Each `id` and `name`."""
    inline_scripts: list[str] = field(default_factory=list)
    """Texts of the script elements that run."""
    handlers: list[str] = field(default_factory=list)
    """Attributes such as `onclick`."""
    policies: list[str] = field(default_factory=list)
    """Contents of the Content-Security-Policy elements before the first script."""
    charts: list[str] = field(default_factory=list)
    """The specification (JSON text) of each `figure.chart`; "" where it has none."""
    cells: list[str] = field(default_factory=list)
    """Text of each table cell, its white space folded."""
    text: str = ""
    """What the article says: no scripts, no attributes."""


class _Reader(HTMLParser):
    """Fills a `Parsed`; script and style texts reach `handle_data` unread."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Parsed()
        self._script: list[str] | None = None
        self._runs = False
        self._any_script = False
        self._in_chart = False
        self._cell: list[str] | None = None
        self._article = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        page, found = self.page, {name: value or "" for name, value in attrs}
        page.anchors.update(found[name] for name in ("id", "name") if name in found)
        page.handlers += [name for name in found if name.startswith("on")]
        if tag == "a" and "href" in found:
            page.links.append(found["href"])
        if (attribute := LOADED.get(tag)) in found and found.get("rel") not in ("prev", "next"):
            page.loads.append(found[str(attribute)])
        if tag == "script":
            self._any_script = True
            self._script = []
            self._runs = "src" not in found and found.get("type") not in DATA
        elif tag == "figure" and "chart" in found.get("class", "").split():
            self._in_chart = True
            page.charts.append("")
        elif tag == "meta" and found.get("http-equiv") == "Content-Security-Policy":
            if not self._any_script:
                page.policies.append(found["content"])
        elif tag in ("td", "th"):
            self._close_cell()
            self._cell = []
        elif tag == "article":
            self._article = True

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self._script.append(data)
            return
        if self._cell is not None:
            self._cell.append(data)
        if self._article:
            self.page.text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._script is not None:
            text, self._script = "".join(self._script), None
            if self._runs:
                self.page.inline_scripts.append(text)
            elif self._in_chart:
                self.page.charts[-1] = text
        elif tag == "figure":
            self._in_chart = False
        elif tag == "article":
            self._article = False
        elif tag in ("td", "th", "tr", "table"):
            self._close_cell()

    def _close_cell(self) -> None:
        if self._cell is not None:
            self.page.cells.append(" ".join("".join(self._cell).split()))
            self.page.text += " "  # cells that touch in the file are apart on the page
        self._cell = None


def parse(text: str) -> Parsed:
    """Read one page's HTML."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.page
