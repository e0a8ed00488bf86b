"""Whole campaigns on a stand-in server: what is run, kept, repeated and left behind."""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import resource
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from analysis.formats import vllm_bench
from analysis.model import Run
from collectors import keeper, rundir
from collectors.errors import BadInput
from collectors.schedule import Selection
from tests.collectors.campaigns import (
    another,
    arm,
    campaign,
    kept_for,
    port,
    record,
    run,
    runs,
    study,
    toml,
    until,
)

DONE = "one/work-c2-r1"


# ---- what is made


def test_every_run_of_every_arm_is_made(tmp_path: Path) -> None:
    table = study(arm("one"), arm("two"), repeats=2)
    told = run(table, tmp_path)
    names = [f"tried/{name}/work-c2-r{n}" for name in ("one", "two") for n in (1, 2)]
    assert sorted(told.made) == names
    assert (told.failed, told.left, told.halves, told.whole, told.stopped) == ({}, [], [], [], "")
    assert runs(tmp_path) == {name.removeprefix("tried/"): "complete" for name in names}
    for name in names:
        folder = tmp_path / name
        assert rundir.whole(folder) == ""
        said = rundir.read_record(folder) or {}
        assert said["completed"] == 4
        assert said["prefix_cache_emptied"] is True
        assert said["requests_by_server"] == {"server": 4}
        assert said["servers"][0]["kv_tokens"] == 1600
        assert said["clients"][0]["status"] == 0
        assert {"bench.json", "client.log", "server.log"} <= set(said["files"])
    assert kept_for(tmp_path) == []
    # What is complete is not made again, and no server is started for it.
    logs = sorted(tmp_path.rglob("*"))
    again = run(table, tmp_path)
    assert (sorted(again.whole), again.made) == (names, [])
    assert sorted(tmp_path.rglob("*")) == logs


def test_what_a_run_leaves_can_be_analysed(tmp_path: Path) -> None:
    run(study(), tmp_path)
    (found,) = vllm_bench.read(tmp_path / "tried" / DONE / "bench.json", "bench.json")
    assert isinstance(found, Run)


def test_a_warm_up_comes_before_the_runs_with_other_prompts(tmp_path: Path) -> None:
    run(study(concurrency=3), tmp_path)
    (warm,) = (tmp_path / "tried/one/.servers").glob("*-warmup/run.json")
    words = json.loads(warm.read_text())["clients"][0]["argv"]
    measured = record(tmp_path, "one/work-c3-r1")["clients"][0]["argv"]
    assert words[words.index("--num-prompts") + 1] == "3"
    assert words[words.index("--seed") + 1] != measured[measured.index("--seed") + 1]


def test_a_log_of_a_run_has_the_start_and_the_run_alone(tmp_path: Path) -> None:
    run(study(repeats=2), tmp_path)
    log = (tmp_path / "tried/one/work-c2-r2/server.log").read_text()
    assert "KV cache size" in log
    assert log.count("POST /v1/completions") == 4
    assert "bytes of other runs" in log
    (whole,) = (tmp_path / "tried/one/.servers").glob("*-server.log")
    assert whole.read_text().count("POST /reset_prefix_cache") == 3
    assert whole.read_text().count("POST /v1/completions") == 2 + 4 + 4


def test_texts_of_random_weights_are_left_out_unless_they_are_wanted(tmp_path: Path) -> None:
    for keep, folder in ((False, tmp_path / "out"), (True, tmp_path / "kept")):
        run(study(random_weights=True), folder, settings={"keep_texts": keep})
        told = json.loads((folder / "tried" / DONE / "bench.json").read_text())
        assert ("generated_texts" in told) is keep
        assert record(folder)["generated_texts_left_out"] == (0 if keep else 4)
        assert "--load-format" in record(folder)["servers"][0]["argv"]


def test_replicas_without_a_router_are_driven_at_once(tmp_path: Path) -> None:
    table = study(arm(replicas=2, router="direct"), concurrency=4, prompts=9)
    told = run(table, tmp_path)
    assert told.made == ["tried/one/work-c4-r1"]
    said = record(tmp_path, "one/work-c4-r1")
    lines = [client["argv"] for client in said["clients"]]

    def value(flag: str) -> list[str]:
        return [line[line.index(flag) + 1] for line in lines]

    assert value("--max-concurrency") == ["2", "2"]
    assert value("--num-prompts") == ["5", "4"]
    assert value("--result-filename") == ["bench-0.json", "bench-1.json"]
    assert len(set(value("--base-url"))) == len(set(value("--seed"))) == 2
    assert len(set(value("--request-id-prefix"))) == 2
    assert said["requests_by_server"] == {"replica-0": 5, "replica-1": 4}
    assert (said["concurrency"], said["completed"]) == (4, 9)
    assert {"bench-0.json", "bench-1.json", "replica-0.log", "replica-1.log"} <= set(said["files"])


