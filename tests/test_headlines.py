"""The sentences on top of the board: which ones, and how they are shortened."""

from __future__ import annotations

from analysis.headlines import MOST, answer, chosen
from tests.reports import finding


def test_kinds_and_verdicts_take_turns_and_the_rest_stays_out() -> None:
    found = [
        *(finding(f"r{n}", kind="rule", verdict="refuted", headline=True) for n in range(4)),
        finding("m", kind="magnitude", verdict="refuted", headline=True),
        finding("i", kind="load", verdict="inconclusive", headline=True),
        finding("s", kind="fit", headline=True),
        finding("not-marked", kind="length"),
        finding("again", kind="length", headline=True, repeats="s"),
    ]
    taken = [one.id for one in chosen(found)]
    assert taken == ["r0", "r1", "m", "i", "s"]
    assert len(taken) == MOST


def test_without_headlines_there_is_nothing_on_top() -> None:
    assert chosen([finding()]) == []


def test_an_answer_loses_its_intervals_and_all_but_two_sentences() -> None:
    one = finding(reasons=("It is 9.5 ms [9.4, 9.6] in [1, 32]. So far. And more.", "Second."))
    assert answer(one) == "It is 9.5 ms in [1, 32]. So far."
