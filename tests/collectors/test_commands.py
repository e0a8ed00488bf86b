"""Command lines of servers, routers and clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from collectors import commands
from collectors.host import Host
from collectors.schedule import Job
from collectors.study import Study
from collectors.study_file import parse_study
from tests.collectors.campaigns import arm, study

HOST = Host(vllm=("vllm",), router=("vllm-router",), models={"some/model": "/models/m"})


def made(**change: Any) -> Study:
    servers = {"flags": ["--dtype", "bfloat16"], "env": {"A": "study", "B": "study"}}
    table = study(arm(flags=["--max-num-seqs", "4"], **change), request_rate=None)
    table.pop("request_rate")
    table["servers"] = servers
    return parse_study(table, "s.toml")


def value(words: tuple[str, ...], flag: str) -> str:
    return words[words.index(flag) + 1]


def test_a_server() -> None:
    one = made(env={"B": "arm"})
    command = commands.server(HOST, one, one.arm[0], port=8, gpus=(2, 3), more=("--x",))
    assert command.argv == (
        "vllm", "serve", "/models/m", "--served-model-name", "some/model",
        "--host", "127.0.0.1", "--port", "8", "--dtype", "bfloat16", "--max-num-seqs", "4", "--x",
    )  # fmt: skip
    assert command.env["A"] == "study"
    assert command.env["B"] == "arm"
    assert command.env["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert command.env["VLLM_SERVER_DEV_MODE"] == "1"


def test_the_nearest_setting_of_a_variable_wins() -> None:
    rooms = [{"B": "zero"}, {"B": "one"}]
    one = made(env={"A": "arm"}, replicas=2, router="direct", replica_env=rooms)
    for replica, word in enumerate(("zero", "one")):
        command = commands.server(HOST, one, one.arm[0], port=8, replica=replica)
        assert (command.env["A"], command.env["B"]) == ("arm", word)
        assert "CUDA_VISIBLE_DEVICES" not in command.env
    command = commands.server(HOST, one, one.arm[0], port=8, replica=1, env={"B": "collector"})
    assert command.env["B"] == "collector"


def test_a_router() -> None:
    one = made(replicas=2, router="round_robin", router_flags=["--cache-threshold", "0.5"])
    words = commands.router(
        HOST, one.arm[0], port=8, workers=["http://a", "http://b"], prometheus=9
    ).argv
    assert words[:4] == ("vllm-router", "--worker-urls", "http://a", "http://b")
    assert value(words, "--policy") == "round_robin"
    assert (value(words, "--port"), value(words, "--prometheus-port")) == ("8", "9")
    assert words[-2:] == ("--cache-threshold", "0.5")


def client(one: Study, host: Host = HOST, number: int = 0, **change: Any) -> tuple[str, ...]:
    job = Job(**{"arm": "one", "workload": "work", "concurrency": 4, "prompts": 9, "repeat": 2,
                 "seed": 44, **change})  # fmt: skip
    return commands.client(
        host, one, one.arm[0], one.workload[0], job, url="http://u", folder="/f", number=number
    ).argv


def test_a_client() -> None:
    words = client(made())
    assert words[:5] == ("vllm", "bench", "serve", "--backend", "openai")
    assert (value(words, "--model"), value(words, "--tokenizer")) == ("some/model", "/models/m")
    assert value(words, "--request-rate") == "inf"
    assert value(words, "--seed") == "44"
    assert (value(words, "--result-dir"), value(words, "--result-filename")) == ("/f", "bench.json")
    assert {"--save-result", "--save-detailed", "--disable-tqdm"} <= set(words)
    assert words[-2:] == ("repeat=2", "in_flight_total=4")
    assert "--ignore-eos" not in words
    assert "--dataset-path" not in words


def test_clients_of_one_run_share_it() -> None:
    lines = [client(made(replicas=2, router="direct"), number=n, clients=2) for n in (0, 1)]
    assert [value(words, "--num-prompts") for words in lines] == ["5", "4"]
    assert [value(words, "--max-concurrency") for words in lines] == ["2", "2"]
    assert [value(words, "--seed") for words in lines] == ["44", "1044"]
    prefixes = [value(words, "--request-id-prefix") for words in lines]
    assert prefixes == ["one.work-c4-r2.0-", "one.work-c4-r2.1-"]


@pytest.mark.parametrize(
    ("rate", "clients", "told"), [(10, 1, "10"), (5, 2, "2.5"), (1, 3, "0.333333")]
)
def test_a_rate_is_shared(rate: float, clients: int, told: str) -> None:
    table = study()
    table["workload"][0]["request_rate"] = rate
    words = client(parse_study(table, "s.toml"), clients=clients)
    assert value(words, "--request-rate") == told


@pytest.mark.parametrize("where", ["host", "study"])
def test_random_weights(where: str) -> None:
    one = parse_study(study(random_weights=where == "study"), "s.toml")
    host = Host(vllm=("vllm",), random_weights=where == "host")
    words = client(one, host)
    assert "--ignore-eos" in words
    assert value(commands.server(host, one, one.arm[0], port=1).argv, "--load-format") == "dummy"


@pytest.mark.parametrize(
    ("datasets", "path"),
    [
        ({}, "set.json"),
        ({"set.json": Path("/a")}, "/a"),
        ({"work": Path("/b"), "set.json": Path("/a")}, "/b"),
    ],
)
def test_a_dataset_is_found_by_its_name_or_its_workload_s(
    datasets: dict[str, Path], path: str
) -> None:
    table = study()
    table["workload"][0]["dataset"] = "set.json"
    host = Host(vllm=("vllm",), datasets=datasets)
    assert value(client(parse_study(table, "s.toml"), host), "--dataset-path") == path
