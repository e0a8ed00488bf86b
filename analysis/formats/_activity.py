"""Work on one device, sorted by time -> a `KernelTrace`: classes, idle time, and engine steps.

    builder = Activities(); builder.add(start, seconds, name); ...
    trace = builder.trace(source, tool="torch profiler", device="GPU 0", marks=marks, ...)

A *mark* is the moment on the device at which a step begins, with what its name says of it; a step
lasts to the next mark. Readers of traces differ only in where they find work and marks.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.kernel_classes import KINDS, doubt_of, kind_of
from analysis.model import Floats, Ints, Kernel, KernelSteps, KernelTrace, Source

MOST_WORK = 10_000_000
"""Kernels that are kept of a trace; 40 bytes each."""
MOST_NAMES = 20_000
"""Different names; the rest go by one name."""
MOST_MARKS = 1_000_000
MOST_TOLD = 200
_MOST_NAME = 2_000
_REST = "(further names)"

NO_STEPS = (
    "the trace marks no engine steps; record it with the server's own profiler "
    "(vllm serve --profiler-config)"
)


class Mark(NamedTuple):
    """Where a step begins, and what its name says."""

    start: float
    batch: int
    """Sequences that get a token; -1 where it is not known."""
    prompts: int
    """Sequences of which prompt tokens are computed; -1 where it is not known."""


_STEP_NAMES = (
    # vLLM 0.13 and later: requests and tokens, of prompts and of generation.
    re.compile(r"execute_context_(?P<prompts>\d{1,9})\(\d+\)_generation_(?P<batch>\d{1,9})\(\d+\)"),
    # vLLM 0.8 to 0.12: requests new in this step, and the others.
    re.compile(r"execute_new_(?P<prompts>\d{1,9})_cached_(?P<batch>\d{1,9})"),
)
"""What vLLM's workers call a step when they are profiled (`annotate_profile` of gpu_worker.py)."""


def step_of(name: str) -> tuple[int, int] | None:
    """(batch, prompts) of the step that an annotation names; None where it names no step."""
    for pattern in _STEP_NAMES:
        if found := pattern.fullmatch(name):
            return int(found["batch"]), int(found["prompts"])
    return None


