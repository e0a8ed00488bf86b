"""Traces of the torch profiler: `*.pt.trace.json`, compressed or not, one a rank.

A Chrome trace whose events are kernels (`kernel`, `gpu_memcpy`, `gpu_memset`), calls of the CUDA
runtime, operators (`cpu_op`) and annotations; times in µs. vLLM annotates each engine step with
what it holds, and the profiler shows the annotation on the device too (`gpu_user_annotation`), from
the step's first kernel on. A trace without a GPU has operators only, whose own time counts.

Events are decoded 1 MiB at a time and of a kernel 37 bytes are kept: a trace of 524 MB (600,000
kernels) takes 7 to 10 s and 85 MiB.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.formats._activity import (
    MOST_MARKS,
    MOST_WORK,
    Activities,
    Mark,
    marks_by_launch,
    step_of,
)
from analysis.formats._chrome_trace import Event, Events, number_of
from analysis.formats._files import one_line
from analysis.model import Ignored, KernelTrace, Record, Skipped, Source

TOOL = "torch profiler"
_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
_CALLS = ("cuda_runtime", "cuda_driver")
_WAITS = re.compile(
    r"(?:cuda|hip)(?:Stream|Device|Event)Synchronize|cu(?:Stream|Ctx|Event)Synchronize"
)
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]{0,400}?"rank"\s*:\s*(\d{1,6})\b')
_TABLE_NAME = re.compile(r"profiler_out_\d{1,6}\.txt|rank\d{1,6}\.profiler_out\.txt")
"""How vLLM 0.26 to 0.28, and 0.32, name the table beside a trace."""
_RANK_NAME = re.compile(r"rank[-_]?(\d{1,6})")
_MOST_HEAD = 1 << 20
_MOST_DEVICES = 64
_END = 1e15
"""Beyond any time of a trace in µs (30 years)."""


@dataclass(eq=False, slots=True)
class _Found:
    """What the first reading of a trace gives."""

    work: dict[int, Activities] = field(default_factory=dict)
    """By device."""
    marks: dict[int, list[Mark]] = field(default_factory=dict)
    ranges: list[tuple[float, int, int]] = field(default_factory=list)
    """Steps as the host began them."""
    launches: array[float] = field(default_factory=lambda: array("d"))
    correlations: array[int] = field(default_factory=lambda: array("q"))
    waits: dict[str, tuple[int, float]] = field(default_factory=dict)
    operators: int = 0
    bad: int = 0


def sniff(path: Path, head: bytes) -> bool:
    """An object with traceEvents, and what only the torch profiler writes beside them.

    Also the table that vLLM prints beside a trace, so that it is known.
    """
    if _TABLE_NAME.fullmatch(path.name):
        return b"Self CPU %" in head
    if head[:1] != b"{" or b'"traceEvents"' not in head:
        return False
    return any(key in head for key in (b'"schemaVersion"', b'"deviceProperties"', b'"Ev Idx"'))


def read(path: Path, file: str) -> list[Record]:
    """One `KernelTrace` a device, or the reason why there is none."""
    if _TABLE_NAME.fullmatch(path.name):
        return [Ignored(file, "the profiler's own table; its figures are in the trace beside it")]
    events, found = Events(path), _Found()
    for piece in events:
        _take(piece, found)
    trouble = events.trouble
    source, rank = Source(file, "traceEvents"), _rank(events.head, path.name)
    records: list[Record] = []
    for device in sorted(found.work):
        marks, how = _marks(found, device)
        records.append(
            found.work[device].trace(
                source,
                tool=TOOL,
                rank=rank,
                device=f"GPU {device}",
                marks=marks,
                told_by=how,
                synchronisations=found.waits,
            )
        )
    if not records and found.operators:
        cpu = _of_operators(events, source, rank, found.ranges)
        records += [cpu] if cpu is not None else []
    if not records:
        why = trouble or "it holds no kernel and no operator (the trace of an API server?)"
        return [Skipped(file, f"{why}; give the trace of a worker")]
    if trouble:
        records.append(Skipped(file, f"{trouble}; what came before it was read"))
    if found.bad:
        records.append(Skipped(file, f"{found.bad:,} events without a time or a name are left out"))
    return records


def _take(events: list[Event], found: _Found) -> None:
    for event in events:
        category = event.cat
        if event.ph != "X" or not isinstance(category, str):
            continue
        if category == "cpu_op":
            found.operators += 1
        elif category in _WORK:
            _take_work(event, found)
        elif category in ("gpu_user_annotation", "user_annotation"):
            _take_mark(event, category, found)
        elif category in _CALLS:
            _take_call(event, found)


def _take_work(event: Event, found: _Found) -> None:
    times = _times(event)
    if times is None or not isinstance(event.name, str):
        found.bad += 1
        return
    device = number_of(event, "device") or 0
    if device not in found.work and len(found.work) >= _MOST_DEVICES:
        found.bad += 1
        return
    correlation = number_of(event, "correlation")
    work = found.work.setdefault(device, Activities())
    work.add(*times, event.name, -1 if correlation is None else correlation)


def _take_mark(event: Event, category: str, found: _Found) -> None:
    step, times = step_of(str(event.name)), _times(event)
    if step is None or times is None:
        return
    if category == "user_annotation":
        if len(found.ranges) < MOST_MARKS:
            found.ranges.append((times[0], *step))
    else:
        # On the device's side the process is the device's number.
        device = event.pid if isinstance(event.pid, int) else 0
        marks = found.marks.get(device, [])
        if len(marks) < MOST_MARKS and len(found.marks) < _MOST_DEVICES:
            found.marks.setdefault(device, marks).append(Mark(times[0], *step))


def _take_call(event: Event, found: _Found) -> None:
    times = _times(event)
    if times is None or not isinstance(event.name, str):
        return
    if _WAITS.fullmatch(event.name):
        count, seconds = found.waits.get(event.name, (0, 0.0))
        found.waits[event.name] = count + 1, seconds + times[1]
    correlation = number_of(event, "correlation")
    if correlation is not None and len(found.launches) < MOST_WORK:
        found.launches.append(times[0])
        found.correlations.append(correlation)


def _times(event: Event) -> tuple[float, float] | None:
    """Start and duration in s; None where they are none."""
    start, duration = _time(event.ts), _time(event.dur)
    return None if start is None or duration is None else (start, duration)


def _time(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _END:
        return None
    return value / 1e6


def _marks(found: _Found, device: int) -> tuple[list[Mark], str]:
    """Where the steps of a device begin, and how that is known."""
    if device in found.marks:
        return found.marks[device], "the profiler's annotation of each step on the device"
    if not found.ranges:
        return [], ""
    marks = marks_by_launch(found.ranges, found.launches, found.correlations, found.work[device])
    return marks, "the first kernel that the host launched in each annotated step"


def _rank(head: bytes, name: str) -> int | None:
    """The rank as the trace says it before its events, else as the file's name does."""
    said = _RANK.search(head, 0, _MOST_HEAD)
    if said:
        return int(said[1])
    named = _RANK_NAME.search(name)
    return int(named[1]) if named else None


