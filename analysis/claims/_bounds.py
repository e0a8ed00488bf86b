"""Which side of a bound a ratio lies on, once rounding and run-to-run noise are reckoned with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from scipy import stats as sps

from analysis.quantity import Quantity
from analysis.stats import CONFIDENCE, Comparison, joint_p, plausible_sd
from analysis.wording import digits, percent

Side = Literal["above", "below", "open"]

ONE_SIDED = 2 * CONFIDENCE - 1
"""Confidence of the interval whose one end a test of one side at 5 % looks at: 90 %."""


def picked(family: int) -> float:
    """Confidence of one of `family` comparisons any of which may decide (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / family


def any_p(deciding: Sequence[Comparison], family: int) -> float | None:
    """p of "one of `family` comparisons goes this way", given those that do (Bonferroni).

    None when one of them cannot be tested.
    """
    p = joint_p(deciding, every=False)
    return None if p is None else min(1.0, p * family / len(deciding))


def side_of(
    ratio: Quantity,
    found: Comparison,
    metric: str,
    bound: float,
    *,
    above: float = CONFIDENCE,
    below: float = CONFIDENCE,
) -> tuple[Side, str]:
    """Whether a ratio lies above a bound, below it, or too near to say; and why, in words.

    Single runs: |ln(ratio / bound)| / (z √2) must reach the spread that runs of this metric must
    be taken to have. Repeats: the t interval must clear the bound. Either way the interval of
    rounding must clear it too.

    Args:
        ratio: with its rounding interval.
        found: the same between runs.
        metric: whose spread single runs are taken to have.
        bound: on the scale of the ratio; one that is not positive lies below every ratio.
        above: confidence (two-sided) that "above" needs; z is its quantile.
        below: the same for "below".
    """
    if bound <= 0:
        return "above", "a ratio is positive"
    sides: dict[Side, float] = {"above": above, "below": below}
    side: Side = "above" if ratio.value > bound else "below"
    clears = ratio.lo > bound if side == "above" else ratio.hi < bound
    z = float(sps.norm.ppf(0.5 + sides[side] / 2)) * math.sqrt(2)
    tips = abs(math.log(ratio.value) - math.log(bound)) / z
    sd = plausible_sd(metric)
    if not found.repeated:
        words = f"single runs: stands while the run-to-run sd is below {percent(tips, 2)}"
        if not clears:
            return "open", "the bound lies within the rounding of the print"
        if tips < sd:
            return "open", f"{words}, and {percent(sd)} has to be reckoned with"
        return side, words
    lo, hi = found.interval(sides[side])
    words = (
        f"{found.method}, n = {found.n_baseline} and {found.n_treatment}: "
        f"{digits(sides[side] * 100)} % interval of the ratio [{lo:.3f}, {hi:.3f}]"
    )
    if not clears or not (lo > bound if side == "above" else hi < bound):
        return "open", f"{words} holds the bound {digits(bound)}"
    if not found.testable and tips * math.sqrt(min(found.n_baseline, found.n_treatment)) < sd:
        # So few runs may lie close by luck: the spread seen elsewhere is the floor.
        return "open", f"{words}, but so few runs may lie this close by chance"
    return side, words
