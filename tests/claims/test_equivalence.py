"""analysis.claims.equivalence: the same for practical purposes, never from a large p-value."""

from __future__ import annotations

import math

import pytest

from analysis.evidence import BadClaim, Missing
from tests.builders import study
from tests.claims.helpers import arm, judge, measured, ref

METRIC = "output_throughput"
OF, AGAINST = ref("b", METRIC), ref("a", METRIC)


def verdict_of(
    first: tuple[float | str, ...], second: tuple[float | str, ...], margin: float | str
) -> str:
    away = study(measured("a", METRIC, *first), measured("b", METRIC, *second))
    return judge(away, "equivalence", of=OF, against=AGAINST, margin=margin).verdict


def test_single_runs_within_a_wide_margin_are_the_same() -> None:
    # ln 1.10 - ln 1.01 = 0.0854, / (1.645 x 1.414) = 3.67 %, above the 1.3 % that runs vary.
    assert verdict_of((100.0,), (101.0,), 10) == "supported"


def test_single_runs_within_a_narrow_margin_settle_nothing() -> None:
    # (ln 1.01 - ln 1.0055) / 2.326 = 0.19 %: the tipping spread is below what has been seen.
    away = study(measured("a", METRIC, 100.0), measured("b", METRIC, 100.55))
    found = judge(away, "equivalence", of=OF, against=AGAINST, margin=1)
    tips = (math.log(1.01) - math.log(1.0055)) / (1.644854 * math.sqrt(2))
    assert found.verdict == "inconclusive"
    assert f"below {100 * tips:.3f} %" in found.reasons[0]
    assert found.experiment is not None
    assert found.experiment.repeats > 5


def test_single_runs_far_apart_are_not_the_same() -> None:
    assert verdict_of((100.0,), (120.0,), 5) == "refuted"
    assert verdict_of((120.0,), (100.0,), 5) == "refuted"


def test_single_runs_just_outside_the_margin_settle_nothing() -> None:
    # ln 1.06 - ln 1.05 = 0.0095, / (1.96 x 1.414) = 0.34 %.
    assert verdict_of((100.0,), (106.0,), 5) == "inconclusive"


def test_rounding_that_straddles_the_margin_is_left_open_on_either_side() -> None:
    # 2 / 2 = 1 [1.5 / 2.5, 2.5 / 1.5]: equal as printed, 40 % apart as far as the print goes.
    assert verdict_of(("2",), ("2",), 10) == "inconclusive"
    # 2 / 1.9 = 1.05 [0.77, 1.35] lies outside 1 %, and its print holds all of the margin.
    assert verdict_of(("1.9",), ("2",), 1) == "inconclusive"


@pytest.mark.parametrize("n", [2, 3, 5])
def test_repeats_use_their_spread(n: int) -> None:
    near, wide = (99.9, 100.1, 100.0, 100.0, 100.0)[:n], (80.0, 120.0, 100.0, 90.0, 110.0)[:n]
    far = tuple(1.3 * value for value in near)
    assert verdict_of(near, near[::-1], 5) == "supported"
    assert verdict_of(near, far, 5) == "refuted"
    assert verdict_of(wide, wide[::-1], 5) == "inconclusive"


def test_repeats_that_print_alike_do_not_outdo_their_print() -> None:
    assert verdict_of(("2", "2", "2"), ("2", "2", "2"), 10) == "inconclusive"
    # 1 / 2 = 0.5 [0.2, 1]: the upper end is the same.
    assert verdict_of(("2", "2", "2"), ("1", "1", "1"), 10) == "inconclusive"


def test_repeats_of_equal_seeds_are_paired() -> None:
    # Seeds differ by 10 %, arms by exactly 2 %: paired, the spread of the ratio is nothing.
    away = study(
        measured("a", METRIC, 100.0, 110.0, 120.0, seeds=(1, 2, 3)),
        measured("b", METRIC, 102.0, 112.2, 122.4, seeds=(1, 2, 3)),
    )
    found = judge(away, "equivalence", of=OF, against=AGAINST, margin=5)
    assert found.verdict == "supported"
    assert "paired t" in found.reasons[0]
    unpaired = study(
        measured("a", METRIC, 100.0, 110.0, 120.0), measured("b", METRIC, 102.0, 112.2, 122.4)
    )
    assert judge(unpaired, "equivalence", of=OF, against=AGAINST, margin=5).verdict == (
        "inconclusive"
    )


