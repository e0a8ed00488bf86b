"""analysis.formats._files: plain and gzip, whole and damaged, in bounded pieces."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.formats import _files


@pytest.fixture(params=[False, True], ids=["plain", "gzip"])
def packed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def store(tmp_path: Path, data: bytes, packed: bool) -> Path:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.mark.parametrize("data", [b"", b"x", b"ab\ncd\n" * 40_000])
def test_the_same_bytes_plain_and_packed(tmp_path: Path, data: bytes, packed: bool) -> None:
    path = store(tmp_path, data, packed)
    view, trouble = _files.mapped(path)
    assert (bytes(view), trouble) == (data, "")
    assert _files.head_of(path) == data[: _files.HEAD_BYTES]
    assert list(_files.lines_of(path)) == data.decode().splitlines()


def test_a_mark_at_the_start_is_left_out(tmp_path: Path) -> None:
    view, _ = _files.mapped(store(tmp_path, b"\xef\xbb\xbfabc", False))
    assert bytes(view) == b"abc"


def test_several_members_and_padding(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 100)
    assert bytes(_files.mapped(path)[0]) == b"one two"


@pytest.mark.parametrize(
    ("damage", "told"),
    [(lambda data: data[:-20], "it ends too early"), (lambda data: data + b"tail", "header")],
)
def test_what_precedes_damage_is_given(tmp_path: Path, damage: object, told: str) -> None:
    data = b"".join(b"line %d\n" % i for i in range(9_000))
    path = tmp_path / "file"
    path.write_bytes(damage(gzip.compress(data)))  # type: ignore[operator]
    view, trouble = _files.mapped(path)
    assert told in trouble
    assert data.startswith(bytes(view))
    assert len(view) > 80_000
    assert _files.head_of(path) == data[: _files.HEAD_BYTES]
    assert len(list(_files.lines_of(path))) > 8_000


def test_a_head_that_is_damaged_early(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\x1f\x8bnothing of gzip")
    assert _files.head_of(path) == b""
    assert list(_files.lines_of(path)) == []


@pytest.mark.parametrize("reader", [_files.mapped, lambda path: list(_files.lines_of(path))])
def test_a_bomb_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: Callable[[Path], object]
) -> None:
    monkeypatch.setattr(_files, "MOST_INFLATED", 3 * 2**20)
    data = b"line\n" * 10_000_000
    with pytest.raises(OSError, match="more than 3,145,728 bytes, at most so many are read"):
        reader(store(tmp_path, data, True))
    assert len(_files.mapped(store(tmp_path, data, False))[0]) == len(data)


def test_a_head_begins_after_blanks(tmp_path: Path, packed: bool) -> None:
    path = store(tmp_path, b" \n" * 2_000_000 + b"text" + b"x" * 100_000, packed)
    head = _files.head_of(path)
    assert head == b"text" + b"x" * (_files.HEAD_BYTES - 4)
    assert len(_files.head_of(path, 80_000)) == 80_000


def test_a_very_long_line_is_cut_and_the_next_one_read(tmp_path: Path, packed: bool) -> None:
    data = b"first\n" + b"x" * 5_000_000 + b"\nnext\r\n\xff\n" + b"y" * 3_000_000
    lines = list(_files.lines_of(store(tmp_path, data, packed)))
    assert lines[0] == "first"
    assert len(lines[1]) == len(lines[-1]) == _files.MOST_LINE
    assert lines[2:-1] == ["next", "\ufffd"]


@given(st.text(max_size=900))
def test_a_message_is_one_bounded_line(text: str) -> None:
    found = _files.one_line(text, 50)
    assert len(found) <= 50
    assert found.isprintable()


def test_some_of_many_names() -> None:
    assert _files.some_of(["a", "b"]) == "a, b"
    assert _files.some_of(["a", "b", "c", "d"]) == "a, b, c and 1 more"
    assert _files.some_of([]) == ""