def _of_operators(
    pieces: Events, source: Source, rank: int | None, ranges: Sequence[tuple[float, int, int]]
) -> KernelTrace | None:
    """A trace of the thread that ran most operators: their own time, without those within."""
    threads: dict[str, list[tuple[float, float, str]]] = {}
    kept = 0
    for events in pieces:
        for event in events:
            if event.ph != "X" or event.cat != "cpu_op" or not isinstance(event.name, str):
                continue
            times, thread = _times(event), one_line(str(event.tid), 40)
            if times is None or kept >= MOST_WORK // 10:
                continue
            if thread in threads or len(threads) < _MOST_DEVICES:
                kept += 1
                # One string a name: a million operators have few.
                threads.setdefault(thread, []).append((*times, event.name[:200]))
    if not threads:
        return None
    operators = max(threads.values(), key=lambda ops: sum(seconds for _, seconds, _ in ops))
    work = Activities()
    for start, seconds, name, more in _own_times(operators):
        work.add(start, seconds, name, more=more)
    if not work.start:
        return None
    return work.trace(
        source,
        tool=TOOL,
        rank=rank,
        device="CPU",
        marks=[Mark(*step) for step in ranges],
        told_by="the profiler's annotation of each step",
        warnings=("operators of one thread, in their own time; busy is when one of them ran",),
    )


def _own_times(
    operators: list[tuple[float, float, str]],
) -> Iterator[tuple[float, float, str, bool]]:
    """Each operator with its time less that of operators within, in parts that do not overlap.

    (start, seconds, name, whether it goes on with an earlier part).
    """
    # (end, name, whether a part of it was given), the innermost last.
    running: list[tuple[float, str, bool]] = []
    at = 0.0
    for start, seconds, name in sorted(operators, key=lambda op: (op[0], -op[1])):
        while running and running[-1][0] <= start:
            end, own, more = running.pop()
            if end > at:
                yield at, end - at, own, more
                at = end
        if running and start > at:
            end, own, more = running.pop()
            yield at, start - at, own, more
            running.append((end, own, True))
        at = max(at, start)
        running.append((start + seconds, name, False))
    while running:
        end, own, more = running.pop()
        if end > at:
            yield at, end - at, own, more
            at = end
