"""Hits in the prefix cache, of the run's own prompts or of earlier ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.checks import prefix_hits
from tests.builders import run
from tests.checks.helpers import outcome
from tests.test_prefix_hits import counted


def test_without_counters_it_is_not_applicable() -> None:
    assert outcome(prefix_hits, run()).status == "NOT APPLICABLE"


@pytest.mark.parametrize(
    ("hits", "emptied", "status"),
    [(50.0, True, "VALID"), (5.0, False, "VALID"), (6.0, False, "SUSPECT")],
)
def test_hits_are_the_runs_own_where_the_cache_was_emptied(
    hits: float, emptied: bool, status: str
) -> None:
    found = outcome(prefix_hits, counted((0.0, 100.0, 0.0, hits), emptied=emptied))
    assert found.status == status
    assert found.reason.startswith(f"{hits:.1f} % of replica-0's prompt tokens were read")


@pytest.mark.parametrize(
    ("emptied", "said"), [(False, "was not emptied before"), (None, "nothing says that it was")]
)
def test_a_cache_that_nobody_speaks_of_is_not_said_to_have_been_full(
    emptied: bool | None, said: str
) -> None:
    one = counted((0.0, 100.0, 0.0, 50.0), emptied=False)
    config = {} if emptied is None else {"prefix_cache_emptied": emptied}
    assert said in outcome(prefix_hits, replace(one, config=config)).reason
