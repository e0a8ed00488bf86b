"""Parts that charts of rows and of curves share: axes, data of rows, layers, the whole spec.

Every text of a result file goes into data, a title or a scale's domain, never into an expression.
Axis ticks are computed, so that the same numbers give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from typing import Literal

from analysis.chart_parts import (
    ACCENT,
    DARK,
    LIGHT,
    MOST_LINES,
    PLAIN,
    Row,
    Spec,
    Text,
    between,
    clean,
    kept,
    lines_of,
    palette,
    round10,
    ticks_of,
)
from analysis.wording import digits

_LINE = 14
"""Height of a line of a label, pixels."""
_PIXELS = 6.6
"""Width of a character of a legend."""
_NO_ARM = "-"
"""Category of rows that belong to no arm."""
_LEAST_SEEN = 0.008
"""Share of an axis below which an interval is a speck: the number beside the row has it."""


def axis_of(domain: tuple[float, float], title: str, *, log: bool = False, ticks: int = 4) -> Spec:
    """A quantitative axis with round ticks."""
    scale: Spec = {"domain": list(domain), "nice": False, "zero": False}
    if log:
        scale["type"] = "log"
        del scale["zero"]
    return {
        "type": "quantitative",
        "scale": scale,
        "title": clean(title) if title else None,
        "axis": {
            "values": ticks_of(*domain, log=log, count=ticks),
            "format": ",.10~r",
            "labelOverlap": "greedy",
        },
    }


def data_of(
    rows: Sequence[Row],
    domain: tuple[float, float],
    unit: str = "",
    *,
    log: bool = False,
    specks: bool = False,
) -> tuple[list[Spec], list[str]]:
    """Data of rows, and their labels in order: wrapped, none twice."""
    data: list[Spec] = []
    keys: list[str] = []
    for row in rows:
        wrapped = "\n".join(lines_of(clean(row.label)))
        names = (wrapped if n == 1 else f"{wrapped} ({n})" for n in count(1))
        key = next(name for name in names if name not in keys)
        keys.append(key)
        # An end outside the axis, or none at all, reaches its edge.
        lo = min(max(row.lo, domain[0]), domain[1]) if math.isfinite(row.lo) else domain[0]
        hi = min(max(row.hi, domain[0]), domain[1]) if math.isfinite(row.hi) else domain[1]
        if not specks and _speck(lo, hi, domain, log=log):
            lo = hi = row.value
        datum: Spec = {
            "row": key,
            "value": round10(row.value),
            "lo": round10(lo),
            "hi": round10(hi),
            "shown": clean(row.shown or _shown(row, unit)),
            "tip": clean(
                f"{row.label}: {digits(row.value, row.lo, row.hi)}{between(row.lo, row.hi)}"
            ),
        }
        datum["arm"] = clean(row.arm) if row.arm else _NO_ARM
        if row.marker is not None:
            datum["marker"] = round10(row.marker)
        data.append(datum)
    return data, keys


def _shown(row: Row, unit: str) -> str:
    """The number beside a row, as its interval deserves, with its unit."""
    return f"{digits(row.value, row.lo, row.hi)} {unit}".strip()


def _speck(lo: float, hi: float, domain: tuple[float, float], *, log: bool) -> bool:
    """Whether an interval would be too narrow to be seen as one."""
    ends = [lo, hi, *domain]
    if log and min(ends) > 0:
        ends = [math.log(end) for end in ends]
    return ends[1] - ends[0] < _LEAST_SEEN * (ends[3] - ends[2])


def rows_axis(keys: Sequence[str]) -> Spec:
    """The rows of a chart, their labels in several lines."""
    return {
        "field": "row",
        "type": "nominal",
        "scale": {"domain": list(keys)},
        "title": None,
        "axis": {
            "labelExpr": "split(datum.label, '\\n')",
            "labelLimit": 180,
            # The first of several lines would stand beside its row, and the others below.
            "labelOffset": {
                "condition": [
                    {
                        "test": f"length(split(datum.label, '\\n')) === {lines}",
                        "value": -_LINE * (lines - 1) / 2,
                    }
                    for lines in range(2, MOST_LINES + 1)
                ],
                "value": 0,
            },
            "domain": False,
            "ticks": False,
            "grid": False,
        },
    }


def row_height(keys: Sequence[str], word: str = "") -> int:
    """Height of a chart of rows, pixels; with room for a word above each bar's mark."""
    lines = max(key.count("\n") + 1 for key in keys)
    return len(keys) * (max(_LINE * lines, 34 if word else 0) + 12)


def interval_layer(keys: Sequence[str], x: Spec, style: str) -> Spec:
    """A bar from end to end of each interval."""
    return {
        "mark": {"type": "rule", "style": style, "clip": True},
        "encoding": {
            "y": rows_axis(keys),
            "x": {"field": "lo", **x},
            "x2": {"field": "hi"},
        },
    }


