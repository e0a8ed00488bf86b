"""Comparisons of runs against scipy, statsmodels, hand arithmetic and simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as sps
from statsmodels.stats.weightstats import ttost_ind, ttost_paired

from analysis.stats import (
    PLAUSIBLE_RUN_SD,
    PLAUSIBLE_TAIL_SD,
    PLAUSIBLE_TTFT_SD,
    Comparison,
    beyond_p,
    compare,
    difference_tips_at,
    equivalence_p,
    equivalence_tips_at,
    equivalent,
    interval_of_mean,
    joint_p,
    plausible_sd,
    runs_for_equivalence,
)

RUNS = st.lists(st.floats(0.5, 200), min_size=3, max_size=8)


def runs(rng: np.random.Generator, n: int, sd: float, middle: float = 0.0) -> np.ndarray:
    return np.exp(rng.normal(middle, sd, n))


# Comparing two arms


@given(RUNS, RUNS)
def test_unpaired_runs_agree_with_scipys_welch_test_on_logs(left, right):
    left, right = [*left, left[0] * 1.1], [*right, right[0] * 0.9]  # never without a spread
    found = compare(left, right)
    other = sps.ttest_ind(np.log(right), np.log(left), equal_var=False)
    low, high = other.confidence_interval(0.95)
    assert found.method == "Welch's t on log ratios"
    assert found.p_value == pytest.approx(other.pvalue, rel=1e-6, abs=1e-12)
    assert math.log(found.lo) == pytest.approx(low, rel=1e-6, abs=1e-9)
    assert math.log(found.hi) == pytest.approx(high, rel=1e-6, abs=1e-9)
    low90, high90 = other.confidence_interval(0.90)
    assert math.log(found.lo90) == pytest.approx(low90, rel=1e-6, abs=1e-9)
    assert math.log(found.hi90) == pytest.approx(high90, rel=1e-6, abs=1e-9)


def test_paired_runs_agree_with_scipys_paired_test_on_logs():
    left, right = [10.0, 11.0, 12.5, 9.0, 10.4], [8.1, 8.4, 9.9, 7.3, 8.0]
    found = compare(left, right, paired=True)
    other = sps.ttest_rel(np.log(right), np.log(left))
    low, high = other.confidence_interval(0.95)
    assert found.method == "paired t on log ratios"
    assert found.p_value == pytest.approx(other.pvalue)
    assert (found.lo, found.hi) == pytest.approx((math.exp(low), math.exp(high)))
    assert found.ratio == pytest.approx(sps.gmean(right) / sps.gmean(left))
    assert (found.n_baseline, found.n_treatment) == (5, 5)


def test_three_seeds_in_both_arms_by_hand():
    """Log ratios -.2989, -.2988, -.2946: mean -.29743, sd .002455, t(2) = 4.3027."""
    logs = [-0.2989, -0.2988, -0.2946]
    left = [9.0, 9.2, 9.1]
    found = compare(left, [a * math.exp(d) for a, d in zip(left, logs, strict=True)], paired=True)
    half = 4.302653 * 0.002455 / math.sqrt(3)
    assert found.ratio == pytest.approx(0.743, abs=0.0005)
    assert math.log(found.hi / found.ratio) == pytest.approx(half, rel=1e-3)
    assert (found.lo, found.hi) == pytest.approx((0.738, 0.747), abs=0.0006)
    assert found.least_p == 0.25
    assert not found.testable
    assert found.warnings[0].startswith("so few runs cannot reach p = 0.05 by rearrangement")


def test_the_direction_of_a_ratio_is_treatment_over_baseline():
    found = compare([2.0, 2.0, 2.0], [3.0, 3.0, 3.0])
    assert found.ratio == pytest.approx(1.5)


@pytest.mark.parametrize("paired", [True, False])
def test_swapping_the_arms_inverts_ratio_and_interval(paired):
    a, b = [10.0, 10.5, 9.7], [12.0, 12.9, 11.2]
    forth, back = compare(a, b, paired=paired), compare(b, a, paired=paired)
    assert back.ratio == pytest.approx(1 / forth.ratio)
    assert (back.lo, back.hi) == pytest.approx((1 / forth.hi, 1 / forth.lo))
    assert back.p_value == pytest.approx(forth.p_value)


def test_a_change_of_unit_changes_nothing():
    a, b = [10.0, 10.5, 9.7, 10.1], [12.0, 12.9, 11.2]
    ms = compare([x * 1000 for x in a], [x * 1000 for x in b])
    assert (ms.ratio, ms.lo, ms.hi) == pytest.approx(
        (compare(a, b).ratio, compare(a, b).lo, compare(a, b).hi)
    )


def test_equal_repeats_in_both_arms():
    same = compare([5.0, 5.0, 5.0, 5.0], [5.0, 5.0, 5.0, 5.0])
    assert (same.ratio, same.lo, same.hi, same.p_value) == (1, 1, 1, 1.0)
    other = compare([5.0] * 4, [10.0] * 4)
    assert (other.ratio, other.lo, other.hi) == pytest.approx((2, 2, 2))
    assert other.p_value == 0.0


@pytest.mark.parametrize("paired", [True, False])
def test_one_run_an_arm_has_a_ratio_and_no_interval(paired):
    found = compare([43.1], [15.6], paired=paired)
    assert found.ratio == pytest.approx(15.6 / 43.1)
    assert (found.lo, found.hi) == (0.0, math.inf)
    assert (found.lo90, found.hi90) == (0.0, math.inf)
    assert (found.method, found.p_value, found.testable) == ("single runs", None, False)
    assert found.warnings == ("one run an arm: no spread between runs is known",)


def test_one_run_against_many_takes_the_spread_of_the_many():
    many = [9.0, 9.1, 9.2, 9.3]
    sd = float(np.std(np.log(many), ddof=1))
    for found, sign in ((compare([10.0], many), 1), (compare(many, [10.0]), -1)):
        mean = sign * (np.log(many).mean() - math.log(10))
        half = sps.t.ppf(0.975, 3) * sd * math.sqrt(1 + 1 / 4)
        assert math.log(found.lo) == pytest.approx(mean - half)
        assert math.log(found.hi) == pytest.approx(mean + half)
        assert not found.testable
        assert found.least_p == pytest.approx(2 / 5)


def test_an_interval_at_another_confidence():
    found = compare([10.0, 10.1, 9.9], [11.0, 11.2, 10.9])
    assert found.interval(0.95) == pytest.approx((found.lo, found.hi))
    assert found.interval(0.90) == pytest.approx((found.lo90, found.hi90))
    assert compare([1.0], [2.0]).interval() == (0.0, math.inf)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("mean_itl", PLAUSIBLE_RUN_SD), ("total_token_throughput", PLAUSIBLE_RUN_SD),
        ("mean_ttft", PLAUSIBLE_TTFT_SD), ("ttft", PLAUSIBLE_TTFT_SD),
        ("p99_ttft", PLAUSIBLE_TAIL_SD), ("p90_itl", PLAUSIBLE_TAIL_SD),
        ("p50_itl", PLAUSIBLE_RUN_SD), ("p50_ttft", PLAUSIBLE_TTFT_SD),
        ("prefix_share", PLAUSIBLE_RUN_SD),
    ],
)  # fmt: skip
def test_the_spread_to_reckon_with_is_the_metrics_own(metric, expected):
    assert plausible_sd(metric) == expected


def test_one_of_many_comparisons_tips_earlier():
    assert difference_tips_at(1.1, 1) == pytest.approx(math.log(1.1) / (1.959964 * math.sqrt(2)))
    assert difference_tips_at(1.1, 18) == pytest.approx(
        math.log(1.1) / (sps.norm.ppf(1 - 0.025 / 18) * math.sqrt(2))
    )


@pytest.mark.parametrize(
    ("left", "right", "paired", "says"),
    [
        ([], [1.0], False, "each arm needs at least one run"),
        ([1.0], [], False, "each arm needs at least one run"),
        ([0.0], [1.0], False, "positive"),
        ([1.0], [-1.0], False, "positive"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], True, "equal numbers of runs, got 2 and 3"),
    ],
)
def test_runs_that_cannot_be_compared(left, right, paired, says):
    with pytest.raises(ValueError, match=says):
        compare(left, right, paired=paired)


def test_a_spread_beyond_floating_point_has_no_upper_end():
    found = compare([1e-150, 1e150], [1.0, 1e120])
    assert (found.lo, found.hi) == (0.0, math.inf)


def test_a_ratio_below_floating_point_is_as_far_from_1_as_can_be():
    vanished = compare([1e17], [1e-317]).ratio
    assert vanished == 0
    assert difference_tips_at(vanished) == math.inf
    assert equivalence_tips_at(vanished, 0.1) == 0
    assert runs_for_equivalence(vanished, 0.5, 0.001) == 5


def test_four_runs_an_arm_can_be_tested_and_three_cannot():
    """Unpaired: 2 / C(6, 3) = 0.1 and 2 / C(8, 4) = 0.029."""
    rng = np.random.default_rng(3)
    three, four = (compare(runs(rng, n, 0.01), runs(rng, n, 0.01)) for n in (3, 4))
    assert three.least_p == pytest.approx(0.1)
    assert four.least_p == pytest.approx(2 / 70)
    assert not three.testable
    assert four.testable
    assert four.warnings == ()


# Coverage of the nominal 95 % by simulation (standard error 0.5 points at 2,000 draws)


def share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


@pytest.mark.parametrize("n", [3, 5])
def test_the_paired_interval_covers_95_percent_where_seeds_matter(n):
    rng, hits = np.random.default_rng(11), []
    for _ in range(1500):
        seed_effect = rng.normal(0, 0.02, n)
        left = np.exp(seed_effect + rng.normal(0, 0.01, n))
        right = np.exp(seed_effect + rng.normal(-0.3, 0.01, n))
        found = compare(left, right, paired=True)
        hits.append(found.lo <= math.exp(-0.3) <= found.hi)
    assert 0.93 <= share(hits) <= 0.97


@pytest.mark.parametrize(("n", "noisier"), [(3, 1.0), (5, 1.0), (5, 4.0)])
def test_the_unpaired_interval_covers_95_percent_even_where_one_arm_is_noisier(n, noisier):
    rng, hits = np.random.default_rng(12), []
    for _ in range(1500):
        found = compare(runs(rng, n, 0.01), runs(rng, n, 0.01 * noisier, 0.1))
        hits.append(found.lo <= math.exp(0.1) <= found.hi)
    assert 0.93 <= share(hits) <= 0.98


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_interval_of_a_mean_covers_95_percent(n):
    rng, hits = np.random.default_rng(13), []
    for _ in range(1500):
        lo, hi = interval_of_mean(runs(rng, n, 0.02) * 40)
        hits.append(lo <= 40 * math.exp(0.02**2 / 2) <= hi)
    assert 0.93 <= share(hits) <= 0.97


def test_p_is_uniform_where_there_is_no_difference():
    rng = np.random.default_rng(14)
    found = [compare(runs(rng, 5, 0.01), runs(rng, 5, 0.01)).p_value for _ in range(1500)]
    assert 0.03 <= share([p is not None and p < 0.05 for p in found]) <= 0.065
    assert np.median(found) == pytest.approx(0.5, abs=0.05)


def test_equivalence_at_the_edge_of_the_margin_is_claimed_in_5_percent_at_most():
    rng = np.random.default_rng(15)
    edge = math.log1p(0.01)
    said = [
        equivalent(compare(runs(rng, 5, 0.003), runs(rng, 5, 0.003, edge)), 0.01) is True
        for _ in range(1500)
    ]
    assert 0.03 <= share(said) <= 0.065


def test_equivalence_is_found_where_the_arms_are_equal_and_quiet():
    """Five runs, sd 0.5 %, margin 1 %: run by run the answer of statsmodels' own test."""
    rng = np.random.default_rng(16)
    arms = [(runs(rng, 5, 0.005), runs(rng, 5, 0.005)) for _ in range(600)]
    said = [equivalent(compare(a, b), 0.01) is True for a, b in arms]
    other = [
        ttost_ind(np.log(b), np.log(a), math.log(0.99), math.log(1.01), usevar="unequal")[0] < 0.05
        for a, b in arms
    ]
    assert said == other
    assert share(said) > 0.6


