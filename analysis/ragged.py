"""JSON too large for memory: values of a file as spans, and lists of lists as flat arrays.

A detailed result holds millions of gaps and megabytes of generated text. The file is mapped,
`msgspec.Raw` finds where each value stands without building it, and only the arrays that are
wanted are decoded, 256 kB at a time, straight into one numpy array. Peak memory is the result
plus one chunk. Measured on 421 MB (16 million gaps): 1.2-1.5 s and 145 MiB for a 122 MiB result,
where the standard library takes 7-12 s and 1.5 GiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from analysis.model import Floats, Ints

CHUNK = 256 * 1024
"""Bytes decoded at a time; larger chunks are slower, because they leave the cache."""

MOST_VALUES = 10_000
"""Records that are read of one file: broken ones need more memory than they have bytes."""

_BLANK = b" \t\r\n"
_TOKEN = re.compile(rb'"(?:[^"\\\n]++|\\.)*+"|[{]|[}]|"')
"""Strings, braces, and a quote that opens a string which its line does not close."""

_BETWEEN = re.compile(
    rb'[ \t\r\n]*+[{,][ \t\r\n]*+("(?:[^"\\]++|\\.)*+")[ \t\r\n]*+:[ \t\r\n]*+', re.DOTALL
)
"""What stands before a value of an object."""

_SOMETHING = re.compile(rb"[^ \t\r\n]")
_ELEMENT = re.compile(rb"[^ \t\r\n,\]]")
_RECORD = re.compile(rb"\n[{]")

_VALUES = msgspec.json.Decoder(msgspec.Raw)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_FLOATS = msgspec.json.Decoder(list[float])
_INTS = msgspec.json.Decoder(list[int])
_ROWS = msgspec.json.Decoder(list[list[float]])


Decoded = TypeVar("Decoded")


@dataclass(frozen=True, eq=False, slots=True)
class Span:
    """One top-level value of a file."""

    data: memoryview
    complete: bool = True
    """False where the file ends, or the next record begins, before the value does."""


def values(buffer: memoryview) -> list[Span]:
    """Every top-level value: one object, JSON lines, objects one after the other, or a list's.

    Where all of it is one value, msgspec finds its end (0.3 s for 421 MB). Otherwise the file is
    cut at balanced braces outside strings (1.6 s), so that one bad record costs only itself; text
    between records comes back as an incomplete span. Of more than `MOST_VALUES`, one more comes.
    """
    first = _SOMETHING.search(buffer)
    if first and first[0] == b"[":
        return list(islice(_spans(buffer[first.end() :], _ELEMENT), MOST_VALUES + 1))
    try:
        return [Span(memoryview(_VALUES.decode(buffer)))]
    except (msgspec.DecodeError, RecursionError):
        return list(islice(_spans(buffer), MOST_VALUES + 1))


def _spans(buffer: memoryview, something: re.Pattern[bytes] = _SOMETHING) -> Iterator[Span]:
    position, ran_out = 0, False
    while found := something.search(buffer, position):
        position = found.start()
        end = None
        if buffer[position] == ord("{"):
            # After one record ran on to the end of the file, a record ends where the next line
            # opens one: the whole stays linear however many records are broken.
            within = buffer[: _next_record(buffer, position)] if ran_out else buffer
            end = _object_end(within, position)
            ran_out = ran_out or end is None
        cut = _next_record(buffer, position) if end is None else end
        yield Span(buffer[position:cut], complete=end is not None)
        position = cut


def _object_end(buffer: memoryview, start: int) -> int | None:
    depth = 0
    for token in _TOKEN.finditer(buffer, start):
        first, last = token.span()
        if buffer[first] == ord("{"):
            depth += 1
        elif buffer[first] == ord("}"):
            depth -= 1
            if depth == 0:
                return last
        elif last - first == 1:
            return None
    return None


def _next_record(buffer: memoryview, position: int) -> int:
    """Where the next line that opens an object begins, or the end."""
    found = _RECORD.search(buffer, position)
    return found.start() + 1 if found else len(buffer)


def fields(data: memoryview) -> Mapping[str, memoryview]:
    """The keys of an object with the span of each value, nothing decoded.

    NaN and Infinity, which are no JSON, pass, so that the caller can name the key that holds them.

    Raises:
        ValueError: the value is no JSON object, or a key stands in it twice; the message says what
            and where.
    """
    text, raws = _decoded_fields(data)
    begin = _address(text)
    found: dict[str, memoryview] = {}
    at = 0
    for start, size in sorted((_address(raw) - begin, len(raw)) for raw in raws):
        # Between two values stands one key; of one that stands twice msgspec gives the last value.
        key = _BETWEEN.fullmatch(data, at, start)
        if key is None:
            twice = _BETWEEN.match(data, at, start)
            told = bytes(twice[1]).decode(errors="replace") if twice else "?"
            raise ValueError(f"the key {told} stands twice; keep the right one")
        at = start + size
        found[_TEXT.decode(key[1])] = data[start:at]
    return found


def _decoded_fields(data: memoryview) -> tuple[memoryview, list[memoryview]]:
    """The text that was decoded, `data` or a copy without NaN, and the values' spans in it."""
    text = data
    try:
        found = _FIELDS.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        if isinstance(error, msgspec.ValidationError | RecursionError):
            raise ValueError(str(error)) from None
        text = memoryview(_with_zeros(data))
        try:
            found = _FIELDS.decode(text)
        except (msgspec.DecodeError, RecursionError):
            raise ValueError(str(error)) from None
    return text, [memoryview(raw) for raw in found.values()]


