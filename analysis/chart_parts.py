"""What charts are made of: rows and curves, colours, round ticks, and texts safe to show."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.wording import digits

Spec = dict[str, Any]
"""A Vega-Lite spec, or a part of one."""
MOST_POINTS = 200
"""Data points of one spec at most; beyond, every n-th is drawn, the ends included."""
MOST_ROWS = 40
"""Rows of one chart at most: about two screens."""
MOST_LINES = 3
"""Lines of a row's label."""
_LEAST, _MOST = 1e-200, 1e200
"""Numbers below are nothing, and beyond have no place on an axis."""
_LABEL = 24
"""Characters a line of a row's label."""

# Ten colours that keep apart for readers with normal, protan, deutan and tritan vision, at 3:1 on
# white and 4.5:1 on the dark background (tests/test_chart_parts.py measures both).
# An arm has one hue: the tone of the dark scheme is within 13 degrees of that of the light one.
LIGHT = (
    "#672ae1", "#8e6331", "#833454", "#16297e", "#d47d08",
    "#e54192", "#032f05", "#347e6c", "#ae58d5", "#494a11",
)  # fmt: skip
DARK = (
    "#b8b7f6", "#f9c29a", "#ff3891", "#4f8df4", "#cf7d44",
    "#f08fa9", "#4bcf4a", "#acfdde", "#aa7eb8", "#d1e245",
)  # fmt: skip

ACCENT = ("#0b6bb5", "#6fb7f2")
"""Of numbers that belong to no single arm, in light and dark."""
WAITING = ("#b06a00", "#ffb454")
STRONG = ("#1f4e8c", "#5b8fd6")
SOFT = ("#5f93cf", "#b4d2f7")
PLAIN = ("#6b7580", "#99a3ae")


@dataclass(frozen=True, slots=True)
class Row:
    """One number of a chart, in the unit shown."""

    label: str
    value: float
    lo: float
    hi: float
    arm: str = ""
    """Whose colour it takes; empty for the accent."""
    marker: float | None = None
    """A second value of the same row, drawn as a short line."""
    shown: str = ""
    """The number as written beside the row; by four digits when empty."""
    parts: tuple[float, ...] = ()
    """Of a stacked bar, in the order of its legend; `value` is then their sum."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points (x, value, lo, hi) of one arm, from the lowest x up."""

    arm: str
    points: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Text:
    """What is written around a chart."""

    title: str
    subtitle: str = ""
    """What the lines and marks mean."""
    axis: str = ""
    """Title of the value axis, with its unit."""
    other_axis: str = ""
    """Title of the horizontal axis of curves."""
    unit: str = ""
    """Written after each number beside a row."""
    mark: str = ""
    """What the second value of a row is, in a word."""


def palette(arms: Sequence[str]) -> dict[str, int]:
    """One colour index an arm, by its place in the study: the same on all pages."""
    return {name: place % len(LIGHT) for place, name in enumerate(dict.fromkeys(arms))}


def capital(text: str) -> str:
    """The first letter as a capital; the rest as it is."""
    return text[:1].upper() + text[1:]


def clean(text: str, most: int = 120) -> str:
    """A text of a file for a chart: one line, printable, bounded."""
    shown = "".join(char if char.isprintable() else " " for char in text[: 4 * most])
    return textwrap.shorten(shown, most, placeholder="…") or "?"


def short(value: float) -> str:
    """Four digits, for reading; the table and the tooltip have what the interval deserves."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.4g}"
    return digits(value) if "e" in text else text


def between(lo: float, hi: float) -> str:
    """An interval in brackets after its number; nothing where there is none."""
    return "" if lo == hi else f" [{digits(lo, lo, hi)}, {digits(hi, lo, hi)}]"


def lines_of(label: str) -> list[str]:
    """A label in three lines at most, broken after commas where that fits."""
    lines: list[str] = []
    for part in label.split(", "):
        if lines and len(lines[-1]) + len(part) + 2 <= _LABEL:
            lines[-1] += f", {part}"
            continue
        if lines:
            lines[-1] += ","
        lines.append(part)
    if len(lines) > MOST_LINES or any(len(line) > _LABEL + 4 for line in lines):
        lines = textwrap.wrap(label, _LABEL, max_lines=MOST_LINES, placeholder="…")
    return lines


def drawable(*values: float) -> bool:
    """Whether numbers have a place on an axis: finite, and not so great that a margin is not."""
    return all(abs(value) < _MOST for value in values)


def round10(value: float) -> float:
    """Ten significant digits: the last bits of a float differ between machines."""
    return float(f"{value:.10g}")


def scaled(row: Row, factor: float) -> Row:
    """A row in another unit."""
    return replace(
        row,
        value=row.value * factor,
        lo=row.lo * factor,
        hi=row.hi * factor,
        marker=None if row.marker is None else row.marker * factor,
        parts=tuple(part * factor for part in row.parts),
    )


def kept(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many, at even places, the ends included."""
    if len(items) <= most or most < 2:
        return list(items[:most])
    return [items[round(k * (len(items) - 1) / (most - 1))] for k in range(most)]


def domain_of(
    rows: Sequence[Row], ends: Sequence[float], *, log: bool = False, zero: bool = False
) -> tuple[float, float]:
    """Ends of an axis: values, intervals that are not far beyond them, and what must be in it."""
    points = [row.value for row in rows] + list(ends)
    if log:
        points = [point for point in points if point > _LEAST] or [1.0]
    low, high = min(points), max(points)
    reach = (high - low) or abs(high) or 1.0
    for row in rows:
        for end in (row.lo, row.hi):
            near = low / 20 <= end <= high * 20 if log else abs(end - row.value) <= 20 * reach
            if math.isfinite(end) and near and (end > _LEAST or not log):
                points.append(end)
    low, high = min(points), max(points)
    if max(abs(low), abs(high)) < _LEAST:
        low = high = 0.0
    # Ends that differ by less than is kept of a number are one.
    same = high - low <= 1e-8 * max(abs(low), abs(high))
    if log:
        pad = 0.05 if same else 0.06 * (math.log(high) - math.log(low))
        return round10(low * math.exp(-pad)), round10(high * math.exp(pad))
    pad = (0.05 * abs(high) or 1.0) if same else 0.06 * (high - low)
    if zero:
        return round10(low - pad * (low < 0)), round10(high + pad * (high > 0 or same))
    return round10(low - pad), round10(high + pad)


def ticks_of(lo: float, hi: float, *, log: bool = False, count: int = 4) -> list[float]:
    """Round numbers within [lo, hi], few enough for a narrow screen."""
    if log and lo > 0 and hi / lo >= 4:
        first, last = math.floor(math.log10(lo)), math.ceil(math.log10(hi))
        for steps in ((1, 2, 5), (1, 3), (1,)):
            found = [s * 10.0**e for e in range(first, last + 1) for s in steps]
            inside = [round10(v) for v in found if lo <= v <= hi]
            if len(inside) <= count + 2:
                break
        stride = math.ceil(len(inside) / (count + 2)) if inside else 1
        if len(inside) > 2:
            return inside[::stride]
    raw = (hi - lo) / count
    if not raw > 0 or not math.isfinite(raw):
        return [round10(lo)]
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(s * size for s in (1, 2, 2.5, 5, 10) if s * size >= raw * (1 - 1e-9))
    first = math.ceil(lo / step - 1e-9)
    return [round10(k * step) for k in range(first, math.floor(hi / step + 1e-9) + 1)]
