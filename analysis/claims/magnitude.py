"""A number is what the sentence says: a value, a ratio, a difference or a percentage.

Figures as printed are intervals: 43.1 means [43.05, 43.15]. The claim is supported as arithmetic
when the computed number rounds to the stated one, refuted when its interval and the stated one
are disjoint, inconclusive when only the rounding lets them meet. A percentage is tested on the
base that the sentence names (`base`); where it names none, both bases are shown, and a claim
that is true of one base only is inconclusive. Whether the difference itself would survive
another run is said beside it; why it arose is another claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from analysis.claims import ClaimBase
from analysis.claims._common import compare_runs, moved, rounded
from analysis.evidence import REPEATS, BadClaim, Evidence, Judgement, Missing, again, single
from analysis.model import Verdict
from analysis.quantity import Quantity
from analysis.reference import (
    Ref,
    base_unit,
    cells_of,
    describe,
    described_beside,
    is_cell,
    like,
    resolve,
    stated,
)
from analysis.stats import difference_tips_at
from analysis.wording import percent, span

ABOUT = 0.05
""" "About" is read as within 5 % of the stated number."""


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a magnitude claim."""

    of: Ref
    stated: str
    against: Ref | None = None
    measure: Literal["value", "ratio", "difference", "percent", "share"] = "value"
    """percent: (of - against) / base; share: of / against."""
    unit: str = ""
    """Of the stated number: ms, GiB, %, x ..."""
    relation: Literal["equals", "about", "at_least", "at_most"] = "equals"
    base: Literal["", "of", "against"] = ""
    """Which figure a percentage is taken of."""


@dataclass(frozen=True, eq=False, slots=True)
class _Reading:
    """The number under one base."""

    observed: Quantity
    base: str
    verdict: Verdict
    words: str


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Compute the number, with every base the sentence allows, and compare."""
    bases = [claim.base] if claim.base or claim.measure != "percent" else ["against", "of"]
    readings = [_read(claim, ev, base) for base in bases]
    cells = cells_of(ev, claim.of, claim.against)
    verdicts = {reading.verdict for reading in readings}
    verdict: Verdict = readings[0].verdict if len(verdicts) == 1 else "inconclusive"
    reasons = [reading.words for reading in readings]
    if len(verdicts) > 1:
        reasons.insert(0, "The sentence names no base, and the figure is right of one base only.")
    names = {"against": claim.against, "of": claim.of}
    numbers = tuple(
        reading.observed.estimate(
            _name(claim, reading.base),
            definition=_definition(ev, claim, names.get(reading.base)),
        )
        for reading in readings
    )
    reasons.extend(_noise(claim, ev))
    confounds: tuple[str, ...] = ()
    arms = tuple(dict.fromkeys(cell.arm for cell in cells))
    if len(arms) == 2:
        confounds = moved(arms[0], arms[1])
    experiment = None
    if cells and single(cells):
        experiment = again(*cells, repeats=REPEATS)
    return Judgement(
        verdict,
        tuple(reasons),
        numbers,
        confounds=confounds,
        cells=cells,
        assumptions=(
            (f"“about” is read as within {percent(ABOUT, 0)}",) if claim.relation == "about" else ()
        ),
        flips=_flips(claim, verdict),
        experiment=experiment,
    )


def _read(claim: Claim, ev: Evidence, base: str) -> _Reading:
    observed = _observed(claim, ev, base)
    target = stated(claim.stated, _unit(claim))
    if target.unit != observed.unit:
        raise BadClaim(
            f"states {claim.stated} in {claim.unit or 'no unit'} where the figure is "
            f"in {observed.unit or 'no unit'}; set unit"
        )
    if not observed.finite:
        raise Missing(
            f"a {describe(claim.against or claim.of)} that is not 0",
            f"a {claim.measure} is taken of it",
        )
    verdict, words = _compare(claim, ev, observed, target, base)
    return _Reading(observed, base, verdict, f"{_sentence(claim, base, observed)}, {words}.")


def _unit(claim: Claim) -> str:
    return claim.unit or ("%" if claim.measure in ("percent", "share") else "")


def _observed(claim: Claim, ev: Evidence, base: str) -> Quantity:
    of = resolve(ev, claim.of)
    if claim.measure == "value":
        if claim.against is not None:
            raise BadClaim("has `against` and measures a value; say which `measure` is meant")
        return of
    if claim.against is None:
        raise BadClaim(f"measures a {claim.measure} and has no `against`; add the other figure")
    against = resolve(ev, claim.against)
    if claim.measure in ("ratio", "share"):
        return (of / against).as_unit("")
    like(of, against)
    if claim.measure == "difference":
        return of - against
    return ((of - against) / (of if base == "of" else against)).as_unit("")


def _compare(
    claim: Claim, ev: Evidence, observed: Quantity, target: Quantity, base: str
) -> tuple[Verdict, str]:
    """Verdict and the half sentence that carries it."""
    printed = f"the stated {claim.stated} {_unit(claim)}".rstrip()
    if claim.relation in ("at_least", "at_most"):
        bound = target.value
        inside = observed.lo >= bound if claim.relation == "at_least" else observed.hi <= bound
        outside = observed.hi < bound if claim.relation == "at_least" else observed.lo > bound
        words = "at least" if claim.relation == "at_least" else "at most"
        spread = _between_runs(claim, ev, base)
        if (inside or outside) and spread is not None and spread[0] < bound < spread[1]:
            return "inconclusive", f"and the spread between repeats straddles {printed}"
        if inside:
            return "supported", f"{words} {printed}"
        if outside:
            return "refuted", f"not {words} {printed}"
        return "inconclusive", f"and its interval straddles {printed}"
    lo, hi = target.lo, target.hi
    if claim.relation == "about":
        lo = target.value - ABOUT * abs(target.value)
        hi = target.value + ABOUT * abs(target.value)
        if lo <= observed.value <= hi:
            return "supported", f"within {percent(ABOUT, 0)} of {printed}"
    elif _rounds_to(claim, observed.value, target):
        return "supported", f"which rounds to {printed}"
    repeats = _repeats(claim, ev)
    hits = sum(_rounds_to(claim, value, target) for value in repeats)
    if hits:
        verb = "rounds" if hits == 1 else "round"
        words = f"the mean of {len(repeats)} runs, and {hits} of them {verb} to {printed}"
        return "supported", words
    if observed.hi >= lo and observed.lo <= hi:
        return (
            "inconclusive",
            f"which is not {printed}, though the rounding of the prints allows it",
        )
    spread = _between_runs(claim, ev, base)
    if spread is not None and spread[1] >= lo and spread[0] <= hi:
        return (
            "inconclusive",
            f"which is not {printed}, though the spread between repeats allows it",
        )
    return "refuted", f"not {printed}"


def _rounds_to(claim: Claim, value: float, target: Quantity) -> bool:
    """Whether a value in base units prints as the stated number."""
    factor = base_unit(_unit(claim))[1]
    places = len(claim.stated.replace(",", "").strip().partition(".")[2])
    return rounded(value / factor, places) == rounded(target.value / factor, places)


def _repeats(claim: Claim, ev: Evidence) -> list[float]:
    """A quoted figure may be any one of several repeats' own."""
    if claim.measure != "value" or not is_cell(claim.of):
        return []
    values = cells_of(ev, claim.of)[0].each(claim.of.metric)
    return [q.value for q in values] if len(values) > 1 else []


