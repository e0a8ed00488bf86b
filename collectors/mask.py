"""Secrets and homes in command lines and environments, masked before anything is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

MASK = "***"

_NAME = re.compile(
    r"(?:^|[_.-])(?:api[_-]?key|access[_-]?key(?:[_-]id)?|private[_-]?key|secret(?:[_-]?key)?"
    r"|tokens?|password|passwd|credentials?|cookie|authorization|auth)$",
    re.IGNORECASE,
)
_FORMS = (
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),
    re.compile(r"\b(?:hf_|sk-)[\w.+/=-]{8,}"),
    re.compile(r"(?i)(?<=bearer )[\w.+/=-]{8,}"),
)
_RECORDED = ("VLLM_", "CUDA_", "NCCL_", "TORCH", "HF_HUB_OFFLINE", "OMP_", "OTEL_", "NVSHMEM_")


def is_secret(name: str) -> bool:
    """Whether what stands under a name must not be written."""
    return bool(_NAME.search(name))


def text(value: str) -> str:
    """A text without passwords, keys and tokens, and with `~` for the home folder."""
    for form in _FORMS:
        value = form.sub(MASK, value)
    home = str(Path.home())
    return value.replace(home, "~") if len(home) > 1 else value


def words(argv: Sequence[str]) -> list[str]:
    """A command line without the values of flags that are secret; of the program, its name."""
    found = [Path(argv[0]).name] if argv else []
    hide = False
    for word in argv[1:]:
        name, equals, _ = word.partition("=")
        if hide:
            found.append(MASK)
        elif equals and is_secret(name):
            found.append(f"{name}={MASK}")
        else:
            found.append(text(word))
        hide = word.startswith("--") and not equals and is_secret(word)
        hide = hide or word in ("--header", "--extra-headers")
    return found


def environment(variables: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """The variables that a run's record keeps: those set for it, and those that servers heed."""
    kept = {name: value for name, value in inherited.items() if name.startswith(_RECORDED)}
    return {
        name: MASK if is_secret(name) else text(value)
        for name, value in sorted({**kept, **variables}.items())
    }
