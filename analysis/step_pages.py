"""Engine steps on the pages: the section of an arm, and steps found against steps counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.chart_parts import Spec
from analysis.dataset import Arm, Cell, Study
from analysis.in_flight import steady, whole
from analysis.model import Estimate, Run, Source
from analysis.run_steps import of_cell, steps_of
from analysis.step_charts import (
    budget_chart,
    cost_chart,
    kv_use,
    quantiles,
    spread_charts,
    timeline,
)
from analysis.step_cost import Coefficient, arm_cost, coefficients
from analysis.steps import Steps
from analysis.steps_agree import StepCheck, checks_of
from analysis.token_budget import Budget, budgets
from analysis.token_times import Refused
from analysis.wording import digits, percent, show

SPREAD = (10, 50, 90, 95, 99)
"""Percentiles of the table; the chart has more."""
MOST_TIMELINES = 4
"""Timelines a workload: of the loads with the fewest and most in flight, and between them."""


@dataclass(frozen=True, eq=False, slots=True)
class Section:
    """What the engine steps of an arm show on one workload."""

    workload: str
    before: tuple[Spec, ...]
    """Where a token's time goes, and what a step costs."""
    over_time: tuple[Spec, ...]
    spread: tuple[Spec, ...]
    budgets: tuple[Budget, ...]
    costs: tuple[Coefficient, ...]
    windows: tuple[tuple[str, str, str, str, str, str], ...]
    """Load, window, share of the run, in flight, ITL, output throughput."""
    percentiles: tuple[tuple[str, ...], ...]
    """Load, latency, then one of each of `SPREAD`."""
    refused: tuple[tuple[str, str], ...]
    """Load and why its steps are not known."""

    @property
    def parts(self) -> list[tuple[str, Estimate, str]]:
        """Load, part of a gap with its interval, share of the gap; each gap itself first."""
        rows = []
        for one in self.budgets:
            load, itl = _load(one.cell), one.itl
            rows.append((load, _estimate("all of it: ITL", itl, itl, itl, one.cell), ""))
            for part in one.parts if itl > 0 else ():
                number = _estimate(part.name, part.value, part.lo, part.hi, one.cell)
                rows.append((load, number, percent(part.value / itl)))
        return rows

    @property
    def notes(self) -> list[str]:
        """What weakens the budgets, each once."""
        return list(dict.fromkeys(note for one in self.budgets for note in one.notes))


def sections(study: Study, arm: Arm) -> tuple[Section, ...]:
    """A section for each workload whose runs of this arm have per-request arrays."""
    found = []
    for workload in study.workloads:
        cells = [c for c in study.cells if c.arm is arm and c.workload == workload]
        cells = [c for c in cells if any(run.requests is not None for run in c.runs)]
        if cells:
            found.append(_section(arm, workload, cells))
    return tuple(found)


def _section(arm: Arm, workload: str, cells: Sequence[Cell]) -> Section:
    of = f"{arm.name} on {workload}"
    shown: list[tuple[Cell, Run, Steps]] = []
    refused = []
    for cell in cells:
        run = next((run for run in cell.runs if isinstance(steps_of(run, arm), Steps)), None)
        if run is not None and isinstance(steps := steps_of(run, arm), Steps):
            shown.append((cell, run, steps))
            continue
        reasons = [f for r in cell.runs if isinstance(f := steps_of(r, arm), Refused)]
        refused.append((_load(cell), reasons[0].reasons[0]))
    every = [steps for cell in cells for steps in of_cell(cell)]
    told = coefficients(every) if every else ()
    cost = arm_cost(every) if every else None
    found = () if cost is None else budgets([(c, steps) for c, _, steps in shown], cost)
    before = [budget_chart(found, of)] if found else []
    costs = None if cost is None else cost_chart(cost, told, of)
    first_runs = [(c, next(r for r in c.runs if r.requests is not None)) for c in cells]
    over_time = [
        chart
        for cell, run, steps in _some(shown)
        for chart in (timeline(run, cell, steps), kv_use(run, cell))
        if chart is not None
    ]
    return Section(
        workload,
        (*before, *([costs] if costs is not None else [])),
        tuple(over_time),
        tuple(spread_charts(first_runs, of)),
        found,
        told,
        tuple(row for cell, _, steps in shown for row in _windows(cell, steps)),
        tuple(row for cell, run in first_runs for row in _percentiles(cell, run)),
        tuple(refused),
    )


def _some(shown: Sequence[tuple[Cell, Run, Steps]]) -> list[tuple[Cell, Run, Steps]]:
    if len(shown) <= MOST_TIMELINES:
        return list(shown)
    last = len(shown) - 1
    return [shown[round(k * last / (MOST_TIMELINES - 1))] for k in range(MOST_TIMELINES)]


def _windows(cell: Cell, steps: Steps) -> list[tuple[str, str, str, str, str, str]]:
    """The whole run and its steady window, side by side."""
    rows = [("whole run", whole(steps.found))]
    calm = steady(steps.found, cell.concurrency) if cell.concurrency else None
    if calm is not None:
        rows.append(("steady window", calm))
    return [
        (_load(cell), name, percent(w.share, 0), digits(w.in_flight), show(w.itl, "s"),
         show(w.output_throughput, "tok/s"))
        for name, w in rows
    ]  # fmt: skip


def _percentiles(cell: Cell, run: Run) -> list[tuple[str, ...]]:
    rows = []
    for name, key in (("TTFT", "ttft"), ("gap between tokens", "itl")):
        found = dict(quantiles(run, key))
        told = [f"{digits(found[rank])} ms" if rank in found else "" for rank in SPREAD]
        if found:
            rows.append((_load(cell), name, *told))
    return rows


def _estimate(name: str, value: float, lo: float, hi: float, cell: Cell) -> Estimate:
    source = Source(cell.runs[0].source.file, "start_times, ttfts, itls")
    return Estimate(name, value, lo, hi, "s", "95 % of the fit", sources=(source,))


def _load(cell: Cell) -> str:
    return "no cap" if cell.concurrency is None else f"{cell.concurrency:,} in flight"


def cost(one: Coefficient) -> tuple[str, str]:
    """A coefficient in ms with its unit, and its interval; or why it is not given."""
    if one.refused:
        return "not given", one.refused
    unit = one.unit.removeprefix("s ")
    value, lo, hi = (1000 * x for x in (one.value, one.lo, one.hi))
    return f"{digits(value, lo, hi)} ms {unit}", f"[{digits(lo, lo, hi)}, {digits(hi, lo, hi)}]"


def step_rows(study: Study) -> list[tuple[Run, str, str, str, str, str]]:
    """Each run with requests: steps found and counted, stood-by and preempted, batch, rule."""
    return [(one.run, *_row(one)) for one in checks_of(study)]


def _row(one: StepCheck) -> tuple[str, str, str, str, str]:
    counted = "" if one.counted is None else f"{one.counted:,}"
    preempted = "" if one.preempted is None else f"{one.preempted:,}"
    if isinstance(one.found, Refused):
        return "not known", counted, preempted, "", one.found.reasons[0]
    quality = one.found.quality
    rule = "by pauses" if quality.rule == "pauses" else "on a lattice"
    merged = f", {quality.merged_chunks:,} chunks read together" if quality.merged_chunks else ""
    off = "" if one.batch_off is None else f"{one.batch_off:g}"
    skips = f"{quality.skip_events:,}"
    return (
        f"{quality.steps:,}",
        counted,
        f"{skips} of {preempted}" if preempted else skips,
        off,
        f"{rule}{merged}",
    )
