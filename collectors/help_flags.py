"""A help text of argparse -> the flags it knows (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

_HEADER = re.compile(r"^ {2}(?P<header>-{1,2}[A-Za-z].*)$")
_NEXT_NAME = re.compile(r",\s+(?=-)")
_CHOICES = re.compile(r"\{([^{}]+)\}(?: \[.*\.\.\.\])?")
_DEFAULT = "(default: "
_KEY = re.compile(r"'(\w+)':")

Arity = Literal["none", "one", "optional", "any", "some"]
"""Values of a flag: none, one, at most one, any number, at least one."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One option of a command."""

    names: tuple[str, ...]
    """All of its spellings, `--no-x` among them."""
    arity: Arity
    choices: tuple[str, ...] = ()
    about: str = ""
    """What the help says of it, on one line."""

    @property
    def default(self) -> str:
        """What the help says is used where the flag is not given; empty: it does not say."""
        _, found, value = self.about.rpartition(_DEFAULT)
        return value.strip().removesuffix(")") if found and value.endswith(")") else ""

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the JSON that it takes, as its default shows them; none: it shows none."""
        default = self.default
        return frozenset(_KEY.findall(default)) if default.startswith("{'") else frozenset()

    @property
    def name(self) -> str:
        """The long name that the help gives first."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])


def parse(text: str) -> Mapping[str, Flag]:
    """The flags of a help text, by each of their names.

    Lines that are no options are passed over, logs and other noise among them.
    """
    flags: dict[str, Flag] = {}
    header = ""
    body: list[str] = []
    for line in [*text.splitlines(), "end"]:
        found = _HEADER.match(line)
        if found is None and (line.startswith(" " * 8) or not line.strip()):
            body.append(line.strip())
            continue
        if header:
            flag = _flag(header, " ".join(filter(None, body)))
            for name in flag.names:
                flags.setdefault(name, flag)
        header, _, rest = found["header"].partition("  ") if found else ("", "", "")
        body = [rest.strip()]
    return flags


def _flag(header: str, about: str) -> Flag:
    names = []
    value = ""
    for part in _NEXT_NAME.split(header):
        name, _, metavar = part.strip().partition(" ")
        names.append(name)
        value = metavar.strip() or value
    # "{a,b} or name registered in X" and "['a', 'b']" are open lists: no choices to hold one to.
    choices = _CHOICES.fullmatch(value)
    return Flag(
        tuple(names),
        _arity(value),
        tuple(choices[1].split(",")) if choices else (),
        about,
    )


def _arity(metavar: str) -> Arity:
    if not metavar:
        return "none"
    if "..." in metavar:
        return "any" if metavar.startswith("[") else "some"
    return "optional" if metavar.startswith("[") and not metavar.startswith("['") else "one"
