"""What several kinds share: deciding a direction, naming confounds, comparing repeats."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from analysis.dataset import Arm, Cell, differing
from analysis.evidence import BadClaim, Direction, Evidence, Missing
from analysis.metrics import label_of, metric_of
from analysis.model import Estimate, Scalar, Verdict
from analysis.pairing import by_prompts, by_seed, keyed, of_shared_seeds
from analysis.quantity import Quantity
from analysis.stats import CONFIDENCE, Comparison, compare, difference_tips_at, plausible_sd
from analysis.wording import listing, percent, plural, show, signed_percent, span

SAME_LENGTH = 0.05
"""Mean output lengths further apart than 5 % are named as a confound."""

_MOVED_BY_DESIGN = frozenset({"host", "gpus"})
"""Fields that follow from others and would only repeat them in a list of confounds."""


@dataclass(frozen=True, eq=False, slots=True)
class Contrast:
    """Treatment against baseline on one metric of one pair of cells."""

    metric: str
    ratio: Quantity
    """Treatment / baseline with its rounding interval."""
    comparison: Comparison
    direction: Direction
    reason: str
    """Why the direction stands or not, with the tipping spread or the interval."""


def contrast(
    ev: Evidence, baseline: Cell, treatment: Cell, metric: str, family: int = 1
) -> Contrast:
    """Compare two cells; a direction needs more than rounding and run-to-run noise.

    `family`: of how many comparisons this is one that alone may decide (Bonferroni).
    """
    left, right = of_shared_seeds(baseline, treatment)
    ratio = (ev.need(right, metric) / ev.need(left, metric)).as_unit("")
    comparison = compare_runs(baseline, treatment, metric)
    direction, reason = decide(ratio, comparison, metric, family)
    return Contrast(metric, ratio, comparison, direction, reason)


def ratio_estimate(found: Contrast, name: str, definition: str = "") -> Estimate:
    """A contrast as shown: between repeats with their interval, else with the rounding's."""
    return between_runs(found.ratio.estimate(name, definition), found.comparison)


def between_runs(plain: Estimate, between: Comparison) -> Estimate:
    """A ratio with its interval between repeats, where there are any."""
    if not between.repeated:
        return plain
    words = f"95 % between runs ({between.method}, n = {between.n_baseline}, {between.n_treatment})"
    return replace(
        plain,
        lo=min(between.lo, plain.lo),
        hi=max(between.hi, plain.hi),
        interval=words,
        warnings=between.warnings,
    )


def compare_runs(baseline: Cell, treatment: Cell, metric: str) -> Comparison:
    """Ratio between runs; in pairs where each run of one arm has its like in the other.

    Alike are runs of the client's same seed, or, where files hold no seed, those that sent as many
    prompts with as many tokens: the same prompts. Repeats that one arm lacks are left out of the
    other.
    """
    whole = (baseline, treatment)
    baseline, treatment = of_shared_seeds(*whole)
    left, right = baseline.each(metric), treatment.each(metric)
    if any(q.value <= 0 for q in (*left, *right)):
        raise Missing(
            f"a positive {label_of(metric)} in {baseline.name} and {treatment.name}",
            "ratios need positive figures",
        )
    for key_of in (by_seed, by_prompts):
        a, b = (
            keyed(key_of, cell, found) for cell, found in ((baseline, left), (treatment, right))
        )
        if a.keys() == b.keys() and len(a) > 1:
            found = compare(list(a.values()), [b[key] for key in a], paired=True)
            break
    else:
        found = compare([q.value for q in left], [q.value for q in right])
    notes = tuple(
        f"{plural(gone, 'run')} of {all_.arm.name} left out, of seeds that the other arm lacks"
        for all_, kept in zip(whole, (baseline, treatment), strict=True)
        if (gone := len(all_.runs) - len(kept.runs))
    )
    return replace(found, warnings=(*found.warnings, *notes))