@dataclass(eq=False, slots=True)
class Activities:
    """Work on one device as a reader finds it, in any order; times in s."""

    start: array[float] = field(default_factory=lambda: array("d"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    name: array[int] = field(default_factory=lambda: array("i"))
    correlation: array[int] = field(default_factory=lambda: array("q"))
    call: array[int] = field(default_factory=lambda: array("b"))
    names: dict[str, int] = field(default_factory=dict)
    left_out: int = 0

    def add(
        self, start: float, seconds: float, name: str, correlation: int = -1, *, more: bool = False
    ) -> None:
        """One kernel, copy or set; the call that launched it has the same correlation.

        `more`: it goes on with an earlier one, and is no call of its own.
        """
        if len(self.start) >= MOST_WORK:
            self.left_out += 1
            return
        name = name[:_MOST_NAME]
        if name not in self.names and len(self.names) >= MOST_NAMES:
            name = _REST
        self.start.append(start)
        self.seconds.append(seconds)
        self.name.append(self.names.setdefault(name, len(self.names)))
        self.correlation.append(correlation)
        self.call.append(not more)

    def trace(
        self,
        source: Source,
        *,
        tool: str,
        rank: int | None,
        device: str,
        marks: Sequence[Mark],
        told_by: str,
        synchronisations: Mapping[str, tuple[int, float]] | None = None,
        warnings: Sequence[str] = (),
    ) -> KernelTrace:
        """What was seen, by class and by step; there must be some work."""
        order = np.argsort(np.frombuffer(self.start), kind="stable")
        start = np.frombuffer(self.start)[order]
        seconds = np.frombuffer(self.seconds)[order]
        name = np.frombuffer(self.name, dtype=np.int32)[order].astype(np.int64)
        calls = np.frombuffer(self.call, dtype=np.int8)[order]
        ends = start + seconds
        before = np.concatenate([[start[0]], np.maximum.accumulate(ends)[:-1]])
        pauses = np.maximum(0.0, start - before)
        busy = np.maximum(0.0, ends - np.maximum(start, before))
        kinds, kernels = self._by_name(seconds, name, calls)
        total = float(seconds.sum())
        notes = [doubt_of(kernels, total)]
        if self.left_out:
            notes.append(f"{self.left_out:,} kernels beyond the first {MOST_WORK:,} are left out")
        return KernelTrace(
            source=source,
            tool=tool,
            rank=rank,
            device=device,
            span=float(ends.max() - start[0]),
            busy=float(busy.sum()),
            gaps=int((pauses > 0).sum()),
            kinds={kind: float(seconds[kinds == place].sum()) for place, kind in enumerate(KINDS)},
            kernels=kernels[:MOST_TOLD],
            names=len(kernels),
            synchronisations=dict(synchronisations or {}),
            steps=_steps(marks, start, seconds, busy, kinds, float(ends.max())) if marks else None,
            told_by=told_by if marks else NO_STEPS,
            warnings=(*warnings, *(note for note in notes if note)),
        )

    def _by_name(
        self, seconds: Floats, name: Ints, calls: NDArray[np.int8]
    ) -> tuple[Ints, tuple[Kernel, ...]]:
        """The class of each work as its place in `KINDS`, and the kernels, the longest first."""
        places = {kind: place for place, kind in enumerate(KINDS)}
        known = [kind_of(text) for text in self.names]
        counts = np.bincount(name, weights=calls, minlength=len(known))
        sums = np.bincount(name, weights=seconds, minlength=len(known))
        found = [
            Kernel(text, kind, int(count), float(total))
            for text, kind, count, total in zip(self.names, known, counts, sums, strict=True)
        ]
        by_time = tuple(sorted(found, key=lambda kernel: (-kernel.seconds, kernel.name)))
        kinds = np.array([places[kind] for kind in known], dtype=np.int64)[name]
        return kinds, by_time


def _steps(
    marks: Sequence[Mark], start: Floats, seconds: Floats, busy: Floats, kinds: Ints, end: float
) -> KernelSteps | None:
    """Sums of each step; work before the first mark belongs to none."""
    ordered = sorted(mark for mark in marks if mark.start < end)
    if not ordered:
        return None
    edges = np.array([mark.start for mark in ordered])
    step = np.searchsorted(edges, start, "right") - 1
    within = step >= 0

    def sums(weights: Floats, which: NDArray[np.bool_]) -> Floats:
        found = np.bincount(step[which], weights=weights[which], minlength=len(edges))
        return found.astype(np.float64)

    return KernelSteps(
        seconds=np.diff(np.append(edges, end)),
        busy=sums(busy, within),
        kinds={kind: sums(seconds, within & (kinds == place)) for place, kind in enumerate(KINDS)},
        batch=np.array([mark.batch for mark in ordered], dtype=np.int64),
        prompts=np.array([mark.prompts for mark in ordered], dtype=np.int64),
    )


def marks_by_launch(
    ranges: Sequence[tuple[float, int, int]],
    launches: Sequence[float],
    correlations: Sequence[int],
    work: Activities,
) -> list[Mark]:
    """Where steps begin on the device, from where the host began them.

    A step's first work is that of the first call after the host entered its range.

    Args:
        ranges: (start on the host, batch, prompts) of each step.
        launches: when each call was made, s.
        correlations: of the calls.
        work: with the correlation of the call that launched it.
    """
    first: dict[int, float] = {}
    for start, correlation in zip(work.start, work.correlation, strict=True):
        if correlation >= 0 and start < first.get(correlation, float("inf")):
            first[correlation] = start
    calls = sorted(
        (time, first[correlation])
        for time, correlation in zip(launches, correlations, strict=True)
        if correlation in first
    )
    times = np.array([time for time, _ in calls])
    marks = []
    for start, batch, prompts in ranges:
        place = int(np.searchsorted(times, start))
        if place < len(calls):
            marks.append(Mark(calls[place][1], batch, prompts))
    return marks
