"""The run's length in stays of a request."""

from __future__ import annotations

import pytest

from analysis.checks import window
from tests.builders import between, run
from tests.checks.helpers import outcome


def test_a_run_of_many_stays() -> None:
    # 100 s over 9.9 s
    found = outcome(window, run())
    assert (found.status, found.reason) == ("VALID", "100 s is 10.1 stays of 9,900 ms")


def test_fewer_than_ten_stays_are_mostly_ramp_and_drain() -> None:
    # 0.3 + 9.8 = 10.1 s: 9.9 stays.
    found = outcome(window, run({"mean_ttft": 0.3}))
    assert found.status == "SUSPECT"
    assert found.reason.startswith("100 s is 9.9 stays of 10.1 s, below 10")


def test_a_stay_longer_than_the_run_is_impossible() -> None:
    found = outcome(window, run({"mean_ttft": 95.0}))
    assert found.status == "INVALID"
    assert found.reason.endswith("a request outlasts the run")


def test_a_stay_longer_than_the_run_within_the_rounding_is_only_short() -> None:
    duration = between("duration", 9.5, 9.0, 10.0)
    assert outcome(window, run({"duration": duration})).status == "SUSPECT"


def test_a_stay_of_zero() -> None:
    found = outcome(window, run({"mean_ttft": 0.0, "mean_itl": 0.0}))
    assert (found.status, found.reason) == ("NOT APPLICABLE", "the mean stay is not above 0")


@pytest.mark.parametrize("name", ["duration", "mean_ttft", "mean_itl"])
def test_duration_or_stay_is_unknown(name: str) -> None:
    assert outcome(window, run({name: None})).status == "NOT APPLICABLE"
