"""Stream chunks against tokens."""

from __future__ import annotations

import pytest

from analysis.checks import chunks
from tests.builders import requests, run
from tests.checks.helpers import outcome


def test_one_token_a_chunk() -> None:
    # Three answers of 3, 2 and 1 tokens have 2, 1 and 0 gaps.
    arrays = requests([0.1] * 3, [[0.2, 0.2], [0.2], []])
    found = outcome(chunks, run(requests=arrays))
    assert (found.status, found.reason) == ("VALID", "6 chunks for 6 tokens (100.0 %)")


def test_several_tokens_a_chunk_make_itl_no_time_per_token() -> None:
    arrays = requests([0.1], [[0.2] * 49], output_tokens=[100])
    found = outcome(chunks, run(requests=arrays))
    assert (found.status, found.reason) == ("SUSPECT", "50 chunks for 100 tokens (50.0 %)")


@pytest.mark.parametrize(("tokens", "status"), [(100, "VALID"), (102, "SUSPECT")])
def test_the_line_is_at_99_percent(tokens: int, status: str) -> None:
    # 100 chunks of 100 or 102 tokens (98.0 %).
    arrays = requests([0.1], [[0.2] * 99], output_tokens=[tokens])
    assert outcome(chunks, run(requests=arrays)).status == status


def test_failed_requests_are_left_out() -> None:
    arrays = requests([0.1, 0.0], [[0.2], []], output_tokens=[2, 500], failed=[False, True])
    assert outcome(chunks, run(requests=arrays)).status == "VALID"


def test_no_request_was_answered() -> None:
    arrays = requests([0.0], [[]], failed=[True])
    found = outcome(chunks, run(requests=arrays))
    assert (found.status, found.reason) == ("NOT APPLICABLE", "no output tokens")


@pytest.mark.parametrize(("median", "status"), [(0.06, "VALID"), (0.04, "SUSPECT")])
def test_without_arrays_bunches_show_in_the_median(median: float, status: str) -> None:
    # Of a mean of 100 ms: 60 % and 40 %.
    found = outcome(chunks, run({"mean_itl": 0.1, "median_itl": median}))
    assert found.status == status
    assert f"median ITL is {median * 1000:.1f} % of its mean" in found.reason


def test_without_arrays_several_tokens_a_chunk_show_in_itl_against_tpot() -> None:
    found = outcome(chunks, run({"mean_itl": 0.025, "mean_tpot": 0.010, "median_itl": 0.025}))
    assert found.status == "SUSPECT"
    assert found.reason == "ITL 25 ms is 2.5 x TPOT 10 ms: several tokens a chunk"


def test_itl_below_tpot_is_no_sign_of_chunks() -> None:
    # 60 %: few long requests with short gaps; the median of the gaps is looked at as before.
    figures = {"mean_itl": 0.006, "mean_tpot": 0.010, "median_itl": 0.006}
    assert outcome(chunks, run(figures)).status == "VALID"


def test_arrays_come_before_itl_against_tpot() -> None:
    arrays = requests([0.1], [[0.2, 0.2]])
    one = run({"mean_itl": 0.025, "mean_tpot": 0.010}, requests=arrays)
    assert outcome(chunks, one).reason == "3 chunks for 3 tokens (100.0 %)"


@pytest.mark.parametrize("figures", [{}, {"median_itl": 0.1, "mean_itl": None},
                                     {"median_itl": 0.0, "mean_itl": 0.0}])  # fmt: skip
def test_neither_arrays_nor_the_shape_of_the_gaps(figures: dict[str, float | None]) -> None:
    assert outcome(chunks, run(figures)).status == "NOT APPLICABLE"
