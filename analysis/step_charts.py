"""What engine steps show of an arm, as charts: where a token's time goes, what a step costs, who
runs and who waits, and how the latencies spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from analysis.chart_parts import (
    DARK,
    LIGHT,
    PLAIN,
    SOFT,
    STRONG,
    WAITING,
    Row,
    Spec,
    Text,
)
from analysis.dataset import Cell
from analysis.in_flight import in_flight
from analysis.model import Floats, Run
from analysis.step_cost import ArmCost, Coefficient
from analysis.steps import Steps
from analysis.token_budget import PARTS, Budget
from analysis.vegalite import stacked
from analysis.vegalite_lines import Line, lines

_BUDGET = (STRONG, SOFT, ("#8a8fa3", "#7f8699"), ("#8e6331", "#f9c29a"), ("#e54192", "#f08fa9"),
           WAITING, PLAIN)  # fmt: skip
"""Colours of a budget's parts, from the floor up."""
SPANS = 60
"""Spans of a run in a timeline."""
RANKS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
"""Percentiles of a spread; the outer ones where there are enough values."""
LEAST_BEYOND = 5
"""Values that must lie beyond a percentile for it to be shown."""
LEAST_STEPS = 5
"""Steps of one batch size that make a dot."""
_BINS = 24


def budget_chart(found: Sequence[Budget], of: str) -> Spec:
    """Stacked bars, one a load, from the floor up."""
    rows = []
    for one in found:
        parts = tuple(max(0.0, one.part(name).value * 1000) for name in PARTS)
        itl = one.itl * 1000
        rows.append(Row(_load(one.cell), itl, itl, itl, parts=parts))
    used = [k for k in range(len(PARTS)) if any(row.parts[k] > 0 for row in rows)]
    kept = [
        Row(row.label, row.value, row.lo, row.hi, parts=tuple(row.parts[k] for k in used))
        for row in rows
    ]
    text = Text(
        f"Where the time between two tokens goes, {of}",
        "From the least possible (weights and KV at full memory bandwidth) up; the number is ITL.",
        "mean time between two tokens, ms",
        unit="ms",
    )
    return stacked(kept, [(PARTS[k], _BUDGET[k]) for k in used], text)


def timeline(run: Run, cell: Cell, steps: Steps) -> Spec:
    """Requests in flight, running and waiting over a run, as means of equal spans."""
    flight = in_flight(steps.found)
    begin, end = float(flight.time[0]), float(flight.time[-1])
    edges = np.linspace(begin, end, SPANS + 1)
    middle = (edges[:-1] + edges[1:]) / 2 - begin
    both = [flight.between(a, b) for a, b in pairwise(edges.tolist())]
    shown = [Line("in flight", _points(middle, np.array(both)), PLAIN)]
    running, waiting = _running(run, edges), _waiting(run, edges)
    if running is None:
        running, name = _past_first(steps, edges), "past the first token"
    else:
        name = "running (server)"
    shown.append(Line(name, _points(middle, running), STRONG))
    if waiting is not None:
        shown.append(Line("waiting (server)", _points(middle, waiting), WAITING))
    cap = cell.concurrency
    text = Text(
        f"Requests over the run, {_load(cell)}",
        "" if cap is None else f"The line is the {cap:,} that the client allows.",
        "requests",
        "time since the first request, s",
    )
    return lines(shown, text, marks=[] if cap is None else [float(cap)], zero=True)


def kv_use(run: Run, cell: Cell) -> Spec | None:
    """Share of the KV cache in use over a run, by the servers' own logs of steps."""
    found = _logged(run, "kv_use")
    window = run.requests.window if run.requests is not None else None
    if not found or window is None:
        return None
    edges = np.linspace(*window, SPANS + 1)
    middle = (edges[:-1] + edges[1:]) / 2 - edges[0]
    shown = []
    for n, (engine, clock, values) in enumerate(found):
        points = _points(middle, _mean_of(clock, values, edges) * 100)
        colour = (LIGHT[n % len(LIGHT)], DARK[n % len(DARK)])
        shown.append(Line(engine, points, colour))
    text = Text(f"KV cache in use, {_load(cell)}", "", "%", "time since the first request, s")
    return lines(shown[:6], text, marks=[100.0], zero=True)


def cost_chart(cost: ArmCost, told: Sequence[Coefficient], of: str) -> Spec | None:
    """Time of a plain step against its batch, over all loads, with the fitted cost.

    `told`: coefficients of the same runs, which say whether the batch's cost is known at all.
    """
    batch, seconds = _plain(cost.runs)
    dots = []
    for size, rows in _by_size(batch):
        low, mid, high = (float(x) for x in np.percentile(seconds[rows] * 1000, [10, 50, 90]))
        dots.append((size, mid, low, high))
    if len(dots) < 2:
        return None
    shown = [Line("measured", tuple(dots), STRONG, dots=True)]
    if any(one.name == "sequence" and not one.refused for one in told):
        shown.append(Line("fitted", _fitted(cost, dots[0][0], dots[-1][0]), WAITING))
    text = Text(
        f"Time of a plain decode step against its batch, {of}",
        "Steps without prefill in or beside them; bars hold eight steps of ten.",
        "time of a step, ms",
        "requests that decode in the step",
    )
    return lines(shown, text)


def _fitted(
    cost: ArmCost, least: float, most: float
) -> tuple[tuple[float, float, float, float], ...]:
    """The cost of a plain step by batch, each request with its mean context; ms."""
    d, beta = cost.design, cost.solved.beta
    plain = [n for n, name in enumerate(d.names) if name.startswith(("constant", "batch"))]
    context = d.names.index("context")
    each = float(d.x[:, context].sum() / max(d.x[:, d.names.index("batch")].sum(), 1.0))
    line = []
    for size in np.linspace(least, most, 40).tolist():
        x = [1.0 if d.names[n] == "constant" else _batch_term(d.names[n], size) for n in plain]
        value = float(np.array(x) @ beta[plain] + beta[context] * each * size) * 1000
        line.append((size, value, value, value))
    return tuple(line)