def _between_runs(claim: Claim, ev: Evidence, base: str) -> tuple[float, float] | None:
    """95 % interval between repeats, on the scale of the measure."""
    if claim.against is None or not (is_cell(claim.of) and is_cell(claim.against)):
        return None
    if (
        claim.measure not in ("ratio", "share", "percent")
        or claim.of.metric != claim.against.metric
    ):
        return None
    cells = (cells_of(ev, claim.against)[0], cells_of(ev, claim.of)[0])
    if any(q.value <= 0 for cell in cells for q in cell.each(claim.of.metric)):
        return None
    found = compare_runs(*cells, claim.of.metric)
    if found.n_baseline < 2 or found.n_treatment < 2:
        return None
    if claim.measure != "percent":
        return found.lo, found.hi
    if base == "of":
        return 1 - 1 / found.lo, 1 - 1 / found.hi
    return found.lo - 1, found.hi - 1


def _noise(claim: Claim, ev: Evidence) -> list[str]:
    """What run-to-run noise does to a comparison of two measured cells."""
    a, b = claim.against, claim.of
    if a is None or claim.measure == "value" or not (is_cell(a) and is_cell(b)):
        return []
    base, treat = cells_of(ev, a)[0], cells_of(ev, b)[0]
    if a.metric != b.metric or base is treat:
        return []
    if any(q.value <= 0 for cell in (base, treat) for q in cell.each(a.metric)):
        return []
    found = compare_runs(base, treat, a.metric)
    if found.n_baseline > 1 and found.n_treatment > 1:
        text = (
            f"Between repeats ({found.method}, n = {found.n_baseline} and "
            f"{found.n_treatment}) the ratio is {found.ratio:.3f} "
            f"[{found.lo:.3f}, {found.hi:.3f}]."
        )
        return [text, *(w[0].upper() + w[1:] + "." for w in found.warnings)]
    tips = difference_tips_at(found.ratio)
    return [
        f"Single runs: that there is a difference at all stands while the run-to-run sd is "
        f"below {percent(tips, 2)}."
    ]


def _sentence(claim: Claim, base: str, observed: Quantity) -> str:
    """ "Mean ITL of a on w at 10 in flight is -63.8 % [..] against that of b"."""
    of = describe(claim.of)
    text = f"{of[0].upper()}{of[1:]} is "
    places = len(claim.stated.partition(".")[2])
    if claim.against is None or claim.measure == "value":
        return text + span(observed, places)
    other = described_beside(claim.against, claim.of)
    if claim.measure == "ratio":
        return f"{text}{span(observed, places)} x {other}"
    if claim.measure == "share":
        return f"{text}{percent_span(observed, places)} of {other}"
    if claim.measure == "difference":
        return f"{text}{span(observed, places)} more than {other}"
    if base == "of":
        return f"{text}apart from {other} by {percent_span(observed, places)} of itself"
    return f"{text}{percent_span(observed, places)} relative to {other}"


def percent_span(observed: Quantity, places: int = 0) -> str:
    """A share with its interval, as a percentage with enough digits to see the interval."""
    return span((observed * 100.0).as_unit("%"), places)


def _name(claim: Claim, base: str) -> str:
    if claim.measure != "percent":
        return claim.measure
    return f"change, base: {'this figure' if base == 'of' else 'the other figure'}"


def _definition(ev: Evidence, claim: Claim, base: Ref | None) -> str:
    text = describe(claim.of)
    if claim.against is not None:
        text += f"; against {describe(claim.against)}"
    return text if base is None else f"{text}; base: {describe(base)}"


def _flips(claim: Claim, verdict: Verdict) -> str:
    printed = f"{claim.stated} {_unit(claim)}".rstrip()
    if claim.relation in ("at_least", "at_most"):
        return f"a figure on the other side of {printed}"
    if verdict == "supported":
        return f"a figure that does not round to {printed}"
    return f"a figure that rounds to {printed}"
