"""What somebody expected of a change: better, worse, or no gain; over all loads measured.

The expectation is set against every pair of runs at equal workload and load. `given` restricts it
to the condition the sentence names: that the baseline's slots hold the load with room to spare.
An expectation that no load bears out is refuted; one that some bear out is named with its loads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from analysis.capacity import capacity
from analysis.claims import ClaimBase
from analysis.claims._common import (
    Contrast,
    better,
    contrast,
    contrast_text,
    differences,
    directed,
    ratio_estimate,
    unmeasured,
)
from analysis.claims._waiting import SPARE, spare
from analysis.dataset import Cell
from analysis.evidence import Evidence, Experiment, Judgement, Missing, single
from analysis.metrics import label_of
from analysis.model import Verdict
from analysis.stats import joint_p
from analysis.wording import listing, percent, plural, show


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of an expectation."""

    baseline: str
    treatment: str
    metric: str
    expects: Literal["better", "worse", "no_gain"]
    """Of the treatment."""
    workload: str = ""
    concurrency: tuple[int, ...] = ()
    given: Literal["", "slots_cover"] = ""
    """slots_cover: only loads that the baseline's slots hold with room to spare."""
    margin: float = 5.0
    """Percent of improvement that still counts as no gain."""


Pair = tuple[Cell, Cell, Contrast]


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Sort every comparable load into for, against and open."""
    ev.arm(claim.baseline)
    ev.arm(claim.treatment)
    directed(ev, claim.metric)
    pairs, left_out = _pairs(claim, ev)
    if not pairs:
        raise Missing(
            f"result files of {claim.baseline} and {claim.treatment} at one equal load"
            + (f" of {listing(claim.concurrency)}" if claim.concurrency else ""),
            left_out[0] if left_out else _measured(claim, ev),
            Experiment(
                (claim.baseline, claim.treatment),
                (claim.workload,) if claim.workload else (),
                claim.concurrency,
            ),
        )
    sides: dict[str, list[tuple[Cell, Cell, Contrast]]] = {"for": [], "against": [], "open": []}
    for base, treat, found in pairs:
        sides[_side(claim, found)].append((base, treat, found))
    if sides["against"] and not sides["for"]:
        verdict: Verdict = "refuted"
    elif sides["for"] and not sides["against"] and not sides["open"]:
        verdict = "supported"
    else:
        verdict = "inconclusive"
    if sides["against"] and claim.expects == "no_gain":
        verdict = "refuted"
    label = label_of(claim.metric)
    what = {
        "better": "better",
        "worse": "worse",
        "no_gain": f"no more than {claim.margin:g} % better",
    }[claim.expects]
    head = (
        f"{claim.treatment} was expected to have {what} {label} than {claim.baseline}: so it "
        f"is in {len(sides['for'])} of {plural(len(pairs), 'comparison')}, not so in "
        f"{len(sides['against'])}, open in {len(sides['open'])}."
    )
    lacking = unmeasured(claim.concurrency, pairs)
    if lacking and verdict == "supported":
        verdict = "inconclusive"
    reasons = [head, *lacking]
    for base, treat, found in (*sides["against"], *sides["for"], *sides["open"]):
        room = ""
        slots = capacity(base).slots
        if claim.given and slots is not None:
            room = f", where {show(slots.value)} slots are there"
        reasons.append(
            f"{treat.workload}, {treat.concurrency} in flight{room}: "
            f"{contrast_text(found, claim.baseline, claim.treatment)}."
        )
    cells = tuple(dict.fromkeys(cell for base, treat, _ in pairs for cell in (base, treat)))
    return Judgement(
        verdict,
        tuple(reasons),
        tuple(
            ratio_estimate(
                found,
                f"{label} ratio, {treat.workload}, {treat.concurrency} in flight",
                f"{claim.treatment} / {claim.baseline}",
            )
            for _, treat, found in pairs
        ),
        assumptions=tuple(left_out),
        confounds=differences(pairs[0][0], pairs[0][1]),
        p_value=_p_value(claim, sides),
        flips=f"loads at which {claim.treatment} is {what}"
        if verdict == "refuted"
        else f"one load at which {claim.treatment} clearly is not {what}",
        cells=cells,
        experiment=Experiment(
            (claim.baseline, claim.treatment),
            tuple(dict.fromkeys(b.workload for b, _, _ in pairs)),
            tuple(dict.fromkeys(b.concurrency for b, _, _ in pairs if b.concurrency is not None)),
        )
        if single(cells)
        else None,
    )


def _p_value(claim: Claim, sides: Mapping[str, Sequence[Pair]]) -> float | None:
    """Every comparison on the deciding side must hold; "no gain" is no test of a difference."""
    deciding = sides["against"] or sides["for"]
    if claim.expects == "no_gain" and not sides["against"]:
        return None
    one = claim.expects == "no_gain"
    return joint_p([found.comparison for _, _, found in deciding], every=not one)


def _measured(claim: Claim, ev: Evidence) -> str:
    """At which loads each arm was measured, whatever the claim asks for."""
    loads = {
        name: sorted(
            {c.concurrency for c in ev.study.cells if c.arm.name == name and c.concurrency}
        )
        for name in (claim.baseline, claim.treatment)
    }
    return "; ".join(
        f"{name} was measured at {listing(at) if at else 'no load'}" for name, at in loads.items()
    )


def _side(claim: Claim, found: Contrast) -> str:
    good = better(found.metric, found.direction)
    if claim.expects == "no_gain":
        return _no_gain(claim.margin / 100, found)
    if good is None:
        return "open"
    return "for" if good == (claim.expects == "better") else "against"


def _no_gain(margin: float, found: Contrast) -> str:
    """The improvement, in the print's rounding or between repeats, against the margin."""
    lo, hi = found.ratio.lo, found.ratio.hi
    between = found.comparison
    if between.n_baseline > 1 and between.n_treatment > 1:
        lo, hi = min(lo, between.lo), max(hi, between.hi)
    gains = (lo - 1, hi - 1) if better(found.metric, "higher") else (1 - hi, 1 - lo)
    if gains[1] <= margin:
        return "for"
    return "against" if gains[0] > margin and found.direction != "undecided" else "open"


def _pairs(claim: Claim, ev: Evidence) -> tuple[list[tuple[Cell, Cell, Contrast]], list[str]]:
    workloads = [ev.workload(claim.workload)] if claim.workload else list(ev.study.workloads)
    pairs, left_out = [], []
    for workload in workloads:
        for base in ev.study.loads(claim.baseline, workload):
            treat = ev.study.cell(claim.treatment, workload, base.concurrency)
            if treat is None or (claim.concurrency and base.concurrency not in claim.concurrency):
                continue
            if base.metric(claim.metric) is None or treat.metric(claim.metric) is None:
                continue
            if claim.given == "slots_cover":
                slots = capacity(base).slots
                if spare(base) is not True:
                    known = "unknown" if slots is None else show(slots.value)
                    left_out.append(
                        f"{base.name} is left out: its slots ({known}) are not "
                        f"{percent(SPARE, 0)} of the load"
                    )
                    continue
            pairs.append((base, treat, contrast(ev, base, treat, claim.metric)))
    return pairs, left_out
