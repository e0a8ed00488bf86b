"""The commands of a real vLLM that tests are run on: COLLECT_VLLM and COLLECT_ROUTER name them.

Without them a test is skipped; with REQUIRE_SERVER=1, as `make test-server` sets it, it fails.
"""

from __future__ import annotations

import os
import shlex
import shutil

import pytest


def command(variable: str) -> list[str]:
    """The words that a variable holds."""
    words = shlex.split(os.environ.get(variable, ""))
    if words and shutil.which(words[0]):
        return words
    said = f"{variable} names no command that is here"
    if os.environ.get("REQUIRE_SERVER"):
        pytest.fail(said)
    pytest.skip(said)


def vllm() -> list[str]:
    """The command `vllm`."""
    return command("COLLECT_VLLM")


def router() -> list[str]:
    """The command `vllm-router`."""
    return command("COLLECT_ROUTER")
