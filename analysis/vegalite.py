"""Vega-Lite specs as plain dicts: rows with intervals, bars, stacked bars and curves.

Nothing here knows a claim or a study: `analysis.charts` chooses what to draw. Every text of a
result file goes into data, a title or a scale's domain, never into an expression, so a page draws
the specs with the expression interpreter and without `eval`. Axis ticks are computed here, so that
the same numbers give the same bytes and few enough labels for a narrow screen.
"""

from __future__ import annotations

from collections.abc import Sequence

from analysis.chart_parts import (
    MOST_POINTS,
    MOST_ROWS,
    Curve,
    Row,
    Spec,
    Text,
    between,
    clean,
    domain_of,
    kept,
    round10,
    ticks_of,
)
from analysis.vegalite_parts import (
    axis_of,
    colours_of,
    data_of,
    dots_layer,
    entry_width,
    interval_layer,
    legend_of,
    line_layer,
    marks_layer,
    ranges_of,
    row_height,
    rows_axis,
    spec_of,
    values_layer,
)
from analysis.wording import digits

_FEW = 8
"""Loads of curves that are all named on their axis."""


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
    x = axis_of(domain, text.axis, log=log)
    data, keys = data_of(rows, domain, text.unit, log=log)
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
        layers.append(line_layer(reference, x, "reference"))
    dots = dots_layer(keys, x)
    dots["encoding"].update(colours_of(rows))
    layers += [interval_layer(keys, x, "interval"), dots, values_layer(keys)]
    return spec_of(text, rows, data, layers, row_height(keys), arms)


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
    x = axis_of(domain, text.axis)
    data, keys = data_of(rows, domain, text.unit)
    bar: Spec = {
        "mark": {"type": "bar", "height": 15},
        "encoding": {
            "y": rows_axis(keys),
            "x": {"field": "value", **x, "stack": None},
            "x2": {"datum": 0},
            "tooltip": {"field": "tip", "type": "nominal"},
        },
    }
    bar["encoding"].update(colours_of(rows))
    layers = [bar, interval_layer(keys, x, "over"), values_layer(keys)]
    layers += [line_layer(value, x, "stated") for value in lines]
    if marks:
        layers += marks_layer(keys, x, text.mark)
    return spec_of(text, rows, data, layers, row_height(keys, text.mark if marks else ""), arms)


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
    x = axis_of(domain, text.axis)
    data, keys = data_of(rows, domain, text.unit)
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
            "y": rows_axis(keys),
            "x": {"field": "from", **x, "stack": None},
            "x2": {"field": "to"},
            "color": {
                "field": "part",
                "type": "nominal",
                "scale": {"domain": names},
                "legend": legend_of("square"),
            },
            "tooltip": {"field": "tip", "type": "nominal"},
        },
    }
    layers = [bar, interval_layer(keys, x, "over"), values_layer(keys)]
    layers += [line_layer(value, x, "stated") for value in lines]
    if marks:
        layers += marks_layer(keys, x, text.mark)
    spec = spec_of(text, rows, data, layers, row_height(keys))
    spec["usermeta"] = {**ranges_of([colours for _, colours in parts]), "entry": entry_width(names)}
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
    x = axis_of(x_domain, text.other_axis, log=True)
    if len(loads) <= _FEW:
        # The measured loads are the ticks, and beyond them round numbers.
        beyond = [n for n in ticks_of(*x_domain) if n > 1.4 * loads[-1]]
        x["axis"]["values"] = [round10(n) for n in (*loads, *beyond[:2])]
    y = axis_of(y_domain, text.axis, log=True, ticks=6)
    data = []
    for curve in found:
        for n, value, lo, hi in curve.points:
            [datum], _ = data_of([Row(curve.arm, value, lo, hi, curve.arm)], y_domain, specks=True)
            head = f"{curve.arm}, {digits(n)}" if curve.arm else digits(n)
            tip = clean(f"{head}: {digits(value, lo, hi)}{between(lo, hi)}")
            data.append({**datum, "n": round10(n), "tip": tip})
    names = [clean(curve.arm) for curve in found if curve.arm]
    colour: Spec = {}
    if names:
        scale = {"field": "arm", "type": "nominal", "scale": {"domain": names}}
        colour = {
            "color": {**scale, "legend": legend_of()},
            "shape": {**scale, "legend": legend_of()},
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
        layers.append(line_layer(at, x, "stated"))
    if reference is not None:
        layers.append(line_layer(reference, y, "reference", "y"))
    across_x, up = {"field": "n", **x}, {"field": "value", **y}
    only_colour = {key: value for key, value in colour.items() if key == "color"}
    layers += [
        {"mark": {"type": "line"}, "encoding": {"x": across_x, "y": up}},
        {
            "mark": {"type": "rule", "style": "interval", "clip": True},
            "encoding": {"x": across_x, "y": {"field": "lo", **y}, "y2": {"field": "hi"}},
        },
        {
            # Hollow, so that of two points at one place both are seen.
            "mark": {"type": "point", "size": 80, "strokeWidth": 2, "opacity": 1},
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
    spec = spec_of(text, rows, data, layers, 260, arms)
    if names:
        spec["usermeta"]["entry"] = entry_width(names)
    return spec
