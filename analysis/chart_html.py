"""A chart as HTML for a Markdown page: the spec as inert JSON, and what is read without it."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.markdown import Safe
from analysis.study import slug


def figure(spec: Mapping[str, Any], ident: str) -> Safe:
    """A chart as one line of raw HTML; put an empty line before and after it.

    The spec is JSON inside a script element that no browser runs: ASCII only, with `<`, `>` and
    `&` escaped, so that no text of a result can end the element. The caption says what the marks
    mean, and without JavaScript the note refers to the table.
    """
    text = json.dumps(spec, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    # No JSON has a bracket before a parenthesis outside its strings: no link can be read into it.
    text = text.replace("](", "\\u005d(")
    title, more = spec["title"]["text"], spec["title"].get("subtitle", "")
    caption = f"<strong>{_shown(title)}</strong>"
    if more:
        caption += f" <span>{_shown(more)}</span>"
    return Safe(
        f'<figure class="chart" id="{html.escape(slug(ident))}">'
        f"<figcaption>{caption}</figcaption>"
        f'<script type="application/json">{text}</script>'
        f'<div class="chart-view" role="img" aria-label="{_shown(spec["description"])}"></div>'
        '<p class="chart-error" hidden>This chart could not be drawn; the table on this page has '
        "its numbers.</p>"
        "<noscript><p>Charts need JavaScript; the table on this page has their numbers.</p>"
        "</noscript>"
        "</figure>"
    )


def _shown(text: str) -> str:
    """Text in HTML that no Markdown link can be read into either."""
    return html.escape(text).replace("[", "&#91;").replace("]", "&#93;")


def figures(specs: Sequence[Mapping[str, Any]], ident: str) -> Safe:
    """Several charts below each other, ready to stand between empty lines."""
    many = len(specs) > 1
    return Safe(
        "\n\n".join(figure(s, f"{ident}-{n}" if many else ident) for n, s in enumerate(specs, 1))
    )
