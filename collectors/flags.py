"""Words of a command line against a help text: what the installed version would refuse (pure).

It follows argparse, and what vLLM adds to it: underscores for dashes, `--config.key value` for
JSON, `-O3`. What only starting can tell (a number out of range, a key within a JSON value) is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from collectors import successors
from collectors.errors import Problem
from collectors.help_flags import Flag
from collectors.successors import Successor
from collectors.tables import nearest

_NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")
_OPTIMISATION = re.compile(r"-O(=?.+)?")


@dataclass(frozen=True, slots=True)
class Given:
    """One flag of a command line, with the words that follow it."""

    said: str
    """As it was written, without "=value"."""
    values: tuple[str, ...] = ()
    joined: bool = False
    """Whether the value was given as "=value"."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a command's flags are checked by."""

    name: str
    """The command, as a user calls it."""
    version: str
    flags: Mapping[str, Flag]
    successors: Mapping[str, Successor]
    positional: int = 0
    """Words without a flag that it takes."""
    flexible: bool = True
    """Whether underscores stand for dashes and dots for keys of JSON, as in vLLM's own parser."""

    @property
    def title(self) -> str:
        """With the version, where it is known."""
        return f"{self.name} {self.version}".strip()


def given(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[Given, ...]]:
    """Words after a command -> those before any flag, and each flag with what follows it."""
    leading: list[str] = []
    found: list[Given] = []
    for word in words:
        if not _is_flag(word):
            if found:
                last = found[-1]
                found[-1] = Given(last.said, (*last.values, word), last.joined)
            else:
                leading.append(word)
            continue
        name, equals, value = word.partition("=")
        found.append(Given(name, (value,) if equals else (), bool(equals)))
    return tuple(leading), tuple(found)


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not _NEGATIVE.fullmatch(word) and " " not in word


def values(words: Sequence[str], *names: str) -> str | None:
    """What the last of a flag's spellings is given on a command line; None: it is not there."""
    found = None
    for flag in given(words)[1]:
        if plain(flag.said) in names and flag.values:
            found = flag.values[0]
    return found


def problems(words: Sequence[str], dialect: Dialect, where: str) -> tuple[Problem, ...]:
    """What the installed version would refuse of a command line.

    Args:
        words: After the command itself.
        dialect: Its flags.
        where: How a message calls it: "arm 'awq'".
    """
    leading, flags = given(words)
    found = list(_stray(leading[dialect.positional :], "", dialect, where))
    for flag in flags:
        found += _of_flag(flag, dialect, where)
    return tuple(dict.fromkeys(found))


def lookup(said: str, dialect: Dialect) -> Flag | tuple[str, ...]:
    """The flag that a word names, or the names that it could mean: none, or several."""
    name = plain(said) if dialect.flexible else said
    if dialect.flexible:
        name = name.partition(".")[0]
        if _OPTIMISATION.fullmatch(name) and "--optimization-level" in dialect.flags:
            return dialect.flags["--optimization-level"]
    if name in dialect.flags:
        return dialect.flags[name]
    if not name.startswith("--") or len(name) < 4:
        return ()
    # argparse takes the beginning of a name for the name, where only one begins so.
    longer = {flag: known for flag, known in dialect.flags.items() if flag.startswith(name)}
    if len({known.names for known in longer.values()}) == 1 and len(longer) == 1:
        return next(iter(longer.values()))
    return tuple(sorted(longer))


def plain(said: str) -> str:
    """A flag's name with dashes for underscores, as vLLM reads it."""
    if not said.startswith("--"):
        return said
    name, dot, rest = said.partition(".")
    return name.replace("_", "-") + dot + rest


