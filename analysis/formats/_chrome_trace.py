"""Events of a Chrome trace, 1 MiB at a time: memory does not grow with the file.

    events = Events(data)
    for piece in events: ...        # lists of Event
    events.trouble                  # why the list ended too early; "" where it did not

A file is cut after "}" where a comma and "{" follow. That may be within an event, or within a text;
but only a piece that was cut between two events is valid JSON with brackets around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_LIST = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_CHUNK = 1 << 20
_LARGEST_CHUNK = 16 << 20
"""An event is no larger."""
_TRIES = 16
_SPACE = b" \t\r\n,"


class _Args(msgspec.Struct):
    device: object = None
    correlation: object = None


class Event(msgspec.Struct):
    """An event as the file has it: any of its values may be of any type."""

    ph: object = None
    cat: object = None
    name: object = None
    ts: object = None
    dur: object = None
    pid: object = None
    tid: object = None
    args: object = None


class _Known(Event):
    """One whose args are an object, of which two keys are wanted."""

    args: _Args | None = None


_KNOWN = msgspec.json.Decoder(list[_Known])
_ANY = msgspec.json.Decoder(list[Event])


class Events:
    """The events of a trace, in the order of the file."""

    def __init__(self, data: memoryview) -> None:
        """Find the list; nothing is decoded yet."""
        found = _LIST.search(data)
        self._data = data
        self.begin = -1 if found is None else found.start()
        """Where the list's key stands; -1 where there is none."""
        self._first = 0 if found is None else found.end()
        self.trouble = "" if found else "no list of events in it"

    def __iter__(self) -> Iterator[list[Event]]:
        """Pieces of about 1 MiB of the file, from its beginning."""
        if self.begin < 0:
            return
        position, size = self._first, _CHUNK
        while True:
            piece = bytes(self._data[position : position + size])
            last = position + size >= len(self._data)
            opening = piece.lstrip(_SPACE)[:1]
            if opening != b"{":
                if opening != b"]":
                    self.trouble = "the list of events is cut short"
                return
            cut, events = _decoded(piece, last=last)
            if events is None:
                size *= 2
                if last or size > _LARGEST_CHUNK:
                    self.trouble = "the list of events is cut short or damaged"
                    return
                continue
            yield events
            if cut < 0:
                return
            position, size = position + cut, _CHUNK


def _decoded(piece: bytes, *, last: bool) -> tuple[int, list[Event] | None]:
    """Events of a piece, and where the next one begins in it; -1 where there is none."""
    if last:
        # What follows the list is small: its end is one of the last brackets.
        end = len(piece)
        for _ in range(_TRIES):
            end = piece.rfind(b"]", 0, end)
            if end < 0:
                break
            if (events := _events(piece[:end])) is not None:
                return -1, events
    cuts = [match.start() + 1 for match in _BETWEEN.finditer(piece)][-_TRIES:]
    for cut in reversed(cuts):
        if (events := _events(piece[:cut])) is not None:
            return piece.index(b"{", cut), events
    return 0, None


def _events(text: bytes) -> list[Event] | None:
    for decoder in (_KNOWN, _ANY):
        try:
            return list(decoder.decode(b"[" + text.lstrip(_SPACE) + b"]"))
        except msgspec.ValidationError:
            continue
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
    return None


def number_of(event: Event, key: str) -> int | None:
    """A whole number among the args of an event; None for anything else."""
    args = event.args
    value = args.get(key) if isinstance(args, dict) else getattr(args, key, None)
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62
    return value if isinstance(value, int) and whole else None
