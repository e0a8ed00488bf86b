from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collectors.errors import Problem
from collectors.help_texts import BENCH, ROUTER, SERVE, Help, Question, asking, questions
from tests.collectors.campaigns import ROOT, until
from tests.collectors.commands_that_tell import calls, router, script, vllm
from tests.collectors.helps import ROUTER_15, SERVE_28

VERSIONS = {"vllm": "0.28.0", "vllm-router": "0.1.15"}


def answered(asked: tuple[Question, ...], folder: Path, **more: float) -> dict[str, Help | Problem]:
    with asking(asked, VERSIONS, folder=folder, **more) as answers:
        return dict(answers())


def test_asks_only_what_is_installed_and_needed() -> None:
    assert [q.name for q in questions(("vllm",), ("r",))] == [SERVE, BENCH, ROUTER]
    assert [q.name for q in questions(("vllm",), serve=False)] == [BENCH]
    assert questions(()) == ()


def test_answers_are_kept_until_the_command_or_its_version_changes(tmp_path: Path) -> None:
    command, folder = vllm(tmp_path / "bin"), tmp_path / "cache"
    asked = questions(command, router(tmp_path / "bin"))
    found = answered(asked, folder)
    serve, routing = found[SERVE], found[ROUTER]
    assert isinstance(serve, Help)
    assert isinstance(routing, Help)
    assert serve.text.strip() == SERVE_28.strip()
    assert (serve.version, routing.version) == ("0.28.0", "0.1.15")
    assert routing.text.strip() == ROUTER_15.strip()
    assert answered(asked, folder) == found
    assert sorted(calls(command)) == ["bench serve --help=all", "serve --help=all"]
    with asking(asked, {**VERSIONS, "vllm": "0.29.0"}, folder=folder) as answers:
        answers()
    assert len(calls(command)) == 4
    os.utime(command[0], ns=(1, 1))
    answered(asked, folder)
    assert len(calls(command)) == 6


def test_all_are_asked_at_once(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(ROUTER_15)
    body = f"time.sleep(0.5); print(pathlib.Path({str(text)!r}).read_text())"
    asked = tuple(Question(f"c{n}", script(tmp_path / f"c{n}", body)) for n in range(6))
    began = time.monotonic()
    assert all(isinstance(found, Help) for found in answered(asked, tmp_path / "cache").values())
    assert time.monotonic() - began < 2.5


def test_an_old_version_is_asked_otherwise(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(SERVE_28)
    command = script(
        tmp_path / "old",
        "if '--help=all' in sys.argv: sys.exit('error: ignored explicit argument')\n"
        f"print(pathlib.Path({str(text)!r}).read_text())",
    )
    asked = questions(command)
    assert all(isinstance(found, Help) for found in answered(asked, tmp_path / "cache").values())
    assert "serve --help" in calls(command)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit('RuntimeError: Failed to infer device type')", "exit 1: RuntimeError: Failed"),
        ("print('No group or arguments matching')", "no help, exit 0: No group"),
        ("time.sleep(60)", "no answer in"),
        ("", "nothing printed"),
    ],
)
def test_no_help_is_one_line(tmp_path: Path, body: str, words: str) -> None:
    asked = (Question(SERVE, script(tmp_path / "bad", body)),)
    problem = answered(asked, tmp_path / "cache", timeout=1.5)[SERVE]
    assert isinstance(problem, Problem)
    assert words in str(problem)
    assert not (tmp_path / "cache").exists()


def test_a_command_that_is_gone_is_one_line(tmp_path: Path) -> None:
    asked = questions((str(tmp_path / "vllm"),), serve=False)
    problem = answered(asked, tmp_path / "cache")[BENCH]
    assert "No such file or directory" in str(problem)


def test_leaving_early_ends_what_runs(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    command = script(
        tmp_path / "slow",
        f"import os; pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(60)",
    )
    with (
        pytest.raises(KeyboardInterrupt),
        asking((Question(SERVE, command),), {}, folder=tmp_path / "cache"),
    ):
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.01)
        raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


_ASKS = """
import pathlib, sys
from collectors.help_texts import Question, asking
question = Question("slow", (sys.argv[1],))
with asking((question,), {}, folder=pathlib.Path(sys.argv[2])) as answers:
    answers()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_ends_with_who_asked_however_that_ends(
    tmp_path: Path, number: signal.Signals
) -> None:
    pids = tmp_path / "pids"
    command = script(
        tmp_path / "slow",
        "import os, signal, subprocess\n"
        "for each in (signal.SIGINT, signal.SIGTERM): signal.signal(each, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"pathlib.Path({str(tmp_path / 'new')!r}).write_text(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.rename({str(tmp_path / 'new')!r}, {str(pids)!r}); time.sleep(600)",
    )
    words = [sys.executable, "-c", _ASKS, *command, str(tmp_path / "cache")]
    asking = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    until(pids.exists)
    asking.send_signal(number)
    asking.wait(20)
    for pid in map(int, pids.read_text().split()):
        until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), f"{pid} lives")  # type: ignore[misc]


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    found = answered(
        questions(router(tmp_path / "bin"))[:0] or questions((), router(tmp_path)),
        tmp_path / "cache",
    )
    assert isinstance(found[ROUTER], Help)
