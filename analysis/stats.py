"""Comparisons of runs that say what they assume and refuse what the data cannot carry.

The run is the unit. Ratios are compared on the log scale. With several runs the interval is
Student's t on log ratios of run means, paired where the same seeds ran in both arms, else
Welch-Satterthwaite: at n = 3 it covers 95 % where a percentile bootstrap covers 78 %. With one
run an arm there is no spread to test against, so the *tipping spread* is given: the run-to-run
standard deviation below which the statement would stand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats as sps
from statsmodels.stats.multitest import multipletests

CONFIDENCE = 0.95
_Z_TWO_SIDED = float(sps.norm.ppf(0.5 + CONFIDENCE / 2))
_Z_ONE_SIDED = float(sps.norm.ppf(CONFIDENCE))

PLAUSIBLE_RUN_SD = 0.013
"""Relative run-to-run standard deviation that a single run of a mean must be taken to have.

The greatest seen between repeats of one vLLM configuration whose spread is known: pooled 0.1 %
on one L40S host, 0.6 to 1.3 % on one H200 host, for throughput, ITL, TPOT and end-to-end means.
A statement that falls with a spread this small is not settled by single runs.
"""

LEAST_RUN_SD = 0.001
"""The smallest spread seen between repeats (one L40S host): what a quiet host may have."""

PLAUSIBLE_TTFT_SD = 0.03
"""The same for mean and median TTFT, which hold the client's start-up burst and every hiccup of a
queue: 0.4 to 1.1 % between records of one campaign (results/book-ch09), more between campaigns."""

PLAUSIBLE_TAIL_SD = 0.10
"""The same for p90 and beyond: two records of one configuration differ by 13.8 % in p99 TTFT, a
standard deviation of 9.1 % (results/book-ch09)."""


def plausible_sd(metric: str) -> float:
    """The run-to-run spread that a single run of this figure must be taken to have."""
    prefix, _, rest = metric.partition("_")
    if prefix[:1] == "p" and prefix[1:2].isdigit() and float(prefix[1:]) >= 90:
        return PLAUSIBLE_TAIL_SD
    return PLAUSIBLE_TTFT_SD if rest == "ttft" or metric == "ttft" else PLAUSIBLE_RUN_SD


@dataclass(frozen=True, slots=True)
class Comparison:
    """Treatment against baseline as a ratio of run means, with a 95 % interval.

    Attributes:
        ratio: exp(mean log treatment - mean log baseline).
        lo, hi: 95 % interval between runs; 0 and inf where there are single runs only.
        n_baseline, n_treatment: runs.
        method: what was computed, in words.
        p_value: of "no difference", two-sided; None where no test is possible.
        least_p: the smallest p that a permutation of so few runs can reach.
        warnings: what weakens the number.
        lo90, hi90: 90 % interval, the one that two one-sided tests at 5 % look at.
        se, df: standard error of the log ratio and its degrees of freedom.
        least_pair: of pairs that all point the same way, the ratio nearest to 1; else 1.
    """

    ratio: float
    lo: float
    hi: float
    n_baseline: int
    n_treatment: int
    method: str
    p_value: float | None = None
    least_p: float = 1.0
    warnings: tuple[str, ...] = ()
    lo90: float = 0.0
    hi90: float = math.inf
    se: float = math.inf
    df: float = math.nan
    least_pair: float = 1.0

    @property
    def repeated(self) -> bool:
        """Whether a spread between runs is known at all."""
        return math.isfinite(self.se)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Interval of the ratio between runs at another confidence; (0, inf) for single runs."""
        if not self.repeated:
            return 0.0, math.inf
        half = float(sps.t.ppf(0.5 + confidence / 2, self.df)) * self.se
        mean = _log(self.ratio)
        return _exp(mean - half), _exp(mean + half)

    @property
    def testable(self) -> bool:
        """Whether so few runs can reach 5 % at all; below that the t interval is shown only."""
        return self.p_value is not None and self.least_p <= 1 - CONFIDENCE


