"""A tokenizer of whole words, and datasets in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path


def write_tokenizer(folder: Path) -> Path:
    """A model's folder with a tokenizer that counts words."""
    folder.mkdir(parents=True, exist_ok=True)
    table = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "word": 1}, "unk_token": "[UNK]"},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(table))
    return folder


def words(count: int) -> str:
    """A text of so many tokens."""
    return " ".join(["word"] * count)


def count(texts: Sequence[str]) -> list[int]:
    """What that tokenizer counts."""
    return [len(text.split()) for text in texts]


def write_sharegpt(path: Path, lengths: Sequence[tuple[int, int]]) -> Path:
    """Conversations of a prompt and an answer each, by their tokens."""
    table = [
        {"id": str(n), "conversations": [{"from": "human", "value": words(a)},
                                         {"from": "gpt", "value": words(b)}]}
        for n, (a, b) in enumerate(lengths)
    ]  # fmt: skip
    path.write_text(json.dumps(table))
    return path
