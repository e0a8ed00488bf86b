"""Real processes under a keeper: how they end, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors import keeper, strays
from collectors.commands import Command
from collectors.process import Process
from tests.collectors.campaigns import until

PYTHON = sys.executable
SECRET = "not-f0r-you"  # noqa: S105 - of nothing


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path)
    for pid in marked(str(tmp_path)):
        os.kill(pid, signal.SIGKILL)


def marked(mark: str) -> list[int]:
    return strays.marked(mark)[0]


def kept(tmp_path: Path, *words: str, grace: float = 5, **env: str) -> Process:
    return Process(Command(words, env), tmp_path / "log", str(tmp_path), grace)


def bash(tmp_path: Path, script: str, grace: float = 5, **env: str) -> Process:
    return kept(tmp_path, "bash", "-c", script, grace=grace, **env)


def log(tmp_path: Path) -> str:
    return (tmp_path / "log").read_text()


def says(tmp_path: Path, word: str) -> None:
    until(lambda: (tmp_path / "log").exists() and word in log(tmp_path), word)


# ---- ends


@pytest.mark.parametrize(
    ("script", "status"),
    [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("nonesuch", 127)],
)
def test_a_command_s_exit_status(tmp_path: Path, mark: str, script: str, status: int) -> None:
    assert bash(tmp_path, script).wait(30) == status
    assert marked(mark) == []


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    assert kept(tmp_path, "/none/such").wait(30) == 127
    assert log(tmp_path) == "cannot be started: /none/such: No such file or directory\n"


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert kept(tmp_path, str(tmp_path / "file")).wait(30) == 127
    assert "Permission denied" in log(tmp_path)


def test_all_that_is_printed_is_kept_behind_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n")
    bash(tmp_path, "echo out; echo err >&2; printf 'no end'").wait(30)
    assert log(tmp_path) == "before\nout\nerr\nno end"


def test_secrets_are_taken_out_of_what_is_printed(tmp_path: Path) -> None:
    script = "echo $HF_TOKEN; printf \"x${HF_TOKEN}y\"; head -c 300000 /dev/zero | tr '\\0' a"
    assert bash(tmp_path, script, HF_TOKEN=SECRET).wait(30) == 0
    assert log(tmp_path) == "***\nx***y" + "a" * 300000


def test_secrets_and_what_outlives_the_command(tmp_path: Path, mark: str) -> None:
    # The child holds the pipe open; it is killed, then all is written.
    script = "setsid sleep 600 & echo $HF_TOKEN"
    assert bash(tmp_path, script, HF_TOKEN=SECRET).wait(30) == 0
    assert log(tmp_path) == "***\n"
    assert marked(mark) == []


def test_the_command_finds_its_own_packages_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "import os; print(os.environ.get('PYTHONPATH'))"
    monkeypatch.delenv("PYTHONPATH", raising=False)
    kept(tmp_path, PYTHON, "-c", told).wait(30)
    kept(tmp_path, PYTHON, "-c", told, PYTHONPATH="/a:/b").wait(30)
    assert log(tmp_path) == "None\n/a:/b\n"


# ---- stops


def test_a_command_is_interrupted_first(tmp_path: Path, mark: str) -> None:
    script = (
        "import time\nprint('up', flush=True)\n"
        "try: time.sleep(600)\nexcept KeyboardInterrupt: print('bye', flush=True)"
    )
    process = kept(tmp_path, PYTHON, "-c", script, grace=60)
    says(tmp_path, "up")
    assert process.status is None
    assert process.stop() == 0
    assert log(tmp_path) == "up\nbye\n"
    assert marked(mark) == []


def test_then_it_is_asked_to_terminate(tmp_path: Path) -> None:
    process = bash(tmp_path, "trap '' INT; trap 'exit 5' TERM; echo up; sleep 600 & wait", 1)
    says(tmp_path, "up")
    assert process.stop() == 5


def test_then_it_is_killed_with_all_that_came_of_it(tmp_path: Path, mark: str) -> None:
    stubborn = (
        "import signal, subprocess, sys, time, os\n"
        "for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
        "if len(sys.argv) > 1:\n"
        "    left = int(sys.argv[1])\n"
        "    if left: subprocess.Popen([sys.executable, '-c', os.environ['SELF'], str(left - 1)],"
        " start_new_session=True)\n"
        "    print('up', left, flush=True)\n"
        "    if left == 1: os._exit(0)\n"
        "time.sleep(600)\n"
    )
    process = kept(tmp_path, PYTHON, "-c", stubborn, "3", grace=0.5, SELF=stubborn)
    says(tmp_path, "up 0")
    # One of them has lost its parent and its session.
    assert len(marked(mark)) == 4
    assert process.stop() == 137
    assert marked(mark) == []


def test_children_do_not_outlive_a_command_that_ends(tmp_path: Path, mark: str) -> None:
    script = "(setsid sleep 600 &) ; (trap '' INT TERM; sleep 600) & echo up; exit 3"
    assert bash(tmp_path, script).wait(30) == 3
    assert marked(mark) == []


@pytest.mark.parametrize("asked", [True, False])
def test_no_more_time_is_given(tmp_path: Path, mark: str, asked: bool) -> None:
    process = bash(tmp_path, "trap '' INT TERM; echo up; while true; do sleep 1; done", 600)
    says(tmp_path, "up")
    if asked:
        process.ask_to_stop()
    process.kill()
    assert process.wait(30) == 137
    assert marked(mark) == []


def test_signals_of_a_terminal_do_not_reach_what_is_kept(tmp_path: Path) -> None:
    process = bash(tmp_path, "echo up; sleep 600")
    says(tmp_path, "up")
    assert os.getpgid(process.pid) != os.getpgid(0)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(process.pid, number)
    assert process.wait(1) is None
    process.stop()


# ---- kills


HOLDER = """
import sys, time
from pathlib import Path
from collectors.commands import Command
from collectors.process import Process
Process(Command(("bash", "-c", sys.argv[2]), {}), Path(sys.argv[1], "log"), sys.argv[1], 1)
time.sleep(600)
"""
ROOT = Path(__file__).parents[2]


def test_the_holder_is_killed(tmp_path: Path, mark: str) -> None:
    script = "trap '' INT TERM; setsid sleep 600 & echo up; while true; do sleep 1; done"
    holder = subprocess.Popen([PYTHON, "-c", HOLDER, str(tmp_path), script], cwd=ROOT)
    says(tmp_path, "up")
    holder.kill()
    holder.wait()
    until(lambda: not marked(mark))


def test_the_keeper_is_killed(tmp_path: Path, mark: str) -> None:
    name = f"psm_test_{os.getpid()}_keeper"
    hold = (
        "import mmap, time, sys; f = open(sys.argv[1], 'w+b'); f.truncate(9)\n"
        "m = mmap.mmap(f.fileno(), 9); print('up', flush=True); time.sleep(600)"
    )
    memory = keeper.SHARED_MEMORY / name
    script = f'setsid {PYTHON} -c "{hold}" {memory} & exec sleep 600'
    process = bash(tmp_path, script)
    says(tmp_path, "up")
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    # The command goes with its keeper; what came of it is left, and found.
    until(lambda: len(strays.strays(mark)) == 1)
    assert strays.strays("another") == []
    assert strays.end_strays("another") == 0
    assert memory.exists()
    assert strays.end_strays(mark) == 1
    assert marked(mark) == []
    assert not memory.exists()


def test_what_this_process_keeps_is_no_stray(tmp_path: Path, mark: str) -> None:
    process = bash(tmp_path, "echo up; sleep 600")
    says(tmp_path, "up")
    assert strays.strays(mark) == []
    assert strays.end_strays(mark) == 0
    assert process.status is None
    process.stop()


def test_a_keeper_without_a_holder_is_waited_for(tmp_path: Path, mark: str) -> None:
    script = "trap 'sleep 1; echo in peace; exit' INT; echo up; while true; do sleep 0.1; done"
    holder = subprocess.Popen(
        [PYTHON, "-c", HOLDER.replace(", 1)", ", 20)"), mark, script], cwd=ROOT
    )
    says(tmp_path, "up")
    holder.kill()
    holder.wait()
    assert strays.end_strays(mark) > 0
    assert marked(mark) == []
    assert log(tmp_path).endswith("in peace\n")


def test_a_keeper_that_hangs_is_killed(tmp_path: Path, mark: str) -> None:
    holder = subprocess.Popen(
        [PYTHON, "-c", HOLDER, mark, "trap '' INT; echo up; sleep 600"], cwd=ROOT
    )
    says(tmp_path, "up")
    (one,) = strays.marked(mark)[1]
    os.kill(one, signal.SIGSTOP)
    holder.kill()
    holder.wait()
    strays.end_strays(mark, patience=0.5)
    assert marked(mark) == []


# ---- shared memory


def test_shared_memory_that_a_command_left_is_removed(tmp_path: Path) -> None:
    name = f"psm_test_{os.getpid()}_left"
    other = f"other_test_{os.getpid()}"
    shm = keeper.SHARED_MEMORY
    try:
        assert bash(tmp_path, f"touch {shm}/{name} {shm}/{other}").wait(30) == 0
        assert not (shm / name).exists()
        # Of no kind that a server makes: it may be anybody's.
        assert (shm / other).exists()
    finally:
        (shm / other).unlink()


def test_shared_memory_that_was_there_or_is_used_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "SHARED_MEMORY", tmp_path)
    (tmp_path / "psm_old").touch()
    before = set(keeper.shared_memory())
    assert before == {"psm_old"}
    for name in ("psm_used", "psm_new", "other"):
        (tmp_path / name).write_bytes(b"x")
    hold = (
        "import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 1)\n"
        "print(1, flush=True); input()"
    )
    user = subprocess.Popen(
        [PYTHON, "-c", hold, str(tmp_path / "psm_used")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert user.stdout is not None
    user.stdout.readline()
    try:
        assert keeper.remove_shared_memory(before) == ["psm_new"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "psm_old", "psm_used"]
    finally:
        user.communicate(b"\n")
    assert keeper.remove_shared_memory(before) == ["psm_used"]


def test_a_host_without_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "SHARED_MEMORY", tmp_path / "none")
    assert keeper.shared_memory() == {}
    assert keeper.remove_shared_memory(set()) == []
