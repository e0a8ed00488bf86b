"""Whether a quoted figure of k instances is a measurement, or one instance times k.

Instances driven together lose something to imbalance, ramp and drain, and any two runs differ. A
figure that is k times another run's to the digit printed, or k times its whole number, is a
projection. One that only comes close (0.1 %) may be chance. A projection is also a statement about
k times as many requests in flight, and may not be set against a run at fewer.
"""

from __future__ import annotations

import math

from analysis.claims import ClaimBase
from analysis.claims._common import rounded
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing
from analysis.model import Estimate, Verdict
from analysis.quantity import Quantity
from analysis.reference import Ref, cells_of, describe, resolve
from analysis.wording import percent, show, span

COINCIDENCE = 0.001
"""A multiple as near as this calls for an explanation; only an exact one gives it."""
TRUE_SCALING_SD = 0.01
"""How far real scaling is taken to lie from k, as a share of k (one standard deviation)."""


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
    near = least >= -COINCIDENCE and most <= COINCIDENCE
    exactly = _exactly(of, one, claim.k) if near else ""
    projected = bool(exactly)
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
    if projected:
        text += f": {exactly}, so it is one instance times {claim.k} and not a measurement"
    elif near:
        text += (
            f": near {claim.k} times one instance, but not exactly it; a real measurement comes "
            f"this close by chance in about 1 of {_one_of()}, if true scaling is "
            f"{claim.k} x within {percent(TRUE_SCALING_SD, 0)} (one sd)"
        )
    elif apart:
        text += f": not {claim.k} times one instance"
    else:
        text += f": the rounding of the prints leaves open whether it is {claim.k} times one"
    reasons = [f"{text}."]
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


def _exactly(of: Quantity, one: Quantity, k: int) -> str:
    """Whether the figure is k x the instance's as printed, or rounded or cut to a whole number."""
    times = one * float(k)
    if times.lo <= of.hi and of.lo <= times.hi:
        return f"within the rounding of the print it is {k} x the instance's"
    for word, whole in (("rounded", rounded(one.value, 0)), ("cut", math.floor(one.value))):
        if of.lo <= k * whole <= of.hi:
            return f"it is {k} x {whole:,.0f}, the instance's {word} to a whole number, exactly"
    return ""


def _one_of() -> int:
    """Of how many real measurements one lies within the coincidence, by a normal deviation."""
    return round(1 / math.erf(COINCIDENCE / TRUE_SCALING_SD / math.sqrt(2)))
