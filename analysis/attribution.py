"""Where a latency gap between two arms comes from, or why that cannot be said.

`attribute` splits the gap into step cost and scheduling (`analysis.oaxaca`), at the schedule of
either arm for which the other arm's costs are known. It refuses, in words, what the data cannot
carry: no gap, a short run, requests that come by a clock of their own, work that the client does
not see, steps such as the other arm never ran, a cost model that does not fit.

`causes` says which of the two act. A within-run interval is no test between arms, whose unit is
the run: a cause is as good as the comparison that it explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.in_flight import residences
from analysis.model import Floats
from analysis.oaxaca import Gap, Mean, Owner, Split, Term, means
from analysis.step_cost import (
    CONTEXT,
    LEAST_BLOCKS,
    RECOMPUTED,
    Fit,
    design,
    fit,
    hinges_of,
)
from analysis.steps import Latency, Steps
from analysis.token_times import Refused

LEAST_RESIDENCES = 10.0
MOST_HIDDEN = 5
"""Preemptions, or per cent of those seen, that may lie outside all gaps (2 of 173 on a GPU)."""
MOST_MISFIT = 0.05
"""Share of the gap that the cost model may leave unexplained."""
WIDEST = 0.12
"""Half-width of a share's interval above which the share is not given."""
MOST_UNSEEN = 0.02
"""Of the largest content of any step: a mean content that an arm never had may be this large."""
NEAR = 0.5
"""Sequences by which a mean batch may lie outside nine steps of ten that an arm ran: the few at the
edge carry no price (a negative control on a GPU came out at a fifth of its gap)."""
TELLING = 0.10
"""Share of the gap from which a cause counts as one of its causes."""
MODEL_ERROR = 0.02
"""Of the gap: what the model may be off beyond its interval (`tests/recovery.py`)."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """A gap and its splits, the one with the fewest assumptions first."""

    latency: Latency
    baseline: float
    """s."""
    treatment: float
    gap: Term
    splits: tuple[Split, ...]
    refused: tuple[str, ...]
    """Why a split is not given."""
    r_squared: tuple[float, float]
    """Of the cost model, by arm."""
    unjudged: Split
    """At the baseline's schedule, whether or not it is given: for negative controls of pairs that
    get no shares."""


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
    words = _unfit(baseline, treatment, latency, open_loop) or next(
        filter(None, map(_unseen, (*runs_a, *runs_b))), ""
    )
    if words:
        return Refused((words,))
    hinges = hinges_of((*runs_a, *runs_b))
    a, b = design(runs_a, hinges=hinges), design(runs_b, hinges=hinges)
    few = min(int(d.block[d.run == 0].max()) + 1 for d in (a, b))
    if few < LEAST_BLOCKS:
        return Refused((f"{few} blocks of steps in a run; {LEAST_BLOCKS} are needed.",))
    found = fit(a, b, (CONTEXT,) if same_kv else ())
    mean_a, mean_b = means(found, baseline, treatment, latency)
    gap = Gap(found, mean_a, mean_b, seed)
    splits, refused = _splits(found, gap, mean_a, mean_b)
    return Attribution(
        latency,
        mean_a.steps * mean_a.seconds + mean_a.beside,
        mean_b.steps * mean_b.seconds + mean_b.beside,
        gap.whole,
        splits,
        refused,
        found.r_squared,
        gap.split("baseline"),
    )


Acts = Literal["acts", "does not act", "open"]


@dataclass(frozen=True, slots=True)
class Causes:
    """Which causes make up a gap: at least `TELLING` of it, in either direction."""

    step_cost: Acts
    scheduling: Acts


def causes(found: Attribution) -> Causes | Refused:
    """Which causes act, by the first split."""
    if not found.splits:
        return Refused(found.refused)
    first = found.splits[0]
    return Causes(_acts(first.step_cost), _acts(first.scheduling))


def _acts(term: Term) -> Acts:
    lo, hi = term.share_lo - MODEL_ERROR, term.share_hi + MODEL_ERROR
    if lo >= TELLING or hi <= -TELLING:
        return "acts"
    return "does not act" if lo > -TELLING and hi < TELLING else "open"


def _unfit(a: Steps, b: Steps, latency: Latency, open_loop: bool) -> str:
    """Why two runs cannot be split at all; empty where they can."""
    if open_loop:
        return (
            "Requests come by a clock of their own, so a faster arm runs smaller steps: what is in "
            "a step follows from what it costs, and is no cause beside it. The two clocks stand."
        )
    if latency == "duration" and max(len(np.unique(run.engine_of)) for run in (a, b)) > 1:
        return (
            "A run of several engines lasts as long as the slowest, which is no sum over steps; "
            "the mean stay is one."
        )
    short = min(residences(run.found) for run in (a, b))
    if short < LEAST_RESIDENCES:
        return (
            f"A run lasted {short:.1f} mean stays; below {LEAST_RESIDENCES:g} it is mostly ramp "
            "and drain: compare the steady windows."
        )
    return ""


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


def _splits(f: Fit, gap: Gap, a: Mean, b: Mean) -> tuple[tuple[Split, ...], tuple[str, ...]]:
    """The splits that the data carries, and why it does not carry the others."""
    if gap.whole.lo <= 0 <= gap.whole.hi:
        return (), ("There may be no gap: its interval holds zero, and nothing has no shares.",)
    kept, refused = [], []
    orders: tuple[tuple[Owner, Mean], ...] = (("baseline", a), ("treatment", b))
    for owner, mean in orders:
        found = gap.split(owner)
        wide = max(found.step_cost.half_width, found.scheduling.half_width)
        if words := _out_of_reach(f, mean.content, owner):
            refused.append(words)
        elif abs(found.misfit.share) > MOST_MISFIT:
            refused.append(f"The cost model leaves {found.misfit.share:.0%} of the gap.")
        elif wide > WIDEST:
            refused.append(
                f"At the {owner}'s schedule shares are known to ±{wide:.0%} of the gap only."
            )
        else:
            kept.append(found)
    kept.sort(key=lambda split: bool(split.assumes))
    return tuple(kept), tuple(dict.fromkeys(refused))


def _out_of_reach(f: Fit, content: Floats, owner: Owner) -> str:
    """Why the other arm's cost of this arm's mean step is not known; empty where it is."""
    d, space, other = (
        (f.design_b, f.row_space_b, "treatment")
        if owner == "baseline"
        else (f.design_a, f.row_space_a, "baseline")
    )
    batch = f.names.index("batch")
    low, high = np.percentile(d.x[:, batch], [5, 95])
    if not low - NEAR <= content[batch] <= high + NEAR:
        return (
            f"The {other} ran {low:.3g} to {high:.3g} sequences a step and never the {owner}'s "
            f"mean of {content[batch]:.3g}: what such a step would cost it is not known."
        )
    largest = np.maximum(np.abs(f.design_a.x).max(axis=0), np.abs(f.design_b.x).max(axis=0))
    missing = np.abs(content - content @ space) > MOST_UNSEEN * largest
    missing[f.names.index(RECOMPUTED)] = False  # has a price by assumption
    if missing.any():
        what = ", ".join(np.array(f.names)[missing])
        return f"The {other} ran no steps that tell it apart what they cost for: {what}."
    return ""
