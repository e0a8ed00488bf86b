"""analysis.formats.help_text: what counts as stored help, its command and its version."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.formats import help_text
from analysis.formats._files import head_of
from analysis.model import HelpText, Skipped

HELP = Path(__file__).parents[2] / "results" / "writeup" / "help"


@pytest.mark.parametrize(
    ("name", "command", "version", "option"),
    [
        ("vllm-serve-help-all.txt", "vllm serve", "0.28.0", "--max-num-seqs"),
        ("vllm-bench-serve-help-all.txt", "vllm bench serve", "0.28.0", "--append-result"),
        ("vllm-router-0.1.15-help.txt", "vllm-router", "0.1.15", "--policy"),
    ],
)
def test_shipped_texts(name: str, command: str, version: str, option: str) -> None:
    assert help_text.sniff(HELP / name, head_of(HELP / name))
    (found,) = help_text.read(HELP / name, f"help/{name}")
    assert isinstance(found, HelpText)
    assert (found.command, found.version, found.source.file) == (command, version, f"help/{name}")
    assert found.text.lower().startswith("usage:")
    assert option in found.text


@pytest.mark.parametrize(
    ("name", "text", "command", "version"),
    [
        ("a.txt", "usage: tool run FILE", "tool run", ""),
        ("a.txt", "Usage: tool {a,b}\n\noptions:", "tool", ""),
        ("a.txt", "# tool v1.2.3\n\nINFO loading\nUSAGE:  tool <x>", "tool", "1.2.3"),
        ("tool-2.0.1-help.txt", "\ufeffusage: tool\n  [-h]", "tool", "2.0.1"),
        ("tool-2.0.1-help.txt", "# tool 3.0\nusage: tool\n", "tool", "3.0"),
        ("tool-2.txt", "usage: tool --flag", "tool", ""),
    ],
)
def test_forms(tmp_path: Path, name: str, text: str, command: str, version: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    assert help_text.sniff(tmp_path / name, text.encode())
    (found,) = help_text.read(tmp_path / name, name)
    assert isinstance(found, HelpText)
    assert (found.command, found.version) == (command, version)
    assert found.text.lower().startswith("usage:")


def test_other_texts_are_not_help() -> None:
    assert not help_text.sniff(Path("a.txt"), b"This tells its usage: tool")
    assert not help_text.sniff(Path("a.txt"), b"A line\nusage: tool")
    assert not help_text.sniff(Path("a.txt"), b"usage: 80 %")
    assert not help_text.sniff(Path("a.log"), b"usage: tool")


def test_an_endless_text_is_no_help(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("usage: tool\n" + "line\n" * 300_000)
    (found,) = help_text.read(tmp_path / "a.txt", "a.txt")
    assert isinstance(found, Skipped)
    assert "more than 1,048,576 letters, expected what --help prints" in found.reason
