"""Where a latency gap between two arms comes from: step cost, what is in a step, or more steps.

A mean latency is M = K tau + beside: K steps in a period, tau the time of such a step
(`analysis.steps.periods`). With a step's cost linear in what it holds, tau = x beta + misfit, x
the mean content of the steps that the latency counts. Between baseline a and treatment b
(Kitagawa 1955, Oaxaca 1973, Blinder 1973):

    step cost  at a's schedule: K_a x_a (beta_b - beta_a)      at b's: K_b x_b (beta_b - beta_a)
    scheduling at b's costs: (K_b x_b - K_a x_a) beta_b        at a's: the same with beta_a

The first of each row and the second of each row add up to the gap with the misfit and what lies
beside the steps. Each is what would be seen if only that cause moved; it is given only where the
arm whose cost it needs has run such steps. Scheduling splits exactly into the number of steps and
their content: K_b x_b - K_a x_a = (K_b - K_a)(x_a + x_b)/2 + (x_b - x_a)(K_a + K_b)/2.

Intervals: the schedule is what it was, and the disturbances of step times are drawn anew in blocks
with random signs (wild block bootstrap). They answer for these requests in these runs; they are no
test of the arms, whose unit is the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.in_flight import residences
from analysis.model import Floats
from analysis.step_cost import CONTEXT, HINGES, LEAST_BLOCKS, RECOMPUTED, Design, Fit, design, fit
from analysis.steps import Latency, Steps, periods
from analysis.token_times import Refused

DRAWS = 2000
LEAST_RESIDENCES = 10.0
MOST_HIDDEN = 5
"""Preemptions, or per cent of those seen, that may lie outside all gaps (2 of 173 on a GPU)."""
MOST_MISFIT = 0.05
"""Share of the gap that the cost model may leave unexplained."""
WIDEST = 0.08
"""Half-width of a share's interval above which the share is not given."""
MOST_UNSEEN = 0.02
"""Of the largest content of any step: a mean content that an arm never had may be this large."""
TELLING = 0.10
"""A cause with less than this share of the gap does not count as one of its causes."""

RECOMPUTING = (
    "one arm was never preempted: what recomputing would cost it is taken from the other, in "
    "proportion to what prefill costs them"
)

Cause = Literal["step cost", "scheduling"]


@dataclass(frozen=True, slots=True)
class Term:
    """A part of the gap, s, with its 95 % interval, and the same as a share of the gap."""

    value: float
    lo: float
    hi: float
    share: float
    share_lo: float
    share_hi: float


