"""A number is what the sentence says: a value, a ratio, a difference or a percentage.

Figures as printed are intervals: 43.1 means [43.05, 43.15]. The claim is supported as arithmetic
when the computed number rounds to the stated one, refuted when its interval and the stated one
are disjoint, inconclusive when only the rounding lets them meet. A percentage is tested on the
base that the sentence names (`base`); where it names none, both bases are shown, and a claim
that is true of one base only is inconclusive. Whether the difference itself would survive
another run is said beside it; why it arose is another claim.

A bound ("at least") on one metric of two cells must be cleared by run-to-run noise as well: by the
interval between repeats, or, of single runs, by the spread that runs have elsewhere. Of several
runs the mean counts; a number that only some of them print is supported where it also lies within
the 95 % interval of the mean, and inconclusive where it was picked from beyond it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from analysis.claims import ClaimBase
from analysis.claims._bounds import side_of
from analysis.claims._common import compare_runs, differences, moved, rounded
from analysis.dataset import Cell
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
    resolve_pair,
    stated,
    units_for,
)
from analysis.stats import difference_tips_at
from analysis.wording import listing, percent, show, span

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
        reasons.insert(0, _both_bases(claim, *readings))
    names = {"against": claim.against, "of": claim.of}
    numbers = tuple(
        reading.observed.estimate(
            _name(claim, reading.base),
            definition=_definition(ev, claim, names.get(reading.base)),
        )
        for reading in readings
    )
    reasons.extend(_other_base(claim, ev))
    reasons.extend(_noise(claim, ev))
    confounds: tuple[str, ...] = ()
    arms = tuple(dict.fromkeys(cell.arm for cell in cells))
    if len(arms) == 2:
        confounds = differences(*cells) if len(cells) == 2 else moved(arms[0], arms[1])
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
        units = listing(units_for(observed.unit), "or")
        raise BadClaim(
            f"states {claim.stated} in {claim.unit or 'no unit'} where the figure is "
            f"in {observed.unit or 'no unit'}; set unit to {units}"
        )
    if not observed.finite:
        raise Missing(
            f"a {describe(claim.against or claim.of)} that is not 0",
            f"a {claim.measure} is taken of it",
        )
    verdict, words = _compare(claim, ev, observed, target, base)
    return _Reading(
        observed, base, verdict, f"{_sentence(claim, base, observed, target)}, {words}."
    )


def _says_less(claim: Claim) -> bool:
    """Whether the stated number is a change downwards, which is put into words."""
    return claim.measure == "percent" and claim.stated.strip().startswith("-")


def _number(claim: Claim) -> str:
    """The stated number in words: "64 % less" of -64."""
    if _says_less(claim):
        return f"{claim.stated.strip()[1:]} {_unit(claim)} less"
    return f"{claim.stated} {_unit(claim)}".rstrip()


def _bound(claim: Claim, extra: str = "") -> str:
    """A bound: "the stated 10 %", or where a vague word was read so, "10 %, as ... is read"."""
    if claim.reads:
        return f"{_number(claim)},{extra and f'{extra} and'} as the sentence is read"
    return f"the stated {_number(claim)}{extra}"


def _unit(claim: Claim) -> str:
    return claim.unit or ("%" if claim.measure in ("percent", "share") else "")


def _observed(claim: Claim, ev: Evidence, base: str) -> Quantity:
    if claim.measure == "value":
        if claim.against is not None:
            raise BadClaim("has `against` and measures a value; say which `measure` is meant")
        return resolve(ev, claim.of)
    if claim.against is None:
        raise BadClaim(f"measures a {claim.measure} and has no `against`; add the other figure")
    of, against = resolve_pair(ev, claim.of, claim.against)
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
    printed = f"the stated {_number(claim)}"
    if claim.relation in ("at_least", "at_most"):
        return _bounded(claim, ev, observed, target, base)
    lo, hi = target.lo, target.hi
    if claim.relation == "about":
        lo = target.value - ABOUT * abs(target.value)
        hi = target.value + ABOUT * abs(target.value)
        if lo <= observed.value <= hi:
            return "supported", f"within {percent(ABOUT, 0)} of {printed}"
    elif _rounds_to(claim, observed.value, target):
        return "supported", f"which rounds to {printed}"
    quoted = _one_of_several(claim, ev, target, printed)
    if quoted is not None:
        return quoted
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
    places = _places(claim)
    return rounded(value / factor, places) == rounded(target.value / factor, places)


def _bounded(
    claim: Claim, ev: Evidence, observed: Quantity, target: Quantity, base: str
) -> tuple[Verdict, str]:
    """A bound: by the rounding of the figures, then by what runs vary."""
    bound, above = target.value, claim.relation == "at_least"
    # At most -10 % is at least 10 % less.
    words = "at least" if above != _says_less(claim) else "at most"
    inside = observed.lo >= bound if above else observed.hi <= bound
    outside = observed.hi < bound if above else observed.lo > bound
    if not inside and not outside:
        return "inconclusive", f"and its interval straddles {_bound(claim)}"
    words = words if inside else f"not {words}"
    pair = _plain_pair(claim, ev)
    if pair is not None:
        metric, against = claim.of.metric, ev.need(pair[0], claim.of.metric)
        ratio = (ev.need(pair[1], metric) / against).as_unit("")
        scaled = _as_ratio(claim.measure, base, bound, against.value)
        side, why = side_of(ratio, compare_runs(*pair, metric), metric, scaled)
        if side == "open":
            bounded = f"{words} {_bound(claim, ' as printed')}"
            return "inconclusive", f"{bounded}, which noise may turn ({why})"
    repeated = _repeated(claim, ev)
    if repeated is not None:
        found = repeated.estimate(claim.of.metric, "mean")
        if found is not None and found.lo < bound < found.hi:
            return "inconclusive", (
                f"the mean of {len(repeated.runs)} runs, whose 95 % interval "
                f"[{show(found.lo, found.unit)}, {show(found.hi, found.unit)}] straddles "
                f"{_bound(claim)}"
            )
    return ("supported" if inside else "refuted"), f"{words} {_bound(claim)}"


def _as_ratio(measure: str, base: str, bound: float, against: float) -> float:
    """A bound on the measure as one on the ratio of the two figures; all of them rise with it."""
    if measure == "difference":
        return 1 + bound / against
    if measure != "percent":
        return bound
    if base == "of":
        # (a - b) / a = 1 - b / a, which stays below 1.
        return 1 / (1 - bound) if bound < 1 else math.inf
    return 1 + bound


def _one_of_several(
    claim: Claim, ev: Evidence, target: Quantity, printed: str
) -> tuple[Verdict, str] | None:
    """A quoted figure may be one run's own, if the mean of them all does not contradict it."""
    cell = _repeated(claim, ev)
    if cell is None:
        return None
    values = [q.value for q in cell.each(claim.of.metric)]
    hits = [n for n, value in enumerate(values, 1) if _rounds_to(claim, value, target)]
    found = cell.estimate(claim.of.metric, "mean")
    if not hits or found is None:
        return None
    n, which = len(values), f"run {listing(hits)}" if len(hits) == 1 else f"runs {listing(hits)}"
    if found.lo <= target.value <= found.hi:
        verb = "is" if len(hits) == 1 else "are"
        return (
            "supported",
            f"the mean of {n} runs; the quoted one, {printed}, {verb} {which} of {n}",
        )
    return "inconclusive", (
        f"the mean of {n} runs; {printed} is true of {len(hits)} of {n} runs only ({which}) and "
        f"lies outside the 95 % interval of the mean, "
        f"[{show(found.lo, found.unit)}, {show(found.hi, found.unit)}]"
    )


