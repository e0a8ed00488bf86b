"""Whether, and where, the load curves of two arms cross.

Inside the measured loads a crossing is a change of sign and gets an interval: the zeros that remain
possible when the ratio at either load moves within its rounding and within what runs vary (the 95 %
interval between repeats, or of single runs the spread seen elsewhere). Beyond them it is not
identified unless several models agree; their range is printed with the runs that would
settle it. The claim is judged on the range it names. One that names none is judged on the measured
loads, and stays inconclusive where they show no crossing and some model crosses beyond them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from analysis.claims import ClaimBase
from analysis.claims._common import Contrast, contrast, differences
from analysis.crossover import Crossing, Forecast, Point, crossings, forecasts, points
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing
from analysis.metrics import label_of
from analysis.model import Estimate, Verdict
from analysis.stats import LEAST_RUN_SD, difference_tips_at, plausible_sd
from analysis.wording import digits, listing, percent, plural


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a crossover claim."""

    first: str
    second: str
    metric: str
    workload: str
    crosses: bool
    """Whether the sentence says that the curves cross."""
    within: tuple[int, int] | None = None
    """Loads the sentence speaks of; the measured ones when absent."""
    instance: str = ""
    """One instance of `second` measured alone, for extrapolation."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Signs of the log ratio over the common loads, then models beyond."""
    ev.workload(claim.workload)
    ev.metric(claim.metric)
    first_arm, second_arm = ev.arm(claim.first), ev.arm(claim.second)
    first = ev.study.loads(claim.first, claim.workload)
    second = ev.study.loads(claim.second, claim.workload)
    rows = points(first, second, claim.metric)
    if len(rows) < 2:
        raise Missing(
            f"result files of {claim.first} and {claim.second} on {claim.workload} at "
            "two equal loads or more",
            f"{len(rows)} common loads found",
        )
    low, high = rows[0].n, rows[-1].n
    lo, hi = claim.within or (low, high)
    if lo >= hi:
        raise BadClaim(f"speaks of loads within [{lo}, {hi}]; give the lower one first")
    label = label_of(claim.metric)
    by_n = {cell.concurrency: cell for cell in second}
    pairs = [
        (cell, by_n[cell.concurrency])
        for cell in first
        if cell.concurrency in by_n and any(row.n == cell.concurrency for row in rows)
    ]
    clear = [contrast(ev, b, a, claim.metric) for a, b in pairs]
    noisy = [replace(row, noise=_noise(c)) for row, c in zip(rows, clear, strict=True)]
    found = [c for c in crossings(noisy) if lo <= c.hi and c.lo <= hi]
    repeated = {row.n for row, c in zip(rows, clear, strict=True) if c.comparison.repeated}
    numbers = [
        row.ratio.estimate(f"{label}, {claim.first} / {claim.second}, {row.n} in flight")
        for row in rows
    ]
    reasons: list[str] = []
    unit = ev.study.loads(claim.instance, claim.workload) if claim.instance else ()
    if claim.instance:
        ev.arm(claim.instance)
    beyond = forecasts(first, second, claim.metric, unit, second_arm.spec.replicas)
    # Whether loads that were not measured leave the claim open.
    outside = False
    if found:
        for c in found:
            reasons.append(
                f"The {label} curves cross at {digits(c.at)} [{digits(c.lo)}, "
                f"{digits(c.hi)}] in flight, between the runs at {c.below} and "
                f"{c.above}."
            )
            if c.cut:
                reasons.append(
                    f"The interval is cut at {listing(c.cut)}: the arms may be equal there, "
                    "and the crossing beyond."
                )
            numbers.append(
                Estimate(
                    "crossing",
                    c.at,
                    c.lo,
                    c.hi,
                    "",
                    "95 % between runs"
                    if {c.below, c.above} <= repeated
                    else "spread taken from elsewhere and rounding",
                    "zero of the log ratio, linear in log load",
                )
            )
        verdict: Verdict = "supported" if claim.crosses else "refuted"
        if not any(lo <= c.lo and c.hi <= hi for c in found):
            verdict = "inconclusive"
            reasons.append(
                f"Rounding and run-to-run noise leave open whether that is within [{lo}, {hi}]."
            )
        elif not _signs_differ(clear):
            verdict = "inconclusive"
            reasons.append("On one side of it every load is within rounding or run-to-run noise.")
    else:
        undecided = [
            row.n
            for row, c in zip(rows, clear, strict=True)
            if c.direction == "undecided" and lo <= row.n <= hi
        ]
        ratios = ", ".join(f"{digits(row.ratio.value)} at {row.n}" for row in rows)
        least, most = max(lo, low), min(hi, high)
        where = (
            f"No crossing in [{least}, {most}]"
            if least <= most
            else f"Nothing was measured within [{lo}, {hi}]"
        )
        reasons.append(f"{where}: {label} of {claim.first} over {claim.second} is {ratios}.")
        if undecided:
            reasons.append(
                f"At {listing(undecided)} in flight the arms are within rounding or "
                "run-to-run noise."
            )
        # Without a limit, what the models say beyond the runs can leave the answer open.
        no_limit = claim.within is None and (claim.crosses or any(f.at for f in beyond))
        outside = no_limit or lo < low or high < hi
        verdict = "refuted" if claim.crosses else "supported"
        if undecided or outside:
            verdict = "inconclusive"
        else:
            reasons.extend(_single_runs(clear))
    text, loads = _beyond(beyond, high)
    # What leaves the claim open stands first.
    reasons.insert(0 if outside and claim.within is None else len(reasons), text)
    replicas = max(first_arm.spec.replicas, second_arm.spec.replicas)
    if low < replicas:
        works = "works" if low == 1 else "work"
        reasons.append(f"At {low} in flight only {low} of {replicas} replicas {works}.")
    numbers += [_by_model(f) for f in beyond]
    cells = tuple(cell for pair in pairs for cell in pair)
    return Judgement(
        verdict,
        tuple(reasons),
        tuple(numbers),
        confounds=tuple(dict.fromkeys(d for a, b in pairs for d in differences(a, b))),
        flips=_flips(found, verdict, outside, rows),
        cells=cells,
        experiment=Experiment((claim.first, claim.second), (claim.workload,), loads),
    )