def compare(
    baseline: Sequence[float], treatment: Sequence[float], *, paired: bool = False
) -> Comparison:
    """Ratio of treatment to baseline over runs.

    Args:
        baseline: one positive run mean a run.
        treatment: the same for the other arm; same order of seeds when `paired`.
        paired: the runs share seeds, so log ratios are taken seed by seed.

    Raises:
        ValueError: an arm without runs, a figure that is not positive, or unequal pairs.
    """
    left, right = np.asarray(baseline, float), np.asarray(treatment, float)
    if not len(left) or not len(right):
        raise ValueError("each arm needs at least one run")
    if (left <= 0).any() or (right <= 0).any():
        raise ValueError("ratios need positive figures")
    if paired and len(left) != len(right):
        raise ValueError(f"pairs need equal numbers of runs, got {len(left)} and {len(right)}")
    a, b = np.log(left), np.log(right)
    mean = float(b.mean() - a.mean())
    if paired and len(a) > 1:
        d = b - a
        found = _with_t(
            mean,
            float(d.std(ddof=1)) / math.sqrt(len(d)),
            len(d) - 1,
            len(a),
            len(b),
            "paired t on log ratios",
            sign_flip_least_p(len(d)),
        )
        agree = (d > 0).all() or (d < 0).all()
        return replace(found, least_pair=_exp(float(d[np.abs(d).argmin()])) if agree else 1.0)
    if len(a) > 1 and len(b) > 1:
        va, vb = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
        if va + vb > 0:
            df = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
        else:
            df = float(len(a) + len(b) - 2)
        return _with_t(
            mean,
            math.sqrt(va + vb),
            df,
            len(a),
            len(b),
            "Welch's t on log ratios",
            permutation_least_p(len(a), len(b)),
        )
    if len(a) > 1 or len(b) > 1:
        many = a if len(a) > 1 else b
        # The spread of the arm that was repeated stands for the other one too.
        return _with_t(
            mean,
            float(many.std(ddof=1)) * math.sqrt(1 / len(a) + 1 / len(b)),
            len(many) - 1,
            len(a),
            len(b),
            "t on log ratios with the repeated arm's spread",
            permutation_least_p(len(a), len(b)),
        )
    return Comparison(
        _exp(mean),
        0.0,
        math.inf,
        len(a),
        len(b),
        "single runs",
        warnings=("one run an arm: no spread between runs is known",),
    )


def _with_t(
    mean: float, se: float, df: float, n_a: int, n_b: int, method: str, least_p: float
) -> Comparison:
    half = float(sps.t.ppf(0.5 + CONFIDENCE / 2, df)) * se
    half90 = float(sps.t.ppf(CONFIDENCE, df)) * se
    p = 0.0 if se == 0 and mean else float(2 * sps.t.sf(abs(mean) / se, df)) if se else 1.0
    warnings: tuple[str, ...] = ()
    if least_p > 1 - CONFIDENCE:
        warnings = (
            f"so few runs cannot reach p = {1 - CONFIDENCE:.2f} by rearrangement "
            f"(least {least_p:.2f}); the interval assumes normal log run means",
        )
    return Comparison(
        _exp(mean),
        _exp(mean - half),
        _exp(mean + half),
        n_a,
        n_b,
        method,
        p,
        least_p,
        warnings,
        _exp(mean - half90),
        _exp(mean + half90),
        se,
        df,
    )


def _exp(x: float) -> float:
    """e^x, infinite where it leaves the range of a float (a spread of many powers of ten)."""
    return math.exp(x) if x < 700 else math.inf


def _log(x: float) -> float:
    """ln x, minus infinite at 0: what `_exp` gives below the range of a float."""
    return math.log(x) if x else -math.inf


