"""Percentiles in order, and enough requests for the tail."""

from __future__ import annotations

import math

import pytest

from analysis.checks import percentiles
from analysis.checks.percentiles import tail_warning
from analysis.quantity import constant
from tests.builders import between, run
from tests.checks.helpers import outcome


def test_enough_requests_for_the_99th_percentile() -> None:
    # 0.99 ** 299 < 0.05 < 0.99 ** 298
    assert 0.99**299 < 0.05 < 0.99**298
    tail = {"p99_ttft": 0.5, "median_ttft": 0.1}
    assert outcome(percentiles, run({**tail, "completed": 299})).status == "VALID"
    found = outcome(percentiles, run({**tail, "completed": 298}))
    assert found.status == "VALID"
    assert found.reason == "p99 of ttft from 298 requests is near its maximum (299 needed)"


def test_each_thin_tail_is_named() -> None:
    tails = {"p99_ttft": 0.5, "p99_tpot": 0.3, "p90_tpot": 0.2, "completed": 200}
    assert outcome(percentiles, run(tails)).reason == (
        "p99 of ttft from 200 requests is near its maximum (299 needed); "
        "p99 of tpot from 200 requests is near its maximum (299 needed)"
    )


def test_the_number_needed_is_that_of_the_tails_that_are_thin() -> None:
    # p99.9 of 1,000 x 999 gaps is fine; p90 of ttft from 20 requests needs 29.
    figures = {"completed": 20, "total_output_tokens": 20_000, "p99.9_itl": 1.0, "p90_ttft": 0.4}
    found = outcome(percentiles, run(figures))
    assert math.ceil(math.log(0.05) / math.log(0.9)) == 29
    assert found.reason == "p90 of ttft from 20 requests is near its maximum (29 needed)"


def test_gaps_are_counted_for_itl() -> None:
    # 10 requests of 50 tokens are 490 gaps, but 10 requests for a TTFT or a TPOT.
    figures = {"completed": 10, "total_output_tokens": 500, "p99_itl": 1.0}
    enough = "in order, and enough requests for each"
    assert outcome(percentiles, run(figures)).reason == enough
    thin = "p99 of tpot from 10 requests is near its maximum (299 needed)"
    assert outcome(percentiles, run({**figures, "p99_tpot": 1.0})).reason == thin
    few = {"completed": 2, "total_output_tokens": 8, "p99_itl": 1.0}
    thin = "p99 of itl from 6 gaps is near its maximum (299 needed)"
    assert outcome(percentiles, run(few)).reason == thin


def test_gaps_cannot_be_counted_without_tokens() -> None:
    figures = {"completed": 10, "p99_itl": 1.0}
    found = outcome(percentiles, run(figures, bare=True))
    assert found.reason == "p99 of itl from 10 requests is near its maximum (299 needed)"


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
    assert "from 10 requests" in outcome(percentiles, run(figures, bare=True)).reason


def test_requests_that_are_not_counted() -> None:
    found = outcome(percentiles, run({"p99_ttft": 1.0}, bare=True))
    assert (found.status, found.reason) == ("NOT APPLICABLE", "requests are not counted")


def test_no_percentiles_in_the_file() -> None:
    # A median alone has no tail; p99_of_something_else is no latency.
    found = outcome(percentiles, run({"median_ttft": 0.1, "p99_queue": 1.0}))
    assert (found.status, found.reason) == ("NOT APPLICABLE", "no percentiles in the file")


# ---- the warning that a number carries


def test_a_tail_is_weak_by_its_own_count() -> None:
    few = run({"completed": 298, "p99_ttft": 0.5, "p90_ttft": 0.3})
    warning = "p99 of ttft from 298 requests is near its maximum (299 needed)"
    assert tail_warning(few, "p99_ttft") == warning
    # 0.9 ** 29 < 0.05: plenty for a p90, of the same run.
    assert tail_warning(few, "p90_ttft") == ""
    # 0.999 ** 2995 < 0.05 < 0.999 ** 2994
    assert tail_warning(few, "p99.9_ttft").endswith("(2,995 needed)")
    assert tail_warning(run({"completed": 1}), "p99_ttft").startswith("p99 of ttft from 1 request ")


def test_gaps_of_a_tail_are_counted_with_tokens_of_its_own_or_lent() -> None:
    own = run({"completed": 10, "total_output_tokens": 40})
    assert tail_warning(own, "p99_itl").startswith("p99 of itl from 30 gaps ")
    bare = run({"completed": 10, "p99_itl": 1.0}, bare=True)
    assert tail_warning(bare, "p99_itl").startswith("p99 of itl from 10 requests ")
    assert tail_warning(bare, "p99_itl", constant(31.0, "tok")) == ""


def test_tokens_of_no_request_at_all_are_no_count_of_gaps() -> None:
    # 5,000 tokens / 0 requests is infinite.
    none = run({"completed": 0})
    assert tail_warning(none, "p99_itl").startswith("p99 of itl from 0 requests ")


@pytest.mark.parametrize("name", ["mean_ttft", "median_ttft", "p99_queue", "completed", "x"])
def test_what_is_no_percentile_of_a_latency_has_no_tail(name: str) -> None:
    assert tail_warning(run({"completed": 1}), name) == ""


def test_nothing_is_said_of_requests_that_are_not_counted() -> None:
    assert tail_warning(run({"p99_ttft": 1.0}, bare=True), "p99_ttft") == ""
