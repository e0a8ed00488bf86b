"""Two figures are the same for practical purposes: within a stated margin.

Never concluded from a large p-value. With repeats, two one-sided t tests at 5 % on log ratios;
with single runs, the tipping spread: the claim stands only while the run-to-run standard
deviation is below (margin - |d|) / (1.645 √2). Facts that do not vary between runs (a size in a
log) are compared by their rounding intervals alone.
"""

from __future__ import annotations

import math
import re

from analysis.claims import ClaimBase
from analysis.claims._common import between_runs, compare_runs, differences
from analysis.dataset import Cell
from analysis.evidence import REPEATS, BadClaim, Evidence, Judgement, again
from analysis.model import Verdict
from analysis.quantity import Quantity
from analysis.reference import Ref, cells_of, describe, described_beside, is_cell, resolve_pair
from analysis.stats import (
    LEAST_RUN_SD,
    Comparison,
    beyond_p,
    difference_tips_at,
    equivalence_p,
    equivalence_tips_at,
    equivalent,
    plausible_sd,
    runs_for_equivalence,
)
from analysis.wording import percent, signed_percent, span


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of an equivalence claim."""

    of: Ref
    against: Ref
    margin: float | str
    """Per cent either way that counts as the same: 2 or "2 %"."""


SMALL = 0.05
"""A bare margin below this many per cent may be meant as a share, so how it is read is said."""

_PER_CENT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(%?)")


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Same within the margin, not the same, or not settled by so few runs."""
    size, notes = _margin(claim.margin)
    margin = size / 100
    of, against = resolve_pair(ev, claim.of, claim.against)
    ratio = (of / against).as_unit("")
    cells = cells_of(ev, claim.against, claim.of)
    other = described_beside(claim.against, claim.of)
    subject = f"{describe(claim.of)} is {span(ratio)} x {other}"
    subject = f"{subject[0].upper()}{subject[1:]} ({signed_percent(ratio.value - 1, 2)})"
    numbers = (ratio.estimate("ratio", f"{describe(claim.of)} / {describe(claim.against)}"),)
    plain = all(is_cell(ref) for ref in (claim.of, claim.against))
    if not plain or claim.of.metric != claim.against.metric or len(cells) != 2:
        verdict, words = _facts(ratio, margin)
        return Judgement(
            verdict,
            (f"{subject}, {words}{_as_printed(cells)}.",),
            numbers,
            assumptions=notes,
            cells=cells,
            flips=f"figures on the other side of {size:g} %",
            experiment=again(*cells) if cells else None,
        )
    found = compare_runs(cells[0], cells[1], claim.of.metric)
    verdict, words, p = _runs(claim, found, ratio, margin)
    left_out = tuple(note[0].upper() + note[1:] + "." for note in found.warnings)
    return Judgement(
        verdict,
        (f"{subject}: {words[0].lower()}{words[1:]}", *left_out),
        (between_runs(numbers[0], found),),
        assumptions=notes,
        confounds=differences(cells[0], cells[1]),
        flips=f"repeats whose 90 % interval lies on the other side of {size:g} %",
        cells=cells,
        experiment=again(*cells, repeats=REPEATS),
        p_value=p,
    )


def _margin(given: float | str) -> tuple[float, tuple[str, ...]]:
    """A margin in per cent, and how it is read where that may not be what was meant.

    Raises:
        BadClaim: it is no number, or not between 0 and 100.
    """
    sign = ""
    if isinstance(given, str):
        found = _PER_CENT.fullmatch(given.strip())
        if found is None:
            raise BadClaim(
                f'has margin {given!r}, which is no number of per cent; write 2 or "2 %"'
            )
        size, sign = float(found[1]), found[2]
    else:
        size = given
    if not 0 < size < 100:
        raise BadClaim(f"has margin {size:g}; give per cent between 0 and 100, such as 2 for 2 %")
    notes = (f"margin {size:g} is read as {size:g} %",) if size < SMALL and not sign else ()
    return size, notes


def _facts(ratio: Quantity, margin: float) -> tuple[Verdict, str]:
    low, high = 1 - margin, 1 + margin
    if low <= ratio.lo and ratio.hi <= high:
        return "supported", f"within {margin * 100:g} %"
    if ratio.hi < low or ratio.lo > high:
        return "refuted", f"further apart than {margin * 100:g} %"
    return "inconclusive", f"and the rounding of the prints straddles {margin * 100:g} %"


def _as_printed(cells: tuple[Cell, ...]) -> str:
    """What a comparison of printed figures leaves open where a run is behind one of them."""
    return "; as printed, another run may differ" if cells else ""


def _runs(
    claim: Claim, found: Comparison, ratio: Quantity, margin: float
) -> tuple[Verdict, str, float | None]:
    sd = plausible_sd(claim.of.metric)
    within = f"{margin * 100:g} %"
    # What the rounding of the prints leaves open, no number of repeats settles.
    holds = 1 - margin <= ratio.lo and ratio.hi <= 1 + margin
    beyond_print = ratio.hi < 1 - margin or ratio.lo > 1 + margin
    if found.repeated:
        same = equivalent(found, margin)
        if (same and not holds) or (same is False and not beyond_print):
            same = None
        words = (
            f"Two one-sided tests ({found.method}, n = {found.n_baseline} and "
            f"{found.n_treatment}): ratio {found.ratio:.4f}, 90 % interval "
            f"[{found.lo90:.4f}, {found.hi90:.4f}], against a margin of {within}."
        )
        verdict: Verdict = "inconclusive" if same is None else "supported" if same else "refuted"
        p = None
        if same is not None:
            p = equivalence_p(found, margin) if same else beyond_p(found, margin)
        return verdict, words, p
    inside = 1 - margin <= ratio.value <= 1 + margin
    if inside:
        tips = equivalence_tips_at(ratio.value, margin)
        words = (
            f"Single runs: “within {within}” stands only while the run-to-run sd is below "
            f"{percent(tips, 3)}"
        )
        if tips >= sd and not holds:
            return "inconclusive", f"{words}, and the rounding of the prints straddles it.", None
        if tips >= sd:
            return (
                "supported",
                f"{words}; up to {percent(sd)} has to be reckoned with.",
                None,
            )
        more = runs_for_equivalence(ratio.value, margin, sd)
        few = runs_for_equivalence(ratio.value, margin, LEAST_RUN_SD)
        return (
            "inconclusive",
            f"{words}; up to {percent(sd)} has to be reckoned with. "
            f"{few} runs an arm would settle it at an sd of {percent(LEAST_RUN_SD)}, {more} at "
            f"{percent(sd)}.",
            None,
        )
    beyond = abs(math.log(ratio.value)) - abs(math.log1p(math.copysign(margin, ratio.value - 1)))
    tips = difference_tips_at(math.exp(beyond))
    words = (
        f"Outside the margin of {within}: stands while the run-to-run sd is below "
        f"{percent(tips, 2)}."
    )
    if beyond_print and tips >= sd:
        return "refuted", words, None
    return "inconclusive", words, None
