"""The engine inside `analysis.simulate`: vLLM's scheduler over KV blocks, and a queue of events."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from analysis.simulate import Engine, StepCost


class Event(IntEnum):
    """What may happen; at one time in this order."""

    STEP_END = 0
    ARRIVAL = 1


@dataclass(slots=True)
class Job:
    """A request inside the engine. Mutable: the engine's own state, seen by nobody else."""

    index: int
    prompt: int
    output: int
    computed: int = 0
    """Tokens in the KV cache."""
    made: int = 0
    """Tokens emitted."""
    blocks: int = 0
    engine: int = 0
    arrived: float = 0.0
    scheduled: float = math.nan
    steps: list[int] = field(default_factory=list)
    """The engine's step of each token."""


class Timeline:
    """Events in the order of their times; ties by kind, then by the order of their making."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Event, int, Job | int]] = []
        self._made = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def push(self, time: float, kind: Event, what: Job | int) -> None:
        """Something to happen at a time, s."""
        heapq.heappush(self._heap, (time, kind, self._made, what))
        self._made += 1

    def pop(self) -> tuple[float, list[tuple[Event, Job | int]]]:
        """The next time, s, and all that happens then."""
        time = self._heap[0][0]
        found = []
        while self._heap and self._heap[0][0] == time:
            _, kind, _, what = heapq.heappop(self._heap)
            found.append((kind, what))
        return time, found


class EngineState:
    """One engine: what runs, what waits, and a row for each step it made."""

    def __init__(self, cost: StepCost, engine: Engine, draws: np.random.Generator) -> None:
        self.cost, self.engine = cost, engine
        self.running: list[Job] = []
        self.waiting: deque[Job] = deque()
        self.free = engine.kv_blocks
        self.preemptions = 0
        self.rows: list[tuple[float, float, int, int]] = []
        """End s, duration s, requests scheduled, tokens prefilled."""
        self._draws = draws
        self._noise: Iterator[float] = iter(())
        self._log_noise = 0.0
        self._scheduled: list[tuple[Job, int]] = []
        self._busy = False

    @property
    def in_flight(self) -> int:
        """Requests that run or wait."""
        return len(self.running) + len(self.waiting)

    def start_step(self, now: float) -> float | None:
        """Schedule and begin a step; its end, s, or None where one is under way or none is due."""
        if self._busy or not (self.running or self.waiting):
            return None
        self._scheduled = self._schedule(now)
        decoding = context = prefilled = 0
        for job, tokens in self._scheduled:
            if job.made and tokens == 1:
                decoding += 1
                context += job.computed
            else:
                prefilled += tokens
        cost = self.cost
        duration = (
            cost.weights
            + cost.sequence * decoding
            + cost.context * context
            + cost.prefill * prefilled
        ) * self._factor()
        self._busy = True
        self.rows.append((now + duration, duration, len(self._scheduled), prefilled))
        return now + duration

    def finish_step(self, now: float) -> list[Job]:
        """End the step under way: emit its tokens; the requests that are complete."""
        self._busy = False
        done = []
        step = len(self.rows) - 1
        for job, tokens in self._scheduled:
            job.computed += tokens
            if job.computed == job.prompt + job.made:  # nothing left to compute: a token comes
                job.made += 1
                job.steps.append(step)
                if job.made == job.output:
                    done.append(job)
        for job in done:
            self.free += job.blocks
            self.running.remove(job)
        return done

    def _schedule(self, now: float) -> list[tuple[Job, int]]:
        """What the step computes: (request, tokens), running ones first."""
        budget = self.engine.max_num_batched_tokens
        chosen: list[tuple[Job, int]] = []
        preempted = False
        at = 0
        while at < len(self.running) and budget > 0:
            job = self.running[at]
            tokens = min(job.prompt + job.made - job.computed, budget)
            while not self._allocate(job, tokens):
                victim = self.running.pop()
                self._preempt(victim)
                preempted = True
                if victim is job:
                    break
            else:
                chosen.append((job, tokens))
                budget -= tokens
                at += 1
        if preempted:
            return chosen
        while self.waiting and len(self.running) < self.engine.max_num_seqs and budget > 0:
            job = self.waiting[0]
            tokens = min(job.prompt + job.made - job.computed, budget)
            if not self._allocate(job, tokens):
                break
            self.waiting.popleft()
            self.running.append(job)
            if math.isnan(job.scheduled):
                job.scheduled = now
            chosen.append((job, tokens))
            budget -= tokens
        return chosen

    def _allocate(self, job: Job, tokens: int) -> bool:
        more = -(-(job.computed + tokens) // self.engine.block_size) - job.blocks
        if more > self.free:
            return False
        if more > 0:
            self.free -= more
            job.blocks += more
        return True

    def _preempt(self, job: Job) -> None:
        self.free += job.blocks
        job.blocks = job.computed = 0
        self.waiting.appendleft(job)
        self.preemptions += 1

    def _factor(self) -> float:
        """The noise of a step: a stationary first-order process in logarithms, of mean 1."""
        cost = self.cost
        if not cost.noise:
            return 1.0
        draw = next(self._noise, None)
        if draw is None:
            self._noise = iter(self._draws.standard_normal(256).tolist())
            draw = next(self._noise)
        fresh = math.sqrt(1 - cost.persistence**2) * cost.noise * draw
        self._log_noise = cost.persistence * self._log_noise + fresh
        return math.exp(self._log_noise - cost.noise**2 / 2)
