"""Values of a JSON record, decoded one at a time from their spans, and bounded where shown."""

from __future__ import annotations

import msgspec

from analysis.formats._files import one_line
from analysis.formats._secrets import masked
from analysis.model import LARGEST, Scalar

_MOST_TEXT = 500
_MOST_DECODED = 64 * 1024


def value_of(raw: memoryview) -> object:
    """A decoded value; NaN and Infinity, which only lenient records hold, as floats."""
    text = bytes(raw[:10])
    if text in (b"NaN", b"Infinity", b"-Infinity"):
        return float(text.decode())
    try:
        value: object = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"{shown(raw)} cannot be read: {error}") from None
    return value


def shown(raw: memoryview) -> str:
    """A value as a message shows it."""
    return one_line(bytes(raw[:80]).decode(errors="replace"), 60)


def setting_of(raw: memoryview) -> Scalar:
    """A value for `Run.config`: scalars as they are, the rest as compact JSON, all bounded."""
    if len(raw) > _MOST_DECODED:
        return _cut(bytes(raw[:_MOST_TEXT]).decode(errors="replace") + "…")
    value = value_of(raw)
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, int | float) and not abs(value) < LARGEST:
        return _cut(bytes(raw[:_MOST_TEXT]).decode(errors="replace"))
    if value is None or isinstance(value, bool | int | float):
        return value
    return _cut(msgspec.json.encode(value).decode())


def _cut(text: str) -> str:
    text = masked(text[: 2 * _MOST_TEXT])
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
