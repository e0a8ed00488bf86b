"""What the collector tells of a command that it keeps."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import strays
from collectors.commands import Command
from collectors.process import Process, kill_all, telling_lines
from tests.collectors.campaigns import until


def test_the_lines_that_tell_why() -> None:
    assert telling_lines(Path("/none")) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", []),
        ("one\n\n  two  \n", ["one", "two"]),
        ("1\n2\n3\n4\n", ["2", "3", "4"]),
        ("ValueError: no room\nINFO bye\n", ["ValueError: no room"]),
        ("error 1\nerror 2\nerror 3\nerror 4\nend\n", ["error 2", "error 3", "error 4"]),
        ("x" * 300, ["x" * 239 + "…"]),
    ],
)
def test_of_a_log(tmp_path: Path, text: str, told: list[str]) -> None:
    (tmp_path / "log").write_text(text)
    assert telling_lines(tmp_path / "log") == told


@settings(deadline=None)
@given(st.binary(max_size=400), st.integers(0, 70000))
def test_any_log_tells_at_most_three_short_lines(
    tmp_path_factory: pytest.TempPathFactory, end: bytes, before: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-log"
    path.write_bytes(b"\xc3\n" * before + end)
    found = telling_lines(path)
    assert len(found) <= 3
    assert all(0 < len(line) <= 240 for line in found)


def test_a_line_without_end_is_looked_through(tmp_path: Path) -> None:
    # Each word of it may be where an exception's name begins: looked at whole, it never ended.
    (tmp_path / "log").write_text("a." * 131_000)
    assert telling_lines(tmp_path / "log") == ["a." * 119 + "a…"]


def test_waiting_ends(tmp_path: Path) -> None:
    process = Process(Command(("sleep", "600"), {}), tmp_path / "log", "waits", grace=5)
    assert process.wait(0.1) is None
    assert process.wait(-1) is None
    assert process.stop() == 130
    # Stopped again, or told anything else, it stays as it is.
    process.kill()
    assert process.stop() == process.status == process.wait(1) == 130


def test_all_are_killed_at_once(tmp_path: Path) -> None:
    script = (
        "import signal, time; signal.signal(2, signal.SIG_IGN)\n"
        "print(1, flush=True); time.sleep(600)"
    )
    logs = [tmp_path / "a", tmp_path / "b"]
    all_of_them = [Process(Command((sys.executable, "-c", script), {}), log, "all") for log in logs]
    until(lambda: all(log.exists() and log.read_text() for log in logs))
    kill_all()
    assert [process.wait(15) for process in all_of_them] == [137, 137]


def test_a_keeper_that_hangs_is_killed(tmp_path: Path) -> None:
    process = Process(Command(("sleep", "600"), {}), tmp_path / "log", str(tmp_path), grace=-14.5)
    until((tmp_path / "log").exists)
    os.kill(process.pid, signal.SIGSTOP)
    assert process.stop() == -signal.SIGKILL


def test_what_a_killed_keeper_kept_is_ended(tmp_path: Path) -> None:
    log, mark = tmp_path / "log", str(tmp_path)
    script = "setsid sleep 600 & echo up; exec sleep 600"
    process = Process(Command(("bash", "-c", script), {}), log, mark)
    other = Process(Command(("sleep", "600"), {}), tmp_path / "other", mark)
    until(lambda: log.exists() and log.read_text())
    os.kill(process.pid, signal.SIGKILL)
    assert process.stop() == -signal.SIGKILL
    assert strays.strays(mark) == []
    # What a living keeper keeps is nobody's orphan.
    assert other.wait(0.2) is None
    other.stop()


def test_the_mark_outlives_a_change_of_the_title(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert Process(Command(("printenv", "SPT_NOENV"), {}), log, "x").wait(30) == 0


def test_a_log_in_no_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    process = Process(Command(("true",), {}), tmp_path / "none" / "log", "x")
    assert process.wait(30) == 1
    assert "No such file" in capfd.readouterr().err
