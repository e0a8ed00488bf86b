"""Whether a run happened, by what its clients left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.client import Driven
from collectors.errors import Problem
from collectors.judge_run import Outcome, drop_texts, outcome


def results(folder: Path, *told: object) -> list[Path]:
    paths = []
    for number, each in enumerate(told):
        path = folder / f"bench-{number}.json"
        path.write_text(each if isinstance(each, str) else json.dumps(each))
        paths.append(path)
    return paths


def counts(completed: int, failed: int) -> dict[str, Any]:
    return {"completed": completed, "failed": failed}


@pytest.mark.parametrize(
    ("told", "prompts", "wanted"),
    [
        ([counts(4, 0)], 4, Outcome("complete", "", 4, 0)),
        ([{"completed": 4}], 4, Outcome("complete", "", 4, 0)),
        ([counts(3, 1)], 4, Outcome("complete", "1 of 4 requests failed", 3, 1)),
        ([counts(0, 4)], 4, Outcome("failed", "every request failed: 4 of 4", 0, 4)),
        ([counts(2, 0), counts(0, 2)], 4, Outcome("complete", "2 of 4 requests failed", 2, 2)),
    ],
)
def test_counts(tmp_path: Path, told: list[object], prompts: int, wanted: Outcome) -> None:
    driven = Driven((0,) * len(told))
    assert outcome(driven, results(tmp_path, *told), prompts) == wanted


def test_ends_of_clients(tmp_path: Path) -> None:
    paths = results(tmp_path, counts(4, 0), counts(4, 0))
    dead = Driven((0, 0), Problem("server", "ended"))
    assert outcome(dead, paths, 8) == Outcome("failed", "server: ended")
    assert outcome(Driven((2,)), paths[:1], 4).reason == "the client ended with status 2"
    assert outcome(Driven((0, 9)), paths, 8).reason == "the client 1 ended with status 9"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["completed", "failed", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(json_values | st.dictionaries(st.sampled_from(["completed", "failed"]), json_values))
def test_any_result_is_judged(tmp_path_factory: pytest.TempPathFactory, told: object) -> None:
    folder = tmp_path_factory.getbasetemp()
    found = outcome(Driven((0,)), results(folder, json.dumps(told)), 4)
    assert found.state in ("complete", "failed")
    assert found.reason or found.state == "complete"


@settings(deadline=None)
@given(st.binary(max_size=50))
def test_any_file_is_judged(tmp_path_factory: pytest.TempPathFactory, told: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(told)
    assert outcome(Driven((0,)), [path], 4).state == "failed"
    assert drop_texts(path) == 0
    assert path.read_bytes() == told


def test_texts_go_and_all_else_stays(tmp_path: Path) -> None:
    told = {"generated_texts": ["a", "b"], "ttfts": [0.1, 1e-9], "x": None, "big": 2**70}
    (path,) = results(tmp_path, told)
    assert drop_texts(path) == 2
    del told["generated_texts"]
    assert json.loads(path.read_text()) == told
    assert drop_texts(path) == 0
    assert drop_texts(tmp_path / "none") == 0