def _repeated(claim: Claim, ev: Evidence) -> Cell | None:
    """The cell whose value is quoted, where it has several runs."""
    if claim.measure != "value" or not is_cell(claim.of):
        return None
    cell = cells_of(ev, claim.of)[0]
    return cell if len(cell.each(claim.of.metric)) > 1 else None


def _plain_pair(claim: Claim, ev: Evidence) -> tuple[Cell, Cell] | None:
    """The two cells, base first, of one metric that runs can be compared on; None otherwise."""
    if claim.measure == "value" or claim.against is None:
        return None
    if not (is_cell(claim.of) and is_cell(claim.against)):
        return None
    base, treat = cells_of(ev, claim.against)[0], cells_of(ev, claim.of)[0]
    if claim.of.metric != claim.against.metric or base is treat:
        return None
    if any(q.value <= 0 for cell in (base, treat) for q in cell.each(claim.of.metric)):
        return None
    return base, treat


def _between_runs(claim: Claim, ev: Evidence, base: str) -> tuple[float, float] | None:
    """95 % interval between repeats, on the scale of the measure."""
    pair = _plain_pair(claim, ev)
    if pair is None or claim.measure == "difference":
        return None
    found = compare_runs(*pair, claim.of.metric)
    if not found.repeated:
        return None
    if claim.measure != "percent":
        return found.lo, found.hi
    if base == "of":
        return 1 - 1 / found.lo, 1 - 1 / found.hi
    return found.lo - 1, found.hi - 1


