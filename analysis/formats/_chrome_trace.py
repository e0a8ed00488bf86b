"""Events of a Chrome trace, 1 MiB at a time: memory does not grow with the file.

    events = Events(path)
    for piece in events: ...        # lists of Event
    events.trouble                  # why the list ended too early; "" where it did not

A file is cut after "}" where a comma and "{" follow. That may be within an event, or within a text;
but only a piece that was cut between two events is valid JSON with brackets around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from analysis.formats._files import GZIP_ERRORS, blocks_of, one_line

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
    """The events of a trace, in the order of the file; each iteration reads it anew."""

    def __init__(self, path: Path) -> None:
        """Nothing is read yet."""
        self._path = path
        self.head = b""
        """What stands before the list, once it is being read."""
        self.trouble = ""
        """Why the last iteration ended too early."""

    def __iter__(self) -> Iterator[list[Event]]:
        """Pieces of about 1 MiB of the file, from its beginning."""
        self.trouble = ""
        blocks = self._blocks()
        held, found = b"", None
        while found is None:
            block = next(blocks, None)
            if block is None or len(held) > _LARGEST_CHUNK:
                self.trouble = self.trouble or "no list of events in it"
                return
            held += block
            found = _LIST.search(held)
        self.head, held = held[: found.start()], held[found.end() :]
        size, ended = _CHUNK, False
        while True:
            while len(held) < size and not ended:
                # A block of a gzip file may be empty, and not the last.
                block = next(blocks, None)
                held, ended = held + (block or b""), block is None
            opening = held.lstrip(_SPACE)[:1]
            if opening != b"{":
                if opening != b"]":
                    self.trouble = self.trouble or "the list of events is cut short"
                return
            piece = held[:size]
            last = ended and len(held) <= size
            cut, events = _decoded(piece, last=last)
            if events is None:
                size *= 2
                if last or size > _LARGEST_CHUNK:
                    self.trouble = self.trouble or "the list of events is cut short or damaged"
                    return
                continue
            yield events
            if cut < 0:
                return
            held, size = held[cut:], _CHUNK

    def _blocks(self) -> Iterator[bytes]:
        """The file's bytes, as far as they can be decompressed."""
        try:
            yield from blocks_of(self._path)
        except GZIP_ERRORS as error:
            self.trouble = f"the gzip data is damaged ({one_line(str(error), 80)})"


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