def interval_of_mean(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of a mean over runs: t on log values, so that it stays positive.

    Centred on the arithmetic mean, as printed; for run-to-run spreads of a few per cent the
    geometric mean is the same.

    Raises:
        ValueError: fewer than two values, or one that is not positive.
    """
    found = np.asarray(values, float)
    if len(found) < 2 or (found <= 0).any():
        raise ValueError("an interval between runs needs two positive values at least")
    se = float(np.log(found).std(ddof=1)) / math.sqrt(len(found))
    factor = _exp(float(sps.t.ppf(0.5 + CONFIDENCE / 2, len(found) - 1)) * se)
    mean = float(found.mean())
    return mean / factor, mean * factor


def permutation_least_p(n_a: int, n_b: int) -> float:
    """Smallest two-sided p of an unpaired permutation test: 2 / C(n_a + n_b, n_a)."""
    return min(1.0, 2 / math.comb(n_a + n_b, n_a))


def sign_flip_least_p(n: int) -> float:
    """Smallest two-sided p of a paired sign-flip test: 2 / 2**n."""
    return min(1.0, 2.0 ** (1 - n))


def difference_tips_at(ratio: float, family: int = 1) -> float:
    """Run-to-run sd (relative) below which a single-run difference stands: |ln r| / (1.96 √2).

    `family`: of how many comparisons this is one that may be picked (Bonferroni).
    """
    z = float(sps.norm.ppf(1 - (1 - CONFIDENCE) / 2 / family))
    return abs(_log(ratio)) / (z * math.sqrt(2))


def equivalence_tips_at(ratio: float, margin: float) -> float:
    """Run-to-run sd below which "within the margin" stands on single runs.

    Two one-sided tests at 5 %: the distance of ln r to the nearer end of the margin,
    / (1.645 √2), 0 when the ratio is already outside. `margin` is relative (0.01 for 1 %); on
    the log scale its ends are ln(1 + margin) and ln(1 - margin).
    """
    log = _log(ratio)
    room = min(math.log1p(margin) - log, log - math.log1p(-margin))
    return max(0.0, room) / (_Z_ONE_SIDED * math.sqrt(2))


def equivalent(comparison: Comparison, margin: float) -> bool | None:
    """Two one-sided t tests at 5 %: True within the margin, False outside, None undecided.

    The 90 % interval must lie inside the margin for True; the 95 % interval outside it for False.
    """
    if not math.isfinite(comparison.hi) or comparison.lo <= 0:
        return None
    low, high = math.log1p(-margin), math.log1p(margin)
    if _log(comparison.lo) > high or _log(comparison.hi) < low:
        return False
    inside = _log(comparison.lo90) >= low and _log(comparison.hi90) <= high
    return True if inside else None


def equivalence_p(comparison: Comparison, margin: float) -> float | None:
    """p of the two one-sided t tests: small when the ratio lies within the margin.

    None where so few runs cannot be tested.
    """
    if not comparison.testable:
        return None
    mean, low, high = _log(comparison.ratio), math.log1p(-margin), math.log1p(margin)
    if comparison.se == 0:
        return 0.0 if low < mean < high else 1.0
    above = float(sps.t.sf((mean - low) / comparison.se, comparison.df))
    below = float(sps.t.cdf((mean - high) / comparison.se, comparison.df))
    return max(above, below)


def beyond_p(comparison: Comparison, margin: float) -> float | None:
    """p of "no further from 1 than the margin", two-sided; None where it cannot be tested."""
    if not comparison.testable:
        return None
    mean = _log(comparison.ratio)
    excess = max(mean - math.log1p(margin), math.log1p(-margin) - mean)
    if comparison.se == 0:
        return 0.0 if excess > 0 else 1.0
    return min(1.0, 2 * float(sps.t.sf(excess / comparison.se, comparison.df)))


def joint_p(comparisons: Sequence[Comparison], *, every: bool) -> float | None:
    """p of a statement over several comparisons.

    Every one must differ (intersection-union): the greatest p. Any one may (Bonferroni): the
    least p times their number. None when one of them cannot be tested: such a statement rests on
    intervals and stays out of the family.
    """
    found = [c.p_value for c in comparisons if c.testable and c.p_value is not None]
    if len(found) < len(comparisons) or not found:
        return None
    return max(found) if every else min(1.0, min(found) * len(found))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down correction over the stochastic claims of one study, by claim id."""
    if not p_values:
        return {}
    adjusted = multipletests(list(p_values.values()), method="holm")[1]
    return dict(zip(p_values, (float(p) for p in adjusted), strict=True))


def requests_for_percentile(percentile: float, confidence: float = CONFIDENCE) -> int:
    """Fewest requests whose maximum exceeds the percentile with the given confidence.

    Order-statistic rule: 1 - q**n >= confidence, so n = ln(1 - confidence) / ln(q); 299 for p99.
    """
    q = percentile / 100
    if not 0 < q < 1:
        return 1
    return math.ceil(math.log(1 - confidence) / math.log(q))


def runs_for_equivalence(ratio: float, margin: float, sd: float) -> int:
    """Runs an arm needed by two one-sided tests at 5 % with 80 % power, at least 5.

    2 ((1.645 + 0.842) sd / room)**2 with the room from the log ratio to the nearer end of the
    margin, and 1.645**2 / 4 more because t has to estimate the spread. Outside the margin: the
    runs that would show a ratio of 1 to be within it.
    """
    log = _log(ratio)
    room = min(math.log1p(margin) - log, log - math.log1p(-margin))
    if room <= 0:
        room = math.log1p(margin)
    z = _Z_ONE_SIDED + float(sps.norm.ppf(0.8))
    runs = 2 * (z * sd / room) ** 2 + _Z_ONE_SIDED**2 / 4
    return max(5, min(1000, math.ceil(runs)))


def runs_to_resolve(effect: float, sd: float) -> int:
    """Runs an arm needed to tell a log effect from 0 at 95 % with 80 % power, at least 5.

    2 (z sd / effect)**2 for a known spread, and z**2 / 4 more because t has to estimate it
    (Guenther 1981).
    """
    if effect == 0:
        return 1000
    z = _Z_TWO_SIDED + float(sps.norm.ppf(0.8))
    runs = 2 * (z * sd / abs(effect)) ** 2 + _Z_TWO_SIDED**2 / 4
    return max(5, min(1000, math.ceil(runs)))
