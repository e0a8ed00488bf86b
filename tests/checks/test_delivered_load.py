"""Requests completed a second against the rate asked."""

from __future__ import annotations

import pytest

from analysis.checks import delivered_load
from analysis.model import Run
from tests.builders import run
from tests.checks.helpers import outcome


def of(in_flight: float, rate: float, cap: int | None = 10) -> Run:
    """100 requests in 100 s are 1/s; TTFT 1 s and the rest of the stay over 49 gaps."""
    itl = (in_flight - 1) / 49
    return run({"mean_ttft": 1.0, "mean_itl": itl}, concurrency=cap, rate=rate)


def test_a_rate_that_is_delivered_is_valid() -> None:
    found = outcome(delivered_load, run(rate=1.0))
    assert (found.status, found.reason) == ("VALID", "1 1/s of 1 1/s asked (100.0 %)")


def test_a_cap_that_turns_a_rate_into_a_closed_loop_is_suspect() -> None:
    # 100 requests in 100 s where 10/s were asked; 1 - 0.02 - 2 / 10 - 9.9 / 100 is 68.1 %.
    found = outcome(delivered_load, run(rate=10.0))
    assert found.status == "SUSPECT"
    assert found.reason == (
        "1 1/s of 10 1/s asked (10.0 %), below 68.1 %: the run is a closed loop at its cap, not a "
        "run at that rate"
    )


@pytest.mark.parametrize(
    ("in_flight", "words"), [(9.5, "closed loop"), (9.4, "client or the server fell behind")]
)
def test_the_cap_is_to_blame_only_where_it_is_full(in_flight: float, words: str) -> None:
    # 95 % and 94 % of 10.
    found = outcome(delivered_load, of(in_flight, rate=10.0))
    assert found.status == "SUSPECT"
    assert words in found.reason
    assert ("cap" in found.reason) == (in_flight >= 9.5)


def test_without_a_cap_no_cap_is_to_blame() -> None:
    found = outcome(delivered_load, of(30.0, rate=10.0, cap=None))
    assert found.status == "SUSPECT"
    assert found.reason.endswith("below 48.0 %: the client or the server fell behind")


def test_a_cap_that_may_have_been_full_is_one_of_three_causes() -> None:
    # Without latencies 10 of 100 requests at most are drained: 1 - 0.02 - 0.2 - 0.1.
    found = outcome(delivered_load, run({"mean_ttft": None, "mean_itl": None}, rate=10.0))
    assert found.status == "SUSPECT"
    assert found.reason.endswith("below 68.0 %: its cap, the client or the server held it back")


def test_the_line_allows_for_noise_and_drain() -> None:
    # 4 in flight: 1 - 0.02 - 0.2 - 0.04 is 74 %.
    found = outcome(delivered_load, of(4.0, rate=1 / 0.741))
    assert found.status == "VALID"
    assert found.reason.endswith("(74.1 %), above the 74.0 % that noise and drain may leave")
    assert outcome(delivered_load, of(4.0, rate=1 / 0.739)).status == "SUSPECT"


def test_no_rate_was_asked_for() -> None:
    assert outcome(delivered_load, run()).status == "NOT APPLICABLE"
    assert outcome(delivered_load, run(rate=0.0)).status == "NOT APPLICABLE"


def test_a_table_without_throughput() -> None:
    found = outcome(delivered_load, run({"mean_ttft": 0.1}, rate=10.0, bare=True))
    assert found.status == "NOT APPLICABLE"
    assert found.reason == "throughput is unknown"


def test_a_rate_missed_by_what_may_be_noise() -> None:
    # Requests are not counted; a rate met in full needs no count.
    few = run({"request_throughput": 1.0}, rate=2.0, bare=True)
    found = outcome(delivered_load, few)
    assert found.status == "NOT APPLICABLE"
    assert found.reason == (
        "1 1/s of 2 1/s asked (50.0 %), but too few requests, or too little known of them, to tell "
        "it from noise"
    )
    met = run({"request_throughput": 1.0}, rate=1.0, bare=True)
    assert outcome(delivered_load, met).status == "VALID"
