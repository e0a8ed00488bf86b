"""analysis.claims._common: what several kinds share."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as sps

from analysis.claims._common import (
    better,
    compare_runs,
    contrast,
    contrast_text,
    decide,
    differences,
    moved,
    ratio_estimate,
    rounded,
)
from analysis.dataset import Cell
from analysis.evidence import Evidence, Missing
from analysis.quantity import constant
from analysis.stats import compare
from tests.builders import cell, dataset, run, study
from tests.claims.helpers import arm, measured

X = "output_throughput"


def evidence(*cells: object) -> Evidence:
    one = study(*cells)  # type: ignore[arg-type]
    return Evidence(dataset(one), one)


def test_a_contrast_names_ratio_direction_and_reason() -> None:
    a, b = measured("a", X, 100.0), measured("b", X, 150.0)
    found = contrast(evidence(a, b), a, b, X)
    assert (found.ratio.value, found.direction) == (1.5, "higher")
    # ln 1.5 / (1.96 x 1.414) = 14.63 %.
    tips = math.log(1.5) / (sps.norm.ppf(0.975) * math.sqrt(2))
    assert (
        found.reason == f"single runs: stands while the run-to-run sd is below {100 * tips:.2f} %"
    )
    assert contrast_text(found, "a", "b").startswith(
        "output throughput of b is 1.50 x that of a (+50.0 %; single runs"
    )


def test_one_run_against_several_takes_the_spread_of_the_several() -> None:
    a, b = measured("a", X, 100.0, 100.2, 99.8), measured("b", X, 150.0)
    found = contrast(evidence(a, b), a, b, X)
    assert found.direction == "higher"
    assert found.reason.startswith("t on log ratios with the repeated arm's spread")
    shown = ratio_estimate(found, "ratio")
    assert shown.lo < shown.value < shown.hi


def test_repeats_are_shown_with_the_interval_between_them() -> None:
    left, right = [100.0, 102.0, 98.0], [150.0, 147.0, 153.0]
    a, b = measured("a", X, *left), measured("b", X, *right)
    found = contrast(evidence(a, b), a, b, X)
    shown = ratio_estimate(found, "ratio", "b / a")
    # Welch by scipy on the logs.
    interval = sps.ttest_ind(
        [math.log(v) for v in right], [math.log(v) for v in left], equal_var=False
    ).confidence_interval()
    assert (shown.lo, shown.hi) == pytest.approx((math.exp(interval.low), math.exp(interval.high)))
    assert shown.interval == "95 % between runs (Welch's t on log ratios, n = 3, 3)"
    assert shown.warnings == found.comparison.warnings


@pytest.mark.parametrize(
    ("left", "right", "paired"),
    [
        ((1, 2, 3), (1, 2, 3), True),
        ((1, 2, 3), (1, 2, 4), False),
        ((1, 2, 3), (3, 2, 1), True),
        ((1, 1, 1), (1, 1, 1), False),
        (None, None, False),
    ],
)
def test_runs_are_paired_by_seeds_that_both_arms_recorded(
    left: tuple[int, ...] | None, right: tuple[int, ...] | None, paired: bool
) -> None:
    a = measured("a", X, 100.0, 110.0, 120.0, seeds=left)
    b = measured("b", X, 102.0, 112.0, 123.0, seeds=right)
    assert compare_runs(a, b, X).method.startswith("paired" if paired else "Welch")


def test_a_seed_that_one_arm_was_not_sent_is_left_out_of_the_other() -> None:
    # Seed 2 is of prompts that make any server twice as fast; arms differ by 10 % on seed 1.
    a, b = measured("a", X, 100.0, seeds=(1,)), measured("b", X, 110.0, 220.0, seeds=(1, 2))
    for found in (contrast(evidence(a, b), a, b, X), contrast(evidence(a, b), b, a, X)):
        assert found.comparison.method == "single runs"
        assert max(found.ratio.value, 1 / found.ratio.value) == pytest.approx(1.1)
        assert max(found.comparison.ratio, 1 / found.comparison.ratio) == pytest.approx(1.1)
        assert found.comparison.warnings[-1] == (
            "1 run of b left out, of seeds that the other arm lacks"
        )
    # With two in common they are pairs.
    a = measured("a", X, 100.0, 200.0, seeds=(1, 2))
    b = measured("b", X, 440.0, 110.0, 220.0, seeds=(3, 1, 2))
    found = contrast(evidence(a, b), a, b, X)
    assert found.comparison.method == "paired t on log ratios"
    assert found.comparison.se == pytest.approx(0, abs=1e-12)
    assert found.ratio.value == pytest.approx(1.1)


def test_lengths_of_a_seed_that_one_arm_was_not_sent_are_no_difference() -> None:
    def of(name: str, *tokens: int) -> Cell:
        return cell(name, *(
            run({"total_output_tokens": count}, arm=name, file=f"{name}-{seed}",
                config={"seed": seed})
            for seed, count in enumerate(tokens)
        ))  # fmt: skip

    assert differences(of("a", 5_000, 9_000), of("b", 5_000)) == ()
    (told,) = differences(of("a", 5_000, 9_000), of("b", 6_000))
    assert told == "mean output tokens: 50 against 60"


def test_a_seed_of_other_clients_is_of_other_prompts() -> None:
    one, two = measured("a", X, 100.0, 110.0, seeds=(1, 2)), measured("b", X, 101.0, 111.0)
    made = [
        replace(own, run=replace(own.run, config={"seed": seed, "clients": 2}))
        for seed, own in enumerate(two.ledgers, 1)
    ]
    assert compare_runs(one, replace(two, ledgers=tuple(made)), X).method.startswith("Welch")


def sent(
    name: str,
    *runs: tuple[float, int | None, int | None],
    seeds: tuple[int | None, ...] = (None, None, None),
) -> Cell:
    """A cell whose runs give output throughput, prompts sent and their tokens."""
    made = [
        run(
            {X: x, "num_prompts": prompts, "total_input_tokens": tokens},
            bare=True, arm=name, file=f"{name}-{place}", config={"seed": seeds[place]},
        )
        for place, (x, prompts, tokens) in enumerate(runs)
    ]  # fmt: skip
    return cell(name, *made)


def test_runs_of_the_same_prompts_are_paired_where_no_seed_is_known() -> None:
    # Three samples of prompts, of which one makes any server slow: +34.3, +34.5 and +34.0 %.
    a = sent("a", (100.0, 200, 43_609), (140.0, 200, 54_004), (60.0, 200, 46_060))
    b = sent("b", (60.0 * 1.340, 200, 46_060), (134.3, 200, 43_609), (140.0 * 1.345, 200, 54_004))
    found = contrast(evidence(a, b), a, b, X)
    assert found.comparison.method == "paired t on log ratios"
    assert found.direction == "higher"
    logs = [math.log(1.343), math.log(1.345), math.log(1.340)]
    assert found.comparison.ratio == pytest.approx(math.exp(sum(logs) / 3))
    interval = sps.ttest_1samp(logs, 0).confidence_interval()
    assert (found.comparison.lo, found.comparison.hi) == pytest.approx(
        (math.exp(interval.low), math.exp(interval.high))
    )
    # Unpaired, the spread between the samples would hide it.
    plain = compare([100.0, 140.0, 60.0], [80.4, 134.3, 188.3])
    assert plain.lo < 1 < plain.hi


@pytest.mark.parametrize(
    "right",
    [
        ((102.0, 200, 1), (112.0, 200, 2), (123.0, 200, 4)),
        ((102.0, 200, 1), (112.0, 200, 2), (123.0, 200, 2)),
        ((102.0, 200, 1), (112.0, 200, 2), (123.0, 100, 3)),
        ((102.0, 200, 1), (112.0, 200, 2), (123.0, 200, None)),
        ((102.0, 200, 1), (112.0, 200, 2), (123.0, None, 3)),
        ((102.0, 200, 1), (112.0, 200, 2)),
    ],
)
def test_runs_of_other_prompts_are_not_paired(
    right: tuple[tuple[float, int | None, int | None], ...],
) -> None:
    a = sent("a", (100.0, 200, 1), (110.0, 200, 2), (120.0, 200, 3))
    assert compare_runs(a, sent("b", *right), X).method.startswith("Welch")


def test_a_seed_pairs_before_the_prompts_do() -> None:
    left = ((100.0, 200, 1), (110.0, 200, 2), (120.0, 200, 3))
    right = ((102.0, 200, 3), (112.0, 200, 2), (123.0, 200, 1))
    found = compare_runs(sent("a", *left, seeds=(1, 2, 3)), sent("b", *right, seeds=(1, 2, 3)), X)
    by_seed = [math.log(1.02), math.log(112 / 110), math.log(123 / 120)]
    assert found.se == pytest.approx(sps.sem(by_seed))
    found = compare_runs(sent("a", *left, seeds=(1, 2, None)), sent("b", *right), X)
    by_prompts = [math.log(1.23), math.log(112 / 110), math.log(102 / 120)]
    assert found.se == pytest.approx(sps.sem(by_prompts))


def test_one_run_an_arm_is_no_pair() -> None:
    a, b = sent("a", (100.0, 200, 1)), sent("b", (110.0, 200, 1))
    assert compare_runs(a, b, X).method == "single runs"


def test_a_figure_of_nothing_has_no_ratio() -> None:
    a, b = measured("a", "failed", 0.0), measured("b", "failed", 1.0)
    with pytest.raises(Missing, match="a positive failed requests in a on chat"):
        compare_runs(a, b, "failed")


def test_a_difference_below_what_runs_vary_is_undecided() -> None:
    # The least ratio that stands: exp(1.3 % x 1.96 x 1.414) = 1.0367.
    for ratio, direction in ((1.036, "undecided"), (1.037, "higher"), (0.96, "lower")):
        assert decide(constant(ratio), compare([1.0], [ratio]), X)[0] == direction


def test_a_tail_and_a_ttft_need_a_greater_difference() -> None:
    single = compare([1.0], [1.08])
    assert decide(constant(1.08), single, "mean_itl")[0] == "higher"
    assert decide(constant(1.08), single, "mean_ttft")[0] == "undecided"
    assert decide(constant(1.25), compare([1.0], [1.25]), "mean_ttft")[0] == "higher"
    assert decide(constant(1.25), compare([1.0], [1.25]), "p99_ttft")[0] == "undecided"


def test_one_of_many_comparisons_needs_a_greater_difference() -> None:
    single = compare([1.0], [1.05])
    assert decide(constant(1.05), single, X)[0] == "higher"
    assert decide(constant(1.05), single, X, family=18)[0] == "undecided"
    runs = compare([1.0, 1.01, 0.99, 1.0], [1.02, 1.03, 1.01, 1.02])
    assert decide(constant(1.02), runs, X)[0] == "higher"
    assert decide(constant(1.02), runs, X, family=50)[0] == "undecided"


def test_two_close_runs_an_arm_may_be_close_by_luck() -> None:
    runs = compare([1.0, 1.0001], [1.011, 1.0111])
    assert runs.lo > 1
    direction, why = decide(constant(1.011), runs, X)
    assert direction == "undecided"
    assert "so few runs" in why


@pytest.mark.parametrize(
    ("metric", "direction", "good"),
    [
        ("mean_itl", "lower", True),
        ("mean_itl", "higher", False),
        (X, "higher", True),
        ("p99_ttft", "undecided", None),
        ("in_flight", "higher", None),
        ("unheard_of", "higher", None),
    ],
)
def test_which_direction_is_better(metric: str, direction: str, good: bool | None) -> None:
    assert better(metric, direction) is good  # type: ignore[arg-type]


def test_what_moved_leaves_out_the_host_and_a_single_gpus_link() -> None:
    one = arm("a", version="1", host="x", gpus=1, interconnect="PCIe")
    two = arm("b", version="2", host="y", gpus=2, interconnect="NVLink", enable_prefix_caching=True)
    assert moved(one, two) == (
        "version: 1 against 2",
        "enable_prefix_caching: not stated against True",
    )
    assert moved(one, two, besides={"version"}) == (
        "enable_prefix_caching: not stated against True",
    )
    four = arm("c", version="2", gpus=4, interconnect="PCIe", enable_prefix_caching=True)
    assert moved(two, four) == ("interconnect: NVLink against PCIe",)


@given(
    st.decimals(-(10**6), 10**6, places=4, allow_nan=False, allow_infinity=False),
    st.integers(0, 3),
)
def test_numbers_are_rounded_half_away_from_zero(value: Decimal, places: int) -> None:
    expected = value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    assert rounded(float(value), places) == pytest.approx(float(expected), abs=1e-9)


def test_pairs_that_each_stand_alone_stand_together() -> None:
    """One degree of freedom says little of how a gain varies; that there is one is plain."""
    two = compare([1.0, 1.0], [0.61, 0.66], paired=True)
    apart = compare([1.0, 1.0], [0.4, 0.9], paired=True)
    assert apart.lo <= 1 <= apart.hi
    direction, why = decide(constant(0.63), apart, X)
    assert direction == "lower" and "each of 2 pairs stands by itself" in why
    assert decide(constant(0.635), two, X)[0] == "lower"
    near = compare([1.0, 1.0], [0.5, 0.99], paired=True)
    assert decide(constant(0.7), near, X)[0] == "undecided"
    against = compare([1.0, 1.0], [0.5, 1.5], paired=True)
    assert decide(constant(0.87), against, X)[0] == "undecided"
    many = compare([1.0] * 6, [0.1, 0.9, 0.9, 0.9, 0.9, 0.05], paired=True)
    assert many.testable and many.lo <= 1 <= many.hi
    assert decide(constant(0.4), many, X)[0] == "undecided"
