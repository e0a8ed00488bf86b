"""The rules of study.toml: what each gives a record, which leave one out, which match none."""

from __future__ import annotations

import pytest

from analysis.assigning import Assigned, assigned, skipped_by_rule
from analysis.model import Run, Scalar, Skipped
from analysis.study import Assign
from tests.builders import run


def raw(file: str = "s/runs/a.json", key: str = "", **config: Scalar) -> Run:
    return run(arm="", workload="", file=file, key=key, id=f"{file}#{key}", config=config)


def idle(*runs: Run, **where: str | float | bool) -> str:
    """What is said of a rule that matches none of the runs."""
    (line,) = assigned(runs, [Assign(where=where)]).unmatched
    assert "\n" not in line
    return line.removeprefix("[[assign]] number 1 ")


# What a rule gives


def test_of_each_thing_the_first_rule_that_says_it_counts() -> None:
    found = assigned(
        [raw(label="x")],
        [
            Assign(where={"label": "y"}, arm="other", seed=7, log="other.log", concurrency=1),
            Assign(where={"label": "x"}, workload="chat"),
            Assign(where={}, arm="one", workload="long", seed=42, log="a.log"),
            Assign(where={}, arm="two", seed=43, log="b.log", concurrency=40),
        ],
    )
    (one,) = found.runs
    assert (one.arm, one.workload, one.concurrency) == ("one", "chat", 40)
    assert one.config == {"label": "x", "seed": 42}
    assert found.logs == {one.id: "a.log"}


def test_a_seed_of_nought_is_a_seed_and_replaces_the_files() -> None:
    (one,) = assigned([raw(seed=1)], [Assign(where={"seed": 1}, seed=0)]).runs
    assert one.config == {"seed": 0}


def test_a_folder_is_named_by_its_end_and_stands_for_no_folder_below() -> None:
    runs = [raw("s/awq/a.json"), raw("s/awq/more/a.json"), raw("s/my-awq/a.json")]
    found = assigned(runs, [Assign(where={"folder": "awq"}, arm="awq")])
    assert [one.arm for one in found.runs] == ["awq", "", ""]


def test_that_the_prefix_cache_was_emptied_can_be_said_and_denied() -> None:
    rules = [Assign(where={"label": "x"}, prefix_cache_emptied=False),
             Assign(where={}, prefix_cache_emptied=True)]  # fmt: skip
    found = assigned([raw(label="x"), raw("b.json", label="y")], rules).runs
    assert [one.config["prefix_cache_emptied"] for one in found] == [False, True]


def test_without_rules_nothing_is_changed() -> None:
    one = raw(seed=1)
    found = assigned([one], [])
    assert found.runs[0].config == one.config
    assert (found.left_out, found.logs, found.unmatched) == ((), {}, ())


# What a rule leaves out


def test_records_that_a_rule_ignores_are_apart() -> None:
    warm, cold = raw("warm.json"), raw("cold.json")
    found: Assigned = assigned(
        [warm, cold],
        [Assign(where={}, arm="one"), Assign(where={"file": "warm.json"}, ignore=True)],
    )
    assert [one.source.file for one in found.runs] == ["cold.json"]
    assert [(one.source.file, one.arm) for one in found.left_out] == [("warm.json", "one")]
    assert found.unmatched == ()


def test_a_record_that_is_left_out_is_named() -> None:
    assert skipped_by_rule(raw("a.json")) == Skipped(
        "a.json", "left out by study.toml", wanted=True
    )
    assert skipped_by_rule(raw("a.json", "record 3")) == Skipped(
        "a.json", "record 3: left out by study.toml", wanted=True
    )


# Rules that match nothing


def test_only_rules_that_match_nothing_are_named_by_their_number() -> None:
    rules = [Assign(where={"label": label}) for label in ("x", "z", "y", "z")]
    lines = assigned([raw(label="x"), raw("b", label="y")], rules).unmatched
    assert [line[:22] for line in lines] == ["[[assign]] number 2 ma", "[[assign]] number 4 ma"]


def test_a_rule_where_there_are_no_records() -> None:
    assert idle() == "matches no record: none was read in this study"


def test_a_key_that_no_record_has() -> None:
    assert idle(raw(label="x"), lable="x") == (
        "matches no record: none has the key 'lable'; did you mean 'label'?"
    )


def test_a_value_that_no_record_has() -> None:
    runs = raw(label="chat-fast", other=1), raw("b", label="chat-slow"), raw("c", label=None)
    assert idle(*runs, label="chat-fsat") == (
        "matches no record: none has label = 'chat-fsat'; did you mean 'chat-fast'?"
    )


@pytest.mark.parametrize("wanted", [10_001, 10_001.0])
def test_a_count_that_no_record_has(wanted: float) -> None:
    assert idle(raw(), total_input_tokens=wanted) == (
        "matches no record: none has total_input_tokens = 10001; did you mean '10000'?"
    )
    assert idle(raw(rate=1.5), rate=1.55).endswith("none has rate = 1.55; did you mean '1.5'?")


@pytest.mark.parametrize(
    ("held", "wanted", "line"),
    [
        (8, "8", "none has x = '8'; write it without quotes, as the files do"),
        (8.0, "8", "none has x = '8'; write it without quotes, as the files do"),
        ("8", 8, "none has x = 8; write it in quotes, as the files do"),
        (True, "true", "none has x = 'true'; write it without quotes, as the files do"),
        (False, True, "none has x = true; known: false"),
    ],
)
def test_a_value_of_the_wrong_type(held: Scalar, wanted: str | float, line: str) -> None:
    assert idle(raw(x=held), x=wanted) == f"matches no record: {line}"


def test_a_file_is_suggested_as_the_rule_writes_it() -> None:
    runs = raw("s/runs/a-c10.json"), raw("s/runs/other.json")
    assert idle(*runs, file="a-c1.json").endswith("did you mean 'a-c10.json'?")
    assert idle(*runs, file="runs/a-c1.json").endswith("did you mean 's/runs/a-c10.json'?")
    assert idle(raw(label="/"), label="x").endswith("known: /")


def test_values_that_are_not_together_in_any_record() -> None:
    assert idle(raw(label="x", tp=1), raw("b", label="y", tp=2), label="x", tp=2) == (
        "matches no record: none has all of its values at once"
    )


def test_long_words_are_not_suggested() -> None:
    long = raw(**{"k" * 80: "x", "label": "v" * 80})
    assert idle(long, label="v" * 79).endswith("; there are none")
    assert "k" * 80 not in idle(long, **{"k" * 79: "x"})