@dataclass(frozen=True, slots=True)
class Split:
    """One order of moving the causes: the step cost at one arm's schedule, scheduling at the other
    arm's costs."""

    schedule_of: Literal["baseline", "treatment"]
    """Whose steps the step cost is weighed by."""
    step_cost: Term
    scheduling: Term
    count: Term
    """Of scheduling: more or fewer steps in a period (preemption, waiting)."""
    content: Term
    """Of scheduling: larger or smaller steps."""
    misfit: Term
    """What neither explains, delivery and idle time included."""
    assumes: str = ""
    """A price that the data does not hold, in words; such a split comes second."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """A gap and its splits, from the first that the data can carry."""

    latency: Latency
    baseline: float
    """s."""
    treatment: float
    gap: Term
    splits: tuple[Split, ...]
    refused: tuple[str, ...]
    """Why a split is not given."""
    r_squared: tuple[float, float]


def attribute(
    baseline: Steps,
    treatment: Steps,
    latency: Latency,
    *,
    baseline_loads: Sequence[Steps] = (),
    treatment_loads: Sequence[Steps] = (),
    same_kv: bool = True,
    open_loop: bool = False,
    seed: int = 0,
) -> Attribution | Refused:
    """Split the gap in a mean latency between two runs.

    Args:
        baseline: the run of the baseline.
        treatment: the run of the treatment, on the same workload and load.
        latency: which mean.
        baseline_loads: other runs of the baseline, which tell what its steps cost.
        treatment_loads: the same for the treatment.
        same_kv: the cost of resident tokens is one for both (same KV type, GPU and split).
        open_loop: requests come by a clock of their own.
        seed: of the draws.
    """
    runs_a, runs_b = (baseline, *baseline_loads), (treatment, *treatment_loads)
    hinges = _hinges((*runs_a, *runs_b))
    a, b = design(runs_a, hinges=hinges), design(runs_b, hinges=hinges)
    few = min(int(d.block[d.run == 0].max()) + 1 for d in (a, b))
    if few < LEAST_BLOCKS:
        return Refused((f"{few} blocks of steps in a run; {LEAST_BLOCKS} are needed.",))
    if open_loop:
        return Refused((
            "Requests come by a clock of their own, so a faster arm runs smaller steps: what is in "
            "a step follows from what it costs, and is no cause beside it. The two clocks stand.",
        ))  # fmt: skip
    if (
        latency == "duration"
        and max(len(np.unique(r.engine_of)) for r in (baseline, treatment)) > 1
    ):
        return Refused((
            "A run of several engines lasts as long as the slowest, which is no sum over steps; "
            "the mean stay is one.",
        ))  # fmt: skip
    short = min(residences(baseline.found), residences(treatment.found))
    if short < LEAST_RESIDENCES:
        return Refused((
            f"A run lasted {short:.1f} mean stays; below {LEAST_RESIDENCES:g} it is mostly ramp "
            "and drain: compare the steady windows.",
        ))  # fmt: skip
    found = fit(a, b, (CONTEXT,) if same_kv else ())
    return _split(found, baseline, treatment, latency, seed)


def _unseen(run: Steps) -> str:
    """What a run computed that its client cannot see; empty where little or nothing."""
    hidden, events = run.quality.hidden_preemptions, run.quality.skip_events
    if hidden is None:
        return (
            "Requests are preempted and prompts are prefilled in parts, so requests may be "
            "preempted before their first token, unseen; the server's count of preemptions tells."
        )
    if hidden > max(MOST_HIDDEN, MOST_HIDDEN / 100 * events):
        return (
            f"{hidden:,} of {hidden + events:,} preemptions are in no gap: requests without a "
            "token were preempted, and what was computed again for them is not seen."
        )
    return ""


def _hinges(runs: Sequence[Steps]) -> tuple[int, ...]:
    """Where the cost of the batch may bend: where an arm has steps on both sides."""
    most = max(float(np.percentile(run.table.decoding, 90)) for run in runs)
    return tuple(hinge for hinge in HINGES if hinge < most)


@dataclass(frozen=True, eq=False, slots=True)
class _Mean:
    """K, x, tau of one arm's run, and how each block's disturbance moves tau."""

    k: float
    x: Floats
    tau: float
    beside: float
    influence: Floats
    """Shape (blocks of both arms,)."""

    @property
    def value(self) -> float:
        return self.k * self.tau + self.beside


def _mean(steps: Steps, latency: Latency, d: Design, noise: Floats, shift: int, n: int) -> _Mean:
    p = periods(steps, latency)
    total = float(p.weight.sum())
    rows = d.run == 0
    x = p.weight @ d.x[rows] / total
    influence = np.zeros(n)
    np.add.at(influence, d.block[rows] + shift, p.weight * noise[rows] / total)
    return _Mean(p.steps, x, float(p.weight @ d.y[rows]) / total, p.beside, influence)


def _split(f: Fit, baseline: Steps, treatment: Steps, latency: Latency, seed: int) -> Attribution:
    n = len(f.influence_a)
    blocks_a = int(f.design_a.block[-1]) + 1
    a = _mean(baseline, latency, f.design_a, f.noise_a, 0, n)
    b = _mean(treatment, latency, f.design_b, f.noise_b, blocks_a, n)
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), (DRAWS, n))
    beta_a, beta_b = f.a + signs @ f.influence_a, f.b + signs @ f.influence_b
    point_a, point_b = f.a.copy(), f.b.copy()
    _price_recomputing(f, point_a, point_b)
    _price_recomputing(f, beta_a, beta_b)
    tau_a, tau_b = a.tau + signs @ a.influence, b.tau + signs @ b.influence
    gaps = b.k * tau_b + b.beside - a.k * tau_a - a.beside
    gap = b.value - a.value

    def term(value: float, draws: Floats) -> Term:
        lo, hi = np.percentile(draws, [2.5, 97.5])
        # Signs rather than shares of draws near 0: a gap that may be 0 has no shares.
        s_lo, s_hi = np.percentile(draws / gaps, [2.5, 97.5])
        return Term(value, float(lo), float(hi), value / gap, float(s_lo), float(s_hi))

    whole = term(gap, gaps)
    if whole.lo <= 0 <= whole.hi:
        return Attribution(
            latency, a.value, b.value, whole, (),
            ("There may be no gap: its interval holds zero, and a share of nothing has no size.",),
            f.r_squared,
        )  # fmt: skip

    def parts(ba: Floats, bb: Floats, ta: Floats, tb: Floats, first: bool) -> list[Floats]:
        """Step cost, count, content, misfit; `first`: the step cost at a's schedule."""
        k, x, ref = (a.k, a.x, bb) if first else (b.k, b.x, ba)
        cost = k * ((bb - ba) @ x)
        count = (b.k - a.k) * (ref @ (a.x + b.x)) / 2
        content = (ref @ (b.x - a.x)) * (a.k + b.k) / 2
        rest = b.k * (tb - bb @ b.x) - a.k * (ta - ba @ a.x) + b.beside - a.beside
        return [cost, count, content, rest]

    splits, refused = [], []
    for first, owner in ((True, "baseline"), (False, "treatment")):
        words = _out_of_reach(f, a.x if first else b.x, first)
        if words:
            refused.append(words)
            continue
        point = parts(point_a, point_b, np.float64(a.tau), np.float64(b.tau), first)  # type: ignore[arg-type]
        drawn = parts(beta_a, beta_b, tau_a, tau_b, first)
        cost, count, content, misfit = (
            term(float(v), d) for v, d in zip(point, drawn, strict=True)
        )
        scheduling = term(float(point[1] + point[2]), drawn[1] + drawn[2])
        lacks = _never_recomputed(f.design_b if first else f.design_a)
        held = (a.x if first else b.x)[f.names.index(RECOMPUTED)] > 0
        held = held or (b.x if first else a.x)[f.names.index(RECOMPUTED)] > 0
        assumes = RECOMPUTING if lacks and held else ""
        split = Split(owner, cost, scheduling, count, content, misfit, assumes)  # type: ignore[arg-type]
        wide = max(_half(cost), _half(scheduling))
        if abs(misfit.share) > MOST_MISFIT:
            refused.append(
                f"At the {owner}'s schedule the cost model leaves {misfit.share:.0%} of the gap."
            )
        elif wide > WIDEST:
            refused.append(
                f"At the {owner}'s schedule a share is known to ±{wide:.0%} of the gap only."
            )
        else:
            splits.append(split)
    splits.sort(key=lambda split: bool(split.assumes))
    return Attribution(latency, a.value, b.value, whole, tuple(splits), tuple(refused), f.r_squared)


