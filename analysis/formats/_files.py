"""What readers share: opening plain and gzip files in bounded memory, and one-line messages."""

from __future__ import annotations

import errno
import mmap
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from analysis.formats._secrets import masked
from analysis.model import told

HEAD_BYTES = 64 * 1024
"""How much of a file a format sees before it decides."""

LARGEST_HEAD = 16 * 2**20
"""What it sees of a file that nobody owns by less: keys may stand behind a long first value."""

MOST_INFLATED = 2 * 2**30
"""Bytes that are read of a gzip file, which may pack a thousandfold: untrusted input."""

MOST_LINE = 1 << 20
"""Longer lines of a text file are cut: no fact of any log is that long."""

_BLOCK = 1 << 20
_PACKED = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"
GZIP_ERRORS = (EOFError, zlib.error)
"""What a damaged gzip file raises when it is read."""

UTF8_BOM = b"\xef\xbb\xbf"


def is_gzip(path: Path) -> bool:
    """Whether the file begins as gzip does, whatever its name."""
    with path.open("rb") as file:
        return file.read(2) == _GZIP_MAGIC


def blocks_of(path: Path) -> Iterator[bytes]:
    """The file's bytes in blocks of at most 1 MiB, decompressed where it is gzip.

    Raises:
        EOFError, zlib.error: the gzip data is cut short or damaged; all before that was given.
        OSError: the gzip data exceeds `MOST_INFLATED`.
    """
    packed = is_gzip(path)
    with path.open("rb") as file:
        yield from _inflated(file) if packed else iter(lambda: file.read(_BLOCK), b"")


def _inflated(file: BinaryIO) -> Iterator[bytes]:
    """Blocks of a gzip stream of one or more members; `gzip` itself drops what precedes damage."""
    member, begun, given = zlib.decompressobj(31), False, 0
    for block in iter(lambda: file.read(_PACKED), b""):
        rest = block
        while rest:
            begun = True
            plain = member.decompress(rest, _BLOCK)
            given += len(plain)
            if given > MOST_INFLATED:
                most = f"{MOST_INFLATED:,} bytes, at most so many are read of a gzip file"
                raise OSError(errno.EFBIG, f"unpacked it has more than {most}; unpack it here")
            yield plain
            rest = member.unconsumed_tail
            if member.eof:
                rest = member.unused_data.lstrip(b"\0")  # padding between members is allowed
                member, begun = zlib.decompressobj(31), False
    yield member.flush()
    if begun and not member.eof:
        raise EOFError("it ends too early")


def head_of(path: Path, most: int = HEAD_BYTES) -> bytes:
    """The first bytes after blanks, decompressed; all there are where the gzip data is damaged."""
    found = b""
    try:
        for block in blocks_of(path):
            found = found + block if found else block.lstrip()
            if len(found) >= most:
                break
    except GZIP_ERRORS:
        pass
    return found[:most]


def mapped(path: Path) -> tuple[memoryview, str]:
    """The whole file as a view that pages in from disk, and what was wrong with it ("" if nothing).

    A gzip file is decompressed into a nameless temporary file first, so memory stays bounded;
    of a damaged one, all that could be decompressed is returned. A UTF-8 byte order mark is
    left out.
    """
    trouble = ""
    if is_gzip(path):
        with tempfile.TemporaryFile() as plain:
            trouble = _inflate(path, cast(BinaryIO, plain))
            view = _map(cast(BinaryIO, plain))
    else:
        with path.open("rb") as file:
            view = _map(file)
    if bytes(view[:3]) == UTF8_BOM:
        view = view[3:]
    return view, trouble


def _inflate(path: Path, plain: BinaryIO) -> str:
    try:
        for block in blocks_of(path):
            plain.write(block)
    except GZIP_ERRORS as error:
        return f"the gzip data is damaged ({one_line(str(error), 80)})"
    return ""


def _map(file: BinaryIO) -> memoryview:
    file.flush()
    if file.seek(0, 2) == 0:
        return memoryview(b"")  # an empty file cannot be mapped
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def lines_of(path: Path) -> Iterator[str]:
    """Lines of a text file, decoded leniently, each cut at 1 MiB, whatever the file's size."""
    held = b""
    cut = False  # whether the line that is being read is over its limit already
    try:
        for block in blocks_of(path):
            *whole, last = block.split(b"\n")
            for line in whole:
                if not cut:
                    yield _text(held + line)
                held, cut = b"", False
            if not cut:
                held += last
                if len(held) > MOST_LINE:
                    yield _text(held)
                    held, cut = b"", True
    except GZIP_ERRORS:
        pass  # the lines before the damage are what there is
    if held:
        yield _text(held)


def _text(line: bytes) -> str:
    return line[:MOST_LINE].decode("utf-8", "replace").rstrip("\r")


def one_line(text: str, most: int = 200) -> str:
    """The text on one line, cut to `most` characters, without control characters and secrets."""
    return told(masked(" ".join(text[: 4 * most].split())), most)


def some_of(names: list[str], most: int = 3) -> str:
    """A few names for a message: "a, b, c and 4 more"."""
    shown = ", ".join(one_line(name, 40) for name in names[:most])
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown
