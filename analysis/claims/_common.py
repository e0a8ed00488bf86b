"""What several kinds share: deciding a direction, naming confounds, comparing repeats."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from analysis.dataset import Arm, Cell, differing
from analysis.evidence import BadClaim, Direction, Evidence, Missing
from analysis.metrics import label_of, metric_of
from analysis.model import Estimate, Scalar
from analysis.quantity import Quantity
from analysis.stats import PLAUSIBLE_RUN_SD, Comparison, compare, difference_tips_at
from analysis.wording import listing, percent, signed_percent, span

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


def contrast(ev: Evidence, baseline: Cell, treatment: Cell, metric: str) -> Contrast:
    """Compare two cells; a direction needs more than rounding and run-to-run noise."""
    ratio = (ev.need(treatment, metric) / ev.need(baseline, metric)).as_unit("")
    comparison = compare_runs(baseline, treatment, metric)
    direction, reason = decide(ratio, comparison)
    return Contrast(metric, ratio, comparison, direction, reason)


def ratio_estimate(found: Contrast, name: str, definition: str = "") -> Estimate:
    """A contrast as shown: between repeats with their interval, else with the rounding's."""
    plain = found.ratio.estimate(name, definition)
    between = found.comparison
    if between.n_baseline < 2 or between.n_treatment < 2:
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
    """Ratio between runs; pairs by the client's seed where both arms recorded the same seeds."""
    left, right = baseline.each(metric), treatment.each(metric)
    if any(q.value <= 0 for q in (*left, *right)):
        raise Missing(
            f"a positive {label_of(metric)} in {baseline.name} and {treatment.name}",
            "ratios need positive figures",
        )
    seeds = [[run.config.get("seed") for run in cell.runs] for cell in (baseline, treatment)]
    paired = (
        seeds[0] == seeds[1] and None not in seeds[0] and len(set(seeds[0])) == len(seeds[0]) > 1
    )
    return compare([q.value for q in left], [q.value for q in right], paired=paired)


def decide(ratio: Quantity, comparison: Comparison) -> tuple[Direction, str]:
    """Which way a ratio points, or undecided, and why."""
    if comparison.n_baseline > 1 and comparison.n_treatment > 1:
        words = (
            f"{comparison.method}, n = {comparison.n_baseline} and {comparison.n_treatment}: "
            f"ratio {comparison.ratio:.3f} [{comparison.lo:.3f}, {comparison.hi:.3f}]"
        )
        if ratio.lo <= 1 <= ratio.hi and ratio.lo < ratio.hi:
            # Repeats that print alike have no spread to speak of, but the print has.
            return "undecided", f"{words}, equal within the rounding of the print"
        if comparison.lo > 1:
            return "higher", words
        if comparison.hi < 1:
            return "lower", words
        return "undecided", f"{words} holds 1"
    if ratio.lo <= 1 <= ratio.hi:
        return "undecided", "equal within the rounding of the print"
    tips = difference_tips_at(ratio.value)
    words = f"single runs: stands while the run-to-run sd is below {percent(tips, 2)}"
    if tips < PLAUSIBLE_RUN_SD:
        return "undecided", f"{words}, and {percent(PLAUSIBLE_RUN_SD)} has been seen"
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


def rounded(value: float, places: int) -> float:
    """Round half away from zero, as prints do."""
    scale = 10.0**places
    return math.copysign(math.floor(abs(value) * scale + 0.5 + 1e-9), value) / scale


def _value(value: Scalar) -> str:
    return "not stated" if value is None else str(value)