def _never_recomputed(d: Design) -> bool:
    return not d.x[:, d.names.index(RECOMPUTED)].any()


def _price_recomputing(f: Fit, a: Floats, b: Floats) -> None:
    """Give an arm that was never preempted a price for recomputed tokens, in place.

    The other arm's, times what prefill costs the one over the other: the price itself cannot be
    taken from prefill, since recomputing is several times cheaper (its prefix is still cached).
    Coefficients stand along the last axis.
    """
    at = f.names.index(RECOMPUTED)
    prefill = [i for i, name in enumerate(f.names) if name.startswith("prefill")]
    never_a, never_b = _never_recomputed(f.design_a), _never_recomputed(f.design_b)
    if never_a == never_b:
        return
    ratio = b[..., prefill].sum(axis=-1) / a[..., prefill].sum(axis=-1)
    if never_b:
        b[..., at] = a[..., at] * ratio
    else:
        a[..., at] = b[..., at] / ratio


def _half(term: Term) -> float:
    return (term.share_hi - term.share_lo) / 2


def _out_of_reach(f: Fit, x: Floats, of_baseline: bool) -> str:
    """Why one arm's cost of the other's mean step is not known; empty where it is."""
    other, space, names = (
        (f.design_b, f.row_space_b, ("treatment", "baseline"))
        if of_baseline
        else (f.design_a, f.row_space_a, ("baseline", "treatment"))
    )
    at = f.names.index("batch")
    low, high = np.percentile(other.x[:, at], [1, 99])
    if not low - 0.5 <= x[at] <= high + 0.5:
        return (
            f"The {names[0]} ran {low:.3g} to {high:.3g} sequences a step and never the "
            f"{names[1]}'s mean of {x[at]:.3g}: what such a step would cost it is not known."
        )
    scale = np.maximum(np.abs(f.design_a.x).max(axis=0), np.abs(f.design_b.x).max(axis=0))
    missing = np.abs(x - x @ space) > MOST_UNSEEN * scale
    missing[f.names.index(RECOMPUTED)] = False  # priced by assumption
    if missing.any():
        what = ", ".join(np.array(f.names)[missing])
        return f"The {names[0]} never ran steps with {what} as the {names[1]} did."
    return ""
