"""Tables of TOML: nearest words, and files that are none."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.errors import BadInput
from collectors.tables import convert, nearest, read_toml


@pytest.mark.parametrize(
    ("word", "known", "told"),
    [
        ("awk", ["awq", "fp16"], "did you mean 'awq'?"),
        ("awq", ["AWQ", "FP16"], "did you mean 'AWQ'?"),
        ("zzzz", ["b", "a"], "known: a, b"),
        ("x", [], "there are none"),
    ],
)
def test_nearest(word: str, known: list[str], told: str) -> None:
    assert nearest(word, known) == told


@settings(deadline=None)
@given(st.text(), st.lists(st.text(), max_size=20))
def test_nearest_says_something_of_any_words(word: str, known: list[str]) -> None:
    assert nearest(word, known)


@settings(deadline=None)
@given(st.text(min_size=1), st.lists(st.text(min_size=1), max_size=5))
def test_a_word_that_is_there_is_the_nearest(word: str, known: list[str]) -> None:
    others = [other for other in known if other.lower() != word.lower()]
    assert nearest(word, [*others, word]) == f"did you mean {word!r}?"


def test_files(tmp_path: Path) -> None:
    good = tmp_path / "good.toml"
    good.write_text('a = "ä"', "utf-8")
    assert read_toml(good) == {"a": "ä"}
    for content, told in ((b"a = ", "is no TOML"), (b"\xff", "is no TOML")):
        bad = tmp_path / "bad.toml"
        bad.write_bytes(content)
        with pytest.raises(BadInput, match=f"bad.toml: {told}"):
            read_toml(bad)
    with pytest.raises(BadInput, match="cannot be read: Is a directory; check the path"):
        read_toml(tmp_path)


class Thing(msgspec.Struct, forbid_unknown_fields=True):
    size: int


def test_messages_speak_the_words_of_the_file() -> None:
    assert convert({"size": 3}, Thing, "x").size == 3
    for table, told in (
        ({"size": 3, "sise": 4}, "x: unknown key 'sise'; did you mean 'size'?"),
        ({}, "x: misses the key `size`"),
        ({"size": "3"}, "x: Expected `int`, got `str` - at `size`"),
        ([], "x: Expected `object`, got `array`"),
    ):
        with pytest.raises(BadInput) as error:
            convert(table, Thing, "x")
        assert str(error.value) == told
