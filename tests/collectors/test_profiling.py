"""Captures on the stand-in server: what their folders say and hold, and what goes wrong."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from collectors import profiling, rundir
from collectors.campaign import Campaign
from collectors.captures import STEPS, captures
from collectors.client import own_process
from collectors.host import Host
from collectors.progress import Progress
from collectors.record import Identity
from collectors.schedule import Selection
from collectors.settings import Settings
from collectors.study_file import parse_study
from collectors.summary import Summary
from tests.collectors.campaigns import STAND_IN, WAIT, arm, kept_for, port, record, study


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "DECODE_S", 4.0)


def captured(
    results: Path,
    batches: tuple[int, ...] = (2,),
    env: Mapping[str, str] | None = None,
    *,
    flag: bool = True,
    **change: Any,
) -> Summary:
    one = parse_study(study(arm(**change), env=env), "s.toml")
    made = captures(one, Selection(), batches)
    host = Host(vllm=STAND_IN, results=results, port=port())
    settings = Settings(own_process("m"), ready_seconds=WAIT, profiler_flag=flag)
    progress = Progress(0, stream=io.StringIO())
    identity = Identity("tests", "collect", {"vllm": "stand-in"})
    return Campaign(made, host, identity, settings, progress).run()


@pytest.mark.parametrize("flag", [True, False])
def test_a_capture_is_sealed_with_its_traces(tmp_path: Path, flag: bool) -> None:
    told = captured(tmp_path, (1, 3), flag=flag)
    assert sorted(told.made) == ["tried/one/profile-b1", "tried/one/profile-b3"]
    folder = tmp_path / "tried/one/profile-b3"
    assert rundir.whole(folder) == ""
    said = record(tmp_path, "one/profile-b3")
    assert (said["state"], said["workload"], said["concurrency"]) == ("complete", "profile", 3)
    assert said["profile"]["batch"] == 3
    assert said["profile"]["traces"] == 1
    assert (said["profile"]["running"], said["profile"]["running_at_the_end"]) == (3, 3)
    assert said["profile"]["chunks_of_each"] >= STEPS
    assert said["versions"] == {"vllm": "stand-in"}
    (server,) = said["servers"]
    assert ("--profiler-config" in server["argv"]) == flag
    assert ("VLLM_TORCH_PROFILER_DIR" in server["env"]) != flag
    (trace,) = folder.glob("*.pt.trace.json.gz")
    assert set(said["files"]) == {trace.name, "profiler_out_0.txt", "server.log"}
    # The host's name is nobody's business.
    assert json.loads(gzip.decompress(trace.read_bytes()))["host_name"] == ""
    assert kept_for(tmp_path) == []
    assert [path.name for path in (tmp_path / "tried/one/.servers").iterdir()] == [
        "p1.1-server.log"
    ]


def test_a_capture_that_is_complete_is_not_made_again(tmp_path: Path) -> None:
    captured(tmp_path)
    again = captured(tmp_path, (2, 4))
    assert again.whole == ["tried/one/profile-b2"]
    assert again.made == ["tried/one/profile-b4"]


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({"STAND_IN_SLOTS": "2"}, "fewer fit than are asked for"),
        ({"STAND_IN_PROFILER": "absent"}, "the server's profiler does not answer: "),
        ({"STAND_IN_PROFILER": "mute"}, "0 of 1 ranks left a trace (see server.log)"),
        ({"STAND_IN_LOADING": "die"}, "arm 'one', server: ended with status 1"),
    ],
)
def test_what_goes_wrong_is_told(tmp_path: Path, env: dict[str, str], told: str) -> None:
    found = captured(tmp_path, (3,), env)
    (reason,) = found.failed.values()
    assert told in reason
    if "LOADING" not in str(env):
        assert record(tmp_path, "one/profile-b3")["state"] == "failed"
        assert record(tmp_path, "one/profile-b3")["reason"] == reason
    # Asked again, it is tried again.
    assert captured(tmp_path, (3,), {}).made == ["tried/one/profile-b3"]


def test_requests_that_never_decode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "DECODE_S", 0.3)
    (reason,) = captured(tmp_path, (3,), {"STAND_IN_SLOTS": "2"}).failed.values()
    assert reason == "2 requests decode after 0 s: no more fit"


def test_several_ranks_leave_a_trace_each(tmp_path: Path) -> None:
    found = captured(tmp_path, (1,), gpus=2, flags=["-tp", "2"])
    assert list(found.failed.values()) == ["1 of 2 ranks left a trace (see server.log)"]
