"""analysis.formats.step_log: engine steps, cut short, damaged, and of a clock that is none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.formats import format_of, step_log
from analysis.formats._files import head_of
from analysis.model import Record, Skipped, Source, Steps
from tests.formats.found import only, refused

LINE = {
    "t": 1796061447.714268, "mono": 10.0, "prompt": 64, "computed": 64, "gen": 3, "running": 4,
    "waiting": 2, "skipped": 0, "kv": 0.25, "preempted": 0, "finished": 1,
}  # fmt: skip


def step(**more: Any) -> dict[str, Any]:
    return {**LINE, **more}


def read(tmp_path: Path, *lines: object, name: str = "steps-replica-1.jsonl") -> list[Record]:
    path = tmp_path / name
    path.write_text("".join(f"{x if isinstance(x, str) else json.dumps(x)}\n" for x in lines))
    return step_log.read(path, f"a/{name}")


def steps(found: list[Record]) -> Steps:
    return only(found, Steps)


def test_one_entry_a_step(tmp_path: Path) -> None:
    found = steps(read(tmp_path, step(), step(mono=10.5, waiting=0, kv=None, gen=4)))
    assert found.source == Source("a/steps-replica-1.jsonl", "")
    assert found.engine == "replica-1"
    assert found.clock.tolist() == [10.0, 10.5]
    assert found.running.tolist() == [4, 4]
    assert found.waiting.tolist() == [2, 0]
    assert found.prompt.tolist() == [64, 64]
    assert found.generated.tolist() == [3, 4]
    assert found.preempted.tolist() == [0, 0]
    assert found.kv_use[0] == 0.25
    assert np.isnan(found.kv_use[1])


def test_tokens_without_a_state_belong_to_the_step_before_them(tmp_path: Path) -> None:
    bare = step(running=None, waiting=None, kv=None, gen=5, preempted=1)
    found = steps(read(tmp_path, bare, step(), bare, bare, step(mono=11.0)))
    assert found.generated.tolist() == [3 + 5 + 5, 3]
    assert found.preempted.tolist() == [2, 0]


def test_a_step_without_tokens(tmp_path: Path) -> None:
    found = steps(read(tmp_path, step(prompt=None, gen=None, preempted=None)))
    assert (found.prompt.tolist(), found.generated.tolist()) == ([0], [0])


def test_half_a_line_at_the_end_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "steps-0.jsonl"
    path.write_text(json.dumps(step()) + "\n" + json.dumps(step())[:40])
    assert len(steps(step_log.read(path, "x")).clock) == 1
    path.write_text(json.dumps(step())[:40])
    assert "no line tells" in refused(step_log.read(path, "x"))


def test_a_compressed_log_and_a_damaged_one(tmp_path: Path) -> None:
    path = tmp_path / "steps-server.jsonl.gz"
    data = gzip.compress("".join(json.dumps(step(mono=n)) + "\n" for n in range(5000)).encode())
    path.write_bytes(data)
    assert steps(step_log.read(path, "x")).engine == "server"
    path.write_bytes(data[:-2000])
    found, trouble = step_log.read(path, "x")
    assert isinstance(found, Steps)
    assert isinstance(trouble, Skipped)
    assert trouble.reason.startswith("the gzip data is damaged")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([step(), step(mono=9.9)], "its clock goes backwards"),
        ([step(waiting=-1)], "negative or endless"),
        ([step(running=10**20)], "negative or endless"),
        ([step(gen=-3)], "negative or endless"),
        ([step(kv=-0.1)], "negative or endless"),
        ([step(kv=1e300)], "negative or endless"),
        ([step(mono=-1.0)], "negative or endless"),
        # Each is a count, and their sum is none.
        ([step(gen=9 * 10**17), *[step(gen=9 * 10**17, running=None)] * 19], "negative or endless"),
        ([step(running=10**400)], "no log of engine steps"),
        ([step(running=4.5)], "no log of engine steps"),
        ([step(running="4")], "no log of engine steps"),
        ([step(running=True)], "no log of engine steps"),
        ([step(mono=None)], "no log of engine steps"),
        ([json.dumps(step()).replace("10.0", "NaN")], "no log of engine steps"),
        ([step(), "[1]"], "no log of engine steps"),
        ([step(), '{"mono": 1e999}'], "no log of engine steps"),
        ([step(), "{" * 100_000], "no log of engine steps"),
        ([step(running=None)], "no line tells how many requests ran"),
        ([step(waiting=None)], "no line tells how many requests ran"),
        ([], "no line tells how many requests ran"),
    ],
)
def test_what_is_no_log_of_steps(tmp_path: Path, lines: list[object], expected: str) -> None:
    assert expected in refused(read(tmp_path, *lines))


def test_it_is_known_by_its_first_line(tmp_path: Path) -> None:
    read(tmp_path, step())
    path = tmp_path / "steps-replica-1.jsonl"
    assert format_of(path, head_of(path)) is step_log
    assert not step_log.sniff(path, b'{"id": "x", "queue": 1}\n' + head_of(path))


VALUE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@given(st.lists(st.dictionaries(st.sampled_from(sorted(LINE)), VALUE), max_size=5), st.binary())
@settings(max_examples=300, deadline=None)
def test_any_values_and_any_bytes(lines: list[dict[str, Any]], data: bytes) -> None:
    text = "".join(json.dumps(step(**line)) + "\n" for line in lines).encode()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "steps-0.jsonl"
        for content in (text, data, text + data, data + b"\n" + text):
            path.write_bytes(content)
            for found in step_log.read(path, "x"):
                assert isinstance(found, Steps | Skipped)
