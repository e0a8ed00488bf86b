from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from collectors import data_check
from collectors.host import Host
from collectors.workload_lengths import Lengths
from tests.collectors.plans import arm, planned, workload
from tests.collectors.words import write_sharegpt, write_tokenizer

SHAREGPT: dict[str, Any] = {"dataset": "s.json", "flags": ["--dataset-name", "sharegpt"]}


def look(
    tmp_path: Path, *, deep: bool = True, tokenizer: bool = True, **work: Any
) -> data_check.Looked:
    made = planned(work=[workload(**{**SHAREGPT, **work})])
    host = Host(("vllm",), datasets={"s.json": tmp_path / "s.json"})
    folders = {"m": write_tokenizer(tmp_path / "m") if tokenizer else tmp_path}
    return data_check.look(made, host, folders, deep=deep)


def test_the_lengths_of_what_will_be_sent(tmp_path: Path) -> None:
    write_sharegpt(tmp_path / "s.json", [(10, 20)] * 30)
    found = look(tmp_path)
    assert found.problems == []
    assert found.notes[0] == "workload 'w': Prompt tokens: min 10, max 10, mean 10.00, median 10.00"
    assert "balanced" in found.notes[2]
    assert found.lengths["w"] == Lengths(10, 20, (30,) * 20, drawn=True)
    flags = [*SHAREGPT["flags"], "--sharegpt-output-len", "5"]
    assert look(tmp_path, flags=flags).lengths["w"].mean_output == 5


def test_too_few_prompts(tmp_path: Path) -> None:
    write_sharegpt(tmp_path / "s.json", [(10, 20)] * 19)
    assert str(look(tmp_path).problems[0]) == (
        "workload 'w': s.json has 19 prompts that can be sent, and the client would repeat some; "
        "needed: 20; ask for no more than 19 (--prompts 19)"
    )
    write_sharegpt(tmp_path / "s.json", [(10, 20)] * 15 + [(1, 1)] * 10)
    assert "has 15 prompts that can be sent" in str(look(tmp_path).problems[0])
    assert look(tmp_path, deep=False).problems == []


def test_a_file_that_is_missing_or_of_another_kind(tmp_path: Path) -> None:
    for deep in (True, False):
        assert "No such file" in str(look(tmp_path, deep=deep).problems[0])
    (tmp_path / "s.json").write_text("<html>")
    assert "begins with '<html>'" in str(look(tmp_path).problems[0])
    (tmp_path / "s.json").write_text("[{]")
    assert "cannot be read" in str(look(tmp_path).problems[0])


def test_a_large_file_is_read_only_where_prompts_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_check, "_LARGE", 1)
    (tmp_path / "s.json").write_text("[{]")
    assert look(tmp_path, deep=False).problems == []
    assert look(tmp_path).problems


def test_no_tokenizer_is_a_note(tmp_path: Path) -> None:
    write_sharegpt(tmp_path / "s.json", [(10, 20)] * 30)
    found = look(tmp_path, tokenizer=False)
    assert found.problems == []
    assert "lengths are not known: prompt lengths: no tokenizer.json" in found.notes[0]


def test_a_dataset_without_a_file(tmp_path: Path) -> None:
    found = look(tmp_path, dataset="")
    assert str(found.problems[0]) == (
        "workload 'w': --dataset-name sharegpt and no file; write dataset = \"FILE\" in the study"
    )


def rejected(lengths: Lengths, limit: int) -> tuple[list[str], list[str]]:
    problems, notes = data_check.rejected(planned(arm("a")), {"a": limit}, {"w": lengths})
    return [str(problem) for problem in problems], notes


def test_what_a_limit_rejects() -> None:
    drawn = Lengths(10, 10, (10, 20, 30), drawn=True)
    assert rejected(drawn, 30) == ([], [])
    (note,) = rejected(drawn, 20)[1]
    assert note == (
        "arm 'a', workload 'w': max_model_len 20 rejects 1 of 3 requests; they count as failed"
    )
    (problem,) = rejected(drawn, 9)[0]
    assert "max_model_len 9 rejects every request; needed: 30 tokens" in problem
    made = Lengths(64, 48, (145,), drawn=False)
    assert "rejects the longest requests" in rejected(made, 130)[1][0]
    assert "rejects every request" in rejected(made, 100)[0][0]
    assert rejected(made, 145) == ([], [])
    assert data_check.rejected(planned(), {}, {}) == ([], [])
