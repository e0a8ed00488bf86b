"""Servers of an arm, started and stopped for real (a stand-in takes the place of vLLM)."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

from collectors.errors import ServerFailed
from collectors.host import Host
from collectors.http import answers
from collectors.server import Fleet, somebody_elses
from collectors.starting import Cancelled, Extra, Starter
from collectors.study_file import parse_study
from collectors.threads import at_once
from tests.collectors.campaigns import STAND_IN, WAIT, arm, kept_for, port, study, until


def starter(results: Path, change: dict[str, Any], **more: Any) -> Starter:
    one = parse_study(study(arm(**change), env=more.pop("env", {})), "s.toml")
    host = Host(**{"vllm": STAND_IN, "results": results, "port": port(), **more.pop("host", {})})
    mark = str((results / "tried").resolve())
    return Starter(host, one, mark, more.pop("tell", lambda line: None), more.pop("ready", WAIT))


def fleet(results: Path, change: dict[str, Any] | None = None, **more: Any) -> Fleet:
    made = starter(results, change or {}, **more)
    return made.fleet(made.study.arm[0], results / "logs" / "1.1")


ROUTER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Ok(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
print(sys.argv[1:], flush=True)
port = int(sys.argv[sys.argv.index("--port") + 1])
HTTPServer(("127.0.0.1", port), Ok).serve_forever()
"""


def router(folder: Path, text: str = ROUTER) -> tuple[str, ...]:
    path = folder / "router.py"
    path.write_text(text)
    return (sys.executable, str(path))


def test_one_server(tmp_path: Path) -> None:
    said: list[str] = []
    found = fleet(tmp_path, tell=said.append)
    try:
        (engine,) = found.engines
        assert answers(f"{engine.url}/health")
        assert found.fronts == (engine.url,)
        assert engine.kv is not None
        assert (engine.kv.tokens, engine.kv.block, engine.kv.said_in) == (1600, 16, "log")
        assert engine.log == tmp_path / "logs" / "1.1-server.log"
        assert 0 < engine.log_ready <= engine.log.stat().st_size
        assert found.dead() is None
    finally:
        found.stop()
    assert not answers(f"{engine.url}/health")
    assert kept_for(tmp_path) == []
    assert said[0] == "one: server starts"
    assert re.fullmatch(r"one: server is ready after \d+ s", said[1])


def test_a_server_that_dies_is_noticed(tmp_path: Path) -> None:
    found = fleet(tmp_path)
    (engine,) = found.engines
    assert engine.process is not None
    words = re.compile(rb"stand_in\.py\0serve\0")
    (server,) = [
        pid
        for pid in kept_for(tmp_path)
        if words.search(Path(f"/proc/{pid}/cmdline").read_bytes()) and pid != engine.process.pid
    ]
    os.kill(server, signal.SIGKILL)
    until(found.dead)
    told = str(found.dead())
    assert "arm 'one', server: ended with status 137 while it was driven" in told
    assert told.endswith("its whole log is 1.1-server.log")
    found.stop()


def test_a_router_in_front(tmp_path: Path) -> None:
    change = {"replicas": 2, "router": "round_robin", "router_flags": ["--x"]}
    found = fleet(tmp_path, change, host={"router": router(tmp_path)})
    try:
        assert found.router is not None
        assert found.fronts == (found.router.url,)
        assert [part.name for part in found.parts] == ["replica-0", "replica-1", "router"]
        words = found.router.command.argv
        at = words.index("--worker-urls") + 1
        assert words[at : at + 2] == tuple(engine.url for engine in found.engines)
        ports = {part.url for part in found.parts}
        assert len(ports) == 3
    finally:
        found.stop()
    assert kept_for(tmp_path) == []


def test_a_router_that_does_not_start_takes_the_replicas_along(tmp_path: Path) -> None:
    host = {"router": router(tmp_path, "print('error: no such policy'); raise SystemExit(2)")}
    with pytest.raises(ServerFailed, match=r"router: ended with status 2 .*no such policy"):
        fleet(tmp_path, {"replicas": 2, "router": "odd"}, host=host)
    assert kept_for(tmp_path) == []


