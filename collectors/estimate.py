"""How long a plan takes and how much it writes, at least (pure but for reading earlier runs).

Recorded durations are used where there are some. Elsewhere a floor: requests one after another in
as many lanes as are in flight, each output token costing one read of the weights.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from collectors.schedule import Job, Plan, Session
from collectors.study import Workload, fixes_kv
from collectors.workload_lengths import Lengths

START_S = 90.0
"""Start of a server on a GPU: loading, compiling, capturing graphs. 60 to 120 s are usual."""
CPU_START_S = 40.0
"""Start of a small model's server on a CPU build, and its stop."""
RUN_S = 15.0
"""Each run's own cost: imports of the client, warm-up, reset of caches, counters."""
STEP_S = 0.02
"""An engine step where neither weights nor bandwidth are known."""
CPU_STEP_S = 0.03
OUTPUT_TOKENS = 200.0
"""Of a request whose length is not known."""
_MOST_S = 1e8
"""Three years: no run took as long."""
_REPEAT = re.compile(r"-r\d+$")
_TOKEN_BYTES = 32
"""A gap, its digits and the token's text in a detailed result."""
_REQUEST_BYTES = 600
"""Prompt length, start, first token, error and server timings."""
_SECOND_BYTES = 8_000
"""Counters at 1 Hz and GPU samples at 2 Hz."""
_RUN_BYTES = 500_000
"""Two full sets of counters, a log, run.json."""

Key = tuple[str, str]
"""Arm, and a run's name without its repeat."""


@dataclass(frozen=True, slots=True)
class Part:
    """A share of the time."""

    name: str
    seconds: float
    how: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time and space of a plan."""

    parts: tuple[Part, ...]
    size: int
    """Bytes of all run folders."""
    largest: int
    """Bytes of the largest run folder."""

    @property
    def seconds(self) -> float:
        """All parts together."""
        return sum(part.seconds for part in self.parts)

    def __str__(self) -> str:
        return f"{clock(self.seconds)} at least, {self.size / 1e6:,.0f} MB of results"

    def lines(self) -> list[str]:
        """For print: the whole, then each part."""
        return [
            f"Estimate: {self}",
            *(f"  {part.name}: {clock(part.seconds)} ({part.how})" for part in self.parts),
        ]


def clock(seconds: float) -> str:
    """Seconds, for print."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def recorded(results: Path, study: str) -> Mapping[Key, float]:
    """Mean seconds of earlier runs of a study, by arm and run without its repeat.

    A run.json that cannot be read, or says no seconds, is passed over.
    """
    found: dict[Key, list[float]] = {}
    for path in sorted((results / study).glob("*/*/run.json")):
        try:
            seconds = json.loads(path.read_text("utf-8"))["seconds"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(seconds, int | float) and 0 < seconds < _MOST_S:
            arm, run = path.parts[-3:-1]
            found.setdefault((arm, _REPEAT.sub("", run)), []).append(float(seconds))
    return {key: statistics.fmean(seconds) for key, seconds in found.items()}


def of_plan(
    plan: Plan,
    *,
    steps: Mapping[str, float],
    lengths: Mapping[str, Lengths],
    earlier: Mapping[Key, float],
    cpu: bool = False,
) -> Estimate:
    """The time and space of all sessions.

    Args:
        plan: What will run.
        steps: Least seconds of an engine step, by arm, where they are known.
        lengths: Of requests, by workload, where they are known.
        earlier: Mean seconds of runs, as `recorded` gives them.
        cpu: Whether the servers run on a CPU.
    """
    start = CPU_START_S if cpu else START_S
    waits = sum(_waits(plan, session) for session in plan.sessions)
    parts = [Part("starts", waits * start, f"{waits} x {start:.0f} s")]
    sizes = []
    for workload in plan.workloads:
        jobs = [job for job in plan.jobs if job.workload == workload.name]
        known = lengths.get(workload.name)
        told = [job for job in jobs if (job.arm, _REPEAT.sub("", job.name)) in earlier]
        seconds = []
        for job in jobs:
            floor = run_floor(job, workload, known, steps.get(job.arm), cpu=cpu)
            took = earlier.get((job.arm, _REPEAT.sub("", job.name)))
            seconds.append(floor + RUN_S if took is None else took)
            sizes.append(run_size(job, known, seconds[-1]))
        guessed = sorted({job.arm for job in jobs} - set(steps))
        how = f"{len(jobs)} runs"
        if told:
            how += f", {len(told)} as recorded earlier"
        if len(told) < len(jobs):
            how += ", floor by the weights read a step"
            if guessed:
                how += f"; {step_guess(cpu):g} s a step assumed for {', '.join(guessed)}"
        parts.append(Part(workload.name, sum(seconds), how))
    return Estimate(tuple(parts), sum(sizes), max(sizes, default=_RUN_BYTES))


def _waits(plan: Plan, session: Session) -> int:
    """Starts of a session that follow one another: arms start at once, as do replicas whose KV is
    fixed; others take what the one before has left."""
    flags = plan.study.servers.flags
    arms = [plan.study.arms[name] for name in session.arms]
    return max(1 if fixes_kv((*flags, *arm.flags)) else arm.replicas for arm in arms)


def step_guess(cpu: bool) -> float:
    """Seconds of an engine step of which nothing is known."""
    return CPU_STEP_S if cpu else STEP_S


def run_floor(
    job: Job, workload: Workload, known: Lengths | None, step: float | None, *, cpu: bool = False
) -> float:
    """Seconds that a run's requests take at least."""
    out = known.mean_output if known else OUTPUT_TOKENS
    lanes = max(min(job.concurrency, job.prompts), 1)
    waves = job.prompts / lanes
    served = waves * out * (step_guess(cpu) if step is None else step)
    offered = job.prompts / workload.request_rate if workload.request_rate else 0.0
    return max(served, offered)


def run_size(job: Job, known: Lengths | None, seconds: float) -> int:
    """Bytes of a run's folder."""
    out = known.mean_output if known else OUTPUT_TOKENS
    results = job.prompts * (_REQUEST_BYTES + out * _TOKEN_BYTES)
    return round(results + seconds * _SECOND_BYTES + _RUN_BYTES)
