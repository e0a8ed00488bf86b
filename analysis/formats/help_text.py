"""A stored `--help` output (.txt), so that advice can be checked against the options that exist.

A first line `# vllm 0.28.0` states the version; otherwise a version in the file's name does
(`router-0.1.15-help.txt`). Log lines that a command printed before its help are left out.
"""

from __future__ import annotations

import re
from pathlib import Path

from analysis.formats._files import lines_of
from analysis.model import HelpText, Record, Skipped, Source

_BEFORE = rb"(?:(?:#|INFO\b|WARNING\b|DEBUG\b)[^\n]*\n|[ \t\r]*\n)*"
_USAGE = re.compile(rb"(?:\xef\xbb\xbf)?" + _BEFORE + rb"usage:[ \t]*[A-Za-z]", re.IGNORECASE)
_COMMENT = re.compile(r"#\s*\S+\s+v?(\d+(?:\.\d+)+\S*)")
_IN_NAME = re.compile(r"(?:^|[-_])v?(\d+(?:\.\d+)+)(?=[-_.])")
_MOST_LETTERS = 1 << 20
"""The longest help text of vLLM has 150,000."""


def sniff(path: Path, head: bytes) -> bool:
    """A .txt whose first line, after comments and log lines, begins with "usage:"."""
    return path.suffix == ".txt" and bool(_USAGE.match(head))


def read(path: Path, file: str) -> list[Record]:
    """One `HelpText`; its text begins at "usage:"."""
    version = ""
    text: list[str] = []
    letters = 0
    for number, line in enumerate(lines_of(path)):
        if number == 0 and (found := _COMMENT.match(line.removeprefix("\ufeff"))):
            version = found[1]
        if text or line.removeprefix("\ufeff").lower().startswith("usage:"):
            text.append(line.removeprefix("\ufeff"))
        letters += len(line) + 1
        if letters > _MOST_LETTERS:
            reason = (
                f"a usage line in more than {_MOST_LETTERS:,} letters, expected what --help "
                "prints; store that alone"
            )
            return [Skipped(file, reason)]
    if not version and (named := _IN_NAME.search(path.name)):
        version = named[1]
    return [HelpText(Source(file, ""), _command(text), version, "\n".join(text))]


def _command(text: list[str]) -> str:
    """The words after "usage:" up to the first option or placeholder."""
    words: list[str] = []
    for word in " ".join(text[:3]).partition(":")[2].split():
        if not re.fullmatch(r"[a-z][\w.-]*", word, re.IGNORECASE) or word.isupper():
            break
        words.append(word)
    return " ".join(words)