# Equivalence


@given(RUNS, RUNS, st.floats(0.01, 0.9))
def test_unpaired_equivalence_agrees_with_statsmodels(left, right, margin):
    left, right = [*left, left[0] * 1.1], [*right, right[0] * 0.9]
    p = ttost_ind(
        np.log(right), np.log(left), math.log(1 - margin), math.log(1 + margin), usevar="unequal"
    )[0]
    if abs(p - 0.05) > 1e-9:
        assert (equivalent(compare(left, right), margin) is True) == (p < 0.05)


def test_paired_equivalence_agrees_with_statsmodels():
    left = [10.0, 11.0, 12.5, 9.0, 10.4]
    right = [10.05, 10.98, 12.61, 9.02, 10.39]
    found = compare(left, right, paired=True)
    seen = []
    for margin in (0.002, 0.005, 0.0075, 0.01, 0.02, 0.05):
        p = ttost_paired(
            np.log(right), np.log(left), math.log(1 - margin), math.log(1 + margin), None
        )[0]
        seen.append(p < 0.05)
        assert (equivalent(found, margin) is True) == (p < 0.05)
    assert set(seen) == {True, False}


def inside(lo: float, lo90: float, hi90: float, hi: float) -> Comparison:
    return Comparison(1.0, lo, hi, 3, 3, "by hand", 0.5, 0.1, (), lo90, hi90)


