"""One arm is best, or worst, of several on a metric: at every load measured, or at named ones.

"Worst everywhere" is tested at every load of every workload named. Arms are compared only at
equal requests in flight in all; an arm measured elsewhere only is named and left out. One load
that clearly says otherwise refutes the claim; one within rounding or noise leaves it open. Since
any of k comparisons may be the one that goes the other way, it must do so at 5 % / k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from analysis.claims import ClaimBase
from analysis.claims._bounds import any_p
from analysis.claims._common import (
    Contrast,
    better,
    contrast,
    differences,
    directed,
    ratio_estimate,
    unmeasured,
)
from analysis.dataset import Cell
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing, single
from analysis.metrics import label_of
from analysis.model import Verdict
from analysis.stats import joint_p
from analysis.wording import listing, percent, plural, show, signed_percent


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of an ordering claim."""

    arm: str
    """The arm said to be best or worst."""
    among: tuple[str, ...]
    """The arms it is compared with."""
    metric: str
    sense: Literal["best", "worst"] = "best"
    workload: str = ""
    """Empty: every workload on which it was measured."""
    concurrency: tuple[int, ...] = ()
    """Empty: every load at which it and another arm were measured."""


Pair = tuple[Cell, Cell, Contrast]
Pairs = Sequence[Pair]


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Walk over all loads; list every pair that goes the other way."""
    ev.arm(claim.arm)
    others = [name for name in claim.among if name != claim.arm]
    if not others:
        raise BadClaim("compares an arm with nobody; list other arms in `among`")
    for name in others:
        ev.arm(name)
    directed(ev, claim.metric)
    pairs = list(_pairs(claim, ev, others))
    if not pairs:
        raise Missing(
            f"a result file of {claim.arm} and of {listing(others, 'or')} at the same number of "
            "requests in flight",
            f"no two of these arms print {label_of(claim.metric)} at an equal load",
        )
    for_, against, open_ = _sorted(claim, ev, pairs)
    lacking = unmeasured(claim.concurrency, pairs)
    verdict_: Verdict = (
        "refuted" if against else "inconclusive" if open_ or lacking else "supported"
    )
    label, loads = label_of(claim.metric), len({(m.workload, m.concurrency) for m, _, _ in pairs})
    # The worst counterexample first; of those that agree or are open, the closest.
    against.sort(key=_distance, reverse=True)
    closest = min(open_ or for_ or pairs, key=_distance)
    if against:
        head = (
            f"{claim.arm} does not have the {claim.sense} {label}: "
            f"{_versus(ev, *against[0])}; {len(against)} of {plural(len(pairs), 'comparison')} "
            f"{'goes' if len(against) == 1 else 'go'} the other way"
        )
    elif open_:
        head = (
            f"{claim.arm} has the {claim.sense} {label} in {len(for_)} of "
            f"{plural(len(pairs), 'comparison')}, and {len(open_)} "
            f"{'is' if len(open_) == 1 else 'are'} within noise, the closest {_where(*closest)} "
            f"({_change(closest)})"
        )
    else:
        named = " of those named" if lacking else ""
        head = (
            f"{claim.arm} has the {claim.sense} {label} in {_each(len(pairs))} over "
            f"{plural(loads, 'load')}{named}, by {percent(abs(closest[2].ratio.value - 1))}"
            f"{' at the least' if len(pairs) > 1 else ''} ({_where(*closest)})"
        )
    reasons = [head + ".", *lacking, *(_words(ev, *item) for item in (*against, *open_))]
    if not against and not open_:
        reasons.append("Closest: " + _words(ev, *closest))
    left_out = _left_out(claim, ev, others, pairs)
    cells = tuple(dict.fromkeys(cell for mine, other, _ in pairs for cell in (mine, other)))
    settle = against or open_ or for_
    return Judgement(
        verdict_,
        tuple(reasons),
        tuple(
            ratio_estimate(
                found,
                f"{label}, {mine.arm.name} / {other.arm.name}, {mine.workload}, "
                f"{mine.concurrency} in flight",
            )
            for mine, other, found in pairs
        ),
        assumptions=(*left_out, *_idle(pairs)),
        confounds=tuple(
            dict.fromkeys(
                f"{other.arm.name}: {field}"
                for mine, other, _ in pairs
                for field in differences(mine, other)
            )
        ),
        flips=f"one load at which {claim.arm} clearly is not the {claim.sense}"
        if verdict_ != "refuted"
        else "every load at which it is not, measured again and reversed",
        cells=cells,
        p_value=_p_value(for_, against, len(pairs)),
        experiment=Experiment(
            (claim.arm, *dict.fromkeys(other.arm.name for _, other, _ in settle)),
            tuple(dict.fromkeys(m.workload for m, _, _ in settle)),
            tuple(dict.fromkeys(m.concurrency for m, _, _ in settle if m.concurrency is not None)),
        )
        if single(cells)
        else None,
    )


def _pairs(claim: Claim, ev: Evidence, others: list[str]) -> list[tuple[Cell, Cell, Contrast]]:
    workloads = [ev.workload(claim.workload)] if claim.workload else list(ev.study.workloads)
    pairs = []
    for workload in workloads:
        for mine in ev.study.loads(claim.arm, workload):
            if claim.concurrency and mine.concurrency not in claim.concurrency:
                continue
            for name in others:
                other = ev.study.cell(name, workload, mine.concurrency)
                if other is None or not mine.metric(claim.metric) or not other.metric(claim.metric):
                    continue
                pairs.append((mine, other, contrast(ev, other, mine, claim.metric)))
    return pairs


def _sorted(claim: Claim, ev: Evidence, pairs: Pairs) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """For, against and open; one of k that goes the other way has to withstand being picked."""
    for_: list[Pair] = []
    against: list[Pair] = []
    open_: list[Pair] = []
    for mine, other, first in pairs:
        verdict, found = better(claim.metric, first.direction), first
        if verdict is not None and verdict != (claim.sense == "best"):
            found = contrast(ev, other, mine, claim.metric, family=len(pairs))
            verdict = better(claim.metric, found.direction)
        side = open_ if verdict is None else for_ if verdict == (claim.sense == "best") else against
        side.append((mine, other, found))
    return for_, against, open_


def _distance(pair: Pair) -> float:
    return abs(math.log(pair[2].ratio.value))


def _change(pair: Pair) -> str:
    return signed_percent(pair[2].ratio.value - 1)


def _where(mine: Cell, other: Cell, _: Contrast) -> str:
    return f"{other.arm.name}, {mine.workload}, {mine.concurrency} in flight"


def _versus(ev: Evidence, mine: Cell, other: Cell, found: Contrast) -> str:
    """ "9 ms against 8 ms of b on chat at 10 in flight (+12.5 %)"."""
    return (
        f"{_values(ev, mine, other, found)} on {mine.workload} at {mine.concurrency} in flight "
        f"({signed_percent(found.ratio.value - 1)})"
    )


def _values(ev: Evidence, mine: Cell, other: Cell, found: Contrast) -> str:
    a, b = ev.need(mine, found.metric), ev.need(other, found.metric)
    return f"{show(a.value, a.unit)} against {show(b.value, b.unit)} of {other.arm.name}"


def _idle(pairs: Pairs) -> tuple[str, ...]:
    """Loads at which some replicas get no request; they are compared all the same."""
    cells = (cell for mine, other, _ in pairs for cell in (mine, other))
    return tuple(
        f"at {plural(cell.concurrency or 0, 'request')} in flight only {cell.concurrency} of "
        f"{cell.arm.spec.replicas} replicas of {cell.arm.name} {_works(cell.concurrency or 0)}"
        for cell in dict.fromkeys(cells)
        if (cell.concurrency or 0) < cell.arm.spec.replicas
    )


def _works(count: int) -> str:
    return "works" if count == 1 else "work"


def _words(ev: Evidence, mine: Cell, other: Cell, found: Contrast) -> str:
    return (
        f"{mine.workload} at {mine.concurrency} in flight: {_values(ev, mine, other, found)} "
        f"({signed_percent(found.ratio.value - 1)}; {found.reason})."
    )


def _p_value(for_: Pairs, against: Pairs, family: int) -> float | None:
    """One clear case of the family against refutes; else every comparison must hold."""
    if against:
        return any_p([found.comparison for _, _, found in against], family)
    return joint_p([found.comparison for _, _, found in for_], every=True)


def _each(count: int) -> str:
    return "the one comparison" if count == 1 else f"all {count} comparisons"


def _left_out(
    claim: Claim, ev: Evidence, others: list[str], pairs: list[tuple[Cell, Cell, Contrast]]
) -> tuple[str, ...]:
    """Arms without a single comparable load, and loads at which an arm has other totals."""
    compared = {other.arm.name for _, other, _ in pairs}
    return tuple(
        f"{name} was not measured at a load equal to one of {claim.arm}'s and is left out"
        for name in others
        if name not in compared
    )
