"""Negative controls: arms whose steps must cost the same show what the attribution invents.

Two arms that differ only in how much fits (KV cache, lengths) or in how requests reach them run the
same kernels on the same weights, so no part of a difference between them is step cost. What the
split finds all the same is its error, on these very files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from analysis.cell_gap import gap_between
from analysis.dataset import Cell, Study, differing
from analysis.token_times import Refused

ROOM = frozenset({
    "gpu_memory_utilization", "kv_cache_memory_bytes", "max_model_len", "num_gpu_blocks_override",
})  # fmt: skip
"""What decides how much fits, and nothing of a step."""
WAY = frozenset({"router", "clients"})
"""How requests reach an engine."""
TOLERANCE = 0.02
"""Of the baseline's ITL: step cost that may be found where there can be none."""


@dataclass(frozen=True, eq=False, slots=True)
class Control:
    """A pair that must show no step cost; seconds are of the mean gap between tokens."""

    baseline: Cell
    treatment: Cell
    itl: float
    """Of the baseline, s."""
    found: float
    """Step cost that the split finds, s; the largest of the pairs of runs."""
    lo: float
    hi: float
    refused: str
    """Why no shares of this pair are given anywhere; empty where they are."""

    @property
    def share(self) -> float:
        """Of the baseline's ITL."""
        return self.found / self.itl

    @property
    def passed(self) -> Literal["yes", "no", "not told"]:
        """Whether its whole interval is within the tolerance, or outside it."""
        near, far = sorted((abs(self.lo), abs(self.hi)))
        if self.lo <= 0 <= self.hi:
            near = 0.0
        if far <= TOLERANCE * self.itl:
            return "yes"
        return "no" if near > TOLERANCE * self.itl else "not told"


def controls(study: Study) -> tuple[Control, ...]:
    """Every pair of cells of a study that is a negative control and shows its steps."""
    found = []
    for place, base in enumerate(study.cells):
        for treat in study.cells[place + 1 :]:
            if (base.workload, base.concurrency) != (treat.workload, treat.concurrency):
                continue
            fields = set(differing(base.arm, treat.arm))
            if base.concurrency is None or not fields or not fields <= ROOM | WAY:
                continue
            one = _control(study, base, treat)
            if one is not None:
                found.append(one)
    return tuple(found)


def _control(study: Study, base: Cell, treat: Cell) -> Control | None:
    gap = gap_between(study, base, treat, "itl")
    if isinstance(gap, Refused):
        return None
    terms = [
        (pair.clocks.baseline.latency, (pair.split or pair.attribution.unjudged).step_cost, pair)
        for pair in gap.pairs
        if not isinstance(pair.attribution, Refused)
    ]
    terms = [one for one in terms if one[0] > 0 and math.isfinite(one[1].value)]
    if not terms:
        return None
    itl, worst, pair = max(terms, key=lambda one: abs(one[1].value) / one[0])
    why = "" if pair.split is not None else next(iter(pair.refused), "")
    return Control(base, treat, itl, worst.value, worst.lo, worst.hi, why)
