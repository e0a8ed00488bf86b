"""Vega-Lite specs as plain dicts: rows with intervals, bars, stacked bars and curves.

Nothing here knows a claim or a study: `analysis.charts` chooses what to draw. Every text of a
result file goes into data, a title or a scale's domain, never into an expression, so a page draws
the specs with the expression interpreter and without `eval`. Axis ticks are computed here, so that
the same numbers give the same bytes and few enough labels for a narrow screen.
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
    MOST_POINTS,
    MOST_ROWS,
    PLAIN,
    Curve,
    Row,
    Spec,
    Text,
    between,
    clean,
    domain_of,
    kept,
    lines_of,
    palette,
    round10,
    short,
    ticks_of,
)
from analysis.wording import digits

_LINE = 14
"""Height of a line of a label, pixels."""
_PIXELS = 6.6
"""Width of a character of a legend."""
_FEW = 8
"""Loads of curves that are all named on their axis."""
_NO_ARM = "-"
"""Category of rows that belong to no arm."""


def intervals(
    rows: Sequence[Row],
    text: Text,
    arms: Sequence[str] = (),
    *,
    log: bool = False,
    reference: float | None = None,
    band: tuple[float, float] | None = None,
) -> Spec:
    """Dots with interval bars, one row each; a reference line, and a band for a margin."""
    rows = kept(rows, MOST_ROWS)
    log = log and all(row.value > 0 for row in rows)
    ends = [*([] if reference is None else [reference]), *(band or ())]
    domain = domain_of(rows, ends, log=log)
    x = _axis(domain, text.axis, log=log)
    data, keys = _data(rows, domain)
    layers: list[Spec] = []
    if band is not None:
        layers.append(
            {
                "data": {"values": [{"lo": round10(band[0]), "hi": round10(band[1])}]},
                "mark": {"type": "rect", "style": "band", "clip": True},
                "encoding": {"x": {"field": "lo", **x}, "x2": {"field": "hi"}},
            }
        )
    if reference is not None:
        layers.append(_line(reference, x, "reference"))
    dots = _dots(keys, x)
    dots["encoding"].update(_colours(rows))
    layers += [_interval(keys, x, "interval"), dots, _values(keys)]
    return _spec(text, rows, data, layers, _row_height(keys), arms)


def bars(
    rows: Sequence[Row],
    text: Text,
    arms: Sequence[str] = (),
    *,
    lines: Sequence[float] = (),
    most: float = 0.0,
) -> Spec:
    """Bars from zero with interval bars; `lines` over all rows, each row's own marker.

    `most`: where the axis ends at least.
    """
    rows = kept(rows, MOST_ROWS)
    marks = [row.marker for row in rows if row.marker is not None]
    domain = domain_of(rows, [0.0, most, *lines, *marks], zero=True)
    x = _axis(domain, text.axis)
    data, keys = _data(rows, domain)
    bar: Spec = {
        "mark": {"type": "bar", "height": 15},
        "encoding": {
            "y": _y(keys),
            "x": {"field": "value", **x, "stack": None},
            "x2": {"datum": 0},
            "tooltip": {"field": "tip", "type": "nominal"},
        },
    }
    bar["encoding"].update(_colours(rows))
    layers = [bar, _interval(keys, x, "over"), _values(keys)]
    layers += [_line(value, x, "stated") for value in lines]
    if marks:
        layers.append(_marks(keys, x))
    return _spec(text, rows, data, layers, _row_height(keys), arms)


def stacked(
    rows: Sequence[Row],
    parts: Sequence[tuple[str, tuple[str, str]]],
    text: Text,
    *,
    lines: Sequence[float] = (),
) -> Spec:
    """Stacked bars; `parts` are the legend's words with their colours in light and dark."""
    rows = kept(rows, min(MOST_ROWS, max(1, MOST_POINTS // len(parts))))
    marks = [row.marker for row in rows if row.marker is not None]
    domain = domain_of(rows, [0.0, *lines, *marks], zero=True)
    x = _axis(domain, text.axis)
    data, keys = _data(rows, domain)
    pieces = []
    for row, datum in zip(rows, data, strict=True):
        at = 0.0
        for (name, _), size in zip(parts, row.parts, strict=True):
            shown = f"{row.label}: {name} {digits(size)}"
            pieces.append(
                {
                    "row": datum["row"],
                    "part": clean(name),
                    "from": round10(at),
                    "to": round10(at + size),
                    "tip": clean(shown),
                }
            )
            at += size
    names = [clean(name) for name, _ in parts]
    bar: Spec = {
        "data": {"values": pieces},
        "mark": {"type": "bar", "height": 15},
        "encoding": {
            "y": _y(keys),
            "x": {"field": "from", **x, "stack": None},
            "x2": {"field": "to"},
            "color": {
                "field": "part",
                "type": "nominal",
                "scale": {"domain": names},
                "legend": _legend("square"),
            },
            "tooltip": {"field": "tip", "type": "nominal"},
        },
    }
    layers = [bar, _interval(keys, x, "over"), _values(keys)]
    layers += [_line(value, x, "stated") for value in lines]
    if marks:
        layers.append(_marks(keys, x))
    spec = _spec(text, rows, data, layers, _row_height(keys))
    spec["usermeta"] = {**_ranges([colours for _, colours in parts]), "entry": _entry(names)}
    return spec


def curves(
    found: Sequence[Curve],
    text: Text,
    arms: Sequence[str] = (),
    *,
    reference: float | None = None,
    lines: Sequence[tuple[float, float, float]] = (),
    ticks: Sequence[float] = (),
) -> Spec:
    """Positive values against a positive load, both on logarithmic axes, one line a curve.

    Args:
        found: one curve an arm; an arm of "" takes the accent.
        text: titles; `axis` is the vertical one.
        arms: all arms of the study, for their colours.
        reference: a horizontal line.
        lines: vertical lines (at, lo, hi), with a band from lo to hi.
        ticks: small marks on the reference line.
    """
    found = kept(found, MOST_POINTS // 2)
    room = MOST_POINTS // len(found)
    found = [Curve(curve.arm, tuple(kept(curve.points, room))) for curve in found]
    rows = [
        Row(f"{curve.arm} at {digits(n)}".strip(), value, lo, hi, curve.arm)
        for curve in found
        for n, value, lo, hi in curve.points
    ]
    loads = sorted({point[0] for curve in found for point in curve.points})
    across = [*loads, *ticks, *(value for line in lines for value in line)]
    x_domain = domain_of([Row("", n, n, n) for n in across], [], log=True)
    y_domain = domain_of(rows, [] if reference is None else [reference], log=True)
    x = _axis(x_domain, text.other_axis, log=True)
    if len(loads) <= _FEW:
        # The measured loads are the ticks, and beyond them round numbers.
        beyond = [n for n in ticks_of(*x_domain) if n > 1.4 * loads[-1]]
        x["axis"]["values"] = [round10(n) for n in (*loads, *beyond[:2])]
    y = _axis(y_domain, text.axis, log=True, ticks=6)
    data = []
    for curve in found:
        for n, value, lo, hi in curve.points:
            [datum], _ = _data([Row(curve.arm, value, lo, hi, curve.arm)], y_domain)
            head = f"{curve.arm}, {digits(n)}" if curve.arm else digits(n)
            tip = clean(f"{head}: {digits(value, lo, hi)}{between(lo, hi)}")
            data.append({**datum, "n": round10(n), "tip": tip})
    names = [clean(curve.arm) for curve in found if curve.arm]
    colour: Spec = {}
    if names:
        scale = {"field": "arm", "type": "nominal", "scale": {"domain": names}}
        colour = {
            "color": {**scale, "legend": _legend()},
            "shape": {**scale, "legend": _legend()},
        }
    layers: list[Spec] = []
    for at, lo, hi in lines:
        layers.append(
            {
                "data": {"values": [{"lo": round10(lo), "hi": round10(hi)}]},
                "mark": {"type": "rect", "style": "band", "clip": True},
                "encoding": {"x": {"field": "lo", **x}, "x2": {"field": "hi"}},
            }
        )
        layers.append(_line(at, x, "stated"))
    if reference is not None:
        layers.append(_line(reference, y, "reference", "y"))
    across_x, up = {"field": "n", **x}, {"field": "value", **y}
    only_colour = {key: value for key, value in colour.items() if key == "color"}
    layers += [
        {"mark": {"type": "line"}, "encoding": {"x": across_x, "y": up}},
        {
            "mark": {"type": "rule", "style": "interval", "clip": True},
            "encoding": {"x": across_x, "y": {"field": "lo", **y}, "y2": {"field": "hi"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {
                "x": across_x,
                "y": up,
                **colour,
                "tooltip": {"field": "tip", "type": "nominal"},
            },
        },
    ]
    for layer in layers[-3:-1]:
        layer["encoding"].update(only_colour)
    if ticks and reference is not None:
        layers.append(
            {
                "data": {"values": [{"n": round10(n), "at": round10(reference)} for n in ticks]},
                "mark": {"type": "point", "shape": "diamond", "size": 90, "style": "marker"},
                "encoding": {"x": {"field": "n", **x}, "y": {"field": "at", **y}},
            }
        )
    spec = _spec(text, rows, data, layers, 260, arms)
    if names:
        spec["usermeta"]["entry"] = _entry(names)
    return spec


def _axis(domain: tuple[float, float], title: str, *, log: bool = False, ticks: int = 4) -> Spec:
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


def _data(rows: Sequence[Row], domain: tuple[float, float]) -> tuple[list[Spec], list[str]]:
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
        datum: Spec = {
            "row": key,
            "value": round10(row.value),
            "lo": round10(lo),
            "hi": round10(hi),
            "shown": clean(row.shown) if row.shown else short(row.value),
            "tip": clean(
                f"{row.label}: {digits(row.value, row.lo, row.hi)}{between(row.lo, row.hi)}"
            ),
        }
        datum["arm"] = clean(row.arm) if row.arm else _NO_ARM
        if row.marker is not None:
            datum["marker"] = round10(row.marker)
        data.append(datum)
    return data, keys


def _y(keys: Sequence[str]) -> Spec:
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


def _row_height(keys: Sequence[str]) -> int:
    lines = max(key.count("\n") + 1 for key in keys)
    return len(keys) * (_LINE * lines + 12)


def _interval(keys: Sequence[str], x: Spec, style: str) -> Spec:
    return {
        "mark": {"type": "rule", "style": style, "clip": True},
        "encoding": {
            "y": _y(keys),
            "x": {"field": "lo", **x},
            "x2": {"field": "hi"},
        },
    }


def _dots(keys: Sequence[str], x: Spec) -> Spec:
    return {
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
        "encoding": {
            "y": _y(keys),
            "x": {"field": "value", **x},
            "tooltip": {"field": "tip", "type": "nominal"},
        },
    }


def _values(keys: Sequence[str]) -> Spec:
    """The numbers themselves, in a column right of the plot."""
    return {
        "mark": {"type": "text", "align": "left", "dx": 8, "style": "number"},
        "encoding": {
            "y": _y(keys),
            "x": {"value": "width"},
            "text": {"field": "shown", "type": "nominal"},
        },
    }


def _line(value: float, axis: Spec, style: str, channel: Literal["x", "y"] = "x") -> Spec:
    return {
        "data": {"values": [{"at": round10(value)}]},
        "mark": {"type": "rule", "style": style},
        "encoding": {channel: {"field": "at", **axis}},
    }


def _marks(keys: Sequence[str], x: Spec) -> Spec:
    return {
        "transform": [{"filter": "isValid(datum.marker)"}],
        "mark": {"type": "tick", "style": "marker", "size": 25, "thickness": 3, "opacity": 1},
        "encoding": {"y": _y(keys), "x": {"field": "marker", **x}},
    }


def _legend(symbol: str = "") -> Spec:
    legend: Spec = {
        "orient": "top",
        "direction": "horizontal",
        "title": None,
        "labelLimit": 260,
    }
    if symbol:
        legend["symbolType"] = symbol
    return legend


def _colours(rows: Sequence[Row]) -> Spec:
    """Colour by arm, in the order of `usermeta`; empty where no row has one."""
    names = [clean(row.arm) for row in rows if row.arm]
    if not names:
        return {}
    if len(names) < len(rows):
        names.append(_NO_ARM)
    scale = {"domain": list(dict.fromkeys(names))}
    return {"color": {"field": "arm", "type": "nominal", "scale": scale, "legend": None}}


def _ranges(pairs: Sequence[tuple[str, str]]) -> Spec:
    return {"light": [light for light, _ in pairs], "dark": [dark for _, dark in pairs]}


def _entry(names: Sequence[str]) -> int:
    """Width of a legend's entry, from which a page takes the number of columns."""
    return round(max(map(len, names)) * _PIXELS) + 30


def _spec(
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
        "usermeta": _ranges(pairs),
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
