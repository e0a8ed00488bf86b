"""Throughput x stay against the cap on requests in flight."""

from __future__ import annotations

import pytest

from analysis.checks import little_law
from analysis.model import Run
from tests.builders import between, run
from tests.checks.helpers import outcome


def of(in_flight: float, cap: int | None = 10, rate: float = float("inf")) -> Run:
    """100 requests in 100 s are 1/s; TTFT 1 s and the rest of the stay over 49 gaps."""
    itl = (in_flight - 1) / 49
    return run({"mean_ttft": 1.0, "mean_itl": itl}, concurrency=cap, rate=rate)


def test_a_closed_loop_that_fills_its_cap_is_valid() -> None:
    found = outcome(little_law, of(9.9))
    assert found.status == "VALID"
    assert found.reason == "9.90 of 10 in flight (99.0 %)"


def test_more_in_flight_than_the_cap_allows_is_impossible() -> None:
    # 10.3 > 1.02 x 10
    found = outcome(little_law, of(10.3))
    assert found.status == "INVALID"
    assert "10.3" in found.reason
    assert "more than the cap allows" in found.reason


def test_chunks_of_several_tokens_do_not_make_more_in_flight_than_there_were() -> None:
    # From chunk to chunk 0.5 s, a token 0.2 s: 0.1 + 0.2 x 49 = 9.9 in flight at 1/s, not 24.6.
    found = outcome(little_law, run({"mean_itl": 0.5, "mean_tpot": 0.2}))
    assert (found.status, found.reason) == ("VALID", "9.90 of 10 in flight (99.0 %)")
    assert outcome(little_law, run({"mean_itl": 0.5})).status == "INVALID"


def test_two_percent_over_the_cap_is_tolerated() -> None:
    assert outcome(little_law, of(10.19)).status == "VALID"


def test_an_excess_within_the_rounding_of_the_print_is_no_excess() -> None:
    # Stay between 9.9 and 11 s, so between 9.9 and 11 in flight: the cap is within the interval.
    ttft = between("mean_ttft", 10.4, 9.8, 11.0)
    assert outcome(little_law, run({"mean_ttft": ttft, "mean_itl": 0.0})).status == "VALID"


def test_a_loop_below_four_fifths_of_its_cap_is_suspect() -> None:
    found = outcome(little_law, of(7.9))
    assert found.status == "SUSPECT"
    assert "(79.0 %), below 80 %" in found.reason
    assert outcome(little_law, of(8.1)).status == "VALID"


@pytest.mark.parametrize(
    ("rate", "status"),
    # Of 1/s asked all is delivered, of 1.3/s 76.9 %, of 1.4/s 71.4 %: the noise of 100 arrivals and
    # the drain of 3 leave 1 - 0.02 - 0.2 - 0.03 = 75 %.
    [(1.0, "VALID"), (1.3, "VALID"), (1.4, "SUSPECT"), (float("inf"), "SUSPECT")],
)
def test_a_run_at_a_delivered_rate_need_not_fill_its_cap(rate: float, status: str) -> None:
    assert outcome(little_law, of(3.0, rate=rate)).status == status


@pytest.mark.parametrize("cap", [None, 0])
def test_without_a_cap_there_is_nothing_to_compare_with(cap: int | None) -> None:
    assert outcome(little_law, of(9.9, cap)).status == "NOT APPLICABLE"


@pytest.mark.parametrize("name", ["mean_ttft", "mean_itl"])
def test_without_a_latency_requests_in_flight_are_unknown(name: str) -> None:
    assert outcome(little_law, run({name: None})).status == "NOT APPLICABLE"
