"""Kills on a real server: after each nothing lives on, no folder lies, and `collect` goes on.

The tests share one results folder, in the order of this file: each `collect` resumes what the kill
before it left, and the last one completes everything.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors import rundir
from collectors.http import free_port
from tests.server import commands
from tests.server.collecting import (
    Place,
    is_client,
    is_engine,
    is_keeper,
    is_router,
    is_server,
    until,
)

pytestmark = pytest.mark.server

ROOM = "128m"
STUDY = """
name = "{name}"
repeats = {repeats}
starts = 1
random_weights = true

[servers]
flags = [
  "--dtype", "bfloat16", "--max-model-len", "512", "--max-num-seqs", "2",
  "--kv-cache-memory-bytes", "64M", "--enforce-eager",
]
env = {{ TORCHDYNAMO_DISABLE = "1", VLLM_CPU_OMP_THREADS_BIND = "0" }}

[made_model.killed-qwen3]
hidden = 256
layers = 6
heads = 4
kv_heads = 2
vocab = 4096
max_len = 512

[[arm]]
name = "one"
model = "killed-qwen3"
{arm}

[[workload]]
name = "random"
flags = ["--dataset-name", "random", "--random-input-len", "16", "--random-output-len", "96"]
loads = [{{ concurrency = {concurrency}, prompts = {prompts} }}]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small disk of its own where this user may have one, so that it can be filled."""
    folder = tmp_path_factory.mktemp("killed")
    disk = folder / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(disk)]
    mounted = os.getuid() == 0 and subprocess.run(words, check=False).returncode == 0
    yield disk / "results"
    if mounted:
        subprocess.run(["umount", "-l", str(disk)], check=True)  # noqa: S607


def _place(
    results: Path, name: str, arm: str, repeats: int, router: str = "", **load: int
) -> Place:
    file = results.parent.parent / f"{name}.toml"
    file.write_text(STUDY.format(name=name, repeats=repeats, arm=arm, **load))
    return Place(results, file, name, shlex.join(commands.vllm()), router)


@pytest.fixture(scope="module")
def place(results: Path) -> Place:
    return _place(results, "killed", "spans = true", 3, concurrency=2, prompts=16)


def test_collect_is_killed_while_a_server_loads(place: Place) -> None:
    with place.collect() as running:
        running.wait_for(is_engine)
        running.kill(running.process.pid)
    assert place.states() == {}


def test_collect_is_killed_with_every_keeper(place: Place) -> None:
    with place.collect() as killed:
        killed.wait_for(is_engine)
        # Nobody is left to stop the server: the next collect must.
        killed.kill(killed.process.pid, *killed.find(is_keeper))
        killed.process.wait()
        starts = len(place.starts())
        with place.collect() as next_one:
            until(lambda: len(place.starts()) > starts, "no server starts")
            assert killed.alive() == {}
            os.killpg(next_one.process.pid, signal.SIGTERM)
            code, said = next_one.ended()
    assert code == 1
    assert "stopped: interrupted" in said
    assert "not run: 3" in said


def test_collect_is_killed_while_a_run_is_driven(place: Place) -> None:
    with place.collect() as running:
        name = running.wait_until_serving()
        running.kill(running.process.pid)
    assert place.states() == {f"{name}{rundir.PART}": "running"}


def test_the_server_and_then_its_engine_are_killed(place: Place) -> None:
    with place.collect() as running:
        first = running.wait_until_serving()
        running.kill(*running.find(is_server))
        second = running.wait_until_serving({first})
        third = running.wait_until_serving({first, second})
        running.kill(*running.find(is_engine))
        code, said = running.ended()
    assert code == 1
    assert "kept, unfinished: killed/one/" in said
    assert f"failed: killed/one/{first}: arm 'one', server: ended with status 137" in said
    assert f"killed/one/{second}: complete" in said
    assert f"failed: killed/one/{third}: arm 'one', server: ended with status" in said
    assert "1 made, 2 failed" in said
    states = place.states()
    assert states[second] == "complete"
    assert [states[first], states[third]] == ["failed", "failed"]
    assert list(states.values()).count("interrupted") == 1


def test_the_client_is_killed_and_then_ctrl_c_is_pressed_twice(place: Place) -> None:
    with place.collect() as running:
        first = running.wait_until_serving()
        running.kill(*running.wait_for(is_client))
        second = running.wait_until_serving({first})
        os.killpg(running.process.pid, signal.SIGINT)
        time.sleep(0.5)
        os.killpg(running.process.pid, signal.SIGINT)
        code, said = running.ended()
    assert code == 1
    assert f"failed: killed/one/{first}: the client ended with status 137" in said
    assert "stopped: interrupted; 1 complete before, 1 failed, 1 not run" in said
    assert f"not run: 1 (killed/one/{second})" in said
    assert "Traceback" not in said


def test_the_disk_fills_up_while_a_run_is_driven(place: Place) -> None:
    disk = place.results.parent
    if not disk.is_mount():
        pytest.skip("no small disk could be mounted: only root may")
    filler = disk / "filler"
    with place.collect() as running:
        running.wait_until_serving()
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(b"\0" * 65536) or pytest.fail("written nothing")
        code, said = running.ended()
        filler.unlink()
    assert code == 1
    assert "stopped: No space left on device" in said
    assert "1 complete before, 2 not run" in said
    assert "Traceback" not in said


def test_a_port_is_taken_and_everything_is_completed(place: Place) -> None:
    with socket.socket() as taken:
        port = free_port(18600)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with place.collect("--port", str(port)) as running:
            code, said = running.ended()
    assert code == 0, said
    assert f"port {port} is taken; the first server gets" in said
    assert "2 made, 1 complete before" in said
    states = place.states()
    runs = {f"random-c2-r{number}": "complete" for number in (1, 2, 3)}
    assert {name: states[name] for name in runs} == runs
    assert "complete" not in [state for name, state in states.items() if name not in runs]
    assert not [name for name in states if name.endswith(rundir.PART)]


def test_the_router_is_killed(results: Path) -> None:
    cores = ", ".join(f"{{ VLLM_CPU_OMP_THREADS_BIND = '{core}' }}" for core in (0, 1))
    arm = f"replicas = 2\nrouter = 'round_robin'\nreplica_env = [{cores}]"
    router = shlex.join(commands.router())
    place = _place(results, "routed", arm, 1, router, concurrency=4, prompts=32)
    with place.collect() as running:
        name = running.wait_until_serving()
        running.kill(*running.wait_for(is_router))
        code, said = running.ended()
    assert code == 1
    assert f"failed: routed/one/{name}: arm 'one', router: ended with status 137" in said
    with place.collect() as running:
        code, said = running.ended()
    assert code == 0, said
    assert place.states() == {name: "complete", f"{name}.failed-1": "failed"}
    record = rundir.read_record(place.study / "one" / name) or {}
    assert record["requests_by_server"] == {"replica-0": 16, "replica-1": 16}
