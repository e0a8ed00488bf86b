"""analysis.claims.magnitude: the stated number against the computed one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as sps

from analysis.evidence import BadClaim, Missing
from tests.builders import study
from tests.claims.helpers import arm, judge, measured, ref, served

AWAY = study(
    measured("slow", "mean_itl", "43.1", factor=1e-3),
    measured("fast", "mean_itl", "15.6", factor=1e-3),
)
"""43.1 ms [43.05, 43.15] and 15.6 ms [15.55, 15.65], as printed."""
SLOW, FAST = ref("slow", "mean_itl"), ref("fast", "mean_itl")


def verdict_of(**keys: object) -> str:
    return judge(AWAY, "magnitude", **keys).verdict


def test_a_value_that_rounds_to_the_stated_one_is_supported() -> None:
    assert verdict_of(of=SLOW, stated="43.1", unit="ms") == "supported"
    assert verdict_of(of=SLOW, stated="43", unit="ms") == "supported"


def test_a_finer_figure_than_the_print_is_left_open_inside_its_rounding() -> None:
    # 43.13 means [43.125, 43.135], inside [43.05, 43.15]; [43.155, 43.165] is outside.
    assert verdict_of(of=SLOW, stated="43.13", unit="ms") == "inconclusive"
    assert verdict_of(of=SLOW, stated="43.16", unit="ms") == "refuted"


def test_a_ratio_carries_the_rounding_of_both_prints() -> None:
    found = judge(AWAY, "magnitude", of=SLOW, against=FAST, measure="ratio", stated="2.76")
    (number,) = found.numbers
    assert found.verdict == "supported"
    assert number.value == pytest.approx(43.1 / 15.6)
    assert (number.lo, number.hi) == pytest.approx((43.05 / 15.65, 43.15 / 15.55))
    assert (
        judge(AWAY, "magnitude", of=SLOW, against=FAST, measure="ratio", stated="2.7").verdict
        == "refuted"
    )


def test_a_difference_is_in_the_unit_of_its_figures() -> None:
    found = judge(
        AWAY, "magnitude", of=SLOW, against=FAST, measure="difference", stated="27.5", unit="ms"
    )
    assert found.verdict == "supported"
    assert "27.5 ms [27.4, 27.6] more than that of fast" in found.reasons[0]


def test_a_percentage_on_the_named_base() -> None:
    # (15.6 - 43.1) / 43.1 = -63.8 %; of the other figure it is -176.3 %.
    keys = {"of": FAST, "against": SLOW, "measure": "percent"}
    assert verdict_of(**keys, stated="-64", base="against") == "supported"
    assert verdict_of(**keys, stated="-176", base="of") == "supported"
    assert verdict_of(**keys, stated="-64", base="of") == "refuted"


def test_a_percentage_without_a_base_that_is_right_of_one_only_is_left_open() -> None:
    found = judge(AWAY, "magnitude", of=FAST, against=SLOW, measure="percent", stated="-64")
    assert found.verdict == "inconclusive"
    assert found.reasons[0] == (
        "Mean ITL of fast on chat at 10 in flight is 63.8 % [63.6, 64.0] less than that of slow, "
        "or 176 % [175, 177] of itself, and the bases disagree on 64 % less; "
        'set base = "against" or "of".'
    )
    assert len([r for r in found.reasons if "which rounds to the stated 64 % less" in r]) == 1
    assert [round(n.value, 3) for n in found.numbers] == [-0.638, -1.763]


def test_a_rise_without_a_base_that_is_right_of_one_only_shows_both() -> None:
    # 43.1 / 15.6 - 1 = 176 %; 1 - 15.6 / 43.1 = 63.8 %.
    found = judge(AWAY, "magnitude", of=SLOW, against=FAST, measure="percent", stated="64")
    assert found.verdict == "inconclusive"
    assert (
        "is 176 % [175, 177] more than that of fast, or 63.8 % [63.6, 64.0] of itself"
        in (found.reasons[0])
    )


def test_a_percentage_wrong_of_both_bases_is_refuted() -> None:
    assert verdict_of(of=FAST, against=SLOW, measure="percent", stated="-50") == "refuted"


def test_a_share_is_a_percentage() -> None:
    assert verdict_of(of=FAST, against=SLOW, measure="share", stated="36") == "supported"


@pytest.mark.parametrize(
    ("relation", "stated", "verdict"),
    [
        ("at_least", "43", "supported"),
        ("at_least", "44", "refuted"),
        ("at_least", "43.1", "inconclusive"),  # inside [43.05, 43.15]
        ("at_most", "44", "supported"),
        ("at_most", "43", "refuted"),
        ("at_most", "43.1", "inconclusive"),
    ],
)
def test_a_bound_inside_the_rounding_is_left_open(relation: str, stated: str, verdict: str) -> None:
    assert verdict_of(of=SLOW, stated=stated, unit="ms", relation=relation) == verdict


@pytest.mark.parametrize(
    ("relation", "stated", "words"),
    [
        ("at_least", "44", "not at least 44 ms, as the sentence is read."),
        ("at_least", "43", "at least 43 ms, as the sentence is read."),
        ("at_most", "43.1", "and its interval straddles 43.1 ms, as the sentence is read."),
        ("equals", "43", "which rounds to the stated 43 ms."),
    ],
)
def test_a_bound_that_a_word_was_read_as_is_not_called_stated(
    relation: str, stated: str, words: str
) -> None:
    keys = {"of": SLOW, "unit": "ms", "relation": relation, "stated": stated}
    found = judge(AWAY, "magnitude", **keys, reads="“slow” is read as so many ms")
    assert found.reasons[0].endswith(f", {words}")


def test_a_bound_that_a_word_was_read_as_and_noise_may_turn() -> None:
    away = study(measured("a", "mean_itl", 0.0102), measured("b", "mean_itl", 0.01))
    keys = {"of": ref("a", "mean_itl"), "against": ref("b", "mean_itl"), "relation": "at_least"}
    found = judge(away, "magnitude", **keys, measure="ratio", stated="1", reads="“slower”: so")
    assert (
        "at least 1, as printed and as the sentence is read, which noise may turn ("
        in (found.reasons[0])
    )
    loose = study(measured("a", "mean_itl", 0.09, 0.11, 0.10))
    keys = {"of": ref("a", "mean_itl"), "stated": "95", "unit": "ms", "relation": "at_least"}
    found = judge(loose, "magnitude", **keys, reads="“slow”: so")
    assert found.reasons[0].endswith("straddles 95 ms, as the sentence is read.")


def test_about_is_within_five_percent() -> None:
    # 43.1 / 45.2 = 0.9535, 43.1 / 45.5 = 0.9473; 45.42 x 0.95 = 43.149 lies in the print.
    found = judge(AWAY, "magnitude", of=SLOW, stated="45.2", unit="ms", relation="about")
    assert found.verdict == "supported"
    assert found.assumptions == ("“about” is read as within 5 %",)
    assert verdict_of(of=SLOW, stated="45.42", unit="ms", relation="about") == "inconclusive"
    assert verdict_of(of=SLOW, stated="45.5", unit="ms", relation="about") == "refuted"


def test_a_stated_zero_keeps_its_unit() -> None:
    away = study(measured("a", "mean_ttft", 0.4), measured("b", "mean_ttft", 0.0004))
    assert (
        judge(away, "magnitude", of=ref("a", "mean_ttft"), stated="0", unit="ms").verdict
        == "refuted"
    )
    assert (
        judge(away, "magnitude", of=ref("b", "mean_ttft"), stated="0", unit="ms").verdict
        == "supported"
    )


def test_forty_percent_is_not_zero_percent() -> None:
    away = study(measured("a", "mean_itl", 0.014), measured("b", "mean_itl", 0.010))
    keys = {"of": ref("a", "mean_itl"), "against": ref("b", "mean_itl"), "measure": "percent"}
    assert judge(away, "magnitude", **keys, stated="0", base="against").verdict == "refuted"
    assert judge(away, "magnitude", **keys, stated="40", base="against").verdict == "supported"


def test_a_ratio_to_nothing_is_untestable() -> None:
    away = study(measured("a", "failed", 3), measured("b", "failed", 0))
    with pytest.raises(Missing, match="that is not 0"):
        judge(
            away, "magnitude", of=ref("a", "failed"), against=ref("b", "failed"),
            measure="ratio", stated="3",
        )  # fmt: skip


def test_a_difference_of_nothing_from_nothing_is_nothing() -> None:
    away = study(measured("a", "failed", 0), measured("b", "failed", 0))
    found = judge(
        away, "magnitude", of=ref("a", "failed"), against=ref("b", "failed"),
        measure="difference", stated="0",
    )  # fmt: skip
    assert (found.verdict, len(found.reasons)) == ("supported", 1)


def test_nothing_as_a_percentage_of_something() -> None:
    away = study(measured("a", "failed", 0), measured("b", "failed", 4))
    keys = {"of": ref("a", "failed"), "against": ref("b", "failed"), "measure": "percent"}
    assert judge(away, "magnitude", **keys, stated="-100", base="against").verdict == "supported"
    assert judge(away, "magnitude", **keys, stated="-50", base="against").verdict == "refuted"


def test_the_tipping_spread_is_said_beside_a_comparison_of_single_runs() -> None:
    found = judge(AWAY, "magnitude", of=FAST, against=SLOW, measure="ratio", stated="0.362")
    tips = math.log(43.1 / 15.6) / (1.959964 * math.sqrt(2))
    assert f"below {100 * tips:.2f} %" in found.reasons[1]
    assert found.experiment is not None
    assert sorted(found.experiment.arms) == ["fast", "slow"]
    assert found.experiment.concurrency == (10,)


# 2, 3 and 5 repeats


def test_a_quoted_figure_may_be_one_of_two_repeats() -> None:
    away = study(measured("a", "total_token_throughput", 474.2, 476.4))
    found = judge(
        away, "magnitude", of=ref("a", "total_token_throughput"), stated="474", unit="tok/s"
    )
    assert found.verdict == "supported"
    # Of two runs half a per cent apart the 95 % interval of the mean reaches 6 % either way.
    assert (
        "475.30 tok/s, the mean of 2 runs; the quoted one, the stated 474 tok/s, is run 1 of 2"
        in (found.reasons[0])
    )
    assert (
        judge(
            away, "magnitude", of=ref("a", "total_token_throughput"), stated="470", unit="tok/s"
        ).verdict
        == "refuted"
    )


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_ratio_that_the_spread_between_repeats_allows_is_left_open(n: int) -> None:
    wide, narrow = (0.90, 1.10, 0.95, 1.05, 1.0)[:n], (0.9999, 1.0001, 1.0, 1.0, 1.0)[:n]
    keys = {"of": ref("a", "mean_itl"), "against": ref("b", "mean_itl"), "measure": "ratio"}
    noisy = study(measured("a", "mean_itl", *wide), measured("b", "mean_itl", *wide[::-1]))
    quiet = study(measured("a", "mean_itl", *narrow), measured("b", "mean_itl", *narrow[::-1]))
    assert judge(noisy, "magnitude", **keys, stated="1.05").verdict == "inconclusive"
    assert judge(quiet, "magnitude", **keys, stated="1.05").verdict == "refuted"
    assert f"n = {n} and {n}" in judge(noisy, "magnitude", **keys, stated="1.05").reasons[1]


@pytest.mark.parametrize(("base", "stated"), [("against", "5"), ("of", "5")])
def test_the_spread_is_taken_to_the_base_of_a_percentage(base: str, stated: str) -> None:
    wide = (0.95, 1.05, 1.0)
    away = study(measured("a", "mean_itl", *wide), measured("b", "mean_itl", *wide))
    keys = {"of": ref("a", "mean_itl"), "against": ref("b", "mean_itl"), "measure": "percent"}
    assert judge(away, "magnitude", **keys, stated=stated, base=base).verdict == "inconclusive"
    assert judge(away, "magnitude", **keys, stated="60", base=base).verdict == "refuted"


@pytest.mark.parametrize("relation", ["at_least", "at_most"])
def test_a_bound_inside_the_spread_between_repeats_is_left_open(relation: str) -> None:
    # Means 1.02 and 1, repeats 10 % apart: the ratio's interval holds 1 by far.
    away = study(
        measured("a", "mean_itl", 0.92, 1.02, 1.12), measured("b", "mean_itl", 0.9, 1.0, 1.1)
    )
    keys = {"of": ref("a", "mean_itl"), "against": ref("b", "mean_itl"), "measure": "ratio"}
    found = judge(away, "magnitude", **keys, stated="1", relation=relation)
    assert found.verdict == "inconclusive"
    assert (
        "as printed, which noise may turn (Welch's t on log ratios, n = 3 and 3"
        in (found.reasons[0])
    )
    assert judge(away, "magnitude", **keys, stated="3", relation="at_most").verdict == "supported"


def test_a_number_picked_from_beyond_the_interval_of_the_mean_is_left_open() -> None:
    runs = (100.0, 100.2, 99.8, 100.1, 104.0)
    logs = np.log(runs)
    half = sps.t.ppf(0.975, 4) * logs.std(ddof=1) / math.sqrt(5)
    assert np.mean(runs) * math.exp(half) < 104  # 100.82 x 1.022
    away = study(measured("a", "total_token_throughput", *runs))
    of = ref("a", "total_token_throughput")
    found = judge(away, "magnitude", of=of, stated="104", unit="tok/s")
    assert found.verdict == "inconclusive"
    assert "is true of 1 of 5 runs only (run 5)" in found.reasons[0]
    assert f"[{np.mean(runs) / math.exp(half):.1f}"[:4] in found.reasons[0]
    # Three of them print 100, the mean 101; 100 lies inside its interval.
    found = judge(away, "magnitude", of=of, stated="100", unit="tok/s")
    assert found.verdict == "supported"
    assert "are runs 1, 2, 3 and 4 of 5" in found.reasons[0]


@pytest.mark.parametrize(
    ("relation", "factor", "verdict"),
    [
        # ln(1.02) / (1.96 √2) = 0.71 % and ln(1.05) / 2.772 = 1.76 %, against 1.3 %.
        ("at_least", 1.02, "inconclusive"),
        ("at_least", 1.05, "supported"),
        ("at_most", 1.02, "inconclusive"),
        ("at_most", 1.05, "refuted"),
        ("at_least", 0.95, "refuted"),
    ],
)
def test_a_bound_on_single_runs_must_be_cleared_by_what_runs_vary(
    relation: str, factor: float, verdict: str
) -> None:
    away = study(measured("a", "mean_itl", 0.01 * factor), measured("b", "mean_itl", 0.01))
    keys = {"of": ref("a", "mean_itl"), "against": ref("b", "mean_itl"), "relation": relation}
    change = {"measure": "percent", "base": "against", "stated": "0"}
    for measure in (
        {"measure": "ratio", "stated": "1"},
        {"measure": "share", "stated": "100"},
        {"measure": "difference", "stated": "0", "unit": "ms"},
        change,
        {**change, "base": "of"},
    ):
        found = judge(away, "magnitude", **keys, **measure)
        assert found.verdict == verdict, measure
        if verdict == "inconclusive":
            assert "below 0.71 %, and 1.3 % has to be reckoned with" in found.reasons[0]


def test_a_bound_on_ttft_reckons_with_what_ttft_varies() -> None:
    # 1.76 % is enough for ITL and not for TTFT, which varies by 3 %.
    away = study(measured("a", "mean_ttft", 0.105), measured("b", "mean_ttft", 0.1))
    keys = {"of": ref("a", "mean_ttft"), "against": ref("b", "mean_ttft"), "measure": "ratio"}
    found = judge(away, "magnitude", **keys, stated="1", relation="at_least")
    assert found.verdict == "inconclusive"


def test_bounds_that_no_ratio_reaches() -> None:
    keys = {"of": FAST, "against": SLOW, "measure": "percent"}
    # No figure is less than nothing, and of itself none exceeds another by its whole.
    assert verdict_of(**keys, base="against", stated="-100", relation="at_least") == "supported"
    assert verdict_of(**keys, base="against", stated="-100", relation="at_most") == "refuted"
    assert verdict_of(**keys, base="of", stated="100", relation="at_most") == "supported"
    assert verdict_of(**keys, base="of", stated="100", relation="at_least") == "refuted"


def test_a_bound_of_figures_that_may_be_nothing_goes_by_the_figures() -> None:
    away = study(measured("a", "failed", 3), measured("b", "failed", 0))
    found = judge(
        away, "magnitude", of=ref("a", "failed"), against=ref("b", "failed"),
        measure="difference", stated="2", relation="at_least",
    )  # fmt: skip
    assert found.verdict == "supported"


def test_a_bound_on_a_value_must_clear_the_interval_of_the_mean() -> None:
    of = ref("a", "mean_itl")
    loose = study(measured("a", "mean_itl", 0.09, 0.11, 0.10))  # t 4.3 x 5.8 %: [0.078, 0.128]
    tight = study(measured("a", "mean_itl", 0.0999, 0.1001, 0.1))
    for relation, loose_verdict, tight_verdict in (
        ("at_least", "inconclusive", "supported"),
        ("at_most", "inconclusive", "refuted"),
    ):
        keys = {"of": of, "stated": "95", "unit": "ms", "relation": relation}
        assert judge(loose, "magnitude", **keys).verdict == loose_verdict
        assert judge(tight, "magnitude", **keys).verdict == tight_verdict
    found = judge(loose, "magnitude", of=of, stated="95", unit="ms", relation="at_least")
    assert "the mean of 3 runs, whose 95 % interval" in found.reasons[0]
    single = study(measured("a", "mean_itl", 0.1))
    assert judge(
        single, "magnitude", of=of, stated="95", unit="ms", relation="at_least"
    ).verdict == ("supported")


# wording


@pytest.mark.parametrize(
    ("of", "against", "base", "stated", "text"),
    [
        (FAST, SLOW, "against", "-64", "63.8 % [63.6, 64.0] less than that of slow, which rounds "
         "to the stated 64 % less"),
        (SLOW, FAST, "against", "176", "176 % [175, 177] more than that of fast, which rounds to"),
        (SLOW, FAST, "of", "64", "exceeds that of fast by 63.8 % [63.6, 64.0] of itself"),
        (FAST, SLOW, "of", "-176", "falls short of that of slow by 176 % [175, 177] of itself"),
    ],
)  # fmt: skip
def test_the_sign_of_a_change_is_put_into_words(
    of: dict[str, str], against: dict[str, str], base: str, stated: str, text: str
) -> None:
    found = judge(
        AWAY, "magnitude", of=of, against=against, measure="percent", base=base, stated=stated
    )
    assert found.verdict == "supported"
    assert text in found.reasons[0]


def test_a_bound_on_a_fall_is_put_into_words() -> None:
    keys = {"of": FAST, "against": SLOW, "measure": "percent", "base": "against", "stated": "-10"}
    least = judge(AWAY, "magnitude", **keys, relation="at_most")
    assert least.reasons[0].endswith("less than that of slow, at least the stated 10 % less.")
    most = judge(AWAY, "magnitude", **keys, relation="at_least")
    assert (most.verdict, most.reasons[0].split(", ")[-1]) == (
        "refuted",
        "not at most the stated 10 % less.",
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.02249, "22.49 ms, which rounds to the stated 22 ms"), (0.022, "22 ms, which rounds")],
)
def test_an_exact_value_is_shown_finer_than_the_stated_one_it_differs_from(
    value: float, text: str
) -> None:
    away = study(measured("a", "mean_itl", value))
    found = judge(away, "magnitude", of=ref("a", "mean_itl"), stated="22", unit="ms")
    assert f"is {text}" in found.reasons[0]


def test_figures_of_three_cells_name_what_moved_between_their_arms() -> None:
    newer = arm("b", version="2")
    away = study(
        measured(arm("a", version="1"), "mean_itl", 0.01),
        measured(newer, "mean_itl", 0.02),
        measured(newer, "mean_itl", 0.04, load=20),
    )
    found = judge(
        away, "magnitude", of={**ref("b", "mean_itl"), "plus": ref("b", "mean_itl", 20)},
        against=ref("a", "mean_itl"), measure="ratio", stated="6",
    )  # fmt: skip
    assert found.confounds == ("version: 2 against 1",)


def test_one_run_against_several_has_their_spread() -> None:
    away = study(measured("a", "mean_itl", 0.02), measured("b", "mean_itl", 0.0099, 0.0101, 0.01))
    found = judge(
        away, "magnitude", of=ref("a", "mean_itl"), against=ref("b", "mean_itl"),
        measure="ratio", stated="2.0",
    )  # fmt: skip
    assert "n = 3 and 1" in found.reasons[1]


def test_repeats_of_different_metrics_have_no_ratio_between_runs() -> None:
    cell = served(arm("a"), x=1.0, ttft=0.2, itl=0.2, out=50)
    away = study(cell)
    # TTFT / ITL = 1 by construction.
    found = judge(
        away, "magnitude", of=ref("a", "mean_ttft"), against=ref("a", "mean_itl"),
        measure="ratio", stated="1.0",
    )  # fmt: skip
    assert (found.verdict, len(found.reasons)) == ("supported", 1)
    found = judge(
        away, "magnitude", of=ref("a", "mean_ttft"), against=ref("a", "mean_itl"),
        measure="ratio", stated="2.0",
    )  # fmt: skip
    assert found.verdict == "refuted"


def test_what_else_moved_between_the_arms_is_named() -> None:
    away = study(
        measured(arm("a", version="1"), "mean_itl", 0.01),
        measured(arm("b", version="2"), "mean_itl", 0.02),
    )
    found = judge(
        away, "magnitude", of=ref("a", "mean_itl"), against=ref("b", "mean_itl"),
        measure="ratio", stated="0.5",
    )  # fmt: skip
    assert found.confounds == ("version: 1 against 2",)


@pytest.mark.parametrize(
    ("verdict", "keys", "flips"),
    [
        ("supported", {"stated": "43.1"}, "a figure that does not round to 43.1 ms"),
        ("refuted", {"stated": "50"}, "a figure that rounds to 50 ms"),
        ("refuted", {"stated": "50", "relation": "at_least"}, "on the other side of 50 ms"),
    ],
)
def test_what_would_flip_it_is_said(verdict: str, keys: dict[str, str], flips: str) -> None:
    found = judge(AWAY, "magnitude", of=SLOW, unit="ms", **keys)
    assert found.verdict == verdict
    assert flips in found.flips


def test_a_number_in_the_wrong_unit_is_the_authors_mistake() -> None:
    with pytest.raises(BadClaim, match=r"no unit where the figure is in s; set unit to s or ms"):
        judge(AWAY, "magnitude", of=SLOW, stated="43.1")
    with pytest.raises(BadClaim, match=r"in no unit; set unit to x, ratio, % or percent"):
        judge(AWAY, "magnitude", of=SLOW, against=FAST, measure="ratio", stated="2", unit="ms")


def test_a_comparison_needs_the_other_figure() -> None:
    with pytest.raises(BadClaim, match="no `against`"):
        judge(AWAY, "magnitude", of=SLOW, measure="ratio", stated="2")


def test_another_figure_beside_a_value_is_the_authors_mistake() -> None:
    with pytest.raises(BadClaim, match="say which `measure` is meant"):
        judge(AWAY, "magnitude", of=SLOW, against=FAST, stated="43.1", unit="ms")


@pytest.mark.parametrize("measure", ["difference", "percent"])
def test_seconds_are_not_taken_from_a_ratio(measure: str) -> None:
    with pytest.raises(BadClaim, match="adds figures in s and in no unit"):
        judge(AWAY, "magnitude", of=SLOW, against={"value": "2"}, measure=measure, stated="1")


@pytest.mark.parametrize("text", ["nan", "inf", "1e3", "1_000", "many", "", "٣"])
def test_only_a_plain_decimal_number_can_be_stated(text: str) -> None:
    with pytest.raises(BadClaim, match="no plain number"):
        judge(AWAY, "magnitude", of=SLOW, stated=text, unit="ms")


def test_a_seed_that_one_arm_was_not_sent_is_no_part_of_a_comparison() -> None:
    # Seed 2 is of prompts that make any server twice as slow; the arms differ by 10 % on seed 1.
    away = study(
        measured("slow", "mean_itl", 0.110, 0.220, seeds=(1, 2)),
        measured("fast", "mean_itl", 0.100, seeds=(1,)),
    )
    keys = {"of": SLOW, "against": FAST, "measure": "ratio"}
    assert judge(away, "magnitude", stated="1.10", **keys).verdict == "supported"
    assert judge(away, "magnitude", stated="1.65", **keys).verdict == "refuted"
    # A value is of all runs.
    assert judge(away, "magnitude", of=SLOW, stated="165", unit="ms").verdict == "supported"
