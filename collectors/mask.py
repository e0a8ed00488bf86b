"""Secrets and homes in command lines and environments, masked before anything is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

MASK = "***"

# "tokens" is a number of them: --max-num-batched-tokens is no secret.
_WORD = (
    r"(?:(?:api|access|private|secret)[_-]?)?key(?:[_-]?id)?|secret|token|password|passwd|pwd"
    r"|credentials?|cookie|authorization|auth"
)
_NAME = re.compile(rf"(?:^|[_.-])(?:{_WORD}|otlp_(?:\w+_)?headers)$", re.IGNORECASE)
_SENT = ("--header", "--extra-headers")
"""Flags of headers that go with a request: what lets somebody in stands there."""
_FLAG = re.compile(r"--.+|-[a-z]+")
_FORMS = (
    re.compile(r"://(?P<secret>[^/\s@]+)@"),
    re.compile(rf"(?i)[?&](?:[\w.-]+[_.-])?(?:{_WORD})=(?P<secret>[^&#\s]+)"),
    re.compile(rf"""(?i)["'](?:[\w.-]+[_.-])?(?:{_WORD})["']\s*:\s*["'](?P<secret>[^"']+)["']"""),
    re.compile(r"\b(?P<secret>(?:hf_|sk-)[\w.+/=-]{8,})"),
    re.compile(r"(?i)\bbearer (?P<secret>[\w.+/=-]{8,})"),
)
_RECORDED = ("VLLM_", "CUDA_", "NCCL_", "TORCH", "HF_HUB_OFFLINE", "OMP_", "OTEL_", "NVSHMEM_")
_SHORTEST = 6
"""Of a value that is looked for in a log: a shorter one stands there by chance."""


def is_secret(name: str) -> bool:
    """Whether what stands under a name must not be written."""
    return bool(_NAME.search(name))


def text(value: str) -> str:
    """A text without passwords, keys and tokens; this folder's paths relative, home as `~`."""
    for form in _FORMS:
        value = form.sub(lambda found: found[0].replace(found["secret"], MASK), value)
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
        name: MASK if is_secret(name) else text(value)
        for name, value in sorted({**kept, **variables}.items())
    }


def values(argv: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """The secrets themselves, longest first: what a program prints of its words is masked by them.

    A header's value counts with and without its name, a password with and without its user.
    """
    hidden = {secret for _, secrets in _shown_and_hidden(argv) for secret in secrets}
    for name, value in variables.items():
        hidden |= {value} if is_secret(name) else set(_secrets_in(value))
    for secret in list(hidden):
        hidden |= {secret.partition("=")[2], secret.partition(":")[2], secret.rpartition(" ")[2]}
    return sorted(
        (each for each in hidden if len(each) >= _SHORTEST), key=lambda one: (-len(one), one)
    )


def _shown_and_hidden(argv: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each word as it may be shown, and the secrets that were taken out of it."""
    hide = False
    for word in argv:
        name, equals, value = word.partition("=")
        is_flag = bool(_FLAG.fullmatch(name))
        secret = name in _SENT or (is_secret(name) and "/" not in name)
        # A flag may take several words: all up to the next flag are its values.
        hide = secret and not equals if is_flag else hide
        if equals and secret:
            yield f"{name}={MASK}", [value]
        elif hide and not is_flag:
            yield MASK, [word]
        else:
            yield text(word), list(_secrets_in(word))


def _secrets_in(value: str) -> Iterator[str]:
    for form in _FORMS:
        for found in form.finditer(value):
            yield found["secret"]
