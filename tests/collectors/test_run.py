"""One run against servers that are there: what its folder says and holds."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors import commands, rundir
from collectors.client import own_process
from collectors.commands import Command
from collectors.host import Host
from collectors.keeper import descendants
from collectors.record import Identity
from collectors.run import Made, make
from collectors.schedule import Plan, plan
from collectors.server import Fleet
from collectors.starting import Starter
from collectors.study_file import parse_study
from tests.collectors.campaigns import STAND_IN, WAIT, port, study


@dataclasses.dataclass
class Bench:
    """A server that runs, and a plan with one run for it."""

    plan: Plan
    host: Host
    fleet: Fleet
    folder: Path

    def make(self, **more: Any) -> Made:
        (job,) = self.plan.jobs
        return make(
            self.plan,
            self.host,
            Identity("tests", "collect", {}),
            job,
            more.pop("fleet", self.fleet),
            None,
            more.pop("start", own_process("run")),
            self.folder / "run",
            **more,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    one = parse_study(study(), "s.toml")
    host = Host(vllm=STAND_IN, results=tmp_path, port=port())
    starter = Starter(host, one, str(tmp_path), lambda line: None, WAIT)
    fleet = starter.fleet(one.arm[0], tmp_path / "logs" / "1")
    yield Bench(plan(one), host, fleet, tmp_path)
    fleet.stop()


def test_a_run_is_sealed_with_what_happened(bench: Bench) -> None:
    made = bench.make()
    assert made.outcome.state == "complete"
    assert rundir.whole(made.folder) == ""
    said = rundir.read_record(made.folder) or {}
    assert said["order"] == 1
    assert said["ended"] - said["started"] == pytest.approx(said["seconds"], abs=0.002)
    assert said["requests_by_server"] == {"server": 4}
    # The program's name stands there, without its folder.
    assert said["clients"][0]["argv"][0] == Path(STAND_IN[0]).name
    # A second run of the name puts the first aside.
    assert bench.make().folder == made.folder


def test_a_server_that_is_dead_fails_the_run(bench: Bench) -> None:
    (engine,) = bench.fleet.engines
    assert engine.process is not None
    engine.process.stop()
    made = bench.make()
    assert made.outcome.state == "failed"
    assert "ended with status" in made.outcome.reason
    said = rundir.read_record(made.folder) or {}
    assert said["prefix_cache_emptied"] is False
    assert said["requests_by_server"] == {"server": None}


def test_a_server_that_died_at_the_very_end_fails_the_run(bench: Bench) -> None:
    # The client's last word comes before anybody sees that the server is gone.
    (engine,) = bench.fleet.engines
    assert engine.process is not None
    kill = f"kill -9 {next(descendants(engine.process.pid))}"

    def start(command: Command, log: Path) -> Any:
        words = " ".join(map(repr, command.argv))
        script = f'{words}; sed -i \'s/"completed": 4/"completed": 3/\' {log.parent}/bench.json'
        return own_process("run")(Command(("bash", "-c", f"{script}; {kill}"), command.env), log)

    made = bench.make(start=start)
    assert made.outcome.state == "failed"
    assert "ended with status 137" in made.outcome.reason


def test_servers_whose_log_is_not_ours_leave_none(bench: Bench) -> None:
    engine = dataclasses.replace(bench.fleet.engines[0], log=None)
    made = bench.make(fleet=dataclasses.replace(bench.fleet, engines=(engine,)))
    assert not (made.folder / "server.log").exists()
    assert made.outcome.state == "complete"


def test_an_interruption_leaves_a_part(bench: Bench) -> None:
    def start(command: Command, log: Path) -> Any:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        bench.make(start=start)
    assert (bench.folder / "run.part/run.json").is_file()
    assert not (bench.folder / "run").exists()


def test_requests_of_a_run_can_be_told_from_others(bench: Bench) -> None:
    (job,) = bench.plan.jobs
    assert commands.request_prefix(job, 3) == "one.work-c2-r1.3-"
