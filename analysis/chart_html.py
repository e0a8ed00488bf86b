"""A chart as HTML for a Markdown page: the spec as inert JSON, and what is read without it."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.chart_parts import between
from analysis.markdown import Safe
from analysis.study import slug
from analysis.wording import digits


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
        f"{_numbers(spec)}"
        "</figure>"
    )


def _numbers(spec: Mapping[str, Any]) -> str:
    """The points of lines as a table that opens: a row for each place on the horizontal axis.

    Rows of bars need none: the page's own tables hold them.
    """
    layers = [layer for layer in spec.get("layer", ()) if _points(layer)]
    if not layers:
        return ""
    columns: dict[str, dict[float, str]] = {}
    for layer in layers:
        for point in _points(layer):
            value, lo, hi = point["value"], point["lo"], point["hi"]
            shown = digits(value, lo, hi) + between(lo, hi)
            columns.setdefault(point["line"], {})[point["n"]] = shown
    axes = [layers[0]["encoding"][channel].get("title") or "" for channel in ("x", "y")]
    head = "".join(f'<th scope="col">{_shown(text)}</th>' for text in (axes[0], *columns))
    rows = "".join(
        f'<tr><th scope="row">{digits(n)}</th>'
        + "".join(f"<td>{column.get(n, '')}</td>" for column in columns.values())
        + "</tr>"
        for n in sorted({n for column in columns.values() for n in column})
    )
    return (
        f"<details data-search-exclude><summary>Table of this chart: {_shown(axes[1])}</summary>"
        f'<div class="points" role="region" tabindex="0" aria-label="{_shown(axes[1])}">'
        f'<table class="plain"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        "</div></details>"
    )


def _points(layer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The data of a layer where they are points of a line (`analysis.vegalite_lines`)."""
    found: list[Mapping[str, Any]] = layer.get("data", {}).get("values", [])
    return found if found and "line" in found[0] else []


def _shown(text: str) -> str:
    """Text in HTML that no Markdown link can be read into either."""
    return html.escape(text).replace("[", "&#91;").replace("]", "&#93;")


def figures(specs: Sequence[Mapping[str, Any]], ident: str) -> Safe:
    """Several charts below each other, ready to stand between empty lines."""
    many = len(specs) > 1
    return Safe(
        "\n\n".join(figure(s, f"{ident}-{n}" if many else ident) for n, s in enumerate(specs, 1))
    )
