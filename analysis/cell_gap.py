"""Where a latency gap between two cells comes from, at the level of engine steps.

Runs are paired (the same seed, or the same prompts); each pair has its two clocks and, where the
data carries it, its split into step cost and scheduling. Over pairs, terms are averaged: the run is
the unit, so from two pairs a logarithm has a t interval between them, and a share from three. One
pair has the interval within its runs, which is no test between arms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from scipy import stats as sps

from analysis import stages
from analysis.attribution import Attribution, attribute
from analysis.clocks import LEAST_BLOCKS, Clocks, Log, two_clocks
from analysis.dataset import Cell, Study
from analysis.floor import kv_token_bytes
from analysis.in_flight import residences
from analysis.model import Run
from analysis.oaxaca import Owner, Split, Term
from analysis.pairing import by_seed, pairs_of
from analysis.run_steps import of_cell, steps_of
from analysis.stats import CONFIDENCE
from analysis.steps import Latency, Steps
from analysis.token_times import Refused
from analysis.wording import plural

MOST_LOADS = 6
"""Other cells of an arm, the nearest in load first, whose steps help to price its own."""
LEAST_PAIRS = 3
"""Pairs from which a share gets an interval between them: with two, a t interval is useless."""
FREE = 0.95
"""Share of the asked rate from which requests come by the client's clock and not by the cap."""


@dataclass(frozen=True, eq=False, slots=True)
class PairGap:
    """One pair of runs."""

    baseline: Run
    treatment: Run
    steps: tuple[Steps, Steps]
    clocks: Clocks
    attribution: Attribution | Refused

    @property
    def split(self) -> Split | None:
        """The split with the fewest assumptions."""
        found = self.attribution
        return None if isinstance(found, Refused) or not found.splits else found.splits[0]

    @property
    def refused(self) -> tuple[str, ...]:
        """Why there is no split."""
        found = self.attribution
        return found.reasons if isinstance(found, Refused) else found.refused


@dataclass(frozen=True, eq=False, slots=True)
class CellGap:
    """All pairs of two cells."""

    latency: Latency
    pairs: tuple[PairGap, ...]
    skipped: tuple[str, ...] = ()
    """Why other runs of the cells are in no pair, a sentence each."""

    @property
    def short(self) -> bool:
        """Whether a run lasted so few stays that it is mostly ramp and drain: no shares then."""
        return any(
            residences(steps.found) < LEAST_BLOCKS for pair in self.pairs for steps in pair.steps
        )

    @property
    def interval(self) -> str:
        """What the intervals of logarithms are."""
        n = len(self.pairs)
        return f"95 % between {n} pairs of runs (t)" if n > 1 else WITHIN

    @property
    def share_interval(self) -> str:
        """What the intervals of shares are."""
        n = len(self.pairs)
        if n >= LEAST_PAIRS:
            return f"95 % between {n} pairs of runs (t)"
        return WITHIN if n == 1 else f"{WITHIN}, of {n} pairs together"

    def log(self, term: Callable[[Clocks], Log]) -> Log:
        """A logarithm of the two clocks over the pairs."""
        found = [term(pair.clocks) for pair in self.pairs]
        if len(found) == 1:
            return found[0]
        return _between([one.value for one in found])

    @property
    def step_share(self) -> Log:
        """Share of the gap's logarithm that is steps in a period; the rest is time a step."""
        found = [pair.clocks.share for pair in self.pairs]
        if any(math.isnan(one.value) for one in found):
            return Log(math.nan)
        return _shares([(one.value, one.lo, one.hi) for one in found])

    @property
    def schedule_of(self) -> Owner | None:
        """At whose schedule every pair has a split; None where they have none in common."""
        found = [
            []
            if isinstance(one.attribution, Refused)
            else [split.schedule_of for split in one.attribution.splits]
            for one in self.pairs
        ]
        return next((o for o in found[0] if all(o in own for own in found)), None)

    def _splits(self) -> list[Split] | Refused:
        """One of each pair, at one arm's schedule: shares at two are shares of other things."""
        owner, splits = self.schedule_of, []
        for pair in self.pairs:
            if isinstance(pair.attribution, Refused) or owner is None:
                why = next((p.refused for p in self.pairs if p.split is None), ())
                return Refused(why or ("The pairs have no split at one arm's schedule in common.",))
            splits += [s for s in pair.attribution.splits if s.schedule_of == owner]
        return splits

    def seconds(self, part: Callable[[Split], Term]) -> Log | Refused:
        """A part of the split in seconds, where every pair has one; intervals as of shares."""
        splits = self._splits()
        if isinstance(splits, Refused):
            return splits
        found = [(t.value, t.lo, t.hi) for t in map(part, splits)]
        return _shares(found)

    def cost_share(self, part: Callable[[Split], Term]) -> Log | Refused:
        """Share of the gap that a part of the split is, where every pair has one."""
        splits = self._splits()
        if isinstance(splits, Refused):
            return splits
        found = [(t.share, t.share_lo, t.share_hi) for t in map(part, splits)]
        return _shares(found)


