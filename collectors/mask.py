"""Secrets and homes in command lines and environments, masked before anything is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from collectors.secret import MASK, found_in, is_secret, masked

_SENT = ("-H", "--header", "--extra-headers")
"""Flags of headers that go with a request: what lets somebody in stands there."""
_FLAG = re.compile(r"--.+|-[A-Za-z]+")
_RECORDED = ("VLLM_", "CUDA_", "NCCL_", "TORCH", "HF_HUB_OFFLINE", "OMP_", "OTEL_", "NVSHMEM_")
_SHORTEST = 6
"""Of a value that is looked for in a log: a shorter one stands there by chance."""


def text(value: str) -> str:
    """A text without passwords, keys and tokens; this folder's paths relative, home as `~`."""
    value = masked(value)
    # This folder first: it may lie in the home folder.
    for place, shown in ((Path.cwd(), "."), (Path.home(), "~")):
        if len(place.parts) > 1:
            value = re.sub(rf"{re.escape(str(place))}(?![\w.-])", shown, value)
    return value


def words(argv: Sequence[str]) -> list[str]:
    """A command line without the values of flags that are secret; of the program, its name."""
    return [Path(word).name for word in argv[:1]] + flags(argv[1:])


def flags(argv: Sequence[str]) -> list[str]:
    """Flags without the values of those that are secret."""
    return [shown for shown, _ in _shown_and_hidden(argv)]


def environment(variables: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """The variables that a run's record keeps: those set for it, and those that servers heed."""
    kept = {name: value for name, value in inherited.items() if name.startswith(_RECORDED)}
    return {
        name: MASK if is_secret(name, value) else text(value)
        for name, value in sorted({**kept, **variables}.items())
    }


def values(argv: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """The secrets themselves, longest first: what a program prints of its words is masked by them.

    A header's value counts with and without its name, a password with and without its user.
    """
    hidden = {secret for _, secrets in _shown_and_hidden(argv) for secret in secrets}
    for name, value in variables.items():
        hidden |= {value} if is_secret(name, value) else set(_secrets_in(value))
    for secret in list(hidden):
        hidden |= {secret.partition("=")[2], secret.partition(":")[2], secret.rpartition(" ")[2]}
    return sorted(
        (each for each in hidden if len(each) >= _SHORTEST), key=lambda one: (-len(one), one)
    )


def _shown_and_hidden(argv: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each word as it may be shown, and the secrets that were taken out of it."""
    hides = ""
    for word in argv:
        name, equals, value = word.partition("=")
        is_flag = bool(_FLAG.fullmatch(name))
        # A flag may take several words: all up to the next flag are its values.
        hides = (name if not equals else "") if is_flag else hides
        if equals and _hides(name, value):
            yield f"{name}={MASK}", [value]
        elif not is_flag and hides and _hides(hides, word):
            yield MASK, [word]
        else:
            yield text(word), list(_secrets_in(word))


def _hides(name: str, value: str) -> bool:
    return name in _SENT or ("/" not in name and is_secret(name, value))


def _secrets_in(value: str) -> Iterator[str]:
    for begin, end in found_in(value):
        yield value[begin:end]
