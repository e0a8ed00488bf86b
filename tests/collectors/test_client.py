"""Clients: all at once, stopped when a server dies, as processes or as forks of one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.client import Worker, drive, own_process
from collectors.commands import Command
from collectors.errors import Problem
from tests.collectors.campaigns import until
from tests.collectors.test_bench_worker import vllm


def shell(script: str, folder: Path, name: str = "log") -> tuple[Command, Path]:
    return Command(("bash", "-c", script), {}), folder / name


def nothing() -> None:
    return None


@pytest.fixture
def start(tmp_path: Path):  # type: ignore[no-untyped-def]
    return own_process(str(tmp_path))


def test_clients_run_at_the_same_time(tmp_path: Path, start) -> None:  # type: ignore[no-untyped-def]
    # Each waits for the other's file.
    script = "touch {0}; while [ ! -e {1} ]; do sleep 0.05; done; exit {2}"
    a, b = tmp_path / "a", tmp_path / "b"
    calls = [
        shell(script.format(a, b, 0), tmp_path, "1"),
        shell(script.format(b, a, 3), tmp_path, "2"),
    ]
    told = drive(calls, start, nothing)
    assert (told.statuses, told.problem) == ((0, 3), None)


def test_a_problem_stops_the_clients(tmp_path: Path, start) -> None:  # type: ignore[no-untyped-def]
    problem = Problem("server", "ended")
    calls = [shell("exit 0", tmp_path, "1"), shell("sleep 600", tmp_path, "2")]
    told = drive(calls, start, lambda: problem if (tmp_path / "2").exists() else None)
    assert told.problem is problem
    assert told.statuses[1] == 1


def test_a_problem_is_seen_after_the_clients_end(tmp_path: Path, start) -> None:  # type: ignore[no-untyped-def]
    problem = Problem("server", "ended")
    asked: list[int] = []

    def watch() -> Problem | None:
        asked.append(1)
        return problem

    class Ended:
        def status(self) -> int:
            return 0

        def stop(self) -> None:
            """Nothing."""

    told = drive([shell("", tmp_path)], lambda command, log: Ended(), watch)
    assert (told.statuses, told.problem) == ((0,), problem)


def test_a_client_that_cannot_be_started_stops_the_others(tmp_path: Path) -> None:
    stopped: list[str] = []

    class Running:
        def status(self) -> None:
            return None

        def stop(self) -> None:
            stopped.append("first")

    def start(command: Command, log: Path) -> Running:
        if log.name == "2":
            raise OSError("no more processes")
        return Running()

    with pytest.raises(OSError, match="no more"):
        drive([shell("", tmp_path, "1"), shell("", tmp_path, "2")], start, nothing)
    # It is not known to the loop that was to collect them, yet it must not be forgotten.
    assert stopped == ["first"]


# ---- forks


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    made = Worker(sys.executable, str(tmp_path), tmp_path / "worker.log", vllm(tmp_path))
    yield made
    made.stop()


def bench(*words: str, **env: str) -> Command:
    return Command((sys.executable, "-c", "print('own')", "bench", "serve", *words), env)


def test_a_fork_runs_the_words_of_a_client(tmp_path: Path, worker: Worker) -> None:
    # It is not waited for: the first client waits for its imports.
    calls = [(bench("--exit", str(n)), tmp_path / f"log-{n}") for n in (0, 3)]
    told = drive(calls, worker.start, nothing)
    assert told.statuses == (0, 3)
    assert (tmp_path / "log-3").read_text() == "called with ['--exit', '3']\n"


def test_a_client_with_a_secret_gets_a_keeper(tmp_path: Path, worker: Worker) -> None:
    told = drive([(bench("--header", "X=5ecret-x"), tmp_path / "log")], worker.start, nothing)
    assert told.statuses == (0,)
    assert (tmp_path / "log").read_text() == "own\n"


def test_a_fork_ends_with_its_client(tmp_path: Path, worker: Worker) -> None:
    call = worker.start(bench("--hang", str(tmp_path / "pid")), tmp_path / "log")
    until((tmp_path / "pid").exists)
    assert call.status() is None
    pid = int((tmp_path / "pid").read_text())
    call.stop()
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_forks_end_with_their_worker(tmp_path: Path, worker: Worker) -> None:
    call = worker.start(bench("--hang", str(tmp_path / "pid")), tmp_path / "log")
    until((tmp_path / "pid").exists)
    worker.stop()
    assert call.status() == 137
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()
    assert not worker.ready()
    # What comes then is run all the same.
    assert drive([(bench(), tmp_path / "next")], worker.start, nothing).statuses == (0,)
    assert (tmp_path / "next").read_text() == "own\n"


def test_a_worker_without_vllm_costs_speed_only(tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(tmp_path)}
    (tmp_path / "vllm.py").write_text("raise ImportError('none here')")
    worker = Worker(sys.executable, str(tmp_path), tmp_path / "worker.log", env)
    assert not worker.ready()
    assert drive([(bench(), tmp_path / "log")], worker.start, nothing).statuses == (0,)
    assert (tmp_path / "log").read_text() == "own\n"
    worker.stop()


def test_a_worker_that_never_gets_ready(tmp_path: Path) -> None:
    (tmp_path / "vllm.py").write_text("import time; time.sleep(600)")
    env = {"PYTHONPATH": str(tmp_path)}
    worker = Worker(sys.executable, str(tmp_path), tmp_path / "worker.log", env)
    assert not worker.ready(0.1)
    # It is not waited for again.
    assert not worker.ready()
    worker.stop()
