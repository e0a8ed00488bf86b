"""What a study sets although the collector does: told with what to do instead."""

from __future__ import annotations

from typing import Any

import pytest

from collectors import commands, own_flags
from collectors.errors import BadInput
from collectors.flags import given, plain
from collectors.host import Host
from collectors.schedule import plan
from collectors.study_file import parse_study, read_study, shipped
from tests.collectors.campaigns import arm, study
from tests.collectors.plans import planned, workload


def told(table: dict[str, Any]) -> list[str]:
    with pytest.raises(BadInput) as error:
        parse_study(table, "s.toml")
    return str(error.value).splitlines()


@pytest.mark.parametrize(
    "flags",
    [
        ["--port", "1"], ["--port=1"], ["--host", "::"], ["--uds", "/x"], ["--headless"],
        ["--served-model-name", "x"], ["--served_model_name=x"], ["--api-server-count", "2"],
        ["-asc", "2"], ["--ssl-keyfile", "x"], ["--profiler-config.profiler", "torch"],
    ],
)  # fmt: skip
def test_flags_of_servers(flags: list[str]) -> None:
    for table, at in (
        (study(arm(flags=flags)), "arm 'one'"),
        ({**study(), "servers": {"flags": flags}}, "servers"),
    ):
        (line,) = told(table)
        assert line.startswith(f"s.toml, {at}: its flags set {flags[0].partition('=')[0]}")
        assert "which the collector sets itself; drop it" in line


@pytest.mark.parametrize(
    "flags",
    [
        ["--num-prompts", "5"], ["--seed", "1"], ["--max-concurrency", "4"], ["--model", "x"],
        ["--request-rate", "inf"], ["--request_rate=5"], ["--save-result"], ["--save-detailed"],
        ["--result-dir", "x"], ["--result-filename", "x"], ["--base-url", "x"], ["--port", "1"],
        ["--append-result"], ["--tokenizer", "x"], ["--metadata", "a=b"], ["--profile"],
        ["--ramp-up-strategy", "linear"], ["--max-conc", "4"], ["--request-id-prefix", "x"],
    ],
)  # fmt: skip
def test_flags_of_clients(flags: list[str]) -> None:
    table = study()
    table["workload"][0]["flags"] = [*flags, "--dataset-name", "random"]
    (line,) = told(table)
    assert line.startswith(f"s.toml, workload 'work': its flags set {flags[0].partition('=')[0]}")
    assert "; drop it" in line


def test_flags_of_a_router_and_variables() -> None:
    routed = arm(replicas=2, router="random", router_flags=["--policy", "x"])
    assert "router_flags: its flags set --policy x" in told(study(routed))[0]
    env = {"CUDA_VISIBLE_DEVICES": "3"}
    assert "env sets CUDA_VISIBLE_DEVICES" in told(study(arm(env=env)))[0]
    assert "servers: its env sets VLLM_SERVER" in told(study(env={"VLLM_SERVER_DEV_MODE": "0"}))[0]
    each = arm(replicas=2, router="random", replica_env=[{}, env])
    assert "env sets CUDA_VISIBLE_DEVICES" in told(study(each))[0]


def test_flags_that_are_the_collectors_in_some_studies_only() -> None:
    flags = ["--load-format", "auto", "--otlp-traces-endpoint", "x"]
    assert parse_study(study(arm(flags=flags)), "s.toml").arm
    assert "--load-format auto" in told(study(arm(flags=flags), random_weights=True))[0]
    assert "--otlp-traces-endpoint x" in told(study(arm(flags=flags, spans=True)))[0]
    table = study()
    table["workload"][0] |= {"flags": ["--dataset-path", "x"]}
    assert parse_study(table, "s.toml").workload
    table["workload"][0] |= {"dataset": "y"}
    assert "--dataset-path x" in told(table)[0]


def test_every_flag_that_a_command_sets_is_known() -> None:
    made = planned(arm(), work=[workload(dataset="d.json", request_rate=2)])
    (one,) = made.arms
    host = Host(("vllm",), ("router",))
    server = commands.server(host, made.study, one, port=1).argv[3:]
    router = commands.router(host, one, port=1, workers=["x"], prometheus=2).argv[1:]
    ((_, client),) = commands.clients(host, made.study, made.jobs[0], fronts=["x"], folder="f")
    # What comes before a workload's own flags is there to be replaced.
    free = {"--backend", "--endpoint", "--dataset-name", "--dataset-path", "--disable-tqdm"}
    free |= {"--worker-startup-check-interval"}
    for words, known in (
        (server, own_flags.SERVE),
        (router, own_flags.ROUTER),
        (client.argv[3:], own_flags.BENCH),
    ):
        assert {plain(flag.said) for flag in given(words)[1]} - free - set(known) == set()


@pytest.mark.parametrize("name", shipped())
def test_no_study_that_ships_contradicts_the_collector(name: str) -> None:
    assert list(own_flags.problems(read_study(name), name)) == []
    assert plan(read_study(name)).jobs
