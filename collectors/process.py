"""A command that is kept by `collectors.keeper`: started, watched, stopped with all it started."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path

from collectors import keeper, mask, strays
from collectors.commands import Command
from collectors.keeper import KILL, MARK, STOP

GRACE = 20.0
"""Seconds in which a command may end by itself before it is killed."""

_LONGEST = 2000
"""Characters of a line that are searched: what looks for names takes the square of it."""
_EXCEPTION = re.compile(r"\b[A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b: .+")
_NO_REASON = re.compile("See root cause above|WARNING|INFO")
_TELLING = re.compile(r"error|exception|traceback|unrecognized|killed|cannot|fail", re.IGNORECASE)


_KEEP_MARK = {"SPT_NOENV": "1"}
"""vLLM names its processes with setproctitle, which else wipes out the environment that /proc
shows, and the mark with it."""


_living: weakref.WeakSet[Process] = weakref.WeakSet()


def kill_all() -> None:
    """Give no kept command any more time; returns at once."""
    for process in list(_living):
        process.kill()


class Process:
    """One kept command; it lives no longer than this process does."""

    def __init__(self, command: Command, log: Path, mark: str, grace: float = GRACE) -> None:
        """Start it.

        Args:
            command: Words and what is added to the environment.
            log: Gets all it prints.
            mark: Whose it is: see `collectors.strays`.
            grace: Seconds it may take to end when asked.
        """
        self.command = command
        self.log = log
        self._grace = grace
        self._mark = mark
        environment = {**os.environ, **command.env, MARK: mark, **_KEEP_MARK}
        self._keeper = subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-P", keeper.__file__, str(log), str(grace), *command.argv],
            stdin=subprocess.PIPE,
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        _living.add(self)
        self._say(json.dumps(mask.values(command.argv, environment)).encode() + b"\n")

    @property
    def pid(self) -> int:
        """Of the keeper."""
        return self._keeper.pid

    @property
    def status(self) -> int | None:
        """Exit status, once it has ended: 128 + n when signal n ended it."""
        return self._keeper.poll()

    def wait(self, seconds: float) -> int | None:
        """Its exit status; None where it has not ended within so many seconds."""
        try:
            return self._keeper.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return None

    def ask_to_stop(self) -> None:
        """Ask and return at once."""
        self._say(STOP)

    def kill(self) -> None:
        """Give it no more time; returns at once."""
        self._say(KILL)

    def _say(self, word: bytes) -> None:
        if self._keeper.stdin is not None:
            with contextlib.suppress(OSError):
                self._keeper.stdin.write(word)

    def stop(self) -> int:
        """Ask, and return when it has ended with all that it started."""
        self.ask_to_stop()
        try:
            # The keeper kills after its grace; should it hang itself, it is killed too.
            status = self._keeper.wait(self._grace + 15)
        except subprocess.TimeoutExpired:
            self._keeper.send_signal(signal.SIGKILL)
            status = self._keeper.wait()
        if status < 0:
            strays.end_orphans(self._mark)
        return status


def telling_lines(log: Path, most: int = 3) -> list[str]:
    """The lines of a log's end that look like the reason of a failure, else its last lines.

    A server's engines and its front all tell of one failure: what each exception says counts once,
    and what only points to another one not at all.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 262144))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    lines = [line.strip()[:_LONGEST] for line in text.splitlines() if line.strip()]
    said = dict.fromkeys(
        found[0]
        for line in lines
        if (found := _EXCEPTION.search(line)) and not _NO_REASON.search(line)
    )
    telling = list(said)[:most] or [line for line in lines if _TELLING.search(line)][-most:]
    return _shortened(telling or lines[-most:])


def _shortened(lines: Sequence[str], longest: int = 240) -> list[str]:
    return [line if len(line) <= longest else line[: longest - 1] + "…" for line in lines]
