"""The made model: the same bytes each time, a token is text, lengths are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collectors import made_model
from collectors.study import MadeModel

SMALL = MadeModel(hidden=64, layers=2, heads=4, kv_heads=2, vocab=1024, max_len=512)
FILES = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}


def vocabulary(folder: Path) -> dict[str, int]:
    table = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocab: dict[str, int] = table["model"]["vocab"]
    return vocab


def encode(text: str, vocab: dict[str, int]) -> list[str]:
    """WordPiece: of each word the longest piece first."""
    tokens = []
    for word in text.split():
        at = 0
        while at < len(word):
            head = "##" if at else ""
            end = next(e for e in range(len(word), at, -1) if head + word[at:e] in vocab)
            tokens.append(head + word[at:end])
            at = end
    return tokens


def test_the_same_model_gives_the_same_files(tmp_path: Path) -> None:
    made_model.write(SMALL, tmp_path / "a")
    made_model.write(SMALL, tmp_path / "b")
    made_model.write(SMALL, tmp_path / "b")
    assert {path.name for path in (tmp_path / "b").iterdir()} == FILES
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_every_number_of_the_config_is_a_token_with_visible_text(tmp_path: Path) -> None:
    made_model.write(SMALL, tmp_path)
    vocab = vocabulary(tmp_path)
    assert sorted(vocab.values()) == list(range(SMALL.vocab))
    assert json.loads((tmp_path / "config.json").read_text())["vocab_size"] == SMALL.vocab
    for token in vocab.keys() - {made_model.END}:
        assert token.isascii()
        assert token.isprintable()
        assert " " not in token


def test_text_of_tokens_has_as_many_tokens_again(tmp_path: Path) -> None:
    made_model.write(SMALL, tmp_path)
    vocab = vocabulary(tmp_path)
    tokens = [token for token in vocab if token != made_model.END]
    assert encode(" ".join(tokens).replace(" ##", ""), vocab) == tokens


def test_any_ascii_text_has_tokens(tmp_path: Path) -> None:
    made_model.write(SMALL, tmp_path)
    assert encode("Hi, {you}!", vocabulary(tmp_path)) == [
        "H", "##i", "##,", "{", "##y", "##o", "##u", "##}", "##!",
    ]  # fmt: skip


def test_lengths_of_the_conversations_are_told(tmp_path: Path) -> None:
    made_model.write(SMALL, tmp_path)
    path = tmp_path / "talk.json"
    lengths = made_model.sharegpt_like(path, SMALL, 20, 7)
    assert made_model.sharegpt_like(tmp_path / "again.json", SMALL, 20, 7) == lengths
    vocab = vocabulary(tmp_path)
    talks = json.loads(path.read_text("utf-8"))
    assert [
        tuple(len(encode(turn["value"], vocab)) for turn in talk["conversations"]) for talk in talks
    ] == lengths
    assert all(n >= 4 and sum(pair) < SMALL.max_len for pair in lengths for n in pair)
    assert made_model.sharegpt_like(path, SMALL, 20, 8) != lengths


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (MadeModel(vocab=100), "vocab = 100"),
        (MadeModel(vocab=10_000_000), "vocab = 10000000"),
        (MadeModel(heads=7), "heads 7"),
        (MadeModel(heads=8, kv_heads=3), "kv_heads 3"),
    ],
)
def test_a_shape_that_cannot_be(model: MadeModel, word: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=word):
        made_model.write(model, tmp_path)
