"""JSON too large for memory: values of a file as spans, and lists of lists as flat arrays.

A detailed result holds millions of gaps and megabytes of generated text. The file is mapped,
`msgspec.Raw` finds where each value stands without building it, and only the arrays that are
wanted are decoded, 256 kB at a time, straight into one numpy array. Peak memory is the result
plus one chunk. Measured on 421 MB (16 million gaps): 1.2-1.5 s and 145 MiB for a 122 MiB result,
where the standard library takes 7-12 s and 1.5 GiB.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from analysis.model import Floats, Ints

CHUNK = 256 * 1024
"""Bytes decoded at a time; larger chunks are slower, because they leave the cache."""

MOST_LENIENT = 256 * 2**20
"""Records beyond this size are not read again by the standard library to take NaN."""

_BLANK = b" \t\r\n"
_TOKEN = re.compile(rb'"(?:[^"\\\n]++|\\.)*+"|[{]|[}]|"')
"""Strings, braces, and a quote that opens a string which its line does not close."""

_SOMETHING = re.compile(rb"[^ \t\r\n]")
_RECORD = re.compile(rb"\n[{]")

_VALUES = msgspec.json.Decoder(msgspec.Raw)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
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
    """Every top-level value: one object, JSON lines, or objects one after the other.

    Where all of it is JSON, msgspec finds the ends (0.3 s for 421 MB). Otherwise the file is cut
    at balanced braces outside strings (1.6 s), so that one bad record costs only itself; text
    between records comes back as an incomplete span.
    """
    try:
        return [Span(memoryview(raw)) for raw in _VALUES.decode_lines(buffer)]
    except (msgspec.DecodeError, RecursionError):
        return list(_spans(buffer))


def _spans(buffer: memoryview) -> Iterator[Span]:
    position, ran_out = 0, False
    while found := _SOMETHING.search(buffer, position):
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

    Where strict JSON fails, the standard library reads the object once more: it takes NaN and
    Infinity, so that the caller can name the key that holds them.

    Raises:
        ValueError: the value is no JSON object; the message says what and where.
    """
    try:
        return {key: memoryview(raw) for key, raw in _FIELDS.decode(data).items()}
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        return _lenient_fields(data, str(error))


def _lenient_fields(data: memoryview, trouble: str) -> Mapping[str, memoryview]:
    if len(data) > MOST_LENIENT:
        raise ValueError(trouble)
    try:
        found = json.loads(bytes(data))
        return {str(key): memoryview(json.dumps(value).encode()) for key, value in found.items()}
    except (ValueError, RecursionError, AttributeError):
        raise ValueError(trouble) from None


def items(data: memoryview) -> list[memoryview]:
    """The span of each element of an array.

    Raises:
        ValueError: the value is no array.
    """
    return [memoryview(raw) for raw in _decoded(_ITEMS, data)]


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