def test_the_margin_is_met_by_the_90_percent_interval_and_missed_by_the_95():
    assert equivalent(inside(0.989, 0.991, 1.009, 1.011), 0.01) is True
    assert equivalent(inside(0.989, 0.9899, 1.009, 1.011), 0.01) is None
    assert equivalent(inside(0.989, 0.991, 1.0101, 1.011), 0.01) is None
    assert equivalent(inside(1.0101, 1.02, 1.03, 1.04), 0.01) is False
    assert equivalent(inside(0.96, 0.97, 0.98, 0.9899), 0.01) is False
    # The 90 % interval is outside, the 95 % interval touches the margin: not yet "different".
    assert equivalent(inside(1.009, 1.02, 1.03, 1.04), 0.01) is None


def test_single_runs_decide_no_equivalence():
    assert equivalent(compare([100.0], [100.0]), 0.5) is None


def test_an_interval_without_end_decides_nothing():
    assert equivalent(inside(0.0, 0.9, 1.1, 1.2), 0.5) is None


# Tipping spreads of single runs


@given(st.floats(0.05, 20).filter(lambda r: abs(math.log(r)) > 1e-6))
def test_a_difference_tips_where_its_two_sided_p_is_5_percent(ratio):
    sd = difference_tips_at(ratio)
    p = 2 * sps.norm.sf(abs(math.log(ratio)) / (sd * math.sqrt(2)))
    assert p == pytest.approx(0.05)


