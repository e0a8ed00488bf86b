"""Whether the time of a class of kernels changed between two arms.

The proof is a profiler trace of both (torch profiler or Nsight Systems), of decode steps at batches
that differ by at most 10 %, and from the requests in flight that the sentence names by at most
20 %. Compared are seconds a step: the mean over at least 5 steps, with the middle 95 % of them as
interval. "Unchanged" holds where the whole ratio lies within the margin (10 % unless stated), and
is refuted where all of it lies outside; "faster" holds where all of it lies below. `part = "idle"`
is what no kernel fills. A profiler slows the host, not the kernels: where the steps of a trace are
longer than the ITL of the arm's runs by more than 10 %, idle time is not judged, and the rest
carries a warning; where the kernels alone are, the trace is not of such runs and is not used.

Without traces of both, a bound remains: matrix multiplications must read the weights, so the
baseline's take at least weights / bandwidth a step, and the treatment's take no more than its whole
step, which is its ITL while no step is skipped. Where that upper bound lies below the lower one,
"unchanged" is refuted without a trace.
"""

from __future__ import annotations

from typing import Literal

from analysis.claims import ClaimBase
from analysis.claims._common import differences
from analysis.claims._kernels import compared
from analysis.evidence import Evidence, Experiment, Judgement, Missing
from analysis.floor import step_floor
from analysis.model import Verdict
from analysis.wording import percent, show


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a kernel-time claim."""

    baseline: str
    treatment: str
    workload: str
    concurrency: int
    part: Literal["gemm", "attention", "communication", "elementwise", "idle"] = "gemm"
    change: Literal["unchanged", "faster"] = "unchanged"
    margin: float = 10.0
    """Percent either way that counts as unchanged."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """By the traces of both arms; without them by floor and ITL."""
    found = compared(
        ev,
        claim.baseline,
        claim.treatment,
        claim.part,
        claim.change,
        claim.margin / 100,
        claim.workload,
        claim.concurrency,
    )
    return found if isinstance(found, Judgement) else _bound(claim, ev, found)


def _bound(claim: Claim, ev: Evidence, why: str) -> Judgement:
    """Bound the fall of GEMM time from below by floor and ITL.

    `why`: there are no traces that would tell more.
    """
    arms = (claim.baseline, claim.treatment)
    traced = Experiment(arms, (claim.workload,), (claim.concurrency,), repeats=1, note="--profile")
    if claim.part != "gemm":
        tried = "only the time of matrix multiplications is bounded by the weights that are read"
        raise Missing(why, tried, traced)
    base = ev.cell(claim.baseline, claim.workload, claim.concurrency)
    treat = ev.cell(claim.treatment, claim.workload, claim.concurrency)
    after = ev.need(treat, "mean_itl")
    floor = step_floor(base)
    if floor is None:
        raise Missing(why, "GEMM time >= weights / bandwidth needs model size and GPU", traced)
    bound = (after / floor.weights).as_unit("")
    if bound.hi >= 1 - claim.margin / 100:
        raise Missing(
            why,
            f"GEMM time is at least {show(floor.weights.value, 's')} a step in {claim.baseline} "
            f"and at most {show(after.value, 's')} in {claim.treatment}, which leaves both open",
            traced,
        )
    verdict: Verdict = "refuted" if claim.change == "unchanged" else "supported"
    return Judgement(
        verdict,
        (
            f"GEMM time fell by at least {percent(1 - bound.hi, 0)}: reading the weights takes "
            f"{show(floor.weights.value, 's')} of each step in {claim.baseline} at the least, and "
            f"a whole step of {claim.treatment} takes {show(after.value, 's')}.",
        ),
        (
            floor.weights.estimate(
                f"least GEMM time a step, {claim.baseline}", "weights read / memory bandwidth"
            ),
            after.estimate(f"most GEMM time a step, {claim.treatment}", "mean ITL"),
            bound.estimate("greatest ratio of GEMM times", "treatment / baseline"),
        ),
        assumptions=(
            "no step of the treatment is skipped (ITL is the time of a step)",
            "data-sheet memory bandwidth is not exceeded",
        ),
        confounds=differences(base, treat),
        flips="a trace in which both arms spend equal time in matrix multiplications",
        cells=(base, treat),
        experiment=traced,
    )
