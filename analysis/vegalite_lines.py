"""Vega-Lite specs of lines over a linear axis, and of a bridge from one number to another.

As in `analysis.vegalite`, every text of a result goes into data, a title or a scale's domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.chart_parts import (
    MOST_POINTS,
    PLAIN,
    Row,
    Spec,
    Text,
    between,
    clean,
    domain_of,
    kept,
    round10,
)
from analysis.vegalite_parts import (
    axis_of,
    data_of,
    entry_width,
    interval_layer,
    legend_of,
    line_layer,
    ranges_of,
    row_height,
    rows_axis,
    spec_of,
    values_layer,
)
from analysis.wording import digits


@dataclass(frozen=True, slots=True)
class Line:
    """Points (x, y, lo, hi) from the lowest x up, in the units shown."""

    name: str
    points: tuple[tuple[float, float, float, float], ...]
    colours: tuple[str, str]
    dots: bool = False
    """Dots with intervals, for what was measured; else a line."""
    steps: bool = False
    """Holds its value until the next point."""


def lines(
    found: Sequence[Line],
    text: Text,
    *,
    log: bool = False,
    zero: bool = False,
    marks: Sequence[float] = (),
) -> Spec:
    """Lines and dots over a linear horizontal axis.

    Args:
        found: one at least; together at most `MOST_POINTS` points are drawn.
        text: titles; `axis` is the vertical one.
        log: the vertical axis is logarithmic, where all is positive.
        zero: both axes begin at zero.
        marks: horizontal lines.
    """
    room = max(2, MOST_POINTS // len(found))
    found = [
        Line(one.name, tuple(kept(one.points, room)), one.colours, one.dots, one.steps)
        for one in found
    ]
    rows = [
        Row(f"{one.name}, {digits(x)}", y, lo, hi) for one in found for x, y, lo, hi in one.points
    ]
    log = log and all(row.value > 0 for row in rows)
    origin = [0.0] if zero else []
    across = [Row("", p[0], p[0], p[0]) for one in found for p in one.points]
    x_domain = domain_of(across, origin, zero=zero)
    y_domain = domain_of(rows, [*origin, *marks], log=log, zero=zero)
    x, y = axis_of(x_domain, text.other_axis), axis_of(y_domain, text.axis, log=log, ticks=5)
    names = [clean(one.name) for one in found]
    colour: Spec = {
        "field": "line",
        "type": "nominal",
        "scale": {"domain": names},
        "legend": legend_of(),
    }
    layers: list[Spec] = [line_layer(value, y, "reference", "y") for value in marks]
    for one in found:
        layers += _layers(one, x, y, colour, y_domain)
    spec = spec_of(text, rows, [], layers, 240)
    del spec["data"]
    spec["usermeta"] = {
        **ranges_of([one.colours for one in found]),
        "entry": entry_width(names),
    }
    return spec


def _layers(one: Line, x: Spec, y: Spec, colour: Spec, domain: tuple[float, float]) -> list[Spec]:
    """A line, or dots with their intervals, on data of its own."""
    name, (low, high) = clean(one.name), domain
    data = [
        {
            "n": round10(at),
            "value": round10(value),
            "lo": round10(min(max(lo, low), high)),
            "hi": round10(min(max(hi, low), high)),
            "line": name,
            "tip": f"{name}, {digits(at)}: {digits(value, lo, hi)}{between(lo, hi)}",
        }
        for at, value, lo, hi in one.points
    ]
    across, up = {"field": "n", **x}, {"field": "value", **y}
    shown = {"tooltip": {"field": "tip", "type": "nominal"}}
    encoding = {"x": across, "y": up, "color": colour}
    if not one.dots:
        mark: Spec = {"type": "line", "clip": True}
        if one.steps:
            mark["interpolate"] = "step-after"
        return [{"data": {"values": data}, "mark": mark, "encoding": encoding}]
    rule = {"x": across, "y": {"field": "lo", **y}, "y2": {"field": "hi"}, "color": colour}
    dot = {"type": "point", "filled": True, "size": 45, "opacity": 1}
    return [
        {"data": {"values": data}, "mark": {"type": "rule", "clip": True}, "encoding": rule},
        {"data": {"values": data}, "mark": dot, "encoding": {**encoding, **shown}},
    ]


@dataclass(frozen=True, slots=True)
class Move:
    """One bar of a bridge: a number itself, or what it changes by."""

    label: str
    value: float
    lo: float
    hi: float
    whole: bool = False
    """A bar from zero, from which the next ones move on."""


ENDS, DOWN, UP = PLAIN, ("#1f7a4d", "#6fd3a0"), ("#b3261e", "#ff8a80")


def bridge(moves: Sequence[Move], text: Text) -> Spec:
    """Bars that lead from one number to another; less is green, more is red.

    The axis begins near the bars, since what is between two large numbers would be a speck on one
    from zero; whole bars are cut there, which the words above the chart should say.
    """
    pieces, at = [], 0.0
    rows: list[Row] = []
    for move in moves:
        begin, end = (0.0, move.value) if move.whole else (at, at + move.value)
        at = end
        kind = "mean" if move.whole else "less" if move.value < 0 else "more"
        pieces.append((begin, end, kind, move))
        shift = 0.0 if move.whole else begin
        sign = "" if move.whole or move.value <= 0 else "+"
        shown = f"{sign}{digits(move.value, move.lo, move.hi)} {text.unit}".strip()
        rows.append(Row(move.label, end, shift + move.lo, shift + move.hi, shown=shown))
    reached = [end for _, end, _, _ in pieces]
    reached += [begin for begin, _, kind, _ in pieces if kind != "mean"]
    low, high = min(reached), max(reached)
    base = max(0.0, low - 0.6 * (high - low)) if low > 0 else min(0.0, low)
    domain = domain_of(rows, [base, *reached])
    domain = (round10(max(domain[0], base) if low > 0 else domain[0]), domain[1])
    x = axis_of(domain, text.axis)
    data, keys = data_of(rows, domain)
    for datum in data:
        del datum["value"]  # where a bar ends: drawn by its own layer, and in no table
    values = [
        {
            "row": datum["row"],
            "kind": kind,
            "from": round10(max(begin, domain[0])),
            "to": round10(end),
            "tip": clean(f"{move.label}: {digits(move.value, move.lo, move.hi)} {text.unit}"),
        }
        for datum, (begin, end, kind, move) in zip(data, pieces, strict=True)
    ]
    bar: Spec = {
        "data": {"values": values},
        "mark": {"type": "bar", "height": 15, "clip": True},
        "encoding": {
            "y": rows_axis(keys),
            "x": {"field": "from", **x, "stack": None},
            "x2": {"field": "to"},
            "color": {
                "field": "kind",
                "type": "nominal",
                "scale": {"domain": ["mean", "less", "more"]},
                "legend": None,
            },
            "tooltip": {"field": "tip", "type": "nominal"},
        },
    }
    layers = [bar, interval_layer(keys, x, "over"), values_layer(keys)]
    spec = spec_of(text, rows, data, layers, row_height(keys))
    spec["usermeta"] = ranges_of([ENDS, DOWN, UP])
    return spec
