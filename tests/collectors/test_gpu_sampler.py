"""GPU samples from a stand-in for a driver, in the types and with the errors of nvidia-ml-py."""

from __future__ import annotations

import builtins
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from collectors.gpu_sampler import GpuSampler, sample

pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")


def unsupported(*args: object) -> None:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def utilization(*args: object) -> Any:
    return pynvml.c_nvmlUtilization_t(gpu=97, memory=61)


def memory(*args: object) -> Any:
    return pynvml.c_nvmlMemory_t(total=80 << 30, free=40 << 30, used=40 << 30)


DRIVER = {
    "nvmlInit": lambda: None,
    "nvmlShutdown": lambda: None,
    "nvmlDeviceGetCount": lambda: 2,
    "nvmlDeviceGetHandleByIndex": lambda index: index,
    "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
    "nvmlDeviceGetUtilizationRates": utilization,
    "nvmlDeviceGetMemoryInfo": memory,
    "nvmlDeviceGetPowerUsage": lambda handle: 312_400,
    "nvmlDeviceGetTotalEnergyConsumption": lambda handle: 81_234_125,
    "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: pynvml.nvmlClocksEventReasonSwPowerCap,
    "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 4,
    "nvmlDeviceGetClockInfo": lambda handle, kind: {
        pynvml.NVML_CLOCK_SM: 1755, pynvml.NVML_CLOCK_MEM: 2619,
    }[kind],
    "nvmlDeviceGetTemperature": lambda handle, kind: 61,
    "nvmlDeviceGetPerformanceState": lambda handle: pynvml.NVML_PSTATE_0,
}  # fmt: skip


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, answer in DRIVER.items():
        assert hasattr(pynvml, name)  # the library's own names only
        monkeypatch.setattr(pynvml, name, answer)
    return monkeypatch


def test_a_sample(driver: pytest.MonkeyPatch) -> None:
    assert sample(pynvml, 0) == {
        "utilization_gpu": 97, "utilization_memory": 61, "memory_used": 40 << 30,
        "power": 312.4, "clock_sm": 1755, "clock_memory": 2619, "throttle_reasons": 4,
        "temperature": 61, "pstate": 0, "energy": 81234.125,
    }  # fmt: skip


def test_what_a_gpu_does_not_tell_is_null(driver: pytest.MonkeyPatch) -> None:
    for name in DRIVER:
        driver.setattr(pynvml, name, unsupported)
    assert set(sample(pynvml, 0).values()) == {None}


def test_lines_of_the_chosen_gpus(driver: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sampler = GpuSampler(tmp_path / "gpu.jsonl", [1], period=0.02)
    assert sampler.start() == ""
    until = time.monotonic() + 10
    while sampler.samples < 3 and time.monotonic() < until:
        time.sleep(0.01)
    sampler.stop()
    lines = [json.loads(line) for line in (tmp_path / "gpu.jsonl").open()]
    assert len(lines) == sampler.samples >= 3
    assert {(line["gpu"], line["uuid"]) for line in lines} == {(1, "GPU-1")}
    assert abs(lines[0]["t"] - time.time()) < 60


def test_all_gpus_where_none_is_named(driver: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sampler = GpuSampler(tmp_path / "gpu.jsonl", period=10)
    sampler.start()
    until = time.monotonic() + 10
    while sampler.samples < 2 and time.monotonic() < until:
        time.sleep(0.01)
    sampler.stop()
    assert [json.loads(line)["gpu"] for line in (tmp_path / "gpu.jsonl").open()] == [0, 1]


@pytest.mark.parametrize(
    ("name", "answer", "told"),
    [
        ("nvmlInit", unsupported, "NVML: Not Supported"),
        ("nvmlDeviceGetHandleByIndex", unsupported, "NVML: Not Supported"),
        ("nvmlDeviceGetCount", lambda: 0, "finds no GPU"),
    ],
)
def test_no_gpu_is_a_reason(
    name: str, answer: Any, told: str, driver: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver.setattr(pynvml, name, answer)
    sampler = GpuSampler(tmp_path / "gpu.jsonl")
    assert told in sampler.start()
    sampler.stop()
    assert not (tmp_path / "gpu.jsonl").exists()


def test_no_driver_on_this_host_is_a_reason(tmp_path: Path) -> None:
    sampler = GpuSampler(tmp_path / "gpu.jsonl", [77])
    assert sampler.start().startswith("no GPU samples: ")


def test_no_library_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "pynvml")
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pynvml":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "nvidia-ml-py is not installed" in GpuSampler(tmp_path / "g").start()
