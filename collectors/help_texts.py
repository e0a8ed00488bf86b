"""Help texts of the installed commands: asked side by side, kept by version below a cache folder.

A help text of vLLM takes 5 to 15 s, nearly all of it imports. So all are asked at once while other
checks go on, and an answer is kept until the command or its version changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from collectors import cache
from collectors.commands import Command
from collectors.errors import Problem
from collectors.process import Process

SERVE = "vllm serve"
BENCH = "vllm bench serve"
ROUTER = "vllm-router"
TIMEOUT_S = 120.0
_QUIET = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "COLUMNS": "100",
    "NO_COLOR": "1",
}
_OPTION = re.compile(r"^ {1,4}-{1,2}[A-Za-z]", re.M)
_FEWEST_OPTIONS = 10
_MOST_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Question:
    """A help text to ask for."""

    name: str
    """The command as a user calls it: "vllm serve"."""
    argv: tuple[str, ...]
    otherwise: tuple[str, ...] = ()
    """What to ask where `argv` gives no full help: an old version."""


@dataclass(frozen=True, slots=True)
class Help:
    """An answer."""

    name: str
    text: str
    version: str = ""
    """Of the package; empty where it is not known."""


Answers = Mapping[str, Help | Problem]


def questions(
    vllm: Sequence[str], router: Sequence[str] = (), *, serve: bool = True
) -> tuple[Question, ...]:
    """What to ask of the commands that are installed; nothing of one that is not.

    Args:
        vllm: Words that start `vllm`; none: not installed.
        router: Words that start `vllm-router`; none: not installed or not needed.
        serve: Whether the server's own help is needed.
    """
    asked = []
    if vllm and serve:
        asked.append(_of_vllm(SERVE, (*vllm, "serve")))
    if vllm:
        asked.append(_of_vllm(BENCH, (*vllm, "bench", "serve")))
    if router:
        asked.append(Question(ROUTER, (*router, "--help")))
    return tuple(asked)


def _of_vllm(name: str, words: tuple[str, ...]) -> Question:
    return Question(name, (*words, "--help=all"), (*words, "--help"))


@contextlib.contextmanager
def asking(
    asked: Sequence[Question],
    versions: Mapping[str, str],
    *,
    folder: Path | None = None,
    timeout: float = TIMEOUT_S,
) -> Iterator[Callable[[], Answers]]:
    """Ask for all help texts at once; what is yielded waits for them.

    Leaving the block ends what still runs.

    Args:
        asked: What to ask.
        versions: Of the packages, by name, as `packages` gives them.
        folder: Where answers are kept; None: the user's cache folder.
        timeout: Seconds for each.
    """
    folder = folder or cache.folder() / "help"
    kept: dict[str, Help | Problem] = {}
    running: list[_Running] = []
    try:
        for question in asked:
            at = folder / f"help-{_key(question, versions)}.txt"
            text = _read(at)
            if text is not None:
                kept[question.name] = Help(question.name, text, _version(question, versions))
            else:
                running.append(_Running(question, at))

        def answers() -> Answers:
            for run in running:
                if run.question.name not in kept:
                    kept[run.question.name] = run.answer(timeout, _version(run.question, versions))
            return kept

        yield answers
    finally:
        for run in running:
            run.end()


class _Running:
    """One command whose help is being printed into a file without a name."""

    def __init__(self, question: Question, keep_at: Path) -> None:
        self.question = question
        self.keep_at = keep_at
        self._start(question.argv)

    def _start(self, argv: Sequence[str]) -> None:
        self.began = time.monotonic()
        self.output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in end()
        # Kept like a server, it ends with all that it started, however this process ends.
        log = Path(f"/proc/{os.getpid()}/fd/{self.output.fileno()}")
        self.process = Process(Command(tuple(argv), _QUIET), log, f"help {os.getpid()}", grace=1)

    def answer(self, timeout: float, version: str) -> Help | Problem:
        """Wait; ask otherwise where the first answer is no full help; keep what is."""
        text, code = self._wait(timeout)
        if not _is_help(text, code) and self.question.otherwise and code is not None:
            self.end()
            self._start(self.question.otherwise)
            text, code = self._wait(timeout)
        if not _is_help(text, code):
            return _failed(self.question, text, code, timeout)
        _keep(self.keep_at, text)
        return Help(self.question.name, text, version)

    def _wait(self, timeout: float) -> tuple[str, int | None]:
        code = self.process.wait(max(timeout - (time.monotonic() - self.began), 0.1))
        if code is None:
            self._kill()
        self.output.seek(0)
        return self.output.read(_MOST_BYTES).decode("utf-8", "replace"), code

    def _kill(self) -> None:
        self.process.kill()
        self.process.stop()

    def end(self) -> None:
        """Kill it with all that it started, if it still runs."""
        self._kill()
        self.output.close()


def _is_help(text: str, code: int | None) -> bool:
    return code == 0 and len(_OPTION.findall(text)) >= _FEWEST_OPTIONS


def _failed(question: Question, text: str, code: int | None, timeout: float) -> Problem:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = lines[-1][:200] if lines else "nothing printed"
    found = f"no answer in {timeout:.0f} s" if code is None else f"no help, exit {code}: {last}"
    by_hand = " ".join((Path(question.argv[0]).name, *question.argv[1:]))
    return Problem(
        f"help of {question.name}", found, "its flags, to check yours", f"try `{by_hand}` by hand"
    )


def _version(question: Question, versions: Mapping[str, str]) -> str:
    return versions.get("vllm-router" if question.name == ROUTER else "vllm", "")


def _key(question: Question, versions: Mapping[str, str]) -> str:
    """Another for each version, each command line and each change of the command's file."""
    parts = [_version(question, versions), *question.argv]
    found = shutil.which(question.argv[0])
    if found is not None:
        with contextlib.suppress(OSError):
            parts.append(f"{Path(found).resolve()}:{Path(found).stat().st_mtime_ns}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _keep(path: Path, text: str) -> None:
    """A cache that cannot be written costs time at the next check, and nothing else."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(text, "utf-8")
        new.replace(path)