def test_unequal_replicas_are_made_equal(tmp_path: Path) -> None:
    rooms = [{"STAND_IN_KV": "120"}, {"STAND_IN_KV": "100"}]
    said = io.StringIO()
    table = study(arm(replicas=2, router="direct", replica_env=rooms))
    run(table, tmp_path, stream=said)
    servers = record(tmp_path)["servers"]
    assert [each["kv_tokens"] for each in servers] == [1600, 1600]
    assert servers[0]["argv"][-2:] == ["--num-gpu-blocks-override", "100"]
    assert "hold 1,920 and 1,600 tokens of KV; all get 1,600" in said.getvalue()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"env": {"STAND_IN_DEAF": "1"}}, "replicas still differ in KV"),
        ({"env": {"STAND_IN_MUTE": "1"}}, "tells no KV cache size"),
        ({"flags": ["--num-gpu-blocks-override=7"]}, "results of a router say nothing"),
    ],
)
def test_replicas_that_stay_unequal_are_not_driven(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    rooms = [{"STAND_IN_KV": "120"}, {"STAND_IN_KV": "100"}]
    told = run(study(arm(replicas=2, router="direct", replica_env=rooms, **change)), tmp_path)
    assert reason in told.failed[f"tried/{DONE}"]
    assert (told.made, kept_for(tmp_path)) == ([], [])


def test_arms_that_share_a_gpu_stay_up_together(tmp_path: Path) -> None:
    room = {"shares_gpu": "g", "flags": ["--num-gpu-blocks-override", "90"]}
    told = run(study(arm("one", **room), arm("two", **room), repeats=2), tmp_path)
    assert len(told.made) == 4
    for name in ("one", "two"):
        assert len(list((tmp_path / "tried" / name / ".servers").glob("*-server.log"))) == 1


def test_a_server_of_somebody_else_is_driven_and_left_alone(tmp_path: Path) -> None:
    from collectors.commands import Command
    from collectors.http import answers
    from collectors.process import Process
    from tests.collectors.campaigns import STAND_IN

    url = f"http://127.0.0.1:{(first := port())}"
    server = Process(
        Command((*STAND_IN, "serve", "m", "--port", str(first)), {}), tmp_path / "log", "x"
    )
    until(lambda: answers(f"{url}/health"))
    told = run(study(), tmp_path, settings={"base_url": url})
    assert told.made == [f"tried/{DONE}"]
    said = record(tmp_path)["servers"][0]
    assert (said["started_by_collector"], said["kv_tokens"]) == (False, 1600)
    assert answers(f"{url}/health")
    server.stop()


# ---- what goes wrong


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("fail", "every request failed: 4 of 4"),
        ("exit", "the client ended with status 2"),
        ("silent", "left no bench.json"),
        ("garbage", "left no bench.json"),
    ],
)
def test_a_run_without_answers_has_failed(tmp_path: Path, word: str, reason: str) -> None:
    told = run(study(env={"STAND_IN_CLIENT": word}), tmp_path)
    assert reason in told.failed[f"tried/{DONE}"]
    assert runs(tmp_path) == {DONE: "failed"}
    assert reason in record(tmp_path)["reason"]


def test_a_failed_run_is_kept_and_tried_again(tmp_path: Path) -> None:
    run(study(env={"STAND_IN_CLIENT": "fail"}), tmp_path)
    again = run(study(), tmp_path)
    assert again.made == [f"tried/{DONE}"]
    assert runs(tmp_path) == {DONE: "complete", f"{DONE}.failed-1": "failed"}


def test_a_run_with_some_failures_is_complete_and_says_so(tmp_path: Path) -> None:
    said = io.StringIO()
    told = run(study(env={"STAND_IN_CLIENT": "half"}), tmp_path, stream=said)
    assert told.made == [f"tried/{DONE}"]
    assert record(tmp_path)["reason"] == "2 of 4 requests failed"
    assert "2 of 4 requests failed" in said.getvalue()


def test_an_arm_that_does_not_start_leaves_the_others_alone(tmp_path: Path) -> None:
    table = study(arm("one", env={"STAND_IN_LOADING": "die"}), arm("two"))
    told = run(table, tmp_path)
    assert told.made == ["tried/two/work-c2-r1"]
    reason = told.failed[f"tried/{DONE}"]
    assert "ended with status 1 while it started" in reason
    assert "No available memory for the cache blocks" in reason
    assert "all is well" not in reason


