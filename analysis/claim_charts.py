"""A claim's numbers -> the one or two charts that show its verdict.

Chosen by unit and kind, never by the name of an arm or a study; none where there is nothing to
compare. Each chart is one of: a crossing, a queue, memory against room, the number found against
the stated one, two latencies with the floor, bars of one unit, ratios against 1, shares.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from analysis.bridge_chart import bridge_chart
from analysis.chart_parts import (
    PLAIN,
    SOFT,
    STRONG,
    WAITING,
    Curve,
    Row,
    Spec,
    Text,
    capital,
    drawable,
    scaled,
)
from analysis.claims._step_level import of_steps
from analysis.claims.magnitude import ABOUT
from analysis.dataset import Study
from analysis.evidence import BadClaim
from analysis.model import Estimate, Finding
from analysis.reference import stated
from analysis.vegalite import bars, curves, intervals, stacked
from analysis.wording import digits, listing, plural, shown_unit, span

Table = Mapping[str, object]
"""A claim as claims.toml has it."""

_MOST = 2
"""Charts a claim."""
_LOAD = re.compile(r"^(\d[\d,]*) in flight$")
_OF_REQUESTS = ("capacity", "queue_wait", "load", "gap_attribution")
"""Kinds whose plain counts are requests."""
_TITLES = {
    "capacity": "Room for requests at once",
    "kv_accounting": "Size of the KV cache",
    "roofline": "Least times that the hardware allows",
    "kernel_time": "Time of a part of a step, and bounds on it",
    "scaling": "The quoted figure against one instance",
}
"""Of bars whose numbers have no word in common."""
_AXES = {"1/s": "requests a second", "tok": "tokens"}
_AGAINST_CAP = ("capacity", "load")
"""Kinds whose counts are set against the requests allowed in flight."""


def for_finding(finding: Finding, arms: Sequence[str], claim: Table | None = None) -> list[Spec]:
    """Charts of a claim, two at most.

    Args:
        finding: what was found.
        arms: all arms of its study, in the order of study.toml, for their colours.
        claim: its table in claims.toml, for what the sentence itself states: a number, a margin,
            the requests in flight. Without it these are not drawn.
    """
    table = claim or {}
    numbers = [number for number in finding.numbers if drawable(number.value)]
    if finding.kind == "crossover":
        return _crossing(numbers)
    found = _queue(numbers, table) or _room(numbers)
    if not found and finding.kind == "magnitude":
        found = _stated(numbers, table)
    if found:
        return found
    # What explains a difference is worth more than the figures that differ: (worth, chart).
    ranked: list[tuple[int, Spec]] = []
    sizes = [number for number in numbers if not (_is_ratio(number) or _is_share(number))]
    if finding.kind == "gap_attribution":
        if led := bridge_chart(numbers):
            return led
        sizes = [number for number in sizes if not of_steps(number)]
        pair = _pair(sizes, arms)
        ranked += [(3, chart) for chart in pair]
        sizes = [number for number in sizes if number.unit != "s" or not pair]
    ranked += [(2, chart) for chart in _sizes(finding.kind, sizes, arms, table)]
    ratios = [number for number in numbers if _is_ratio(number)]
    if len(ratios) > 1 or (ratios and not ranked):
        ranked.append((4 if len(ratios) > 2 else 1, _ratios(finding.study, ratios, table)))
    shares = [number for number in numbers if _is_share(number)]
    if shares:
        ranked.append((5, _shares(shares)))
    best = sorted(range(len(ranked)), key=lambda k: -ranked[k][0])[:_MOST]
    return [ranked[k][1] for k in sorted(best)]


def table_of(study: Study, finding: Finding) -> Table:
    """The claim's table in claims.toml; of a claim that repeats another, the other's."""
    id = finding.repeats or finding.id
    return next((table for table in study.claims if table.get("id") == id), {})


def _crossing(numbers: Sequence[Estimate]) -> list[Spec]:
    """Ratio against load, with the crossing inside the measured loads or those by models."""
    points, rest = [], ""
    for number in numbers:
        parts = number.name.split(", ")
        load = next((m for part in parts if (m := _LOAD.match(part))), None)
        n = float(load[1].replace(",", "")) if load is not None else 0.0
        if load is not None and n > 0 and number.value > 0:
            points.append((n, number.value, number.lo, number.hi))
            rest = ", ".join(part for part in parts if part != load[0])
    if len(points) < 2:
        return []
    inside = [number for number in numbers if number.name == "crossing"]
    beyond = [n.value for n in numbers if n.name.startswith("crossing by model") and n.value > 0]
    notes = ["At 1 the arms are equal."]
    if inside:
        notes.append(f"The band is where they cross: {listing(span(n) for n in inside)} in flight.")
    if beyond:
        shown = " to ".join(digits(end) for end in sorted({min(beyond), max(beyond)}))
        notes.append(
            f"Diamonds: where {plural(len(beyond), 'model')} "
            f"{'crosses' if len(beyond) == 1 else 'cross'} beyond the runs ({shown} in flight), "
            "which is no measurement."
        )
    text = Text(
        f"{capital(rest)}, against requests in flight",
        " ".join(notes),
        "ratio (logarithmic)",
        "requests in flight in all",
    )
    curve = curves(
        [Curve("", tuple(sorted(points)))],
        text,
        reference=1.0,
        lines=[(n.value, n.lo, n.hi) for n in inside],
        ticks=beyond,
    )
    return [curve, *_by_model(numbers, max(n for n, *_ in points))]


def _by_model(numbers: Sequence[Estimate], highest: float) -> list[Spec]:
    """Where each extrapolation crosses, by its name: the diamonds of the curve may coincide."""
    found = [n for n in numbers if n.name.startswith("crossing by model: ") and n.value > 0]
    none = [n for n in numbers if n.name.startswith("no crossing by model: ")]
    if len(found) < 2:
        return []
    notes = [f"The line is the highest load that was measured, {digits(highest)}."]
    notes += [f"{n.name.partition(': ')[2]}: none up to {digits(n.value)}." for n in none]
    text = Text("Where each extrapolation crosses", " ".join(notes), "requests in flight in all")
    rows = [_row(n, n.name.partition(": ")[2]) for n in sorted(found, key=lambda n: n.value)]
    return [intervals(rows, text, log=True, reference=highest)]


def _queue(numbers: Sequence[Estimate], table: Table) -> list[Spec]:
    """Who runs and who waits, and the TTFT that this forecasts against the one seen."""
    by_name = {number.name: number for number in numbers}
    running, waiting = by_name.get("running (S_hat)"), by_name.get("waiting")
    words = ("running", "waiting for a slot")
    if running is None or waiting is None:
        running, waiting = by_name.get("past the first token"), by_name.get("waiting or in prefill")
        words = ("past the first token", "waiting or in prefill")
    charts = []
    if running is not None and waiting is not None:
        both = (max(0.0, waiting.value), max(0.0, running.value))
        total = by_name.get("requests in flight (L)")
        lo, hi = (total.lo, total.hi) if total else (sum(both), sum(both))
        cap = _count(table, "concurrency")
        text = Text(
            "Requests in flight: who runs and who waits",
            f"{capital(words[0])} {span(running)}, {words[1]} {span(waiting)}."
            + ("" if cap is None else f" The line is the {digits(cap)} that the client allows."),
            "requests",
        )
        row = Row("in flight", sum(both), lo, hi, parts=both)
        # What comes first in a request's life comes first here, as in every chart.
        parts = ((words[1], WAITING), (words[0], SOFT))
        charts.append(stacked([row], parts, text, lines=[] if cap is None else [cap]))
    forecast = by_name.get("forecast TTFT")
    if forecast is not None:
        seen = [n for n in numbers if n.unit == "s" and n.name.startswith("mean TTFT")]
        service = by_name.get("prefill service")
        rows = [_row(n, n.name) for n in (*seen, forecast, *([service] if service else []))]
        unit, factor = shown_unit("s", max(row.value for row in rows))
        text = Text(
            "TTFT seen, and as a queue for slots forecasts it",
            "Forecast: (requests in flight - slots) / throughput + prefill.",
            f"time, {unit}",
            unit=unit,
        )
        charts.append(bars([scaled(row, factor) for row in rows], text))
    return charts


def _room(numbers: Sequence[Estimate]) -> list[Spec]:
    """Bytes that have to fit, stacked, against the room there is."""
    room = next((n for n in numbers if n.name == "room" and n.unit == "B"), None)
    needs = [n for n in numbers if n.unit == "B" and n is not room and n.value >= 0]
    if room is None or not needs:
        return []
    unit, factor = shown_unit("B", max(room.value, *(n.value for n in needs)))
    total = sum(n.value for n in needs)
    slack = sum(n.hi - n.value for n in needs)
    row = Row(
        "needed",
        total,
        sum(n.lo for n in needs),
        total + slack,
        parts=tuple(n.value for n in needs),
    )
    colours = (STRONG, WAITING, SOFT, PLAIN)
    parts = [(n.name, colours[k % len(colours)]) for k, n in enumerate(needs)]
    at = f"{digits(room.value * factor)} {unit}"
    text = Text(
        "Memory needed, against the room for it",
        f"The line is the room: {at}" + (f" ({room.definition})." if room.definition else "."),
        f"memory, {unit}",
        unit=unit,
    )
    return [stacked([scaled(row, factor)], parts, text, lines=[room.value * factor])]


def _stated(numbers: Sequence[Estimate], table: Table) -> list[Spec]:
    """The number found against the one that the sentence states."""
    text, measure = table.get("stated"), table.get("measure", "value")
    if not isinstance(text, str) or not numbers:
        return []
    percent = measure in ("percent", "share")
    unit = table.get("unit") or ("%" if percent else "")
    try:
        target = stated(text, str(unit))
    except BadClaim:
        return []
    if any(number.unit != target.unit for number in numbers):
        return []
    relation = table.get("relation", "equals")
    lo, hi = target.lo, target.hi
    if relation == "about":
        lo, hi = sorted((target.value * (1 - ABOUT), target.value * (1 + ABOUT)))
    words = {"about": "stated: about", "at_least": "stated: at least", "at_most": "stated: at most"}
    bound = relation in ("at_least", "at_most")
    if bound:
        lo = hi = target.value
    name, factor = _unit_of([*(n.value for n in numbers), target.value], target.unit, percent)
    rows = [
        replace(
            _row(n, "found" if len(numbers) == 1 else f"found, {n.name.partition(', ')[2]}"),
            shown="" if bound else f"{_beside(n.value * factor, text)} {name}".strip(),
        )
        for n in numbers
    ]
    label = words.get(str(relation), "stated")
    rows.append(
        Row(
            label,
            target.value,
            lo,
            hi,
            shown=f"{_beside(target.value * factor, text)} {name}".strip(),
        )
    )
    what = numbers[0].definition.partition("; base:")[0] or numbers[0].name
    axis = name or {"ratio": "ratio", "value": "number"}.get(str(measure), str(measure))
    caption = Text(
        f"Found and stated: {what}",
        "The band is what the stated number may mean, its rounding included." if lo < hi else "",
        axis,
        unit=name,
    )
    shown = [scaled(row, factor) for row in rows]
    band = (lo * factor, hi * factor) if lo < hi else None
    line = target.value * factor if band is None else None
    return [intervals(shown, caption, band=band, reference=line)]


def _unit_of(values: Sequence[float], unit: str, percent: bool) -> tuple[str, float]:
    if percent and not unit:
        return "%", 100.0
    return shown_unit(unit, max(map(abs, values)))


def _beside(value: float, text: str) -> str:
    """A number with the decimals of the stated one, and one more where it has more."""
    places = len(text.strip().partition(".")[2])
    exact = math.isclose(value, round(value, places), rel_tol=1e-9)
    return f"{value:,.{places if exact else places + 1}f}"


def _pair(numbers: Sequence[Estimate], arms: Sequence[str]) -> list[Spec]:
    """One latency of two arms, with the least it can be."""
    times = [n for n in numbers if n.unit == "s"]
    floors = {_arm(n, arms): n for n in times if n.name.startswith("floor")}
    pair: dict[str, list[Estimate]] = {}
    for number in times:
        if _arm(number, arms) and not number.name.startswith("floor"):
            pair.setdefault(number.name.rpartition(", ")[0], []).append(number)
    stem = next((name for name, found in pair.items() if len(found) > 1), None)
    if stem is None:
        return []
    rows, notes = [], []
    for number in pair[stem]:
        arm = _arm(number, arms)
        floor = floors.get(arm)
        marker = None if floor is None else floor.value
        rows.append(Row(arm, number.value, number.lo, number.hi, arm, marker))
        if floor is not None:
            why = f" ({floor.definition})" if floor.definition else ""
            notes.append(f"{capital(floor.name)}: {span(floor)}{why}.")
    unit, factor = shown_unit("s", max(row.value for row in rows))
    text = Text(
        capital(stem), " ".join(notes), f"{stem}, {unit}", unit=unit, mark="floor" if notes else ""
    )
    return [bars([scaled(row, factor) for row in rows], text, arms)]


def _sizes(kind: str, numbers: Sequence[Estimate], arms: Sequence[str], table: Table) -> list[Spec]:
    """Bars of one unit each, where there are two numbers or something to set one against."""
    groups: dict[str, list[Estimate]] = {}
    for number in numbers:
        if number.name != "difference":
            groups.setdefault(number.unit, []).append(number)
    charts = []
    for unit, group in groups.items():
        name, factor = shown_unit(unit, max((abs(n.value) for n in group), key=float))
        labels, title = _labels([n.name for n in group])
        rows = [
            _row(number, label, _arm(number, arms))
            for number, label in zip(group, labels, strict=True)
        ]
        lines, notes = [], []
        cap = _count(table, "concurrency")
        if not unit and cap is not None and kind in _AGAINST_CAP:
            lines.append(cap)
            notes.append(f"The line is the {digits(cap)} requests allowed in flight.")
        k = _count(table, "k")
        single = next((n for n in group if n.name == "one instance"), None)
        if k is not None and single is not None:
            rows.append(scaled(_row(single, f"{digits(k)} x one instance"), k))
        if len(rows) + len(lines) < 2:
            continue
        what = "requests" if not unit and kind in _OF_REQUESTS else "number"
        if not title:
            title = _TITLES.get(kind) or capital(listing(dict.fromkeys(labels)))
        text = Text(capital(title), " ".join(notes), _AXES.get(name, name) or what, unit=name)
        charts.append(bars([scaled(row, factor) for row in rows], text, arms, lines=lines))
    return charts


def _ratios(study: str, numbers: Sequence[Estimate], table: Table) -> Spec:
    """Ratios on a logarithmic axis against 1, with the margin where the claim has one."""
    labels, title = _labels([number.name.removesuffix(f", {study}") for number in numbers])
    definitions = {number.definition for number in numbers}
    title = title or (labels[0] if len(labels) == 1 else "ratios")
    if " / " in title.partition(", ")[0]:
        # An arm's name keeps its first letter.
        title = f"ratios of {title}"
    if len(definitions) == 1 and any(definitions):
        title += f": {definitions.pop()}"
    margin, band, notes = table.get("margin"), None, ["The line at 1 is equality."]
    if isinstance(margin, int | float) and 0 < margin < 100:
        band = (1 - margin / 100, 1 + margin / 100)
        notes.append(f"The band is the stated margin of {margin:g} %.")
    text = Text(capital(title), " ".join(notes), "ratio (logarithmic)")
    rows = [_row(number, label) for number, label in zip(numbers, labels, strict=True)]
    return intervals(rows, text, log=True, reference=1.0, band=band)


def _shares(numbers: Sequence[Estimate]) -> Spec:
    """Shares of a whole, on an axis that holds the whole."""
    rows = [scaled(_row(number, number.name), 100.0) for number in numbers]
    of = next((number.definition for number in numbers if number.definition), "")
    title = capital(listing(number.name for number in numbers))
    notes = [f"{capital(of)}."] if of else []
    notes.append("The line is at one half: beyond it, it is most of the whole.")
    text = Text(title, " ".join(notes), "%", unit="%")
    return bars(rows, text, lines=[50.0], most=100.0)


def _row(number: Estimate, label: str, arm: str = "") -> Row:
    return Row(label, *_ends(number), arm)


def _ends(number: Estimate) -> tuple[float, float, float]:
    return number.value, number.lo, number.hi


def _is_share(number: Estimate) -> bool:
    return not number.unit and "share" in number.name.split()


def _is_ratio(number: Estimate) -> bool:
    if number.unit or _is_share(number):
        return False
    return "ratio" in re.findall(r"\w+", number.name) or " / " in number.name


def _arm(number: Estimate, arms: Sequence[str]) -> str:
    """The arm that a number is of: a part of its name between commas."""
    return next((part for part in number.name.split(", ")[1:] if part in arms), "")


def _labels(names: Sequence[str]) -> tuple[list[str], str]:
    """What tells numbers apart, as labels, and what they have in common, as a title."""
    split = [name.split(", ") for name in names]
    if len(names) == 1:
        label = next((part for part in split[0] if " / " in part), split[0][0])
        return [label], names[0] if label != names[0] else ""
    common = [part for part in dict.fromkeys(split[0]) if all(part in row for row in split)]
    labels = [", ".join(p for p in row if p not in common) or ", ".join(row) for row in split]
    return labels, ", ".join(common)


def _count(table: Table, key: str) -> float | None:
    """A positive whole number of the claim."""
    value = table.get(key)
    return float(value) if isinstance(value, int) and value > 0 else None
