"""What somebody expected of a change: better, worse, or no gain; over all loads measured.

The expectation is set against every pair of runs at equal workload and load. `given` restricts it
to the condition the sentence names: that the baseline's slots hold the load with room to spare.
An expectation that no load bears out is refuted; one that some bear out is named with its loads.
Since any of k comparisons may be the one that goes against it, that one must do so at 5 % / k.
"No gain" is set against its margin: within it when the gain stays below with 5 % error of one side,
beyond it when the 95 % interval of the gain does; the noise of single runs is that seen elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from analysis.capacity import capacity
from analysis.claims import ClaimBase
from analysis.claims._bounds import ONE_SIDED, any_p, picked, side_of
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
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing, single
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
    if not 0 <= claim.margin < 100:
        raise BadClaim(f"has margin {claim.margin:g}; give percent from 0 to below 100")
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
    sides: dict[str, list[Pair]] = {"for": [], "against": [], "open": []}
    for pair in pairs:
        side, found = _side(claim, ev, pair, len(pairs))
        sides[side].append((pair[0], pair[1], found))
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
    lacking = unmeasured(claim.concurrency, pairs)
    if lacking and verdict == "supported":
        verdict = "inconclusive"
    reasons = [_head(claim, sides), *lacking]
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


def _head(claim: Claim, sides: Mapping[str, Sequence[Pair]]) -> str:
    """The comparison that decides, with its size, and how many are alike."""
    every = [pair for side in sides.values() for pair in side]
    of = plural(len(every), "comparison")
    expected = {
        "better": "better was expected",
        "worse": "worse was expected",
        "no_gain": f"no more than {claim.margin:g} % better was expected",
    }[claim.expects]
    against, good, unsure = sides["against"], sides["for"], sides["open"]
    if against and (not good or claim.expects == "no_gain"):
        lead = max(against, key=_gain)
        way = _way(lead)
        alike = sum(_way(pair) == way for pair in against)
        return f"{_change(claim, lead)} (and {way} in {alike} of {of}), where {expected}."
    if against:
        one, other = max(against, key=_gain), max(good, key=_gain)
        return (
            f"{_change(claim, other)}, but {_size(one)} on {one[1].workload} at "
            f"{one[1].concurrency}, where {expected} ({len(good)} of {of} for, "
            f"{len(against)} against, {len(unsure)} open)."
        )
    if unsure:
        lead = max(unsure, key=_gain)
        return (
            f"{_change(claim, lead)}, which noise may turn, where {expected} ({len(good)} of {of} "
            f"for, {len(unsure)} open)."
        )
    if claim.expects == "no_gain":
        lead = max(good, key=lambda pair: _improvement(pair[2]))
        most = "" if len(good) == 1 else f" (the best of {of})"
        return f"{_change(claim, lead)}{most}, where {expected}."
    lead = min(good, key=_gain)
    return f"{_change(claim, lead)} (and {_way(lead)} in {len(good)} of {of}), where {expected}."


def _gain(pair: Pair) -> float:
    """How far apart the two are, either way."""
    return abs(math.log(pair[2].ratio.value))


def _improvement(found: Contrast) -> float:
    """The log ratio, positive where the treatment is better."""
    log = math.log(found.ratio.value)
    return log if better(found.metric, "higher") else -log


def _way(pair: Pair) -> str:
    return "higher" if pair[2].ratio.value > 1 else "lower"


def _size(pair: Pair) -> str:
    """ "63.8 % lower"."""
    return f"{percent(abs(pair[2].ratio.value - 1))} {_way(pair)}"


def _change(claim: Claim, pair: Pair) -> str:
    """ "Mean ITL of b is 63.8 % lower than that of a on w at 10 in flight"."""
    label = label_of(claim.metric)
    return (
        f"{label[0].upper()}{label[1:]} of {claim.treatment} is {_size(pair)} than that of "
        f"{claim.baseline} on {pair[1].workload} at {pair[1].concurrency} in flight"
    )


def _p_value(claim: Claim, sides: Mapping[str, Sequence[Pair]]) -> float | None:
    """One comparison of the family against decides, else all must hold; "no gain" is no test."""
    if sides["against"]:
        family = sum(map(len, sides.values()))
        return any_p([found.comparison for _, _, found in sides["against"]], family)
    if claim.expects == "no_gain":
        return None
    return joint_p([found.comparison for _, _, found in sides["for"]], every=True)


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


def _side(claim: Claim, ev: Evidence, pair: Pair, family: int) -> tuple[str, Contrast]:
    """For, against or open; against it only where that withstands being one of a family."""
    base, treat, found = pair
    if claim.expects == "no_gain":
        return _no_gain(claim.margin / 100, found, family)
    wanted = claim.expects == "better"
    if better(found.metric, found.direction) is (not wanted):
        found = contrast(ev, base, treat, claim.metric, family=family)
    good = better(found.metric, found.direction)
    return ("open" if good is None else "for" if good is wanted else "against"), found


def _no_gain(margin: float, found: Contrast, family: int) -> tuple[str, Contrast]:
    """The improvement against the margin; a fall of a latency counts as percent of it."""
    rises = better(found.metric, "higher") is True
    bound = 1 + margin if rises else 1 - margin
    within, beyond = ("below", "above") if rises else ("above", "below")
    side, why = side_of(
        found.ratio,
        found.comparison,
        found.metric,
        bound,
        **{within: ONE_SIDED, beyond: picked(family)},
    )
    words = f"against the margin of {percent(margin, 0)}, {why}"
    return {within: "for", beyond: "against"}.get(side, "open"), replace(found, reason=words)


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