def dots_layer(keys: Sequence[str], x: Spec) -> Spec:
    """A dot at each value."""
    return {
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
        "encoding": {
            "y": rows_axis(keys),
            "x": {"field": "value", **x},
            "tooltip": {"field": "tip", "type": "nominal"},
        },
    }


def values_layer(keys: Sequence[str]) -> Spec:
    """The numbers themselves, in a column right of the plot."""
    return {
        "mark": {"type": "text", "align": "left", "dx": 8, "style": "number"},
        "encoding": {
            "y": rows_axis(keys),
            "x": {"value": "width"},
            "text": {"field": "shown", "type": "nominal"},
        },
    }


def line_layer(value: float, axis: Spec, style: str, channel: Literal["x", "y"] = "x") -> Spec:
    """A line over all rows, or over all loads."""
    return {
        "data": {"values": [{"at": round10(value)}]},
        "mark": {"type": "rule", "style": style},
        "encoding": {channel: {"field": "at", **axis}},
    }


def marks_layer(keys: Sequence[str], x: Spec, word: str = "") -> list[Spec]:
    """A short line at the second value of a row, under the word that says what it is."""
    at: Spec = {"y": rows_axis(keys), "x": {"field": "marker", **x}}
    there = [{"filter": "isValid(datum.marker)"}]
    tick = {"type": "tick", "style": "marker", "size": 25, "thickness": 3, "opacity": 1}
    layers: list[Spec] = [{"transform": there, "mark": tick, "encoding": at}]
    if word:
        label = {
            "type": "text",
            "style": "number",
            "align": "center",
            "dy": -17,
            "baseline": "middle",
            "fontSize": 10,
        }
        text = {"text": {"value": clean(word, 24)}}
        layers.append({"transform": there, "mark": label, "encoding": {**at, **text}})
    return layers


def legend_of(symbol: str = "") -> Spec:
    """A legend above the chart."""
    legend: Spec = {
        "orient": "top",
        "direction": "horizontal",
        "title": None,
        "labelLimit": 260,
    }
    if symbol:
        legend["symbolType"] = symbol
    return legend


def colours_of(rows: Sequence[Row]) -> Spec:
    """Colour by arm, in the order of `usermeta`; empty where no row has one."""
    names = [clean(row.arm) for row in rows if row.arm]
    if not names:
        return {}
    if len(names) < len(rows):
        names.append(_NO_ARM)
    scale = {"domain": list(dict.fromkeys(names))}
    return {"color": {"field": "arm", "type": "nominal", "scale": scale, "legend": None}}


def ranges_of(pairs: Sequence[tuple[str, str]]) -> Spec:
    """Colours of the categories, for both schemes."""
    return {"light": [light for light, _ in pairs], "dark": [dark for _, dark in pairs]}


def entry_width(names: Sequence[str]) -> int:
    """Width of a legend's entry, from which a page takes the number of columns."""
    return round(max(map(len, names)) * _PIXELS) + 30


def spec_of(
    text: Text,
    rows: Sequence[Row],
    data: Sequence[Spec],
    layers: Sequence[Spec],
    height: int,
    arms: Sequence[str] = (),
) -> Spec:
    """The whole spec; `usermeta` has the colours of its categories for both schemes."""
    index = palette([*arms, *(row.arm for row in rows if row.arm)])
    used = list(dict.fromkeys(row.arm for row in rows if row.arm))
    pairs = [(LIGHT[index[arm]], DARK[index[arm]]) for arm in used] or [ACCENT]
    if used and any(not row.arm for row in rows):
        # Rows of no arm come as one more category, after the arms.
        pairs.append(PLAIN)
    title: Spec = {"text": clean(text.title, 240)}
    if text.subtitle:
        title["subtitle"] = clean(text.subtitle, 400)
    return {
        "title": title,
        "description": _described(text, rows),
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": list(data)},
        "layer": list(layers),
        "usermeta": ranges_of(pairs),
    }


def _described(text: Text, rows: Sequence[Row]) -> str:
    """One sentence for readers who do not see the chart: what it shows, and its main numbers."""
    head = clean(text.title, 240)
    if text.axis:
        head += f" ({clean(text.axis)})"
    told = [
        f"{clean(row.label)} {digits(row.value, row.lo, row.hi)}{between(row.lo, row.hi)}"
        for row in kept(rows, 8)
    ]
    more = f"; {len(rows) - 8} more in the table" if len(rows) > 8 else ""
    note = f" {text.subtitle}" if text.subtitle else ""
    return clean(f"{head}: {'; '.join(told)}{more}.{note}", 900)