def _with_zeros(data: memoryview) -> bytes:
    """A copy with zeros of equal length in place of NaN and Infinity, in texts as well."""
    copy = bytes(data)
    for word in (b"-Infinity", b"Infinity", b"NaN"):
        copy = copy.replace(word, b"-0."[word[0] != ord("-") :].ljust(len(word), b"0"))
    return copy


def _address(view: memoryview) -> int:
    return int(np.frombuffer(view, dtype=np.uint8).ctypes.data)


def items(data: memoryview) -> Iterator[memoryview]:
    """The span of each element of an array.

    Raises:
        ValueError: the value is no array.
    """
    found = _decoded(_ITEMS, data)
    return map(memoryview, found)


def floats(data: memoryview) -> Floats:
    """An array of numbers, shape (n,).

    Raises:
        ValueError: an element is no number (null, NaN, text), or the value is no array.
    """
    return _fill(data, _FLOATS, np.empty(_most_numbers(data), dtype=np.float64))


def integers(data: memoryview) -> Ints:
    """An array of whole numbers, shape (n,).

    Raises:
        ValueError: an element is no whole number of 64 bits, or the value is no array.
    """
    return _fill(data, _INTS, np.empty(_most_numbers(data), dtype=np.int64))


def rows(data: memoryview) -> tuple[Floats, Ints]:
    """An array of arrays of numbers as one flat array and offsets.

    Returns:
        (flat, offsets): row i is `flat[offsets[i]:offsets[i + 1]]`; offsets has shape (n + 1,).

    Raises:
        ValueError: an element is no array of numbers, or the value is no array.
    """
    flat = np.empty(_most_numbers(data), dtype=np.float64)
    lengths: list[Ints] = [np.zeros(1, dtype=np.int64)]
    at = 0
    for piece in _pieces(data, b"]"):
        found = _decoded(_ROWS, piece)
        sizes = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
        end = at + int(sizes.sum())
        flat[at:end] = np.fromiter(chain.from_iterable(found), np.float64, count=end - at)
        lengths.append(sizes)
        at = end
    return flat[:at], np.cumsum(np.concatenate(lengths))


def _fill(
    data: memoryview, decoder: msgspec.json.Decoder[list[Any]], out: NDArray[Any]
) -> NDArray[Any]:
    at = 0
    for piece in _pieces(data, b","):
        found = _decoded(decoder, piece)
        try:
            out[at : at + len(found)] = found
        except OverflowError:
            raise ValueError("a number is out of range") from None
        at += len(found)
    return out[:at]


def _decoded(decoder: msgspec.json.Decoder[Decoded], data: memoryview | bytes) -> Decoded:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _most_numbers(data: memoryview) -> int:
    """An upper bound of the numbers in an array, nested or not: its commas and one."""
    count = 1
    for start in range(0, len(data), CHUNK):
        block = np.frombuffer(data[start : start + CHUNK], dtype=np.uint8)
        count += int(np.count_nonzero(block == ord(",")))
    return count


def _pieces(data: memoryview, end: bytes) -> Iterator[bytes]:
    """An array as arrays of about 256 kB, cut after the byte `end` between two elements.

    An array of arrays is cut after "]", a flat one before "," (which then begins the next piece).
    """
    if bytes(data[:1]) != b"[":
        raise ValueError("Expected `array`")
    position, last, size = 1, len(data) - 1, CHUNK
    while position < last:
        piece = bytes(data[position : min(last, position + size)])
        if position + size < last:
            cut = piece.rfind(end)
            if cut <= 0:  # one element is longer than the chunk
                size *= 2
                continue
            piece = piece[: cut + 1] if end == b"]" else piece[:cut]
        position, size = position + len(piece), CHUNK
        yield b"[" + piece.lstrip(_BLANK).removeprefix(b",") + b"]"