def decide(
    ratio: Quantity, comparison: Comparison, metric: str, family: int = 1
) -> tuple[Direction, str]:
    """Which way a ratio points, or undecided, and why."""
    sd = plausible_sd(metric)
    tips = difference_tips_at(ratio.value, family)
    if comparison.repeated:
        lo, hi = comparison.interval(1 - (1 - CONFIDENCE) / family)
        words = (
            f"{comparison.method}, n = {comparison.n_baseline} and {comparison.n_treatment}: "
            f"ratio {comparison.ratio:.3f} [{lo:.3f}, {hi:.3f}]"
        )
        if ratio.lo <= 1 <= ratio.hi and ratio.lo < ratio.hi:
            # Repeats that print alike have no spread to speak of, but the print has.
            return "undecided", f"{words}, equal within the rounding of the print"
        if lo <= 1 <= hi:
            least = difference_tips_at(comparison.least_pair, family)
            if comparison.testable or least < sd:
                return "undecided", f"{words} holds 1"
            # What a single pair would settle, several that agree must: they differ in how much.
            side: Direction = "higher" if comparison.least_pair > 1 else "lower"
            return side, (
                f"{words} holds 1, but each of {comparison.n_baseline} pairs stands by itself "
                f"while the run-to-run sd is below {percent(least, 2)}"
            )
        few = min(comparison.n_baseline, comparison.n_treatment)
        if not comparison.testable and tips * math.sqrt(few) < sd:
            # So few runs may lie close by luck: the spread seen elsewhere is the floor.
            return "undecided", f"{words}, but so few runs may lie this close by chance"
        return ("higher" if lo > 1 else "lower"), words
    if ratio.lo <= 1 <= ratio.hi:
        return "undecided", "equal within the rounding of the print"
    words = f"single runs: stands while the run-to-run sd is below {percent(tips, 2)}"
    if tips < sd:
        return "undecided", f"{words}, and {percent(sd)} has to be reckoned with"
    return ("higher" if ratio.value > 1 else "lower"), words


def directed(ev: Evidence, name: str) -> str:
    """A metric by name, one that has a better direction.

    Raises:
        BadClaim: the metric is not known, or neither direction is better.
    """
    known = metric_of(ev.metric(name))
    if known is None or known.better == "neither":
        raise BadClaim(
            f"judges by {name!r}, of which neither more nor less is better; name a latency or "
            "a throughput"
        )
    return name


def unmeasured(loads: Collection[int], pairs: Iterable[tuple[Cell, Cell, Contrast]]) -> list[str]:
    """Loads that a claim names and no pair of runs has, one sentence; it bars "supported"."""
    seen = {cell.concurrency for cell, _, _ in pairs}
    lacking = [load for load in loads if load not in seen]
    return [f"Not measured at {listing(lacking)} in flight."] if lacking else []


def better(metric: str, direction: Direction) -> bool | None:
    """Whether that direction is better for the metric; None when undecided or neither."""
    known = metric_of(metric)
    if direction == "undecided" or known is None or known.better == "neither":
        return None
    return direction == known.better


def contrast_text(found: Contrast, baseline: str, treatment: str) -> str:
    """ "ITL of awq is 0.362 [..] x that of fp16 (-63.8 %)"."""
    change = signed_percent(found.ratio.value - 1)
    return (
        f"{label_of(found.metric)} of {treatment} is {span(found.ratio)} x that of {baseline} "
        f"({change}; {found.reason})"
    )


def differences(left: Cell, right: Cell, besides: Collection[str] = ()) -> tuple[str, ...]:
    """What differs between two cells besides the claimed cause: configuration, and the work done.

    Output lengths that differ by more than 5 % are other work, whatever was asked for; of runs of
    seeds that both were sent, where comparisons are of these.
    """
    found = list(moved(left.arm, right.arm, besides))
    left, right = of_shared_seeds(left, right)
    a, b = left.account("mean_output_tokens"), right.account("mean_output_tokens")
    if a is None or b is None or a.value <= 0 or left.borrows or right.borrows:
        return tuple(found)
    if abs(b.value / a.value - 1) > SAME_LENGTH:
        found.append(f"mean output tokens: {show(a.value)} against {show(b.value)}")
    return tuple(found)


def moved(left: Arm, right: Arm, besides: Collection[str] = ()) -> tuple[str, ...]:
    """Every configuration field that differs between two arms besides the claimed cause."""
    skip = _MOVED_BY_DESIGN | set(besides)
    if 1 in (left.spec.gpus, right.spec.gpus):
        # One GPU uses no link, whether or not its host has one.
        skip |= {"interconnect"}
    return tuple(
        f"{key}: {_value(a)} against {_value(b)}"
        for key, (a, b) in differing(left, right).items()
        if key not in skip
    )


def all_of(verdicts: Collection[Verdict]) -> Verdict:
    """The verdict on a sentence that states several things: one refuted refutes it."""
    for worst in ("refuted", "inconclusive"):
        if worst in verdicts:
            return worst
    return "supported"


def rounded(value: float, places: int) -> float:
    """Round half away from zero, as prints do."""
    scale = 10.0**places
    return math.copysign(math.floor(abs(value) * scale + 0.5 + 1e-9), value) / scale


def _value(value: Scalar) -> str:
    return "not stated" if value is None else str(value)
