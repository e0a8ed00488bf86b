"""Drives servers with `vllm bench serve`: one call a run, or one for each client of a run."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from collectors import bench_worker, mask
from collectors.commands import Command
from collectors.errors import Problem
from collectors.process import Process

_POLL = 0.2
MOMENT = 2.0
"""Seconds that clients have to end by themselves once a server has died."""


class Call(Protocol):
    """One client that runs."""

    def status(self) -> int | None:
        """Its exit status once it has ended."""

    def stop(self) -> None:
        """End it."""


Start = Callable[[Command, Path], Call]
"""Starts a client whose output goes to a log."""


@dataclass(frozen=True, slots=True)
class Driven:
    """How the clients of a run ended."""

    statuses: tuple[int, ...]
    problem: Problem | None = None
    """Why they were stopped before their end."""


def drive(
    calls: Sequence[tuple[Command, Path]],
    start: Start,
    watch: Callable[[], Problem | None],
) -> Driven:
    """Start all clients at once and wait for them.

    Args:
        calls: Command and log of each.
        start: How one is started.
        watch: Asked again and again; a problem stops the clients.
    """
    running: list[Call] = []
    try:
        running.extend(start(command, log) for command, log in calls)
        while None in (statuses := [call.status() for call in running]):
            problem = watch()
            if problem is not None:
                # A client may have noticed as well, and deserves a moment to write what it has.
                time.sleep(MOMENT)
                ended = (call.status() for call in running)
                return Driven(tuple(1 if each is None else each for each in ended), problem)
            time.sleep(_POLL)
        # A server that died may have ended the clients before anybody looked.
        return Driven(tuple(each for each in statuses if each is not None), watch())
    finally:
        for call in running:
            call.stop()


class _Kept:
    """A client as a process of its own."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def status(self) -> int | None:
        return self._process.status

    def stop(self) -> None:
        self._process.stop()


def own_process(mark: str) -> Start:
    """Each run as a process of its own: imports are paid every time."""
    return lambda command, log: _Kept(Process(command, log, mark, grace=5))


class Worker:
    """Runs as forks of one process that has imported the client: see `collectors.bench_worker`."""

    def __init__(
        self, python: str, mark: str, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        """Start it; it is ready when `ready` says so.

        Args:
            python: An interpreter that has vLLM.
            mark: Whose it is: see `collectors.strays`.
            log: Gets what it prints itself.
            env: Added to the environment of all its runs.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="serving-assay-"))
        self._socket = self._folder / "bench"
        self._mark = mark
        self._usable: bool | None = None
        words = (python, "-P", bench_worker.__file__, str(self._socket))
        self._process = Process(Command(words, env or {}), log, mark, grace=2)

    def ready(self, seconds: float = 120) -> bool:
        """Whether it can be used; waits for its imports, once."""
        end = time.monotonic() + seconds
        while self._usable is None and not self._socket.exists():
            if self._process.status is not None or time.monotonic() > end:
                self._usable = False
            else:
                time.sleep(_POLL)
        return self._usable is not False and self._process.status is None

    def start(self, command: Command, log: Path) -> Call:
        """Start one client: its words after `bench serve` are what counts.

        It gets a process of its own where no fork can be had, and where it is given a secret: only
        a keeper takes those out of what it prints.
        """
        if mask.values(command.argv, command.env) or not self.ready():
            return own_process(self._mark)(command, log)
        words = command.argv[command.argv.index("bench") + 2 :]
        return _Forked(self._socket, words, log)

    def stop(self) -> None:
        """End it with all its forks."""
        self._process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class _Forked:
    """A client as a fork of the worker."""

    def __init__(self, address: Path, words: Sequence[str], log: Path) -> None:
        self._status: int | None = None
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(address))
        self._socket.sendall(json.dumps({"argv": words, "log": str(log)}).encode() + b"\n")
        self._socket.settimeout(0)

    def status(self) -> int | None:
        if self._status is None:
            try:
                told = self._socket.recv(4096)
            except BlockingIOError:
                return None
            except OSError:
                told = b""
            # The worker is gone, and the client with it.
            self._status = int(json.loads(told)["status"]) if told else 137
        return self._status

    def stop(self) -> None:
        self._socket.close()
