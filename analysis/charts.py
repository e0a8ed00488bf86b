"""Studies and findings -> charts as plain Vega-Lite specs, and the HTML that holds them.

`for_finding` draws a claim, `for_cells` where the time of a request goes, `for_loads` load curves;
`figure` makes a spec a figure of a page. `analysis.vegalite` knows how a chart is built.
"""

from __future__ import annotations

from collections.abc import Sequence

from analysis.chart_html import figure, figures
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
    palette,
    scaled,
)
from analysis.claim_charts import for_finding, table_of
from analysis.dataset import Cell, Study
from analysis.floor import step_floor
from analysis.metrics import label_of, metric_of
from analysis.vegalite import curves, stacked
from analysis.wording import shown_unit

__all__ = ["figure", "figures", "for_cells", "for_finding", "for_loads", "palette", "table_of"]

_CURVES = (
    ("total_token_throughput", "output_throughput", "request_throughput"),
    ("mean_itl", "mean_tpot"),
    ("mean_ttft",),
)
"""Metrics of load curves; of each group the first that some arm has at two loads."""


def for_cells(study: Study, arm: str = "") -> list[Spec]:
    """Where a request's time goes, and requests in flight against the cap: two charts a workload.

    With `arm`, of the cells of this arm only, all its workloads in one chart.
    """
    if arm:
        own = [cell for cell in study.cells if cell.arm.name == arm]
        return _accounts(own, [f"{cell.workload}, {_load(cell)}" for cell in own], arm)
    found: list[Spec] = []
    for workload in study.workloads:
        cells = [cell for cell in study.cells if cell.workload == workload]
        found += _accounts(cells, [f"{cell.arm.name}, {_load(cell)}" for cell in cells], workload)
    return found


def for_loads(study: Study, workload: str) -> list[Spec]:
    """Load curves of a workload, one line an arm: throughput, time per token, TTFT.

    Arms that were measured at one load only are left out: they have no curve.
    """
    found = [_of_group(study, workload, group) for group in _CURVES]
    # Curves of throughput rise with the load and lie close: a request's share of it parts them.
    found.insert(1, _of_group(study, workload, _CURVES[0], each=True))
    return [chart for chart in found if chart is not None]


def _of_group(
    study: Study, workload: str, group: Sequence[str], *, each: bool = False
) -> Spec | None:
    """A chart of the first metric that some arm has; `each`: divided by requests in flight."""
    for name in group:
        curved = [_curve(study, arm, workload, name) for arm in study.arms]
        if each:
            curved = [Curve(c.arm, tuple(_shared(point) for point in c.points)) for c in curved]
        drawn = [curve for curve in curved if len(curve.points) > 1]
        if not drawn:
            continue
        known = metric_of(name)
        greatest = max(point[1] for curve in drawn for point in curve.points)
        unit, factor = shown_unit(known.unit if known else "", greatest)
        label = label_of(name) + (" for each request in flight" if each else "")
        text = Text(
            f"{capital(label)}{'' if each else ' against requests in flight'}, {workload}",
            "Both axes are logarithmic. Vertical bars are intervals; most are smaller than a dot.",
            # The title above says the rest: a long one would not fit beside the axis.
            f"{label_of(name)}, {unit}" if unit else label_of(name),
            "requests in flight in all",
        )
        shown = [
            Curve(c.arm, tuple((n, v * factor, a * factor, b * factor) for n, v, a, b in c.points))
            for c in drawn
        ]
        return curves(shown, text, list(study.arms))
    return None


def _shared(point: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    n, value, lo, hi = point
    return n, value / n, lo / n, hi / n


def _curve(study: Study, arm: str, workload: str, name: str) -> Curve:
    points = []
    for cell in study.loads(arm, workload):
        found = cell.estimate(name, name)
        if found is not None and found.value > 0 and drawable(found.value):
            points.append((float(cell.concurrency or 0), found.value, found.lo, found.hi))
    return Curve(arm, tuple(points))


def _accounts(cells: Sequence[Cell], labels: Sequence[str], of: str) -> list[Spec]:
    """Time of a request, and requests in flight, of cells whose accounts are complete."""
    times, counts = [], []
    for cell, label in zip(cells, labels, strict=True):
        ttft, decode = cell.account("ttft"), cell.account("decode")
        stay = cell.estimate("stay", "stay")
        if stay is not None and ttft is not None and decode is not None:
            parts = (max(0.0, ttft.value), *_decoding(cell, max(0.0, decode.value)))
            if drawable(stay.value, *parts):
                times.append(Row(label, stay.value, stay.lo, stay.hi, parts=parts))
        first, past = cell.account("l_first"), cell.account("l_decode")
        flight = cell.estimate("in_flight", "in flight")
        if flight is not None and first is not None and past is not None:
            both = (max(0.0, first.value), max(0.0, past.value))
            cap = None if cell.concurrency is None else float(cell.concurrency)
            if drawable(flight.value, *both):
                counts.append(
                    Row(label, flight.value, flight.lo, flight.hi, marker=cap, parts=both)
                )
    charts = []
    if times:
        unit, factor = shown_unit("s", max(row.value for row in times))
        charts.append(_times([scaled(row, factor) for row in times], of, unit))
    if counts:
        text = Text(
            f"Requests in flight, {of}",
            "Means by Little's law: throughput x time. The mark is the most the client allows.",
            "requests",
        )
        names = (("before the first token", WAITING), ("past the first token", SOFT))
        charts.append(stacked(counts, names, text))
    return charts


def _decoding(cell: Cell, decode: float) -> tuple[float, float, float]:
    """Decoding time of a request: least, above that, and with no floor known."""
    floor, itl = step_floor(cell), cell.metric("mean_itl")
    if floor is None or itl is None or itl.value <= 0:
        return 0.0, 0.0, decode
    # Above 1 an input is wrong, which the answers on the page say.
    share = min(1.0, floor.total.value / itl.value)
    return decode * share, decode * (1 - share), 0.0


def _times(rows: Sequence[Row], of: str, unit: str) -> Spec:
    names = [
        ("before the first token", WAITING),
        ("decoding, least possible", STRONG),
        ("decoding, above the least", SOFT),
        ("decoding, floor unknown", PLAIN),
    ]
    used = [k for k in range(len(names)) if k == 0 or any(row.parts[k] > 0 for row in rows)]
    note = "Least possible: reading weights and KV once a token at full memory bandwidth."
    text = Text(
        f"Where the time of a request goes, {of}",
        note if 1 in used else "",
        f"mean time of a request, {unit}",
        unit=unit,
    )
    kept = [
        Row(row.label, row.value, row.lo, row.hi, parts=tuple(row.parts[k] for k in used))
        for row in rows
    ]
    return stacked(kept, [names[k] for k in used], text)


def _load(cell: Cell) -> str:
    return "no cap" if cell.concurrency is None else f"{cell.concurrency} in flight"
