"""Whether a quoted figure of k instances is a measurement, or one instance times k.

Instances driven together lose something to imbalance, ramp and drain, and any two runs differ; a
figure that equals k times another run's to 0.1 % is a projection. It is then also a statement
about k times as many requests in flight, and may not be set against a run at fewer.
"""

from __future__ import annotations

import math

from analysis.claims import ClaimBase
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing
from analysis.model import Estimate, Verdict
from analysis.reference import Ref, cells_of, describe, resolve
from analysis.wording import percent, show, span

COINCIDENCE = 0.001
"""Closer than this to a multiple is no coincidence: instances lose more than that together."""


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a scaling claim."""

    of: Ref
    """The figure said of k instances."""
    instance: Ref
    """The run of one instance."""
    k: int
    measured: bool = True
    """Whether the sentence presents it as a measurement."""
    against: Ref | None = None
    """A run it is set against, for the requests in flight."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Figure / instance against the integer k."""
    if claim.k < 2:
        raise BadClaim(f"has k = {claim.k}; give the number of instances, 2 or more")
    of, one = resolve(ev, claim.of), resolve(ev, claim.instance)
    multiple = (of / one).as_unit("")
    if not multiple.finite:
        raise Missing(f"a {describe(claim.instance)} that is not 0", "figure / instance")
    off = multiple.value / claim.k - 1
    least, most = multiple.lo / claim.k - 1, multiple.hi / claim.k - 1
    projected = least >= -COINCIDENCE and most <= COINCIDENCE
    apart = most < -COINCIDENCE or least > COINCIDENCE
    cells = cells_of(ev, claim.instance, claim.against)
    numbers: list[Estimate] = [
        of.estimate("quoted figure", describe(claim.of)),
        one.estimate("one instance", describe(claim.instance)),
        multiple.estimate("multiple", "quoted figure / one instance"),
    ]
    text = (
        f"{show(of.value, of.unit)} is {span(multiple)} x one instance's "
        f"{show(one.value, one.unit)}, {percent(abs(off), 2)} from {claim.k} x"
    )
    reasons = [
        f"{text}: closer than instances driven together would come, so it is one instance "
        f"times {claim.k}{_exactly(of.value, one.value, claim.k)}."
        if projected
        else f"{text}: not {claim.k} times one instance."
        if apart
        else f"{text}: the rounding of the prints leaves open whether it is {claim.k} times one."
    ]
    n = claim.instance.concurrency
    if n is not None and projected:
        total = n * claim.k
        reasons.append(
            f"One instance ran at {n} in flight, so the figure stands for {total} in flight in all."
        )
        if claim.against is not None and claim.against.concurrency is not None:
            other = resolve(ev, claim.against)
            ratio = (of / other).as_unit("")
            numbers.append(ratio.estimate("quoted / compared", describe(claim.against)))
            reasons.append(
                f"It is set against {show(other.value, other.unit)} at "
                f"{claim.against.concurrency} in flight; "
                + (
                    f"the totals are equal and the ratio is {span(ratio)}."
                    if claim.against.concurrency == total
                    else f"at unequal totals the ratio of {span(ratio)} compares nothing."
                )
            )
    verdict: Verdict = "inconclusive"
    if projected:
        verdict = "refuted" if claim.measured else "supported"
    elif not claim.measured and apart:
        verdict = "refuted"
    elif claim.measured:
        reasons.append(
            "That it was measured does not follow: the result file of the k instances is not here."
        )
    return Judgement(
        verdict,
        tuple(reasons),
        tuple(numbers),
        cells=cells,
        flips=f"a result file of {claim.k} instances driven together",
        experiment=Experiment(
            tuple(dict.fromkeys(cell.arm.name for cell in cells)),
            tuple(dict.fromkeys(cell.workload for cell in cells)),
            (n * claim.k,) if n else (),
            note=f"{claim.k} instances behind a router",
        )
        if cells
        else None,
    )


def _exactly(of: float, one: float, k: int) -> str:
    """Whether the figure is k x the instance's, rounded or cut to a whole number."""
    for word, whole in (("rounded", round(one)), ("cut", math.floor(one))):
        if round(of) == k * whole:
            return f" ({k} x {whole:,}, the instance's {word} to a whole number, is it exactly)"
    return ""
