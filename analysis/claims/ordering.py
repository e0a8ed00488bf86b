"""One arm is best, or worst, of several on a metric: at every load measured, or at named ones.

"Worst everywhere" is tested at every load of every workload named. Arms are compared only at
equal requests in flight in all; an arm measured elsewhere only is named and left out. One load
that clearly says otherwise refutes the claim; one within rounding or noise leaves it open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from analysis.claims import ClaimBase
from analysis.claims._common import (
    Contrast,
    better,
    contrast,
    directed,
    moved,
    ratio_estimate,
    unmeasured,
)
from analysis.dataset import Cell
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing, single
from analysis.metrics import label_of
from analysis.model import Verdict
from analysis.stats import joint_p
from analysis.wording import listing, plural, show, signed_percent


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


Pairs = Sequence[tuple[Cell, Cell, Contrast]]


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
    for_, against, open_ = [], [], []
    for mine, other, found in pairs:
        verdict = better(claim.metric, found.direction)
        if verdict is None:
            open_.append((mine, other, found))
        elif verdict == (claim.sense == "best"):
            for_.append((mine, other, found))
        else:
            against.append((mine, other, found))
    lacking = unmeasured(claim.concurrency, pairs)
    verdict_: Verdict = (
        "refuted" if against else "inconclusive" if open_ or lacking else "supported"
    )
    label, loads = label_of(claim.metric), len({(m.workload, m.concurrency) for m, _, _ in pairs})
    head = {
        "refuted": f"{claim.arm} does not have the {claim.sense} {label} at every load: "
        f"{len(against)} of {len(pairs)} comparisons over {loads} loads go the other way",
        "inconclusive": f"{len(open_)} of {len(pairs)} comparisons of {label} over {loads} loads "
        "are within rounding or run-to-run noise; the rest agree",
        "supported": f"{claim.arm} has the {claim.sense} {label} in {_each(len(pairs))} "
        f"over {plural(loads, 'load')}",
    }[verdict_]
    if lacking and verdict_ == "inconclusive":
        head = f"{plural(loads, 'load')} of those named compared, {len(open_)} within noise"
    reasons = [head + ".", *lacking, *(_words(*item, claim) for item in (*against, *open_))]
    if not against and not open_:
        closest = min(for_, key=lambda item: abs(item[2].ratio.value - 1))
        reasons.append("Closest: " + _words(*closest, claim))
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
        assumptions=left_out,
        confounds=tuple(
            dict.fromkeys(
                f"{other.arm.name}: {field}"
                for _, other, _ in pairs
                for field in moved(ev.arm(claim.arm), other.arm)
            )
        ),
        flips=f"one load at which {claim.arm} clearly is not the {claim.sense}"
        if verdict_ != "refuted"
        else "every load at which it is not, measured again and reversed",
        cells=cells,
        p_value=_p_value(for_, against),
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


def _words(mine: Cell, other: Cell, found: Contrast, claim: Claim) -> str:
    a, b = mine.metric(claim.metric), other.metric(claim.metric)
    values = (
        ""
        if a is None or b is None
        else (f"{show(a.value, a.unit)} against {show(b.value, b.unit)} of {other.arm.name}")
    )
    return (
        f"{mine.workload} at {mine.concurrency} in flight: {values} "
        f"({signed_percent(found.ratio.value - 1)}; {found.reason})."
    )


def _p_value(for_: Pairs, against: Pairs) -> float | None:
    """One clear case against refutes; else every comparison must hold."""
    if against:
        return joint_p([found.comparison for _, _, found in against], every=False)
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
