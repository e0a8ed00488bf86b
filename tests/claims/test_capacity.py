"""analysis.claims.capacity: slots at a workload, what limits them, and the log's figure."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.dataset import Cell
from analysis.evidence import BadClaim, Judgement, Missing
from tests.builders import between, study
from tests.claims.helpers import arm, figure_of, judge, measured, served


def cell(
    tokens: Any = 3000.0, *, stay: float = 9.9, reported: float | None = None, **spec: Any
) -> Cell:
    """150 tokens a request, 125 half way; 1 request a second that stays `stay` seconds."""
    log = {}
    if tokens is not None:
        log["kv_tokens"] = tokens
    if reported is not None:
        log["reported_max_concurrency"] = reported
    return served(arm("a", log=log, **spec), x=1.0, ttft=0.1, itl=(stay - 0.1) / 49)


def capacity(of: Cell, **keys: Any) -> Judgement:
    return judge(
        study(of), "capacity", **{"arm": "a", "workload": "chat", "concurrency": 10, **keys}
    )


def test_slots_are_kv_tokens_over_prompt_and_output() -> None:
    found = capacity(cell(), slots="20")
    assert found.verdict == "supported"
    assert figure_of(found, "slots") == pytest.approx(3000 / 150)
    assert figure_of(found, "KV slots, mean residency") == pytest.approx(3000 / 125)
    assert capacity(cell(), slots="21").verdict == "refuted"


def test_or_the_sequence_limit_where_that_is_less() -> None:
    assert capacity(cell(max_num_seqs=8), slots="8").verdict == "supported"
    assert capacity(cell(max_num_seqs=64), slots="20").verdict == "supported"
    assert capacity(cell(None, max_num_seqs=8), slots="8").verdict == "supported"
    assert capacity(cell(max_num_seqs=4, replicas=2), slots="8").verdict == "supported"


@pytest.mark.parametrize(
    ("relation", "slots", "verdict"),
    [
        ("at_most", "20", "supported"),
        ("at_most", "19", "refuted"),
        ("at_least", "20", "supported"),
        ("at_least", "21", "refuted"),
    ],
)
def test_a_bound_on_the_slots(relation: str, slots: str, verdict: str) -> None:
    assert capacity(cell(), slots=slots, relation=relation).verdict == verdict


@pytest.mark.parametrize(
    ("relation", "slots"), [("at_most", "20"), ("at_least", "20"), ("equals", "21")]
)
def test_rounding_that_straddles_the_stated_slots_is_left_open(relation: str, slots: str) -> None:
    # 18 to 22 slots.
    wide = between("kv_tokens", 3000, 2700, 3300, "tok", file="a.log")
    assert capacity(cell(wide), slots=slots, relation=relation).verdict == "inconclusive"


def test_the_client_limits_a_full_loop_with_room_to_spare() -> None:
    assert capacity(cell(), binds="client cap").verdict == "supported"
    found = capacity(cell(), binds="KV cache")
    assert found.verdict == "refuted"
    assert found.reasons[0].startswith("The client cap limits the running batch")


def test_the_sequence_limit_limits_a_full_loop_beyond_it() -> None:
    limited = cell(max_num_seqs=8)
    assert capacity(limited, binds="max_num_seqs").verdict == "supported"
    assert capacity(limited, binds="client cap").verdict == "refuted"
    assert capacity(cell(750.0), binds="KV cache").verdict == "supported"  # 5 slots


def test_a_loop_that_is_not_filled_is_limited_by_nothing_known() -> None:
    found = capacity(cell(stay=5.0), binds="client cap")
    assert found.verdict == "inconclusive"
    assert found.reasons[0].startswith("What limits is not identified")


@pytest.mark.parametrize(
    ("reported", "same"), [(20.0, True), (16.1, True), (24.9, True), (15.0, False), (2.0, False)]
)
def test_the_logs_maximum_concurrency_against_the_slots(reported: float, same: bool) -> None:
    # 20 slots: within 0.8 to 1.25 times the figure counts as the same.
    for says in (True, False):
        found = capacity(cell(reported=reported), reported_is_slots=says)
        assert found.verdict == ("supported" if says is same else "refuted")


def test_the_slots_are_said_as_times_or_as_percent_of_the_logs_figure() -> None:
    more = capacity(cell(reported=2.0), reported_is_slots=False)
    assert more.reasons[0].endswith("20 fit, 10 times that.")
    fewer = capacity(cell(reported=500.0), reported_is_slots=False)
    assert fewer.reasons[0].endswith("20 fit, 4.0 % of that.")


def test_the_logs_figure_is_of_one_engine() -> None:
    pair = cell(reported=20.0, replicas=2)
    assert capacity(pair, reported_is_slots=True).verdict == "supported"  # 40 of 2 x 20


def test_everything_that_the_sentence_says_must_hold() -> None:
    limited = cell(max_num_seqs=8, reported=1.5)
    right = capacity(limited, slots="8", binds="max_num_seqs", reported_is_slots=False)
    assert (right.verdict, len(right.reasons)) == ("supported", 3)
    assert capacity(limited, slots="8", binds="KV cache").verdict == "refuted"
    assert capacity(cell(stay=5.0), slots="20", binds="client cap").verdict == "inconclusive"


def test_without_a_log_or_a_limit_it_is_untestable() -> None:
    with pytest.raises(Missing, match="start-up log of a or its max_num_seqs"):
        capacity(cell(None), slots="8")
    with pytest.raises(Missing, match="maximum concurrency"):
        capacity(cell(), reported_is_slots=True)


def test_lengths_that_are_not_known_leave_the_sequence_limit_only() -> None:
    known = arm("a", log={"kv_tokens": 3000.0})
    with pytest.raises(Missing):
        capacity(measured(known, "mean_itl", 0.1), slots="20")


def test_a_claim_that_says_nothing_is_the_authors_mistake() -> None:
    with pytest.raises(BadClaim, match="states no `slots`, no `binds`"):
        capacity(cell())
    with pytest.raises(BadClaim, match="no plain number"):
        capacity(cell(), slots="many")
    with pytest.raises(BadClaim, match="names arm 'b'"):
        capacity(cell(), arm="b", slots="8")
