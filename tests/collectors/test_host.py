"""Commands of this machine, found where they are not said."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from collectors.host import Host, command_of, router_command, vllm_command


def program(folder: Path, name: str, first: str = "#!/bin/sh") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"{first}\n")
    path.chmod(0o755)
    return path


def test_what_is_said_wins() -> None:
    assert vllm_command(("/x/python", "-m", "a b")) == ("/x/python", "-m", "a b")
    assert router_command(["r"]) == ("r",)


def test_beside_this_interpreter_then_on_the_path_then_as_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "executable", str(program(tmp_path / "bin", "python")))
    assert command_of((), "tool") == ()
    assert command_of((), "tool", "json.tool") == (sys.executable, "-m", "json.tool")
    assert command_of((), "tool", "nonesuch.tool") == ()
    found = program(tmp_path / "path", "tool")
    assert command_of((), "tool", "json.tool") == (str(found),)
    beside = program(tmp_path / "bin", "tool")
    assert command_of((), "tool", "json.tool") == (str(beside),)


def test_models_by_their_name() -> None:
    host = Host(vllm=(), models={"a/b": "/m"})
    assert (host.model("a/b"), host.model("c")) == ("/m", "c")