def _noise(found: Contrast) -> float:
    """Half width of ln ratio between runs: 95 % of repeats, else of the spread seen elsewhere.

    So few repeats that they may lie close by luck are given that spread as their least, others
    the least spread that was ever seen.
    """
    between = found.comparison
    # 1.96 √2 of an sd of 1.
    z = 1 / difference_tips_at(math.e)
    sd = plausible_sd(found.metric)
    if not between.repeated:
        return z * sd
    runs = min(between.n_baseline, between.n_treatment)
    least = (LEAST_RUN_SD if between.testable else sd) * z / math.sqrt(runs)
    return max(math.log(between.hi) - math.log(between.ratio), least)


def _signs_differ(clear: Sequence[Contrast]) -> bool:
    """Whether the first arm is clearly higher at one load and clearly lower at another."""
    return {"higher", "lower"} <= {found.direction for found in clear}


def _single_runs(clear: Sequence[Contrast]) -> tuple[str, ...]:
    """The spread at which the closest of single runs would turn."""
    alone = [found for found in clear if not found.comparison.repeated]
    if not alone:
        return ()
    sd = min(difference_tips_at(found.ratio.value) for found in alone)
    return (
        f"Single runs: which arm leads at each load stands while the run-to-run sd is below "
        f"{percent(sd, 2)}.",
    )


def _flips(
    found: Sequence[Crossing], verdict: Verdict, outside: bool, rows: Sequence[Point]
) -> str:
    """What would change the verdict: at the measured loads, or beyond them."""
    if outside:
        return f"runs beyond {rows[-1].n} in flight that show the crossing, or that there is none"
    loads = [n for c in found for n in (c.below, c.above)] or [row.n for row in rows]
    verb = "settle" if verdict == "inconclusive" else "turn"
    return f"repeats at {listing(dict.fromkeys(loads), 'or')} in flight that {verb} the sign"


def _by_model(found: Forecast) -> Estimate:
    """What one model says, one that does not cross included."""
    at = found.up_to if found.at is None else found.at
    name = "no crossing by model" if found.at is None else "crossing by model"
    what = "none up to this load" if found.at is None else "beyond the measured loads"
    return Estimate(f"{name}: {found.model}", at, at, at, "", "extrapolated", what)


def _beyond(found: Sequence[Forecast], high: int) -> tuple[str, tuple[int, ...]]:
    """What the models say beyond the highest load, and the loads that would settle it."""
    at = sorted(f.at for f in found if f.at is not None)
    loads = tuple(round(high * k / 2) for k in (3, 4, 6))
    none = [f.model for f in found if f.at is None]
    head, measure = f"Not measured beyond {high}", f"Measure both at {listing(loads)}."
    if not at:
        return f"{head}; none of {plural(len(found), 'extrapolation')} crosses. {measure}", loads
    ends = listing(dict.fromkeys(f"{end:.0f}" for end in (at[0], at[-1])), "to")
    says = (
        f"{len(at)} of {plural(len(found), 'extrapolation')} "
        f"{'crosses' if len(at) == 1 else 'cross'} at {ends}"
    )
    if none:
        says += f"; {len(none)} ({listing(none)}) {'does' if len(none) == 1 else 'do'} not"
    return f"{head}. {says}. {measure}", loads
