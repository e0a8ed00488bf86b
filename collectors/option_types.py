"""Values of options: text -> value, or one line that says what is wrong with it."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Callable
from urllib.parse import urlsplit

from collectors.study import MOST_BATCH


def filled(text: str) -> str:
    """Text that is not blank."""

    if not text.strip():
        raise argparse.ArgumentTypeError("is empty")
    return text


def pair(text: str) -> tuple[str, str]:
    """NAME=PATH."""

    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=PATH")
    return name, path


def indices(text: str) -> tuple[int, ...]:
    """GPUs, each once: 0,1."""

    words = text.split(",")
    if not all(word.isdecimal() and word.isascii() and len(word) < 5 for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is no list such as 0,1")
    found = tuple(map(int, words))
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{text!r} names a GPU twice")
    return found


def count(most: int, least: int = 1) -> Callable[[str], int]:
    """What reads a whole number from `least` to `most`."""

    def read(text: str) -> int:
        if text.isdecimal() and text.isascii() and len(text) < 16 and least <= int(text) <= most:
            return int(text)
        if text.isdecimal() and text.strip("0"):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is more than {most:,}")
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number of {least} or more")

    return read


def batches(text: str) -> tuple[int, ...]:
    """Sizes of batches: 1,10."""

    return tuple(dict.fromkeys(map(count(MOST_BATCH), text.split(","))))


def seconds(text: str) -> float:
    """A finite number of seconds, 0 or more."""

    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number of seconds")
    return found


def command(text: str) -> tuple[str, ...]:
    """The words of a command line, at least one."""

    try:
        words = tuple(shlex.split(filled(text)))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no command line: {error}") from None
    if not words or not words[0]:
        raise argparse.ArgumentTypeError(f"{text!r} names no command")
    return words


def url(text: str) -> str:
    """An address, without a slash at its end."""

    try:
        urlsplit(filled(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"is no address: {error}") from None
    return text.rstrip("/")
