"""What is wrong with a table of the user's, in one line for its author.

A check that fails says where by a path and what by the names of Python's types. Here the table is
walked beside the struct it should be, and the first mistake is put into the words of the file:
the key, what stands there, what may stand there, and the nearest right word.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from analysis.model import told
from analysis.wording import listing

_LONGEST = 40
"""Characters of a value that a message repeats."""

MOST_COMPARED, _MOST_LETTERS = 300, 100
"""Names, and letters of each, that a word is compared with: the time grows with their product."""

_PLAIN = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def nearest(word: str, known: Iterable[str]) -> str:
    """ "did you mean 'x'?" for a misspelt word, else the words there are."""
    found = set(known)
    if len(found) > MOST_COMPARED:
        return f"it is none of the {len(found):,} there are"
    names = sorted(found)
    close = _close(word, names)
    if close:
        return close
    if not names:
        return "there are none"
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"known: {', '.join(told(name, _LONGEST) for name in names[:12])}{more}"


def mistake(table: object, kind: Any, noun: str = "") -> str:
    """The first thing wrong with a table that is no `kind`, in one line.

    Args:
        table: as a TOML parser gives it.
        kind: a struct.
        noun: what a `kind` is called where a key is missing: "a magnitude".

    Returns:
        The line; empty where nothing is found that this module has words for.
    """
    return _in(table, kind, "", noun)


def _in(value: object, kind: Any, at: str, noun: str = "") -> str:
    """The first mistake in a value; `at`: its key, as in `reference.arm of workload 'chat'`."""
    choices = [item for item in _members(kind) if item is not NoneType]
    if len(choices) == 1:
        kind = choices[0]
    found = ""
    origin = get_origin(kind)
    if _is_struct(kind) and isinstance(value, dict):
        found = _in_struct(value, kind, at, noun)
    elif origin is dict and isinstance(value, dict):
        inner = (_in(item, get_args(kind)[1], _inside(at, key)) for key, item in value.items())
        found = next(filter(None, inner), "")
    elif origin is tuple and isinstance(value, list) and _fits(value, kind):
        found = _in_list(value, get_args(kind), at)
    elif not _converts(value, kind):
        found = f"{at} is {_shown(value)}; {_wanted(value, kind, at)}"
    return found


def _in_struct(table: dict[str, Any], kind: Any, at: str, noun: str) -> str:
    """A key that is not known, one that is missing, or what is wrong with one that is there."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    place = f" in {at}" if at else ""
    for key in table:
        if key not in fields:
            return f"unknown key {_shown(key)}{place}; {_right_place(key, fields)}"
    missing = [name for name, field in fields.items() if field.required and name not in table]
    if missing:
        words = listing(f"`{name}`" for name in missing)
        needs = f"; {noun} needs {', '.join(_needed(kind, missing))}" if noun else ""
        return f"{at} has no {words}{needs}".strip()
    inner = (_in(item, fields[key].type, _inside(at, key)) for key, item in table.items())
    return next(filter(None, inner), "")


def _in_list(items: list[Any], kinds: tuple[Any, ...], at: str) -> str:
    """The first mistake in the items; tables are called by their names."""
    for number, item in enumerate(items):
        kind = kinds[0] if kinds[-1] is Ellipsis else kinds[number]
        place = f"item {number + 1} of {at}"
        if _is_struct(kind):
            name = item.get("name") if isinstance(item, dict) else None
            place = f"[[{at}]] number {number + 1}"
            if isinstance(name, str) and name:
                place = f"{at} {_shown(name)}"
        found = _in(item, kind, place)
        if found:
            return found
    return ""


def _inside(at: str, key: str) -> str:
    """A key below another: `of.minus`, `gpus of arm 'a'`."""
    plain = key if key.replace("-", "_").isidentifier() and len(key) <= _LONGEST else _shown(key)
    if not at:
        return plain
    return f"{at}.{plain}" if " " not in at else f"{plain} of {at}"


def _right_place(key: str, fields: dict[str, Any]) -> str:
    """What an unknown key should have been: a key of a table inside, or the nearest one here."""
    holders = [
        f"`{name}`"
        for name, field in fields.items()
        for inner in _members(field.type)
        for kind in (inner, *get_args(inner))
        if _is_struct(kind) and key in kind.__struct_fields__
    ]
    if holders:
        return f"it is a key of {listing(holders, 'or')}"
    return nearest(key, fields)


def _needed(kind: Any, missing: list[str]) -> list[str]:
    """The keys a struct needs: those of its own, or all where a common one is missing."""
    needed = [field.encode_name for field in msgspec.structs.fields(kind) if field.required]
    common = set(kind.__bases__[0].__struct_fields__)
    own = [name for name in needed if name not in common]
    return needed if common & set(missing) else own


def _wanted(value: object, kind: Any, at: str) -> str:
    """What may stand where `value` does."""
    if get_origin(kind) is Literal:
        words = [word for word in get_args(kind) if word]
        close = _close(value, words) if isinstance(value, str) else ""
        return f"one of {', '.join(words)}" + (f"; {close}" if close else "")
    if get_origin(kind) is tuple:
        return _wanted_list(value, get_args(kind), at)
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    hint = ""
    if plain is str and isinstance(value, int | float) and not isinstance(value, bool):
        hint = ", in quotes"
    elif plain in (int, float, bool) and isinstance(value, str):
        hint = ", without quotes"
    return f"{_called(kind)} is expected{hint}"


def _wanted_list(value: object, kinds: tuple[Any, ...], at: str) -> str:
    if _is_struct(kinds[0]):
        return f"[[{at}]] tables are expected"
    if kinds[-1] is not Ellipsis:
        return f"a list of {len(kinds)} is expected"
    scalar = isinstance(value, str | int | float)
    return "a list is expected" + (f": [{_shown(value)}]" if scalar else "")


def _called(kind: Any) -> str:
    """A type in plain words."""
    if get_origin(kind) is Annotated:
        plain, *notes = get_args(kind)
        least = next((note.ge for note in notes if getattr(note, "ge", None) is not None), None)
        return _called(plain) + (f" of at least {least}" if least is not None else "")
    if _is_struct(kind) or get_origin(kind) is dict:
        return "a table"
    members = [item for item in _members(kind) if item is not NoneType]
    words = [
        _PLAIN.get(item, "another value")
        for item in members
        if item is not int or float not in members
    ]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])}, or {words[-1]}"


def _shown(value: object) -> str:
    """A value as it stands in the file, on one line and cut."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**18:
        return "a number of more than 18 digits"
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…")
    return repr(value) if isinstance(value, int | float) else "a date or time"


def _close(word: str, names: Iterable[str]) -> str:
    """ "did you mean 'x'?" where a name is near, in small letters or great."""
    if len(word) > _MOST_LETTERS:
        return ""
    short = (name for name in names if len(name) <= _MOST_LETTERS)
    by_lower = {name.lower(): name for name in sorted(short, reverse=True)}
    near = difflib.get_close_matches(word.lower(), sorted(by_lower), n=1, cutoff=0.5)
    return f"did you mean {by_lower[near[0]]!r}?" if near else ""


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _fits(items: list[Any], kind: Any) -> bool:
    """Whether a list has as many items as the type asks for."""
    kinds = get_args(kind)
    return kinds[-1] is Ellipsis or len(items) == len(kinds)


def _converts(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