def test_replicas_with_a_fixed_room_start_at_once(tmp_path: Path) -> None:
    # Each waits until the other has begun: one after another they would never be ready.
    gate = tmp_path / "gate"
    change = {
        "replicas": 2,
        "router": "direct",
        "flags": ["--num-gpu-blocks-override", "50"],
        "replica_env": [{"STAND_IN_GATE": str(gate)}, {}],
    }

    def tell(line: str) -> None:
        if line.startswith("one: replica-1 is ready"):
            gate.touch()

    found = fleet(tmp_path, change, tell=tell)
    assert [engine.name for engine in found.engines] == ["replica-0", "replica-1"]
    assert {engine.kv.tokens for engine in found.engines if engine.kv} == {800}
    found.stop()


def test_gpus_are_dealt_out_to_replicas(tmp_path: Path) -> None:
    made = starter(tmp_path, {"replicas": 2, "router": "direct", "gpus": 2, "flags": ["-tp", "2"]})
    asked: list[int] = []

    def extra(replica: int) -> Extra:
        asked.append(replica)
        return Extra(("--watched",), {"WATCHED": str(replica)})

    found = made.fleet(made.study.arm[0], tmp_path / "1", (4, 5, 6, 7), extra)
    found.stop()
    assert asked == [0, 1]
    for replica, (engine, gpus) in enumerate(zip(found.engines, ("4,5", "6,7"), strict=True)):
        assert engine.command.env["CUDA_VISIBLE_DEVICES"] == gpus
        assert engine.command.env["WATCHED"] == str(replica)
        assert engine.command.argv[-1] == "--watched"


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match=r"status 127 .*cannot be started: /none/vllm"):
        fleet(tmp_path, host={"vllm": ("/none/vllm",)})


def test_starting_is_given_up_when_nobody_wants_it_any_more(tmp_path: Path) -> None:
    made = starter(tmp_path, {}, env={"STAND_IN_GATE": str(tmp_path / "gate")})
    made.cancel()
    with pytest.raises(Cancelled):
        made.fleet(made.study.arm[0], tmp_path / "1")
    assert kept_for(tmp_path) == []


def test_a_server_of_somebody_else(tmp_path: Path) -> None:
    (one,) = parse_study(study(), "s.toml").arm
    found = fleet(tmp_path)
    other = somebody_elses(one, found.engines[0].url)
    assert other.engines[0].kv is not None
    assert (other.engines[0].kv.tokens, other.engines[0].kv.said_in) == (1600, "metrics")
    other.stop()
    assert other.dead() is None
    assert found.dead() is None
    found.stop()
    assert somebody_elses(one, "http://127.0.0.1:9").engines[0].kv is None


# ---- work at once


def test_a_failure_leaves_the_other_work_alone() -> None:
    done: list[int] = []
    met = threading.Barrier(2, timeout=30)

    def work(item: int) -> None:
        met.wait()
        if item == 0:
            raise ValueError(item)
        done.append(item)

    with pytest.raises(ValueError, match="0"):
        at_once(work, [0, 1], 2, lambda: None)
    assert done == [1]
    at_once(done.append, [], 0, lambda: None)


@pytest.mark.parametrize("place", ["submit", "wait"])
def test_an_interruption_cancels_what_goes_on(place: str) -> None:
    cancelled, over = threading.Event(), threading.Event()

    def work(item: int) -> None:
        if place == "wait":
            until(lambda: "waiter.acquire" in last_line_of_main_thread())
        os.kill(os.getpid(), signal.SIGINT)
        if cancelled.wait(WAIT):
            over.set()

    def last_line_of_main_thread() -> str:
        stack = traceback.extract_stack(sys._current_frames()[main])
        in_wait = any(frame.name == "wait" and "_base" in frame.filename for frame in stack)
        return str(stack[-1].line) if in_wait else ""

    main = threading.get_ident()
    with pytest.raises(KeyboardInterrupt):
        at_once(work, [0, 1], 1, cancelled.set)
    assert over.wait(WAIT)
