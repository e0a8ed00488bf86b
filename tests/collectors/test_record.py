"""What run.json says of a run, and what it must not say."""

from __future__ import annotations

import json
from pathlib import Path

from collectors import record
from collectors.commands import Command
from collectors.host import Host
from collectors.kv import Kv
from collectors.record import Identity
from collectors.schedule import plan
from collectors.server import Engine, Fleet
from collectors.study_file import parse_study, read_study, shipped
from tests.collectors.campaigns import arm, study

HOST = Host(vllm=("vllm",))


def test_the_definition_of_every_run_that_ships_is_json() -> None:
    for name in shipped():
        one = read_study(name)
        for job in plan(one).jobs:
            told = record.definition(one, HOST, job)
            # It is compared with what was read back.
            assert json.loads(json.dumps(told)) == told
            assert told["server_flags"] == [*one.servers.flags, *one.arms[job.arm].flags]


def test_neither_ports_nor_paths_make_another_run() -> None:
    one = read_study("quantization")
    job = plan(one).jobs[0]
    other = Host(vllm=("x",), port=9, results=Path("/r"), models={one.arm[0].model: "/m"})
    assert record.definition(one, HOST, job) == record.definition(one, other, job)


def test_random_weights_of_the_host_make_another_run() -> None:
    one = read_study("quantization")
    job = plan(one).jobs[0]
    other = Host(vllm=("x",), random_weights=True)
    assert record.definition(one, HOST, job) != record.definition(one, other, job)


def test_no_secret_of_a_study_is_in_a_definition() -> None:
    words = ["--api-key", "5ecret-key"]
    table = study(
        arm(
            model="https://me:5ecret-key@host/model",
            flags=words,
            env={"HF_TOKEN": "5ecret-key"},
            replicas=2,
            router="round_robin",
            router_flags=words,
            replica_env=[{"HF_TOKEN": "5ecret-key"}] * 2,
        )
    )
    table["workload"][0]["flags"] = ["--header", "X=5ecret-key"]
    table["workload"][0]["dataset"] = "https://me:5ecret-key@host/set.json"
    one = parse_study(table, "s.toml")
    (job,) = plan(one).jobs
    told = record.opening(one, HOST, job, Identity("c", "collect", {}), 1)
    assert "5ecret" not in json.dumps(told)
    assert told["order_seed"] == one.seed


def test_the_servers_of_a_run() -> None:
    (one,) = parse_study(study(), "s.toml").arm
    command = Command(("/opt/vllm", "serve", "--api-key", "5ecret-key"), {"HF_TOKEN": "5ecret"})
    kv = Kv(1600, 16, "log")
    engine = Engine("server", "http://x", command, None, Path("/a/log"), (0, 1), 1.23456, kv, 9)
    router = Engine("router", "http://y", Command((), {}), None, None, (), 0.0, None, 0)
    told = record.fleet(Fleet(one, (engine,), router))
    assert "5ecret" not in json.dumps(told)
    assert told["servers"][0]["argv"] == ["vllm", "serve", "--api-key", "***"]
    assert told["servers"][0]["log"] == "log"
    assert told["servers"][0]["ready_seconds"] == 1.235
    assert (told["router"]["kv_tokens"], told["router"]["log"]) == (None, None)
    assert record.fleet(Fleet(one, (engine,)))["router"] is None


def test_the_processor() -> None:
    told = record.processor()
    assert told["cores"] >= 1
    assert told["system"].startswith("Linux")
    assert isinstance(told["processor"], str)