def spread_charts(found: Sequence[tuple[Cell, Run]], of: str) -> list[Spec]:
    """TTFT and gaps between tokens by percentile, one line a load."""
    charts = []
    for name, key in (("TTFT", "ttft"), ("Gap between tokens", "itl")):
        shown = []
        for n, (cell, run) in enumerate(found[:6]):
            points = tuple(
                (float(rank), value, value, value) for rank, value in quantiles(run, key)
            )
            if len(points) > 1 and min(p[1] for p in points) > 0:
                # A place in the order of loads, which no colour of an arm stands for.
                colour = (LIGHT[n % len(LIGHT)], DARK[n % len(DARK)])
                shown.append(Line(_load(cell), points, colour))
        if shown:
            note = "A mean hides what is here: how many requests see how long a time."
            text = Text(f"{name} by percentile, {of}", note, f"{name}, ms", "percentile")
            charts.append(lines(shown, text, log=True))
    return charts


def quantiles(run: Run, key: str) -> list[tuple[int, float]]:
    """Percentiles of a run's TTFT or gaps, ms; those with enough values beyond them."""
    if run.requests is None:
        return []
    ok = ~run.requests.failed
    if key == "ttft":
        values = run.requests.ttft[ok]
    else:
        values = run.requests.gaps[np.repeat(ok, np.diff(run.requests.offsets))]
    ranks = [r for r in RANKS if min(r, 100 - r) / 100 * len(values) >= LEAST_BEYOND]
    if not ranks:
        return []
    found = np.percentile(values * 1000, ranks)
    return [(rank, float(value)) for rank, value in zip(ranks, found, strict=True)]


def _load(cell: Cell) -> str:
    return "no cap" if cell.concurrency is None else f"{cell.concurrency:,} in flight"


def _points(x: Floats, y: Floats) -> tuple[tuple[float, float, float, float], ...]:
    return tuple(
        (float(a), float(b), float(b), float(b))
        for a, b in zip(x, y, strict=True)
        if np.isfinite(b)
    )


def _logged(run: Run, what: str) -> list[tuple[str, Floats, Floats]]:
    """(engine, clock, values) of each log of steps that says something of it."""
    logs = () if run.server is None else run.server.steps
    found = [(log.engine, log.clock, np.asarray(getattr(log, what), float)) for log in logs]
    return [one for one in found if len(one[1]) > 1 and np.isfinite(one[2]).any()]


def _running(run: Run, edges: Floats) -> Floats | None:
    return _summed(run, "running", edges)


def _waiting(run: Run, edges: Floats) -> Floats | None:
    return _summed(run, "waiting", edges)


def _summed(run: Run, what: str, edges: Floats) -> Floats | None:
    """Of all engines together, mean of each span; None where they log no steps."""
    found = _logged(run, what)
    if not found:
        return None
    means = [_mean_of(clock, values, edges) for _, clock, values in found]
    total: Floats = np.sum(means, axis=0)
    return total


def _mean_of(clock: Floats, values: Floats, edges: Floats) -> Floats:
    """Mean over time of each span of what holds from the step before to each step."""
    known = np.where(np.isfinite(values), values, 0.0)
    area = np.concatenate([[0.0], np.cumsum(np.diff(clock) * known[1:])])
    at = np.interp(edges, clock, area)
    widths = np.diff(edges)
    means: Floats = np.diff(at) / np.where(widths > 0, widths, 1.0)
    return means


def _past_first(steps: Steps, edges: Floats) -> Floats:
    """Requests past their first token, mean of each span, by their arrivals."""
    found = steps.found
    first, last = found.time[found.offsets[:-1]], found.last
    low, high = edges[:-1, None], edges[1:, None]
    inside = (np.minimum(last, high) - np.maximum(first, low)).clip(0.0)
    held: Floats = inside.sum(axis=1)
    return held / np.diff(edges)


def _plain(found: Sequence[Steps]) -> tuple[Floats, Floats]:
    """Batch and duration of steps with no prefill in them or beside them."""
    batches, seconds = [], []
    for run in found:
        t = run.table
        busy = (t.prefilled > 0) | (t.firsts > 0) | (t.recomputed > 0)
        beside = busy.copy()
        beside[1:] |= busy[:-1]
        beside[:-1] |= busy[1:]
        rows = ~beside & (t.decoding > 0)
        batches.append(t.decoding[rows].astype(float))
        seconds.append(t.duration[rows])
    return np.concatenate(batches), np.concatenate(seconds)


def _by_size(batch: Floats) -> list[tuple[float, Floats]]:
    """Rows of each batch size, or of each of `_BINS` spans of sizes where there are more."""
    if not len(batch):
        return []
    sizes = np.unique(batch)
    if len(sizes) <= _BINS:
        groups = [(float(size), batch == size) for size in sizes]
    else:
        edges = np.linspace(sizes[0], sizes[-1] + 1, _BINS + 1)
        groups = [
            (float(batch[rows].mean()), rows)
            for a, b in pairwise(edges.tolist())
            if (rows := (batch >= a) & (batch < b)).any()
        ]
    return [(size, rows) for size, rows in groups if rows.sum() >= LEAST_STEPS]


def _batch_term(name: str, size: float) -> float:
    """A column of the design at a batch: the batch itself, or what is above a hinge."""
    _, _, hinge = name.partition("above ")
    return max(size - float(hinge), 0.0) if hinge else size