def test_a_seed_that_one_arm_was_not_sent_is_left_out() -> None:
    # Seed 2 is of other prompts; on seed 1 the arms are the same to 0.1 %.
    away = study(
        measured("a", METRIC, 100.0, 150.0, seeds=(1, 2)), measured("b", METRIC, 100.1, seeds=(1,))
    )
    found = judge(away, "equivalence", of=OF, against=AGAINST, margin=5)
    assert found.verdict == "supported"
    assert found.numbers[0].value == pytest.approx(1.001)


def test_the_p_value_is_kept_only_where_so_many_runs_can_reach_it() -> None:
    five = (100.0, 101.0, 99.0, 100.0, 100.0)
    for n, kept in ((3, False), (5, True)):
        away = study(
            measured("a", METRIC, *five[:n]), measured("b", METRIC, *(2 * v for v in five[:n]))
        )
        found = judge(away, "equivalence", of=OF, against=AGAINST, margin=5)
        assert (found.p_value is not None) is kept


def test_facts_are_compared_by_their_rounding_alone() -> None:
    away = study(
        measured(arm("a", log={"kv_tokens": 1000}), METRIC, 1.0),
        measured(arm("b", log={"kv_tokens": 1040}), METRIC, 1.0),
    )
    of, against = {"arm": "b", "fact": "kv_tokens"}, {"arm": "a", "fact": "kv_tokens"}
    for margin, verdict in ((5, "supported"), (3, "refuted")):
        found = judge(away, "equivalence", of=of, against=against, margin=margin)
        assert found.verdict == verdict
        assert found.experiment is None
    quoted = {"value": "1.0", "unit": "x"}  # [0.95, 1.05]
    ratio = {**of, "over": against}
    assert judge(away, "equivalence", of=ratio, against=quoted, margin=5).verdict == "inconclusive"


def test_a_multiple_of_a_cell_is_no_cell() -> None:
    away = study(measured("a", METRIC, 100.0, 100.0), measured("b", METRIC, 50.0, 50.0))
    found = judge(away, "equivalence", of={**OF, "times": 2.0}, against=AGAINST, margin=1)
    assert found.verdict == "supported"
    assert "Two one-sided" not in found.reasons[0]


@pytest.mark.parametrize("margin", [0.0, -1.0, 100.0])
def test_a_margin_that_is_none_is_the_authors_mistake(margin: float) -> None:
    away = study(measured("a", METRIC, 1.0), measured("b", METRIC, 1.0))
    with pytest.raises(BadClaim, match="give per cent between 0 and 100"):
        judge(away, "equivalence", of=OF, against=AGAINST, margin=margin)


def test_a_margin_is_per_cent_and_may_say_so() -> None:
    # 101 / 100 is within 10 % and not within 0.1 %, whichever way they are written.
    for wide, narrow in ((10, 0.1), ("10 %", "0.1 %"), ("10%", " 0.1"), (10.0, "0.10 %")):
        assert verdict_of((100.0,), (101.0,), wide) == "supported"
        away = study(measured("a", METRIC, 100.0), measured("b", METRIC, 101.0))
        found = judge(away, "equivalence", of=OF, against=AGAINST, margin=narrow)
        assert "margin of 0.1 %" in found.reasons[0]
        assert found.assumptions == ()


@pytest.mark.parametrize("plain", [True, False])
def test_a_margin_so_small_that_a_share_may_be_meant_is_said(plain: bool) -> None:
    of, against = (OF, AGAINST) if plain else ({"value": "1"}, {"value": "1"})
    away = study(measured("a", METRIC, 100.0), measured("b", METRIC, 101.0))
    for margin, notes in (
        (0.02, ("margin 0.02 is read as 0.02 %",)),
        ("0.02", ("margin 0.02 is read as 0.02 %",)),
        ("0.02 %", ()),
        (0.05, ()),
    ):
        found = judge(away, "equivalence", of=of, against=against, margin=margin)
        assert found.assumptions == notes


@pytest.mark.parametrize("margin", ["", "two", "-2 %", "2 ms", "1e1 %", "٢"])
def test_a_margin_that_is_no_number_is_the_authors_mistake(margin: str) -> None:
    away = study(measured("a", METRIC, 1.0), measured("b", METRIC, 1.0))
    with pytest.raises(BadClaim, match='which is no number of per cent; write 2 or "2 %"'):
        judge(away, "equivalence", of=OF, against=AGAINST, margin=margin)


def test_figures_that_cannot_be_in_a_ratio_are_missing() -> None:
    away = study(measured("a", "failed", 1.0), measured("b", "failed", 0.0))
    with pytest.raises(Missing, match="a positive failed requests"):
        judge(
            away, "equivalence", of=ref("b", "failed"), against=ref("a", "failed"), margin=5
        )  # fmt: skip
