"""Failed requests among those sent."""

from __future__ import annotations

import pytest

from analysis.checks import failures
from tests.builders import run
from tests.checks.helpers import outcome


@pytest.mark.parametrize(
    ("failed", "status", "share"),
    # Of 100 answered and so many failed: 5 / 105 is 4.8 %, 6 / 106 is 5.7 %.
    [(0, "VALID", "0.0 %"), (1, "SUSPECT", "1.0 %"), (5, "SUSPECT", "4.8 %"),
     (6, "INVALID", "5.7 %"), (300, "INVALID", "75.0 %")],
)  # fmt: skip
def test_failed_among_sent(failed: int, status: str, share: str) -> None:
    found = outcome(failures, run({"failed": failed}))
    assert found.status == status
    assert found.reason == f"{failed} of {100 + failed} requests failed ({share})"


def test_what_was_sent_and_not_answered_has_failed_where_no_count_is_given() -> None:
    found = outcome(failures, run({"failed": None, "num_prompts": 200}))
    assert found.status == "INVALID"
    assert found.reason == "100 of 200 requests failed (50.0 %)"


def test_all_failed() -> None:
    assert outcome(failures, run({"completed": 0, "failed": 7})).status == "INVALID"


def test_more_answered_than_sent_is_suspect() -> None:
    found = outcome(failures, run({"failed": None, "num_prompts": 90}))
    assert found.status == "SUSPECT"
    assert found.reason == "100 requests completed, 10 more than were sent"


@pytest.mark.parametrize(
    "figures",
    [
        {"completed": None},
        {"failed": None, "num_prompts": None},
        {"completed": 0, "failed": 0},
        {"completed": 0, "failed": None, "num_prompts": 0},
    ],
)
def test_a_file_that_does_not_count(figures: dict[str, float | None]) -> None:
    assert outcome(failures, run(figures)).status == "NOT APPLICABLE"