def _noise(claim: Claim, ev: Evidence) -> list[str]:
    """What run-to-run noise does to a comparison of two measured cells."""
    pair = _plain_pair(claim, ev)
    if pair is None:
        return []
    found = compare_runs(*pair, claim.of.metric)
    if found.repeated:
        text = (
            f"Between repeats ({found.method}, n = {found.n_baseline} and "
            f"{found.n_treatment}) the ratio is {found.ratio:.3f} "
            f"[{found.lo:.3f}, {found.hi:.3f}]."
        )
    else:
        tips = difference_tips_at(found.ratio)
        text = (
            f"Single runs: that there is a difference at all stands while the run-to-run sd is "
            f"below {percent(tips, 2)}."
        )
    return [text, *(w[0].upper() + w[1:] + "." for w in found.warnings)]


def _sentence(claim: Claim, base: str, observed: Quantity, target: Quantity) -> str:
    """ "Mean ITL of a on w at 10 in flight is 63.8 % [..] less than that of b"."""
    of = describe(claim.of)
    text = f"{of[0].upper()}{of[1:]} "
    places = _fine(claim, observed, target)
    if claim.against is None or claim.measure == "value":
        return f"{text}is {span(observed, places)}"
    other = described_beside(claim.against, claim.of)
    if claim.measure == "ratio":
        return f"{text}is {span(observed, places)} x {other}"
    if claim.measure == "share":
        return f"{text}is {percent_span(observed, places)} of {other}"
    if claim.measure == "difference":
        return f"{text}is {span(observed, places)} more than {other}"
    less = observed.value < 0
    size = _size(claim, observed, target)
    if base == "of":
        return f"{text}{'falls short of' if less else 'exceeds'} {other} by {size} of itself"
    return f"{text}is {size} {'less' if less else 'more'} than {other}"


def _both_bases(claim: Claim, against: _Reading, of: _Reading) -> str:
    """Both sizes of a change whose base decides, and the key that names the base."""
    target = stated(claim.stated, _unit(claim))
    return (
        f"{_sentence(claim, 'against', against.observed, target)}, or "
        f"{_size(claim, of.observed, target)} of itself, and the bases disagree on "
        f'{_number(claim)}; set base = "against" or "of".'
    )


def _other_base(claim: Claim, ev: Evidence) -> list[str]:
    """The same change taken of the other figure, where that prints as another number."""
    if not claim.base or claim.measure != "percent" or claim.against is None:
        return []
    here, there = (
        _observed(claim, ev, base)
        for base in (claim.base, "of" if claim.base == "against" else "against")
    )
    target = stated(claim.stated, _unit(claim))
    places = _places(claim)
    if not there.finite or rounded(abs(here.value) * 100, places) == rounded(
        abs(there.value) * 100, places
    ):
        return []
    of, against = describe(claim.of), describe(claim.against)
    text = f"Of {of if claim.base == 'against' else against} the same difference is "
    text += _size(claim, there, target)
    if rounded(abs(there.value) * 100, places) == rounded(abs(target.value) * 100, places):
        text += ": that is the stated number"
    return [f"{text}."]


def _size(claim: Claim, observed: Quantity, target: Quantity) -> str:
    """A change without its sign, as a percentage."""
    plain = observed * -1.0 if observed.value < 0 else observed
    return percent_span(plain, _fine(claim, observed, target))


def _fine(claim: Claim, observed: Quantity, target: Quantity) -> int:
    """Decimals to show: those of the stated number, or where an exact figure differs, two more.

    So it can be seen on which side of the stated number it lies.
    """
    apart = observed.lo == observed.hi and not math.isclose(observed.value, target.value)
    return _places(claim) + (2 if apart else 0)


def _places(claim: Claim) -> int:
    """Decimals of the stated number."""
    return len(claim.stated.replace(",", "").strip().partition(".")[2])


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
