"""Repeats of one cell must be repeats."""

from __future__ import annotations

import pytest

from analysis.checks import config_moved
from tests.builders import run
from tests.checks.helpers import outcome


def test_one_run_has_nothing_to_move_against() -> None:
    assert outcome(config_moved, run()).status == "NOT APPLICABLE"


def test_equal_repeats() -> None:
    runs = [run(id=name, config={"model_id": "m", "max_num_seqs": 8}) for name in "ab"]
    for number in (0, 1):
        found = outcome(config_moved, *runs, number=number)
        assert (found.status, found.reason) == ("VALID", "equal to a")


def test_what_a_client_writes_anew_each_time_may_differ() -> None:
    runs = [
        run(id="a", config={"date": "1", "seed": 1, "server.log": "x", "run_number": 0}),
        run(id="b", config={"date": "2", "seed": 2, "server.log": "y", "run_number": 1}),
    ]
    assert outcome(config_moved, *runs, number=1).status == "VALID"


def test_a_key_that_only_one_file_has_did_not_move() -> None:
    runs = [run(id="a"), run(id="b", config={"label": "x", "gpu_memory": 0.9})]
    assert outcome(config_moved, *runs, number=1).status == "VALID"


@pytest.mark.parametrize("key", ["max_num_seqs", "vllm_version", "burstiness", "max_concurrency"])
def test_a_setting_that_moved_is_named(key: str) -> None:
    runs = [run(id="a", config={key: "1"}), run(id="b", config={key: "2"})]
    found = outcome(config_moved, *runs, number=1)
    assert (found.status, found.reason) == ("SUSPECT", f"differs from a in {key}")


@pytest.mark.parametrize("name", ["num_prompts", "total_input_tokens"])
def test_another_amount_of_work_is_named(name: str) -> None:
    found = outcome(config_moved, run(id="a"), run({name: 7}, id="b"), number=1)
    assert found.reason == f"differs from a in {name}"
    assert outcome(config_moved, run(id="a"), run({name: None}, id="b"), number=1).status == (
        "VALID"
    )


def test_another_rate_is_named() -> None:
    found = outcome(config_moved, run(id="a", rate=1.0), run(id="b", rate=2.0), number=1)
    assert found.reason == "differs from a in request_rate"


def test_at_most_five_settings_are_named() -> None:
    keys = "abcdefg"
    runs = [run(id=str(n), config=dict.fromkeys(keys, n)) for n in (1, 2)]
    assert outcome(config_moved, *runs, number=1).reason == "differs from 1 in a, b, c, d, e"
