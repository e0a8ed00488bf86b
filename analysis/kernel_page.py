"""The arm page's sections on its GPUs: a step by classes of kernels, and samples under load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from analysis.chart_html import figures
from analysis.chart_parts import DARK, LIGHT, PLAIN, Row, Spec, Text, clean
from analysis.dataset import Arm, Cell
from analysis.gpu_use import GpuUse, gpu_use
from analysis.kernel_classes import KINDS
from analysis.kernel_steps import IDLE, PARTS, Decoding, decoding
from analysis.markdown import Safe, code, escape
from analysis.model import Estimate, KernelTrace, Source, told
from analysis.vegalite import stacked
from analysis.wording import digits, listing, percent, plural, show

MOST_TRACES = 16
"""Of an arm; eight ranks at two batches."""
MOST_KERNELS = 15
_COLOURS = dict(zip(KINDS, zip(LIGHT, DARK, strict=True), strict=False)) | {IDLE: PLAIN}


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel of a table."""

    name: str
    kind: str
    calls: str
    time: str
    share: str


@dataclass(frozen=True, slots=True)
class TraceTable:
    """One trace in words and numbers."""

    title: str
    about: str
    file: str
    unit: str
    rows: tuple[tuple[str, Estimate, str], ...]
    """Class, its time, its share."""
    kernels: tuple[KernelRow, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelPage:
    """What the section on kernels shows."""

    charts: Safe
    traces: tuple[TraceTable, ...]


def kernel_page(arm: Arm) -> KernelPage:
    """The traces of an arm as a chart and tables."""
    traces = arm.traces[:MOST_TRACES]
    steps = [decoding(trace) for trace in traces]
    tables = [
        _of_steps(trace, own) if own is not None else _of_sums(trace)
        for trace, own in zip(traces, steps, strict=True)
    ]
    drawn = [own for own in steps if own is not None]
    charts = figures([_chart(arm, drawn)], "kernels") if drawn else Safe("")
    return KernelPage(charts, tuple(tables))


def _label(trace: KernelTrace, batch: int | None) -> str:
    who = trace.device if trace.rank is None else f"rank {trace.rank}"
    size = "" if batch is None else f", {plural(batch, 'sequence')} a step"
    return f"{who}{size}"


def _chart(arm: Arm, drawn: Sequence[Decoding]) -> Spec:
    means = [{part: float(own.part(part).mean()) * 1e3 for part in PARTS} for own in drawn]
    used = [part for part in PARTS if any(mean[part] > 0 for mean in means)]
    rows = []
    for own, mean in zip(drawn, means, strict=True):
        parts = tuple(mean[part] for part in used)
        total = sum(parts)
        rows.append(Row(_label(own.trace, own.batch), total, total, total, parts=parts))
    text = Text(
        f"Where a decode step's time goes on the GPU, {clean(arm.name)}",
        "Means over the steps of a profiler's trace. Where streams overlap, a bar is longer than "
        "its step.",
        "ms a step",
        unit="ms",
    )
    return stacked(rows, [(_short(part), _COLOURS[part]) for part in used], text)


def _short(part: str) -> str:
    return PARTS[part].partition(":")[0]


def _of_steps(trace: KernelTrace, own: Decoding) -> TraceTable:
    whole = float(own.seconds.mean())
    rows = [
        (PARTS[part], n, percent(n.value / whole))
        for part in PARTS
        if (n := own.estimate(part, part)).value > 0
    ]
    rows.append(("the whole step", own.whole("step"), "100.0 %"))
    about = [
        f"{plural(own.count, 'decode step')} of {show(own.median, 's')} (median), of "
        f"{own.all_steps:,} that {trace.tool} saw; steps are known by {trace.told_by}.",
        f"Some kernel runs for {percent(own.busy_share)} of the time.",
        _pauses(trace),
        _waits(trace),
    ]
    title = _label(trace, own.batch)
    return _table(trace, title, about, "A step", rows)


def _of_sums(trace: KernelTrace) -> TraceTable:
    """A trace that marks no steps: times of all of it."""
    total = sum(trace.kinds.values())
    source = (Source(trace.source.file, trace.source.key),)
    rows = [
        (KINDS[kind], Estimate(kind, t, t, t, "s", "exact", sources=source), percent(t / total))
        for kind, t in trace.kinds.items()
        if t > 0
    ]
    about = [f"All that was captured by {trace.tool}, for there are no steps: {trace.told_by}."]
    if trace.span > 0:
        about.append(f"Some kernel runs for {percent(trace.busy / trace.span)} of the time.")
        about.append(_pauses(trace))
    return _table(trace, _label(trace, None), [*about, _waits(trace)], "In all", rows)


def _table(
    trace: KernelTrace,
    title: str,
    about: Sequence[str],
    unit: str,
    rows: Sequence[tuple[str, Estimate, str]],
) -> TraceTable:
    total = sum(trace.kinds.values())
    kernels = tuple(
        KernelRow(
            told(kernel.name, 100),
            _short(kernel.kind),
            f"{kernel.count:,}",
            show(kernel.seconds, "s"),
            percent(kernel.seconds / total) if total > 0 else "0 %",
        )
        for kernel in trace.kernels[:MOST_KERNELS]
    )
    text = " ".join(sentence for sentence in about if sentence)
    return TraceTable(title, text, trace.source.file, unit, tuple(rows), kernels, trace.warnings)


def _pauses(trace: KernelTrace) -> str:
    idle = trace.span - trace.busy
    if not trace.gaps or not idle > 0:
        return ""
    return (
        f"In the whole capture there are {trace.gaps:,} pauses between kernels, "
        f"{show(idle, 's')} together."
    )


def _waits(trace: KernelTrace) -> str:
    if not trace.synchronisations:
        return ""
    calls = listing(
        f"{name} ({plural(count, 'call')}, {show(seconds, 's')})"
        for name, (count, seconds) in sorted(trace.synchronisations.items())
    )
    return f"The host waited for the device in {calls}."


def gpu_rows(cells: Sequence[Cell]) -> list[list[object]]:
    """One row of the table of samples for each run that has some."""
    return [
        _gpu_row(cell, run.source.file, use)
        for cell in cells
        for run in cell.runs
        if (use := gpu_use(run)) is not None
    ]


def _gpu_row(cell: Cell, file: str, use: GpuUse) -> list[object]:
    load = "no cap" if cell.concurrency is None else f"{cell.concurrency} in flight"
    place = PurePosixPath(file)
    stem = place.parent.name if place.name.startswith("bench") else place.name
    many = "" if use.gpus == 1 else f" ({use.gpus} GPUs)"
    memory = show(use.memory_used, "B") if math.isfinite(use.memory_used) else ""
    heat = _known(use.temperature, " °C") if math.isfinite(use.temperature) else ""
    state = [memory, heat, *(f"P{state}" for state in use.pstates)]
    cells: list[object] = [
        f"{cell.workload}, {load}: {stem}",
        f"{use.window}, {show(use.seconds, 's')}",
        f"{_share(use.utilisation)} ({_share(use.full)})",
        _known(use.power, " W") + many + _by_counter(use),
        _energy(use),
        f"{_known(use.clock, ' MHz')}, {_share(use.slowest)} of its greatest; lowest "
        f"{_known(use.lowest_clock, ' MHz')}",
        _held(use),
        ", ".join(word for word in state if word) or "not told",
        code(use.source.file),
    ]
    return [one if isinstance(one, Safe) else escape(one) for one in cells]


def _known(value: float, unit: str) -> str:
    return f"{digits(value)}{unit}" if math.isfinite(value) else "not told"


def _share(value: float) -> str:
    return percent(value) if math.isfinite(value) else "not told"


def _by_counter(use: GpuUse) -> str:
    """The same by another way: what the GPUs' own counters of energy say."""
    if not math.isfinite(use.counter) or not use.seconds > 0:
        return ""
    return f"; by its counter {_known(use.counter / use.seconds, ' W')}"


def _energy(use: GpuUse) -> str:
    each = use.energy_per_token
    if each is None:
        return "not told"
    lo, hi = (digits(end, each.lo, each.hi) for end in (each.lo, each.hi))
    return f"{digits(each.value, each.lo, each.hi)} J [{lo}, {hi}]"


def _held(use: GpuUse) -> str:
    if not use.reasons_known:
        return "not told"
    return listing(f"{word} ({percent(share, 0)})" for word, share in use.reasons) or "nothing"