def test_a_server_that_never_gets_ready_is_given_up(tmp_path: Path) -> None:
    table = study(env={"STAND_IN_GATE": str(tmp_path / "gate")})
    told = run(table, tmp_path, settings={"ready_seconds": 0.5})
    assert "not ready after 0 s" in told.failed[f"tried/{DONE}"]
    assert kept_for(tmp_path) == []


def test_a_server_that_dies_in_a_run_is_started_once_more(tmp_path: Path) -> None:
    # Two requests warm it up; it dies at the second of the first run's four.
    env = {"STAND_IN_REQUESTS": "4", "STAND_IN_LIVES": str(tmp_path / "deaths")}
    told = run(study(env=env, repeats=3), tmp_path)
    assert len(told.made) == 2
    ((_, reason),) = told.failed.items()
    assert "ended with status 3 while it was driven" in reason
    assert "the engine died" in reason
    assert sorted(runs(tmp_path).values()) == ["complete", "complete", "failed"]
    assert len(list((tmp_path / "tried/one/.servers").glob("*-server.log"))) == 2
    # The next call makes the one that failed.
    again = run(study(env=env, repeats=3), tmp_path)
    assert len(again.made) == 1
    assert sorted(runs(tmp_path).values()) == ["complete"] * 3 + ["failed"]


def test_a_server_that_dies_twice_is_left_dead(tmp_path: Path) -> None:
    told = run(study(env={"STAND_IN_REQUESTS": "4"}, repeats=4), tmp_path)
    assert (len(told.failed), len(told.left), told.made) == (2, 2, [])
    assert kept_for(tmp_path) == []


def test_a_port_that_is_taken_is_passed_over(tmp_path: Path) -> None:
    import socket

    first = port()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", first))
        taken.listen()
        told = run(study(), tmp_path, port=first)
    assert told.made == [f"tried/{DONE}"]
    words = record(tmp_path)["servers"][0]["argv"]
    assert words[words.index("--port") + 1] != str(first)


def test_two_campaigns_in_one_folder(tmp_path: Path) -> None:
    (tmp_path / "tried").mkdir()
    with (tmp_path / "tried/.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BadInput, match="another collect is writing there"):
            run(study(), tmp_path)
    assert run(study(), tmp_path).made


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"prompts": 5}, "prompts"),
        ({"env": {"OMP_NUM_THREADS": "2"}}, "server_env"),
        ({"seed": 7}, "seed"),
        ({"random_weights": True}, "random_weights"),
    ],
)
def test_a_changed_study_is_not_mixed_with_the_old_one(
    tmp_path: Path, change: dict[str, Any], key: str
) -> None:
    _pretend_made(study(), tmp_path)
    with pytest.raises(BadInput, match=rf"made in another way \({key} differ\)"):
        run(study(**change), tmp_path)
    assert kept_for(tmp_path) == []


def test_a_file_that_was_changed_is_made_again(tmp_path: Path) -> None:
    run(study(), tmp_path)
    (tmp_path / "tried" / DONE / "bench.json").write_text("{}")
    assert run(study(), tmp_path).made == [f"tried/{DONE}"]
    # The old one does not pass for a complete run.
    assert runs(tmp_path) == {DONE: "complete", f"{DONE}.failed-1": "changed"}


def test_a_deadline_that_has_passed(tmp_path: Path) -> None:
    told = run(study(), tmp_path, settings={"deadline": time.monotonic() - 1})
    assert (told.left, told.made) == ([f"tried/{DONE}"], [])
    assert "--deadline" in told.stopped
    assert not (tmp_path / "tried/one").exists()


def test_no_run_begins_that_would_end_after_the_deadline(tmp_path: Path) -> None:
    made = campaign(study(repeats=3), tmp_path, settings={"deadline": time.monotonic() + 3600})
    # A run of this load took longer than what is left.
    made._longest["work", 2] = 4000.0
    told = made.run()
    assert (len(told.left), told.made) == (3, [])
    assert kept_for(tmp_path) == []