WITHIN = "95 % within the run (block bootstrap): no test between arms"


def _between(values: Sequence[float]) -> Log:
    mean, sd = float(np.mean(values)), float(np.std(values, ddof=1))
    half = float(sps.t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1)) * sd / math.sqrt(len(values))
    return Log(mean, mean - half, mean + half)


def _shares(found: Sequence[tuple[float, float, float]]) -> Log:
    values, los, his = (list(column) for column in zip(*found, strict=True))
    if len(values) >= LEAST_PAIRS:
        return _between(values)
    return Log(float(np.mean(values)), min(los), max(his))


_FOUND: WeakKeyDictionary[Cell, dict[tuple[Cell, Latency], CellGap | Refused]] = WeakKeyDictionary()


def gap_between(study: Study, base: Cell, treat: Cell, latency: Latency) -> CellGap | Refused:
    """Both cells' steps, pair by pair; refused, with the reasons, where no pair shows them.

    What is found is kept as long as the baseline is: several claims ask of one pair.
    """
    known = _FOUND.setdefault(base, {})
    if (treat, latency) not in known:
        known[treat, latency] = _gap_between(study, base, treat, latency)
    return known[treat, latency]


def _gap_between(study: Study, base: Cell, treat: Cell, latency: Latency) -> CellGap | Refused:
    found: list[PairGap] = []
    reasons: dict[str, None] = {}
    loads = _other_loads(study, base), _other_loads(study, treat)
    paired = pairs_of(base, treat)
    notes = _unpaired(base, treat, paired)
    for a, b in paired:
        steps = steps_of(a, base.arm), steps_of(b, treat.arm)
        for arm, one in zip((base.arm.name, treat.arm.name), steps, strict=True):
            if isinstance(one, Refused):
                reasons[f"{arm}: {one.reasons[0]}"] = None
        left, right = steps
        if isinstance(left, Refused) or isinstance(right, Refused):
            continue
        clocks = two_clocks(
            left, right, latency, same_requests=stages.same_requests(left.found, right.found)
        )
        if isinstance(clocks, Refused):
            reasons[clocks.reasons[0]] = None
            continue
        split = attribute(
            left,
            right,
            latency,
            baseline_loads=loads[0],
            treatment_loads=loads[1],
            same_kv=_same_kv(base, treat),
            open_loop=_open_loop(a, base) or _open_loop(b, treat),
        )
        found.append(PairGap(a, b, (left, right), clocks, split))
    if not found:
        return Refused(tuple(reasons) or ("No run of one arm has its like in the other.",))
    return CellGap(latency, tuple(found), (*notes, *reasons))


def _unpaired(base: Cell, treat: Cell, paired: Sequence[tuple[Run, Run]]) -> tuple[str, ...]:
    """What a reader should know of the pairing: runs without a like one, and pairs of unlike."""
    notes = []
    for cell in (base, treat):
        gone = len(cell.runs) - len(paired)
        if gone:
            notes.append(f"{plural(gone, 'run')} of {cell.arm.name} without a like run")
    if any(by_seed(a) != by_seed(b) for a, b in paired):
        notes.append("runs of different seeds are paired in their order: other prompts")
    return tuple(notes)


def _other_loads(study: Study, cell: Cell) -> tuple[Steps, ...]:
    """Steps of the arm's other cells on this workload, the nearest loads first."""
    load = cell.concurrency or 1
    others = [
        one
        for one in study.loads(cell.arm.name, cell.workload)
        if one.concurrency != cell.concurrency
    ]
    others.sort(key=lambda one: abs(math.log((one.concurrency or 1) / load)))
    return tuple(steps for one in others[:MOST_LOADS] for steps in of_cell(one)[:1])


def _same_kv(base: Cell, treat: Cell) -> bool:
    """Whether a resident token costs both the same: its bytes, the GPU and the split are equal."""
    sizes = [kv_token_bytes(cell.arm) for cell in (base, treat)]
    a, b = base.arm, treat.arm
    if sizes[0] is not None and sizes[1] is not None:
        equal = abs(sizes[0].value / sizes[1].value - 1) < 0.01
    else:
        equal = a.config.get("kv_cache_dtype") == b.config.get("kv_cache_dtype")
    return (
        equal
        and a.spec.gpu == b.spec.gpu
        and a.spec.tensor_parallel == b.spec.tensor_parallel
        and a.spec.pipeline_parallel == b.spec.pipeline_parallel
    )


def _open_loop(run: Run, cell: Cell) -> bool:
    """Whether requests came by a clock of their own: a rate was asked for and was met."""
    rate, x = run.requested_rate, run.figures.get("request_throughput")
    if cell.concurrency is None:
        return True
    return math.isfinite(rate) and (x is None or x.value >= FREE * rate)
