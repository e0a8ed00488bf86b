"""The stat logger outside vLLM, on objects with the fields of vLLM's; and how it is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from collectors import plugin_path, stat_logger
from collectors.stat_logger import StepLogger

STATE = SimpleNamespace(
    num_running_reqs=4, num_waiting_reqs=3, num_skipped_waiting_reqs=1, kv_cache_usage=0.0123
)


def tokens(*finished: Any, generated: int = 4) -> SimpleNamespace:
    return SimpleNamespace(
        iteration_timestamp=1796061447.713101,
        num_prompt_tokens=64,
        prompt_token_stats=SimpleNamespace(computed=48),
        num_generation_tokens=generated,
        num_preempted_reqs=2,
        finished_requests=list(finished),
    )


def finished(**more: Any) -> SimpleNamespace:
    times = {"queued_time": 0.1, "prefill_time": 0.02, "decode_time": 0.4, "inference_time": 0.42}
    fields = {"request_id": "cmpl-a-0-0", "e2e_latency": 0.5, "finish_reason": "length", **times}
    return SimpleNamespace(**{**fields, **more})


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in folder.glob(f"{kind}-*.jsonl")
        for line in path.read_text("utf-8").splitlines()
    ]


@pytest.fixture
def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StepLogger:
    monkeypatch.setenv(stat_logger.VARIABLE, str(tmp_path))
    return StepLogger(None, 3)


def test_nothing_without_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(stat_logger.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    logger = StepLogger(None, 0)
    logger.record(STATE, tokens(finished()), mm_cache_stats=None, engine_idx=0)
    logger.flush()
    assert list(tmp_path.iterdir()) == []


def test_a_step(on: StepLogger, tmp_path: Path) -> None:
    began = time.time()
    on.record(STATE, tokens(), mm_cache_stats=None, engine_idx=3)
    on.flush()
    (line,) = lines(tmp_path, "steps")
    assert began - 0.001 <= line.pop("t") <= time.time() + 0.001
    assert line.pop("mono") <= time.monotonic() + 0.001
    assert line == {
        "prompt": 64, "computed": 48, "gen": 4, "running": 4, "waiting": 3, "skipped": 1,
        "kv": 0.0123, "preempted": 2, "finished": 0,
    }  # fmt: skip
    assert (tmp_path / f"steps-3-{os.getpid()}.jsonl").is_file()


def test_what_a_message_lacks_is_null(on: StepLogger, tmp_path: Path) -> None:
    on.record(STATE, None)
    on.record(None, tokens())
    on.flush()
    first, second = lines(tmp_path, "steps")
    assert first["gen"] is first["preempted"] is None
    assert first["running"] == 4
    assert second["running"] is second["kv"] is None
    assert second["gen"] == 4


def test_a_finished_request(on: StepLogger, tmp_path: Path) -> None:
    on.record(STATE, tokens(finished(), finished(request_id="b", prefill_time=-12556.0)))
    on.flush()
    first, second = lines(tmp_path, "requests")
    assert first["id"] == "cmpl-a-0-0"
    assert first["t"] == 1796061447.713101
    assert first["queue"] + first["prefill"] + first["decode"] == pytest.approx(0.52)
    assert first["cached"] is None  # as in a version that does not tell
    assert second["prefill"] is None  # aborted before its first token
    assert lines(tmp_path, "steps")[0]["finished"] == 2


def test_the_thread_writes_within_a_second(on: StepLogger, tmp_path: Path) -> None:
    on.record(STATE, tokens())
    until = time.monotonic() + 5
    while not lines(tmp_path, "steps") and time.monotonic() < until:
        time.sleep(0.05)
    assert lines(tmp_path, "steps")


def test_an_error_switches_it_off_with_one_line(
    on: StepLogger, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    on.record(SimpleNamespace(), tokens())
    on.record(SimpleNamespace(), tokens())
    on.flush()
    assert len(caplog.messages) == 1
    assert "No steps are recorded: AttributeError" in caplog.messages[0]
    assert lines(tmp_path, "steps") == []


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(stat_logger.VARIABLE, str(tmp_path / "file" / "steps"))
    StepLogger(None, 0).record(STATE, tokens())
    assert len(caplog.messages) == 1


FIND = """
import importlib.metadata, sys
found = list(importlib.metadata.entry_points(group="vllm.stat_logger_plugins"))
print([(plugin.name, plugin.load().__name__) for plugin in found])
print(sorted(name for name in sys.modules if name.split(".")[0] in ("collectors", "msgspec")))
"""


def test_any_interpreter_finds_it_once(tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    env = plugin_path.environment(folder, tmp_path / "steps", {"PYTHONPATH": str(folder)})
    plugin_path.pythonpath(folder)  # again, over the old files
    out = subprocess.run(
        [sys.executable, "-c", FIND],
        env={**os.environ, **env}, capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert out.stdout.splitlines() == ["[('serving_assay_steps', 'StepLogger')]", "[]"]
    assert {path.name for path in folder.iterdir()} == {
        "serving_assay_steps.py", "serving_assay_steps-1.dist-info",
    } | ({"__pycache__"} & {path.name for path in folder.iterdir()})  # fmt: skip


def test_what_the_server_inherits_is_added_to(tmp_path: Path) -> None:
    inherited = {"PYTHONPATH": "/mine:/yours", "VLLM_PLUGINS": "lora"}
    env = plugin_path.environment(tmp_path / "plugin", tmp_path / "steps", inherited)
    assert env["PYTHONPATH"] == f"{tmp_path / 'plugin'}:/mine:/yours"
    assert env["VLLM_PLUGINS"] == "lora,serving_assay_steps"
    assert env[stat_logger.VARIABLE] == str(tmp_path / "steps")
    assert "VLLM_PLUGINS" not in plugin_path.environment(tmp_path, tmp_path, {})
