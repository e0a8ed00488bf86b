from __future__ import annotations

import json
import os
import shlex
import socket
import time
from pathlib import Path

import pytest

from collectors import preflight
from collectors.hardware import Inventory, NoGpu
from collectors.host import Host
from collectors.preflight import Preflight
from collectors.schedule import Plan, plan
from collectors.study_file import read_study
from tests.collectors import commands_that_tell
from tests.collectors.fake_nvml import Card, FakeNvml
from tests.collectors.plans import arm, planned, workload
from tests.collectors.test_model_folder import QWEN3_14B
from tests.collectors.words import write_sharegpt, write_tokenizer

NO_GPU = FakeNvml(starts=False)
ONE_GPU = FakeNvml()


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def checked(
    tmp_path: Path, made: Plan, host: Host, nvml: FakeNvml = ONE_GPU, base_url: str = ""
) -> Preflight:
    return preflight.check(made, host, base_url, cache=tmp_path / "cache", nvml=nvml)


def lines(found: Preflight) -> list[str]:
    return [str(problem) for problem in found.problems]


def host(tmp_path: Path, **more: object) -> Host:
    return Host(
        vllm=commands_that_tell.vllm(tmp_path / "bin"),
        router=commands_that_tell.router(tmp_path / "bin"),
        results=tmp_path / "results",
        **more,  # type: ignore[arg-type]
    )


def test_neither_gpu_nor_vllm_is_a_line_each_and_takes_no_time(tmp_path: Path) -> None:
    began = time.monotonic()
    found = checked(tmp_path, plan(read_study("cpu-smoke")), Host((), results=tmp_path), NO_GPU)
    assert time.monotonic() - began < 2
    assert [line.partition(":")[0] for line in lines(found)] == ["vLLM", "GPU"]
    assert all("\n" not in line for line in lines(found))
    assert found.gpus == NoGpu("NVML does not start: NVML Shared Library Not Found")
    assert found.estimate.seconds > 0


def test_everything_is_right(tmp_path: Path) -> None:
    model = write_tokenizer(tmp_path / "model")
    (model / "config.json").write_text(json.dumps(QWEN3_14B))
    (model / "model.safetensors").write_bytes(b"x" * 1000)
    data = write_sharegpt(tmp_path / "d.json", [(10, 20)] * 40)
    made = planned(
        arm(), arm("r", replicas=2, router="round_robin"),
        work=[workload(), workload("c", dataset="d.json", flags=["--dataset-name", "sharegpt"])],
    )  # fmt: skip
    found = checked(
        tmp_path, made,
        host(tmp_path, models={"m": str(model)}, datasets={"d.json": data}, upload=f"file://{tmp_path}/up"),
        FakeNvml((Card(bus=1), Card(bus=2))),
    )  # fmt: skip
    assert lines(found) == []
    assert found.notes[0] == "2 x NVIDIA L40S, driver 580.95.05"
    assert "workload 'c': Prompt tokens: min 10, max 10" in " ".join(found.notes)
    assert isinstance(found.gpus, Inventory)
    assert "python" in found.versions
    assert not (tmp_path / "results").exists()


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    made = planned(
        arm("typo", flags=["--max-modle-len", "1"]),
        arm("big", gpus=4, flags=["-tp", "4"]),
        arm("routed", replicas=2, router="sticky"),
        work=[workload(dataset="none.json", flags=["--dataset-name", "sharegpt"])],
    )
    found = checked(
        tmp_path, made,
        host(tmp_path, models={"m": "/no/folder"}, upload="nonsense://x"),
    )  # fmt: skip
    told = " | ".join(lines(found))
    for words in (
        "did you mean '--max-model-len'?",
        "arm 'big': 1 GPU; needed: 4",
        "--policy sticky is no choice",
        "dataset none.json: No such file",
        "/no/folder is no folder",
        "upload target nonsense://x",
    ):
        assert words in told
    assert commands_that_tell.calls(host(tmp_path).router)


def test_help_that_cannot_be_had_is_told(tmp_path: Path) -> None:
    broken = commands_that_tell.script(tmp_path / "vllm", "sys.exit('ImportError: no torch')")
    found = checked(tmp_path, planned(), Host(broken, results=tmp_path / "r"))
    assert [line.partition(":")[0] for line in lines(found)] == [
        "help of vllm serve", "help of vllm bench serve",
    ]  # fmt: skip
    assert "ImportError: no torch" in lines(found)[0]


def test_a_router_is_missed_only_by_arms_that_need_one(tmp_path: Path) -> None:
    vllm = commands_that_tell.vllm(tmp_path / "bin")
    two = FakeNvml((Card(bus=1), Card(bus=2)))
    direct = planned(arm(replicas=2, router="direct"))
    assert lines(checked(tmp_path, direct, Host(vllm, results=tmp_path), two)) == []
    routed = planned(arm(replicas=2, router="random"))
    (line,) = lines(checked(tmp_path, routed, Host(vllm, results=tmp_path), two))
    assert line.startswith("vllm-router: is not installed here; needed: a router for 'a'")


def test_a_server_of_somebody_elses_needs_the_client_only(tmp_path: Path) -> None:
    made = planned(arm(flags=["--no-such-flag"], model="/no/such"))
    mine = host(tmp_path, port=1)
    found = checked(tmp_path, made, mine, NO_GPU, base_url="http://127.0.0.1:9")
    assert lines(found) == []
    assert commands_that_tell.calls(mine.vllm) == ["bench serve --help=all"]


def test_a_port_that_is_taken_is_a_note(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = checked(tmp_path, planned(), host(tmp_path, port=port))
    assert lines(found) == []
    assert any(note.startswith(f"port {port} is taken") for note in found.notes)


def test_recorded_runs_make_the_estimate(tmp_path: Path) -> None:
    run = tmp_path / "results" / "s" / "a" / "w-c4-r1"
    run.mkdir(parents=True)
    (run / "run.json").write_text('{"seconds": 1000}')
    assert checked(tmp_path, planned(), host(tmp_path)).estimate.parts[1].seconds == 2000


@pytest.mark.server
def test_a_real_vllm_takes_the_smoke_study(tmp_path: Path) -> None:
    named = os.environ.get("COLLECT_VLLM")
    if not named:
        pytest.skip("COLLECT_VLLM names no vllm")
    mine = Host(tuple(shlex.split(named)), results=tmp_path / "results")
    made = plan(read_study("cpu-smoke"))
    began = time.monotonic()
    first = checked(tmp_path, made, mine)
    cold = time.monotonic() - began
    assert lines(first) == []
    assert first.versions["vllm"]
    began = time.monotonic()
    assert checked(tmp_path, made, mine) == first
    assert time.monotonic() - began < min(cold, 5)
    wrong = planned(arm(flags=["--disable-log-requests", "--max-modle-len", "1"]))
    told = lines(checked(tmp_path, wrong, mine))
    assert any("requests are logged only with --enable-log-requests" in line for line in told)
    assert any("did you mean '--max-model-len'?" in line for line in told)
