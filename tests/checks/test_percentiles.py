"""Percentiles in order, and enough requests for the tail."""

from __future__ import annotations

import math

import pytest

from analysis.checks import percentiles
from tests.builders import between, run
from tests.checks.helpers import outcome


def test_enough_requests_for_the_99th_percentile() -> None:
    # 0.99 ** 299 < 0.05 < 0.99 ** 298
    assert 0.99**299 < 0.05 < 0.99**298
    tail = {"p99_ttft": 0.5, "median_ttft": 0.1}
    assert outcome(percentiles, run({**tail, "completed": 299})).status == "VALID"
    found = outcome(percentiles, run({**tail, "completed": 298}))
    assert found.status == "SUSPECT"
    assert found.reason == "too few for the tail (299 needed): p99 of ttft from 298"


def test_the_number_needed_is_that_of_the_tails_that_are_thin() -> None:
    # p99.9 of 1,000 x 999 gaps is fine; p90 of ttft from 20 requests needs 29.
    figures = {"completed": 20, "total_output_tokens": 20_000, "p99.9_itl": 1.0, "p90_ttft": 0.4}
    found = outcome(percentiles, run(figures))
    assert math.ceil(math.log(0.05) / math.log(0.9)) == 29
    assert found.reason == "too few for the tail (29 needed): p90 of ttft from 20"


def test_gaps_are_counted_for_itl() -> None:
    # 10 requests of 50 tokens are 490 gaps, but 10 requests for a TTFT or a TPOT.
    figures = {"completed": 10, "total_output_tokens": 500, "p99_itl": 1.0}
    assert outcome(percentiles, run(figures)).status == "VALID"
    assert outcome(percentiles, run({**figures, "p99_tpot": 1.0})).status == "SUSPECT"


def test_gaps_cannot_be_counted_without_tokens() -> None:
    figures = {"completed": 10, "p99_itl": 1.0}
    found = outcome(percentiles, run(figures, bare=True))
    assert found.reason.endswith("p99 of itl from 10")


@pytest.mark.parametrize(
    ("low", "high"), [("p90_ttft", "p99_ttft"), ("median_ttft", "p90_ttft"), ("p5_itl", "p50_itl")]
)
def test_a_lower_percentile_above_a_higher_one_is_impossible(low: str, high: str) -> None:
    found = outcome(percentiles, run({low: 2.0, high: 1.0, "completed": 1000}))
    assert found.status == "INVALID"
    assert "exceeds its p" in found.reason


def test_percentiles_are_ordered_as_numbers_not_as_words() -> None:
    figures = {"p5_ttft": 0.1, "p50_ttft": 0.2, "p99_ttft": 0.3, "p99.9_ttft": 0.4}
    assert outcome(percentiles, run({**figures, "completed": 5000})).status == "VALID"


def test_an_inversion_within_the_rounding_of_the_print_is_none() -> None:
    figures = {
        "p90_ttft": between("p90_ttft", 0.5, 0.45, 0.55),
        "p99_ttft": between("p99_ttft", 0.46, 0.455, 0.465),
        "completed": 1000.0,
    }
    assert outcome(percentiles, run(figures)).status == "VALID"


def test_a_printed_p50_is_preferred_to_the_median() -> None:
    figures = {"p50_ttft": 0.1, "median_ttft": 9.0, "p99_ttft": 0.2, "completed": 1000}
    assert outcome(percentiles, run(figures)).status == "VALID"


def test_requests_sent_stand_in_for_requests_answered() -> None:
    figures = {"num_prompts": 10, "p99_ttft": 1.0}
    assert outcome(percentiles, run(figures, bare=True)).status == "SUSPECT"


def test_requests_that_are_not_counted() -> None:
    found = outcome(percentiles, run({"p99_ttft": 1.0}, bare=True))
    assert (found.status, found.reason) == ("NOT APPLICABLE", "requests are not counted")


def test_no_percentiles_in_the_file() -> None:
    # A median alone has no tail; p99_of_something_else is no latency.
    found = outcome(percentiles, run({"median_ttft": 0.1, "p99_queue": 1.0}))
    assert (found.status, found.reason) == ("NOT APPLICABLE", "no percentiles in the file")
