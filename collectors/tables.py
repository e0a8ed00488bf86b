"""A TOML table -> a frozen struct; what is wrong with it is told in the words of the file."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from collectors.errors import BadInput, Problem

T = TypeVar("T", bound=msgspec.Struct)

_MOST_BYTES = 1 << 20
_UNKNOWN = re.compile(r"unknown field `(?P<key>[^`]*)`")


def nearest(word: str, known: Iterable[str]) -> str:
    """ "did you mean 'x'?" for a misspelt word, else the words there are."""
    names = sorted(set(known))
    lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    if close:
        return f"did you mean {lower[close[0]]!r}?"
    return f"known: {', '.join(names[:12])}" if names else "there are none"


def read_toml(path: Path) -> dict[str, Any]:
    """The table of a TOML file.

    Raises:
        BadInput: it cannot be read or is no TOML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise BadInput(
                Problem(path.name, "is too long", f"{_MOST_BYTES:,} bytes at most", "split it")
            )
        return tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise BadInput(
            Problem(path.name, f"cannot be read: {error.strerror}", todo="check the path")
        ) from None
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits and a list in a list in a list are no errors of TOML.
        told = " ".join(str(error).split())[:200]
        raise BadInput(Problem(path.name, f"is no TOML: {told}")) from None


def convert(table: object, kind: type[T], where: str) -> T:
    """The struct that a table describes.

    Args:
        table: as a TOML parser gives it.
        kind: a msgspec struct that forbids unknown fields.
        where: how the message calls the table: "headroom.toml, arm 'awq'".

    Raises:
        BadInput: with the key and, for one that is unknown, the nearest right word.
    """
    try:
        return msgspec.convert(table, kind, strict=True)
    except msgspec.ValidationError as error:
        message = str(error)
        unknown = _UNKNOWN.search(message)
        if unknown:
            names = [field.encode_name for field in msgspec.structs.fields(kind)]
            raise BadInput(
                Problem(
                    where, f"unknown key {unknown['key']!r}", todo=nearest(unknown["key"], names)
                )
            ) from None
        told = message.replace("Object missing required field", "misses the key")
        raise BadInput(Problem(where, told.replace("$.", "").replace(" - at `$`", ""))) from None
