"""analysis.claims.scaling: a measurement of k instances, or one instance times k."""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats as sps

from analysis.evidence import BadClaim, Judgement, Missing
from tests.builders import study
from tests.claims.helpers import judge, measured, ref

X = "total_token_throughput"
ONE = ref("one", X, 20)


def scaling(
    of: str, *, one: float | str = 2454.8, k: int = 4, unit: str = "tok/s", **keys: Any
) -> Judgement:
    away = study(
        measured("one", X, one, load=20),
        measured("four", X, 3926.0, load=20),
        measured("full", X, 8000.0, load=80),
    )
    return judge(away, "scaling", of={"value": of, "unit": unit}, instance=ONE, k=k, **keys)


def test_four_times_one_instance_is_no_measurement() -> None:
    found = scaling("9,819")  # 4 x 2,454.8 = 9,819.2
    assert found.verdict == "refuted"
    assert scaling("9,819", measured=False).verdict == "supported"
    assert "figure stands for 80 in flight in all" in found.reasons[1]
    assert found.experiment is not None
    assert found.experiment.concurrency == (80,)


@pytest.mark.parametrize(
    ("figure", "word"), [("9816", "cut"), ("9820", "rounded")]
)  # 4 x 2,454 and 4 x 2,455
def test_a_multiple_of_the_whole_number_is_named(figure: str, word: str) -> None:
    assert f"the instance's {word} to a whole number" in scaling(figure).reasons[0]


@pytest.mark.parametrize("measured_", [True, False])
def test_what_is_near_and_not_exactly_a_multiple_may_be_chance(measured_: bool) -> None:
    # 9,822 / 9,819.2 is 0.03 % off; a normal deviation of sd 1 % is within 0.1 % in 8.0 %.
    found = scaling("9,822", measured=measured_)
    assert found.verdict == "inconclusive"
    chance = 1 / (2 * sps.norm.cdf(0.1) - 1)
    assert (
        f"in about 1 of {chance:.0f}, if true scaling is 4 x within 1 % (one sd)"
        in (found.reasons[0])
    )
    assert "80 in flight" not in " ".join(found.reasons)


def test_a_small_whole_number_is_no_exact_multiple_by_itself() -> None:
    # 12 is 4 x 3, the whole part of 3.4, and 12 % from 4 x 3.4.
    found = scaling("12", one=3.4)
    assert found.verdict == "inconclusive"
    assert "not 4 times one instance" in found.reasons[0]


def test_the_multiple_to_the_digit_printed_is_named() -> None:
    assert (
        "within the rounding of the print it is 4 x the instance's" in scaling("9,819").reasons[0]
    )


def test_what_is_not_a_multiple_may_have_been_measured() -> None:
    found = scaling("9,500")
    assert found.verdict == "inconclusive"
    assert "That it was measured does not follow" in found.reasons[-1]
    assert scaling("9,500", measured=False).verdict == "refuted"
    assert scaling("9,819", k=3).verdict == "inconclusive"


@pytest.mark.parametrize("measured_", [True, False])
def test_rounding_that_straddles_a_multiple_is_left_open(measured_: bool) -> None:
    # 10 means [9.5, 10.5] and 2.5 [2.45, 2.55]: 4.0 [3.7, 4.3] times, closer than 0.1 % by luck.
    found = scaling("10", one="2.5", measured=measured_)
    assert found.verdict == "inconclusive"
    assert "leaves open whether it is 4 times one" in found.reasons[0]


def test_a_comparison_at_fewer_requests_in_flight_compares_nothing() -> None:
    found = scaling("9,819", against=ref("four", X, 20))
    assert "at unequal totals the ratio of 2.50" in found.reasons[2]
    assert "compares nothing" in found.reasons[2]


def test_a_comparison_at_equal_totals_is_one() -> None:
    found = scaling("9,819", against=ref("full", X, 80))
    assert "the totals are equal and the ratio is 1.227" in found.reasons[2]


def test_a_comparison_without_a_load_is_not_spoken_of() -> None:
    assert len(scaling("9,819", against={"value": "3926", "unit": "tok/s"}).reasons) == 2


def test_two_quoted_figures_name_no_experiment() -> None:
    away = study(measured("one", X, 1.0))
    found = judge(
        away, "scaling", of={"value": "8.0"}, instance={"value": "4.000"}, k=2, measured=False
    )
    assert (found.verdict, found.experiment) == ("inconclusive", None)
    found = judge(
        away, "scaling", of={"value": "8.000"}, instance={"value": "4.000"}, k=2, measured=False
    )
    assert (found.verdict, len(found.reasons)) == ("supported", 1)


def test_times_nothing_is_untestable() -> None:
    with pytest.raises(Missing, match="that is not 0"):
        scaling("9,819", one=0.0)


def test_one_instance_is_no_scaling() -> None:
    with pytest.raises(BadClaim, match="has k = 1"):
        scaling("9,819", k=1)


def test_an_arm_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(BadClaim, match="did you mean 'four'"):
        scaling("9,819", against=ref("fou", X, 20))