@given(st.floats(0.005, 0.5), st.floats(0.01, 0.99))
def test_an_equivalence_tips_where_the_worse_one_sided_p_is_5_percent(margin, place):
    ratio = (1 - margin) + 2 * margin * place
    sd = equivalence_tips_at(ratio, margin) * math.sqrt(2)
    above = sps.norm.sf((math.log(1 + margin) - math.log(ratio)) / sd)
    below = sps.norm.sf((math.log(ratio) - math.log(1 - margin)) / sd)
    assert max(above, below) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("router", "direct", "sd"), [(487.8, 490.5, 0.00195), (1191.9, 1198.0, 0.00213)]
)
def test_a_router_under_one_percent_on_single_runs(router, direct, sd):
    """ln(490.5 / 487.8) = .005520, -ln(.99) = .010050; / (1.645 √2) = .001948."""
    assert equivalence_tips_at(router / direct, 0.01) == pytest.approx(sd, abs=5e-6)


def test_equal_single_runs_are_tested_at_the_nearer_end_of_the_margin():
    """ln(1.1) = .0953 is nearer than -ln(.9) = .1054, also a little below 1."""
    assert equivalence_tips_at(1.0, 0.1) == pytest.approx(0.09531018 / (1.644854 * math.sqrt(2)))
    assert equivalence_tips_at(0.999, 0.1) == pytest.approx(
        (0.09531018 + 0.0010005) / (1.644854 * math.sqrt(2))
    )


def test_a_ratio_outside_the_margin_is_equal_at_no_spread():
    assert equivalence_tips_at(1.02, 0.01) == 0.0
    assert equivalence_tips_at(0.98, 0.01) == 0.0


def test_a_difference_of_nothing_stands_at_no_spread():
    assert difference_tips_at(1.0) == 0.0
    assert difference_tips_at(0.5) == pytest.approx(difference_tips_at(2.0))
    assert difference_tips_at(1.138) == pytest.approx(0.12927 / (1.959964 * math.sqrt(2)), rel=1e-4)


# Spread, multiplicity, sample sizes


# The mean over repeats


def test_the_interval_of_a_mean_is_t_on_logs():
    values = [40.0, 41.0, 40.5, 39.8]
    lo, hi = interval_of_mean(values)
    logs = np.log(values)
    low, high = sps.t.interval(0.95, 3, loc=logs.mean(), scale=sps.sem(logs))
    assert (lo * hi) ** 0.5 == pytest.approx(np.mean(values))
    assert hi / lo == pytest.approx(math.exp(high - low))


