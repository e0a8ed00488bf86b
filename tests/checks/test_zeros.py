"""Latencies of zero."""

from __future__ import annotations

import pytest

from analysis.checks import zeros
from tests.builders import requests, run
from tests.checks.helpers import outcome


def test_latencies_above_zero() -> None:
    found = outcome(zeros, run({"mean_tpot": 0.2}))
    assert found.status == "VALID"
    assert found.reason == "mean_ttft, mean_itl, mean_tpot above 0"


@pytest.mark.parametrize("name", ["mean_ttft", "mean_itl", "mean_tpot"])
def test_a_mean_of_zero_is_impossible(name: str) -> None:
    found = outcome(zeros, run({name: 0.0}))
    assert found.status == "INVALID"
    assert found.reason == f"{name} is 0"


def test_one_token_an_answer_has_no_gaps() -> None:
    one = {"total_output_tokens": 100, "mean_itl": 0.0, "mean_tpot": 0.0}
    assert outcome(zeros, run(one)).status == "VALID"
    assert outcome(zeros, run({**one, "mean_ttft": 0.0})).reason == "mean_ttft is 0"


def test_gaps_of_zero_are_impossible_where_tokens_are_not_counted() -> None:
    assert outcome(zeros, run({"mean_itl": 0.0}, bare=True)).status == "INVALID"


def test_completed_requests_with_a_ttft_of_zero_pull_the_mean_down() -> None:
    arrays = requests([0.1, 0.0, 0.0, 0.0], [[0.2]] * 4, failed=[False, False, False, True])
    found = outcome(zeros, run(requests=arrays))
    assert found.status == "INVALID"
    assert found.reason.startswith("2 completed requests")


def test_a_failed_request_may_have_a_ttft_of_zero() -> None:
    arrays = requests([0.1, 0.0], [[0.2], []], failed=[False, True])
    assert outcome(zeros, run(requests=arrays)).status == "VALID"


def test_no_latencies_at_all() -> None:
    assert outcome(zeros, run({"completed": 5}, bare=True)).status == "NOT APPLICABLE"
