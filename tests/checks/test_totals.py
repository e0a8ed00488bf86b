"""Figures of one run that must agree."""

from __future__ import annotations

import pytest

from analysis.checks import totals
from tests.builders import printed, run
from tests.checks.helpers import outcome


def test_a_run_whose_sums_hold() -> None:
    # 1/s x 100 s = 100; 50 tok/s x 100 s = 5,000; 150 tok/s x 100 s = 15,000 = 10,000 + 5,000.
    found = outcome(totals, run())
    assert (found.status, found.reason) == ("VALID", "3 identities hold")


@pytest.mark.parametrize(
    ("figures", "words", "off"),
    [
        ({"request_throughput": 1.1}, "request throughput x duration", "10.0 %"),
        ({"output_throughput": 45}, "output throughput x duration", "-10.0 %"),
        ({"total_token_throughput": 159}, "total throughput x duration", "6.0 %"),
    ],
)
def test_a_sum_that_does_not_hold(figures: dict[str, float], words: str, off: str) -> None:
    found = outcome(totals, run(figures))
    assert found.status == "INVALID"
    assert found.reason.startswith(words)
    assert f"({off})" in found.reason


def test_half_a_percent_is_tolerated() -> None:
    assert outcome(totals, run({"request_throughput": 1.0049})).status == "VALID"
    assert outcome(totals, run({"request_throughput": 1.0051})).status == "INVALID"


def test_a_sum_that_the_rounding_of_the_print_allows() -> None:
    # 1.1 [1.05, 1.15] x 100 is at least 105: not 100, by more than half a percent of it.
    assert outcome(totals, run({"request_throughput": printed("x", "1.1")})).status == "INVALID"
    # 1.0 [0.95, 1.05] x 98 is [93.1, 102.9], which holds 100.
    close = {"request_throughput": printed("x", "1.0"), "duration": 98.0}
    rest = {"output_throughput": None, "total_token_throughput": None}
    assert outcome(totals, run({**close, **rest})).status == "VALID"


def test_output_above_all_tokens_is_impossible() -> None:
    figures = {"output_throughput": 100, "total_token_throughput": 90}
    found = outcome(totals, run(figures, bare=True))
    assert found.status == "INVALID"
    assert found.reason == (
        "output throughput exceeds total throughput: 100 tok/s against 90 tok/s (11.1 %)"
    )
    assert outcome(totals, run({**figures, "total_token_throughput": 110}, bare=True)).status == (
        "NOT APPLICABLE"
    )


def test_an_end_to_end_latency_far_from_ttft_and_gaps_is_suspect() -> None:
    # 0.1 + 0.2 x 49 = 9.9 s.
    assert outcome(totals, run({"mean_e2el": 9.5})).status == "VALID"
    found = outcome(totals, run({"mean_e2el": 9.0}))
    assert found.status == "SUSPECT"
    assert "9,900 ms against 9,000 ms (10.0 %)" in found.reason
    assert outcome(totals, run({"mean_e2el": 9.0, "mean_ttft": None})).status == "VALID"
    assert outcome(totals, run({"mean_e2el": 9.0, "total_output_tokens": None,
                                "output_throughput": None})).status == "VALID"  # fmt: skip


def test_a_total_of_zero_where_there_was_throughput() -> None:
    figures = {"request_throughput": 5, "duration": 10, "completed": 0}
    found = outcome(totals, run(figures, bare=True))
    assert found.status == "INVALID"
    assert found.reason == "request throughput x duration against completed: 50 against 0"


def test_no_two_figures_are_bound() -> None:
    assert outcome(totals, run({"mean_ttft": 0.1}, bare=True)).status == "NOT APPLICABLE"
