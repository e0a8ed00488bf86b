"""Where the time between two tokens goes: ITL as a sum of what it was spent on, down to the floor.

    mean gap = sum over steps of (requests that decode or stand still) * duration / gaps

so it parts exactly into the gaps' own steps and those that a preempted request stood by. The time
of the decoding steps parts further by what steps of the arm cost (`analysis.step_cost`, fitted over
all loads of the arm): prefill, recomputation, and the plain decode step.
Of the plain step, the least is what reading weights and KV takes at full memory bandwidth. What the
cost model leaves is shown as unexplained. Constant, batch and context are not parted: their sum is
known, their shares mostly are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.dataset import Cell
from analysis.floor import step_floor
from analysis.model import Floats
from analysis.step_cost import RECOMPUTED, ArmCost
from analysis.steps import Steps

WEIGHTS, KV, PLAIN_STEP = "reading weights", "reading KV", "rest of a decode step"
PREFILL, AGAIN = "prefill in or beside the step", "recomputing after preemption"
STOOD, REST = "standing still, preempted", "unexplained"
_NOTHING = 1e-9
"""s. What is left by rounding alone."""
PARTS = (WEIGHTS, KV, PLAIN_STEP, PREFILL, AGAIN, STOOD, REST)
"""From the floor up."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the mean gap, s, with the 95 % interval of what the fit can tell."""

    name: str
    value: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True)
class Budget:
    """The mean gap between two tokens of a run and its parts, which add up to it; s."""

    cell: Cell
    itl: float
    parts: tuple[Part, ...]
    floor_known: bool
    notes: tuple[str, ...] = ()

    def part(self, name: str) -> Part:
        """A part by name; nothing of what was never seen."""
        return next((one for one in self.parts if one.name == name), Part(name, 0.0, 0.0, 0.0))


def budgets(cells: Sequence[tuple[Cell, Steps]], cost: ArmCost) -> tuple[Budget, ...]:
    """The budget of each run, priced by the steps of its arm."""
    return tuple(budget(cell, run, cost) for cell, run in cells)


def budget(cell: Cell, run: Steps, cost: ArmCost) -> Budget:
    """The budget of one of the runs that `cost` was fitted to."""
    d, fitted = cost.design, cost.solved
    own = d.run == next(n for n, one in enumerate(cost.runs) if one is run)
    t, gaps = run.table, max(run.gaps, 1)
    decode = t.decoding / gaps
    stood = float((t.stalled / gaps) @ t.duration)
    itl = float(decode @ t.duration) + stood
    weight = decode @ d.x[own]  # gaps' steps times what is in them, shape (columns,)
    extra = np.array([name.startswith(("prefill", "firsts")) for name in d.names])
    again = np.array([name == RECOMPUTED for name in d.names])

    def priced(name: str, which: Floats) -> Part:
        value = float(weight[which] @ fitted.beta[which])
        half = 1.96 * float(np.sqrt(((fitted.scores[:, which] @ weight[which]) ** 2).sum()))
        return Part(name, value, value - half, value + half)

    prefill, recomputed = priced(PREFILL, extra), priced(AGAIN, again)
    plain = priced(PLAIN_STEP, ~(extra | again))
    notes = []
    if prefill.hi < 0:
        notes.append("prefill comes out below zero, so it is left in the decode step")
        both = plain.value + prefill.value
        plain, prefill = Part(PLAIN_STEP, both, math.nan, math.nan), Part(PREFILL, 0.0, 0.0, 0.0)
    parts = _to_the_floor(cell, plain, notes)
    parts += [one for one in (prefill, recomputed) if one.value]
    if stood:
        parts.append(Part(STOOD, stood, stood, stood))
    left = itl - sum(one.value for one in parts)
    left = left if abs(left) > _NOTHING else 0.0
    parts.append(Part(REST, left, left, left))
    return Budget(cell, itl, tuple(parts), any(p.name == WEIGHTS for p in parts), tuple(notes))


def _to_the_floor(cell: Cell, plain: Part, notes: list[str]) -> list[Part]:
    """The plain step as floor and rest; whole where the floor is unknown or above it."""
    floor = step_floor(cell)
    if floor is None:
        notes.append("no floor: GPU, model or its size is unknown")
        return [plain]
    weights = floor.weights.value
    kv = floor.total.value - weights
    rest = plain.value - weights - kv
    if rest < 0:
        notes.append("a plain step is shorter than its floor: a wrong model, GPU or unit")
        return [plain]
    ends = plain.lo - plain.value, plain.hi - plain.value
    return [
        Part(WEIGHTS, weights, floor.weights.lo, floor.weights.hi),
        *([Part(KV, kv, kv, kv)] if floor.kv_bytes is not None else []),
        Part(PLAIN_STEP, rest, rest + ends[0], rest + ends[1]),
    ]
