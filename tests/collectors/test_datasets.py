from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import datasets, installed
from collectors.datasets import Pair
from collectors.errors import Problem
from tests.collectors.words import count, words, write_sharegpt


def pairs(*lengths: tuple[int, int]) -> list[Pair]:
    return [Pair(words(a), words(b)) for a, b in lengths]


def test_a_conversation_of_one_turn_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    turns = [{"value": "a"}, {"value": "b"}, {"value": "c"}]
    path.write_text(
        json.dumps([{"conversations": turns[:1]}, {"conversations": turns}, {"id": "none"}])
    )
    assert datasets.load(path) == (Pair("a", "b"),)


def test_lines_of_prompts(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"prompt": "a", "output_tokens": 5}\n\n{"prompt": "b", "x": 1}\n')
    assert datasets.load(path) == (Pair("a", output_tokens=5), Pair("b"))
    path.write_text('{"prompt": "a"}\n{"text": "b"}\n')
    problem = datasets.load(path)
    assert isinstance(problem, Problem)
    assert "line 2: " in str(problem)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("s.json", "[]", "holds no prompt that is answered, in 0 conversations"),
        ("s.json", '[{"conversations": [{"value": "a"}]}]', "answered, in 1 conversations"),
        ("s.jsonl", "\n \n", "holds no prompt"),
        ("s.jsonl", '{"prompt": "a", "output_tokens": -5}', "line 1: output_tokens = -5"),
        ("s.jsonl", '{"prompt": "a", "output_tokens": 0}', "line 1: output_tokens = 0"),
        ("s.jsonl", '{"prompt": "a", "output_tokens": 1e308}', "line 1: output_tokens = 1e+308"),
        ("s.jsonl", '{"prompt": "a", "output_tokens": "nan"}', "line 1: "),
    ],
)
def test_a_file_of_which_nothing_can_be_sent(
    tmp_path: Path, name: str, content: str, told: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    problem = datasets.load(path)
    assert isinstance(problem, Problem)
    assert told in str(problem)
    assert "\n" not in str(problem)


@pytest.mark.parametrize("content", [b"", b"{", b"<html>", b'{"a": 1}', b"\xff\xfe", b"[1]"])
def test_a_file_of_another_kind_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(content)
    problem = datasets.load(path)
    assert isinstance(problem, Problem)
    assert "\n" not in str(problem)
    assert (datasets.quick_look(path) is None) == (content in (b"[1]",))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for problem in (datasets.load(tmp_path / "x.json"), datasets.quick_look(tmp_path / "x.json")):
        assert isinstance(problem, Problem)
        assert "No such file" in str(problem)
        assert "--dataset NAME=PATH" in str(problem)


def test_what_has_no_end_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for path in (Path("/dev/zero"), tmp_path, tmp_path / "pipe.json"):
        for problem in (datasets.load(path), datasets.quick_look(path)):
            assert isinstance(problem, Problem)
            assert "is no file" in str(problem)
    sparse = tmp_path / "s.json"
    with sparse.open("wb") as file:
        file.truncate(9 << 30)
    assert "9,663,676,416 bytes" in str(datasets.load(sparse))


def test_the_filter_is_the_clients() -> None:
    kept = [(4, 4), (1024, 1024), (1024, 4)]
    out = [(3, 50), (50, 3), (1025, 4), (1000, 1049)]
    drawn = datasets.sample(pairs(*kept, *out), 10, 0, count)
    assert sorted((r.input_tokens, r.output_tokens) for r in drawn.requests) == sorted(kept)
    assert (drawn.looked_at, drawn.pairs) == (7, 7)


def test_an_output_length_by_flag_counts_instead() -> None:
    drawn = datasets.sample(pairs((50, 3)), 10, 0, count, output_len=2)
    assert [r.output_tokens for r in drawn.requests] == [2]
    assert datasets.sample(pairs((50, 3)), 10, 0, count, output_len=2000).requests == ()


def test_the_draw_stops_at_what_is_asked_for_and_depends_on_the_seed() -> None:
    many = pairs(*((n, 10) for n in range(4, 400)))
    first = datasets.sample(many, 20, 1, count)
    assert len(first.requests) == first.looked_at == 20
    assert first == datasets.sample(many, 20, 1, count)
    assert first != datasets.sample(many, 20, 2, count)
    assert [
        r.input_tokens for r in datasets.sample(many, 3, 1, count, shuffled=False).requests
    ] == [4, 5, 6]


def test_custom_prompts_are_not_filtered() -> None:
    drawn = datasets.sample([Pair("word", output_tokens=1)], 5, 0, count, filtered=False)
    assert [(r.input_tokens, r.output_tokens) for r in drawn.requests] == [(1, 1)]


@given(st.binary(max_size=200), st.sampled_from(["x.json", "x.jsonl"]))
def test_any_bytes_are_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str
) -> None:
    path = tmp_path_factory.mktemp("d") / name
    path.write_bytes(content)
    assert isinstance(datasets.load(path), tuple | Problem)


def test_a_whole_file_goes_round(tmp_path: Path) -> None:
    path = write_sharegpt(tmp_path / "s.json", [(5, 6), (7, 8)])
    assert datasets.quick_look(path) is None
    loaded = datasets.load(path)
    assert not isinstance(loaded, Problem)
    assert len(datasets.sample(loaded, 2, 0, count).requests) == 2


REAL = """
import json, sys
from vllm.benchmarks.datasets import ShareGPTDataset
class Words:
    def __call__(self, text):
        self.input_ids = text.split()
        return self
for seed in range(5):
    data = ShareGPTDataset(dataset_path=sys.argv[1], random_seed=seed)
    drawn = data.sample(tokenizer=Words(), num_requests=100, no_oversample=True)
    print("drawn", json.dumps([[r.prompt_len, r.expected_output_len] for r in drawn]))
"""


@pytest.mark.server
def test_the_draw_is_the_installed_clients_own(tmp_path: Path) -> None:
    named = os.environ.get("COLLECT_VLLM")
    if not named:
        pytest.skip("COLLECT_VLLM names no vllm")
    draw = random.Random(0)  # noqa: S311 - lengths of prompts
    lengths = [(draw.randint(1, 1200), draw.randint(1, 1200)) for _ in range(300)]
    path = write_sharegpt(tmp_path / "s.json", lengths)
    done = subprocess.run(
        [installed.interpreter(tuple(shlex.split(named))), "-c", REAL, str(path)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    real = [line[6:] for line in done.stdout.splitlines() if line.startswith("drawn ")]
    loaded = datasets.load(path)
    assert not isinstance(loaded, Problem)
    mine = [
        [
            [r.input_tokens, r.output_tokens]
            for r in datasets.sample(loaded, 100, seed, count).requests
        ]
        for seed in range(5)
    ]
    assert [json.loads(line) for line in real] == mine