def test_a_full_disk(tmp_path: Path) -> None:
    table = study()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    # run.json is larger than this, so that it cannot be written; logs of a start are smaller.
    resource.setrlimit(resource.RLIMIT_FSIZE, (900, limits[1]))
    try:
        told = run(table, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert "File too large" in told.stopped
    assert told.left == [f"tried/{DONE}"]
    assert kept_for(tmp_path) == []
    assert run(table, tmp_path).made == [f"tried/{DONE}"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_results_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "Permission denied" in run(study(), tmp_path).stopped


def test_results_that_are_a_file(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    told = run(study(), tmp_path / "results")
    assert "results" in told.stopped


# ---- uploads


def test_runs_are_uploaded_and_compared(tmp_path: Path) -> None:
    target = tmp_path / "target"
    told = run(study(), tmp_path / "r", upload=target.as_uri())
    assert told.failed == {}
    there = {path.name for path in (target / "tried" / DONE).iterdir()}
    assert there == {path.name for path in (tmp_path / "r/tried" / DONE).iterdir()}


def test_runs_of_an_earlier_call_are_uploaded_too(tmp_path: Path) -> None:
    _pretend_made(study(), tmp_path / "r")
    told = run(study(), tmp_path / "r", upload=(tmp_path / "target").as_uri())
    assert (told.made, told.failed) == ([], {})
    assert (tmp_path / "target/tried" / DONE / "run.json").is_file()


def test_an_upload_that_fails_is_no_failed_run(tmp_path: Path) -> None:
    told = run(study(), tmp_path, upload="nosuchprotocol://bucket")
    assert told.made == [f"tried/{DONE}"]
    assert list(told.failed) == [f"upload of tried/{DONE}"]


# ---- secrets


def test_no_secret_reaches_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "inherited-5ecret")
    secrets = ("flag-5ecret", "second-5ecret", "env-5ecret", "header-5ecret", "inherited-5ecret")
    table = study(
        arm(
            flags=["--api-key", secrets[0], secrets[1], "--max-num-batched-tokens", "8192"],
            env={"HF_TOKEN": secrets[2]},
        )
    )
    table["workload"][0]["flags"] += ["--header", f"Authorization=Bearer {secrets[3]}"]
    file = {"STAND_IN_CLIENT": "fail"}
    table["servers"]["env"] = file
    run(table, tmp_path)
    table["servers"]["env"] = {}
    said = io.StringIO()
    told = run(table, tmp_path, stream=said)
    assert told.made == [f"tried/{DONE}"]
    log = (tmp_path / "tried" / DONE / "server.log").read_text()
    assert "'--api-key', '***', '***', '--max-num-batched-tokens', '8192'" in log
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [each for each in secrets if each.encode() in content], path
    assert "5ecret" not in said.getvalue()
    assert not re.search("5ecret", str(told))


def test_a_secret_in_a_failure_is_masked(tmp_path: Path) -> None:
    table = study(
        arm(flags=["--api-key", "flag-5ecret"], env={"STAND_IN_LOADING": "die"}),
    )
    run(table, tmp_path)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"5ecret" not in path.read_bytes(), path


# ---- kills and interruptions


def _pretend_made(table: dict[str, Any], results: Path) -> None:
    """A complete run, as a campaign would have left it, without the time it takes."""
    from collectors.record import definition

    made = campaign(table, results)
    (job,) = made._plan.jobs
    part = rundir.open_part(results / "tried" / job.arm / job.name, {})
    (part / "bench.json").write_text("{}")
    words = definition(made._plan.study, made._host, job)
    rundir.close_part(part, {"state": "complete", "definition": words})


def _memory(name: str) -> Path:
    return keeper.SHARED_MEMORY / name


@pytest.mark.parametrize("state", ["server starting", "warming up", "run in progress"])
def test_killed_with_no_warning(tmp_path: Path, state: str) -> None:
    results, hold, gate = tmp_path / "results", tmp_path / "hold", tmp_path / "gate"
    memory = f"psm_test_{os.getpid()}_{state.replace(' ', '_')}"
    env = {
        "STAND_IN_HOLD": str(hold),
        "STAND_IN_GATE": str(gate),
        "STAND_IN_MEMORY": memory,
        "STAND_IN_STUBBORN": "child",
    }
    table = study(env=env, repeats=2)
    file = toml(table, tmp_path / "study.toml")
    arm_folder = results / "tried/one"
    half = None
    with another(file, results) as process:
        until(lambda: list(arm_folder.glob(".servers/*-server.log")), "a server")
        if state != "server starting":
            hold.touch()
            gate.touch()
            until(lambda: _holding(arm_folder.glob(".servers/*-warmup.part/client.log")))
        if state == "run in progress":
            hold.unlink()
            until(lambda: list(arm_folder.glob("work-*-r?")), "a first run")
            hold.touch()
            until(lambda: _holding(arm_folder.glob("work-*.part/client.log")))
            (half,) = (path.name.removesuffix(".part") for path in arm_folder.glob("work-*.part"))
        process.kill()
        process.wait()
    # Nothing of it lives on, its shared memory is gone; no folder passes for complete.
    assert not _memory(memory).exists()
    whole = [name for name, told in runs(results).items() if told == "complete"]
    hold.unlink(missing_ok=True)
    gate.touch()
    told = run(table, results)
    assert [name.removeprefix("tried/") for name in told.whole] == whole
    assert len(told.whole) + len(told.made) == 2
    found = runs(results)
    assert [name for name in found if ".half-" in name] == (
        [] if half is None else [f"one/{half}.half-1"]
    )
    assert told.halves == ([] if half is None else [f"tried/one/{half}.half-1"])
    assert all(
        told == ("interrupted" if ".half" in name else "complete") for name, told in found.items()
    )
    assert not list(arm_folder.glob("*.part"))


def _holding(logs: Any) -> bool:
    return any("holding" in log.read_text() for log in logs)


def test_killed_when_a_run_was_sealed_and_not_yet_named(tmp_path: Path) -> None:
    _pretend_made(study(), tmp_path)
    folder = tmp_path / "tried" / DONE
    folder.rename(folder.with_name(folder.name + ".part"))
    told = run(study(), tmp_path)
    assert (told.whole, told.halves, told.made) == ([f"tried/{DONE}"], [], [])


def test_killed_while_a_run_is_sealed(tmp_path: Path) -> None:
    _pretend_made(study(), tmp_path)
    folder = tmp_path / "tried" / DONE
    part = folder.rename(folder.with_name(folder.name + ".part"))
    (part / ".run.json.draft").write_text('{"state": "comp')
    rundir.write_record(part, {"state": "running"})
    told = run(study(), tmp_path)
    assert told.halves == [f"tried/{DONE}.half-1"]
    assert told.made == [f"tried/{DONE}"]
    assert runs(tmp_path) == {DONE: "complete", f"{DONE}.half-1": "interrupted"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_asked_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    results, hold = tmp_path / "results", tmp_path / "hold"
    table = study(env={"STAND_IN_HOLD": str(hold)}, repeats=2)
    file = toml(table, tmp_path / "study.toml")
    arm_folder = results / "tried/one"
    with another(file, results) as process:
        until(lambda: list(arm_folder.glob(".servers/*-server.log")))
        hold.touch()
        until(lambda: _holding(arm_folder.rglob("*.part/client.log")))
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        # All has ended before it ended itself.
        assert kept_for(results) == []
        told = json.loads(out)
    assert told["stopped"] == "interrupted"
    assert len(told["left"]) + len(told["made"]) == 2
    assert "Traceback" not in err
    hold.unlink()
    assert len(run(table, results).made) == len(told["left"])


def test_interrupted_while_a_server_starts(tmp_path: Path) -> None:
    table = study(env={"STAND_IN_GATE": str(tmp_path / "gate")})
    file = toml(table, tmp_path / "study.toml")
    with another(file, tmp_path / "r") as process:
        until(lambda: list((tmp_path / "r").rglob("*-server.log")))
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert kept_for(tmp_path / "r") == []
        assert json.loads(out)["stopped"] == "interrupted", err


def test_interrupted_twice_nothing_waits_for_what_will_not_stop(tmp_path: Path) -> None:
    results, hold = tmp_path / "results", tmp_path / "hold"
    hold.touch()
    env = {"STAND_IN_HOLD": str(hold), "STAND_IN_STUBBORN": "all"}
    file = toml(study(env=env), tmp_path / "study.toml")
    said = tmp_path / "results/tried/one"
    with another(file, results) as process:
        until(lambda: _holding(said.rglob("*.part/client.log")))
        os.killpg(process.pid, signal.SIGINT)
        # The client is gone at once; the server takes its grace of 20 s, unless it is killed.
        until(lambda: len(_clients(results)) == 0)
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
        assert kept_for(results) == []
        assert time.monotonic() - began < 10


def _clients(results: Path) -> list[int]:
    return [
        pid
        for pid in kept_for(results)
        if b"bench" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    ]


def test_only_what_is_asked_for_is_made(tmp_path: Path) -> None:
    table = study(arm("one"), arm("two"), repeats=2)
    told = run(table, tmp_path, wanted=Selection(arms=("two",), repeats=1, concurrency=(1,)))
    assert told.made == ["tried/two/work-c1-r1"]