@pytest.mark.parametrize("values", [[], [5.0], [5.0, 0.0], [5.0, -1.0]])
def test_a_mean_that_has_no_interval(values):
    with pytest.raises(ValueError, match="two positive values"):
        interval_of_mean(values)


def test_the_interval_of_a_mean_of_wild_values():
    assert interval_of_mean([1e-150, 1e150]) == (0.0, math.inf)


# ---- p-values of statements, and the runs they need


FIVE = ([10.0, 10.1, 9.9, 10.05, 9.95], [10.02, 10.08, 9.93, 10.04, 9.97])


def test_equivalence_p_is_that_of_two_one_sided_t_tests() -> None:
    a, b = FIVE
    found = compare(a, b)
    _, p, _ = _tost(np.log(a), np.log(b), 0.02)
    assert equivalence_p(found, 0.02) == pytest.approx(p, rel=1e-9)
    assert equivalence_p(found, 0.02) < 0.05 < (equivalence_p(found, 0.001) or 0)


def _tost(a: Any, b: Any, margin: float) -> tuple[float, float, float]:
    """Independent: Welch one-sided tests against each end of the margin."""
    low, high = math.log1p(-margin), math.log1p(margin)
    above = sps.ttest_ind(b - low, a, equal_var=False, alternative="greater").pvalue
    below = sps.ttest_ind(b - high, a, equal_var=False, alternative="less").pvalue
    return float(above), float(max(above, below)), float(below)


def test_beyond_p_is_small_only_outside_the_margin() -> None:
    a = FIVE[0]
    far = compare(a, [x * 1.2 for x in FIVE[1]])
    found = sps.ttest_ind(
        np.log([x * 1.2 for x in FIVE[1]]) - math.log1p(0.05), np.log(a), equal_var=False
    ).pvalue
    assert beyond_p(far, 0.05) == pytest.approx(float(found), rel=1e-9)
    assert beyond_p(compare(*FIVE), 0.05) == 1.0


def test_statements_on_too_few_runs_have_no_p() -> None:
    two = compare([1.0, 1.1], [2.0, 2.1])
    single = compare([1.0], [2.0])
    assert equivalence_p(two, 0.1) is None
    assert beyond_p(single, 0.1) is None
    assert joint_p([two, compare(*FIVE)], every=True) is None
    assert joint_p([], every=True) is None


def test_without_spread_the_ratio_itself_decides() -> None:
    same = compare([1.0] * 5, [1.0] * 5)
    far = compare([1.0] * 5, [2.0] * 5)
    assert (equivalence_p(same, 0.1), beyond_p(same, 0.1)) == (0.0, 1.0)
    assert (equivalence_p(far, 0.1), beyond_p(far, 0.1)) == (1.0, 0.0)


def test_joint_p_of_all_is_the_greatest_and_of_any_is_bonferronis() -> None:
    a = FIVE[0]
    some = [compare(a, [x * r for x in FIVE[1]]) for r in (1.05, 1.01, 1.2)]
    values = [c.p_value for c in some if c.p_value is not None]
    assert joint_p(some, every=True) == max(values)
    assert joint_p(some, every=False) == pytest.approx(3 * min(values))
    assert joint_p([compare(a, a)], every=False) == 1.0


def test_runs_for_equivalence_reach_eighty_percent_power() -> None:
    ratio, margin, sd = 0.9945, 0.01, 0.003
    n = runs_for_equivalence(ratio, margin, sd)
    rng = np.random.default_rng(3)
    hits = sum(
        equivalent(
            compare(np.exp(rng.normal(0, sd, n)), ratio * np.exp(rng.normal(0, sd, n))), margin
        )
        is True
        for _ in range(600)
    )
    assert hits / 600 == pytest.approx(0.8, abs=0.05)
    assert runs_for_equivalence(1.0, 0.5, 0.001) == 5
    assert runs_for_equivalence(1.2, 0.01, 0.01) == runs_for_equivalence(1.0, 0.01, 0.01)


def test_the_least_pair_is_that_nearest_to_one_where_all_agree() -> None:
    assert compare([1, 1, 1], [0.9, 0.6, 0.8], paired=True).least_pair == pytest.approx(0.9)
    assert compare([1, 1], [1.5, 2.5], paired=True).least_pair == pytest.approx(1.5)
    assert compare([1, 1], [1.5, 0.9], paired=True).least_pair == 1
    assert compare([1, 1], [1.5, 1.6]).least_pair == 1
