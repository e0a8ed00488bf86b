from __future__ import annotations

import sys
from pathlib import Path

import pytest

from collectors import tokenizer
from collectors.errors import Problem
from tests.collectors.words import words, write_tokenizer

TEXTS = [words(3), "", words(700)]


def test_counts_by_the_models_own_tokenizer(tmp_path: Path) -> None:
    count = tokenizer.counter(write_tokenizer(tmp_path))
    assert not isinstance(count, Problem)
    assert count(TEXTS) == [3, 0, 700]


def test_the_interpreter_of_vllm_is_asked_where_this_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tokenizer(tmp_path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    without = tokenizer.counter(tmp_path)
    assert str(without) == (
        "prompt lengths: the package tokenizers is not installed; pip install tokenizers"
    )
    count = tokenizer.counter(tmp_path, sys.executable)
    assert not isinstance(count, Problem)
    assert count(TEXTS) == [3, 0, 700]
    broken = tokenizer.counter(tmp_path, "/no/such/python")
    assert not isinstance(broken, Problem)
    with pytest.raises(tokenizer.TokenizerFailed):
        broken(TEXTS)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(tokenizer.TokenizerFailed):
        count(TEXTS)


def test_no_tokenizer_or_a_broken_one_is_one_line(tmp_path: Path) -> None:
    assert "no tokenizer.json in" in str(tokenizer.counter(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{}")
    assert "cannot be read" in str(tokenizer.counter(tmp_path))
