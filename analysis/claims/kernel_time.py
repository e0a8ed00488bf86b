"""Whether the time of a class of kernels changed between two arms.

The proof is a profiler trace of both. Without one, a bound remains: matrix multiplications must
read the weights, so the baseline's take at least weights / bandwidth a step, and the treatment's
take no more than its whole step, which is its ITL while no step is skipped. Where that upper
bound lies below the lower one, "unchanged" is refuted without a trace.
"""

from __future__ import annotations

from typing import Literal

from analysis.claims import ClaimBase
from analysis.claims._common import differences
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
    part: Literal["gemm"] = "gemm"
    change: Literal["unchanged", "faster"] = "unchanged"
    margin: float = 10.0
    """Percent either way that counts as unchanged."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Bound the fall of GEMM time from below by floor and ITL."""
    base = ev.cell(claim.baseline, claim.workload, claim.concurrency)
    treat = ev.cell(claim.treatment, claim.workload, claim.concurrency)
    after = ev.need(treat, "mean_itl")
    floor = step_floor(base)
    if floor is None:
        raise Missing(
            f"a profiler trace of {claim.baseline} and {claim.treatment}",
            "GEMM time >= weights / bandwidth needs model size and GPU",
        )
    bound = (after / floor.weights).as_unit("")
    if bound.hi >= 1 - claim.margin / 100:
        raise Missing(
            f"a profiler trace of {claim.baseline} and {claim.treatment}",
            f"GEMM time is at least {show(floor.weights.value, 's')} a step in {claim.baseline} "
            f"and at most {show(after.value, 's')} in {claim.treatment}, which leaves both open",
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
        experiment=Experiment(
            (claim.baseline, claim.treatment),
            (claim.workload,),
            (claim.concurrency,),
            repeats=1,
            note="--profile",
        ),
    )