def _of_flag(flag: Given, dialect: Dialect, where: str) -> Iterator[Problem]:
    known = lookup(flag.said, dialect)
    if isinstance(known, tuple):
        yield _unknown(flag, known, dialect, where)
        return
    dotted = dialect.flexible and "." in flag.said
    if dotted and (known.arity == "none" or known.choices):
        yield Problem(where, f"{flag.said}, but {known.name} takes no keys", todo="drop the dot")
    elif dotted and (unknown := _unknown_key(flag.said, known)):
        yield Problem(
            where,
            f"{flag.said}: {unknown!r} is no key of {known.name} in {dialect.title}",
            todo=successors.KEYS.get(unknown) or nearest(unknown, known.keys),
        )
    elif known.arity == "none":
        if flag.joined:
            yield _no_value(flag, flag.values[0], dialect, where)
        yield from _stray(flag.values[flag.joined :], flag.said, dialect, where)
    elif not flag.values and known.arity in ("one", "some") and flag.said[:2] != "-O":
        yield Problem(where, f"{flag.said} has no value", f"one after it ({dialect.title})")
    else:
        most = len(flag.values) if known.arity in ("any", "some") else 1
        yield from _stray(flag.values[most:], flag.said, dialect, where)
        if known.choices and not dotted:
            for value in flag.values[:most]:
                if value not in known.choices:
                    yield _no_choice(flag, value, known, dialect, where)


def _unknown_key(said: str, known: Flag) -> str:
    """The first key behind the dot, where the help shows keys and it is none of them."""
    key = said.partition(".")[2].partition(".")[0].removesuffix("+")
    return key if known.keys and key not in known.keys else ""


def _unknown(flag: Given, longer: tuple[str, ...], dialect: Dialect, where: str) -> Problem:
    name = plain(flag.said).partition(".")[0]
    if longer:
        todo = f"it could be {', '.join(longer[:4])}: write the whole name"
    elif name in dialect.successors:
        todo = _instead(dialect.successors[name], dialect)
    else:
        todo = _nearest(name, dialect)
    found = f"{flag.said} is no flag of {dialect.title}"
    if dialect.name == "vllm-router" and name in successors.ROUTER_FLAGS:
        found += ", but of production-stack's router, another project of that name"
    return Problem(where, found, todo=todo)


def _instead(successor: Successor, dialect: Dialect) -> str:
    if successor.flag and successor.flag not in dialect.flags:
        return "drop it"
    return successor.say


def _nearest(name: str, dialect: Dialect) -> str:
    long = [flag for flag in dialect.flags if flag.startswith("--")]
    told = nearest(name, long)
    return told if told.startswith("did you mean") else f"see {dialect.name} --help"


def _no_value(flag: Given, value: str, dialect: Dialect, where: str) -> Problem:
    return Problem(
        where, f"{flag.said} is given {value!r} and takes no value", todo=f"drop {value!r}"
    )


def _stray(words: Sequence[str], after: str, dialect: Dialect, where: str) -> Iterator[Problem]:
    for word in words:
        if after == "--service-discovery":
            # production-stack's takes "static" or "k8s"; PyPI's is a switch for Kubernetes.
            yield Problem(
                where,
                f"--service-discovery is given {word!r} and takes no value in {dialect.title} "
                "(it does in production-stack's router, another project of that name)",
                todo="drop both: --worker-urls names the workers",
            )
        else:
            behind = f" after {after}" if after else ""
            yield Problem(
                where, f"{word!r}{behind} belongs to no flag of {dialect.title}", todo="drop it"
            )


def _no_choice(flag: Given, value: str, known: Flag, dialect: Dialect, where: str) -> Problem:
    todo = nearest(value, known.choices)
    if dialect.name == "vllm-router" and value in successors.POLICIES:
        # Its name in production-stack's router.
        todo = f"did you mean {successors.POLICIES[value]!r}?"
    return Problem(
        where,
        f"{flag.said} {value} is no choice of {dialect.title}",
        f"one of {', '.join(known.choices)}" if len(known.choices) <= 12 else "",
        "" if todo.startswith("known:") and len(known.choices) <= 12 else todo,
    )
