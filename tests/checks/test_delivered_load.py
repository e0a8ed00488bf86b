"""Requests completed a second against the rate asked."""

from __future__ import annotations

from analysis.checks import delivered_load
from tests.builders import run
from tests.checks.helpers import outcome


def test_a_rate_that_is_delivered_is_valid() -> None:
    found = outcome(delivered_load, run(rate=1.0))
    assert found.status == "VALID"
    assert "(100.0 %)" in found.reason


def test_a_cap_that_turns_a_rate_into_a_closed_loop_is_suspect() -> None:
    # 100 requests in 100 s where 10/s were asked.
    found = outcome(delivered_load, run(rate=10.0))
    assert found.status == "SUSPECT"
    assert "(10.0 %)" in found.reason
    assert "closed loop" in found.reason


def test_the_line_is_at_95_percent() -> None:
    assert outcome(delivered_load, run(rate=1 / 0.951)).status == "VALID"
    assert outcome(delivered_load, run(rate=1 / 0.949)).status == "SUSPECT"


def test_no_rate_was_asked_for() -> None:
    assert outcome(delivered_load, run()).status == "NOT APPLICABLE"
    assert outcome(delivered_load, run(rate=0.0)).status == "NOT APPLICABLE"


def test_a_table_without_throughput() -> None:
    found = outcome(delivered_load, run({"mean_ttft": 0.1}, rate=10.0, bare=True))
    assert found.status == "NOT APPLICABLE"
    assert found.reason == "throughput is unknown"
