from __future__ import annotations

import json
import sys

import pytest

from collectors.hardware import Inventory, NoGpu, described, indices, inventory
from tests.collectors.fake_nvml import Card, FakeNvml


def found(nvml: FakeNvml, *chosen: int) -> Inventory:
    answer = inventory(chosen, nvml)
    assert isinstance(answer, Inventory)
    return answer


def test_tells_each_gpu_in_si_units() -> None:
    (gpu,) = found(FakeNvml()).gpus
    assert gpu.name == "NVIDIA L40S"
    assert gpu.memory_total == 46068 * 2**20
    assert gpu.capability == (8, 9)
    assert gpu.power_limit == 350.0
    assert gpu.sm_clock == 2.52e9
    # The data sheet says 864 GB/s.
    assert gpu.bandwidth == pytest.approx(864e9, rel=1e-3)


def test_what_a_gpu_does_not_tell_is_none() -> None:
    (gpu,) = found(FakeNvml((Card(unsupported=("memory", "bus")),))).gpus
    assert gpu.memory_total is None
    assert gpu.memory_free is None
    assert gpu.bandwidth is None


def test_no_driver_no_gpu_and_no_library_are_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = inventory(nvml=FakeNvml(starts=False))
    assert answer == NoGpu("NVML does not start: NVML Shared Library Not Found")
    assert inventory(nvml=FakeNvml(())) == NoGpu("NVML counts no GPU")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "nvidia-ml-py is not installed" in described(inventory())["no_gpu"]
    assert indices(inventory()) == ()


def test_links_are_told_in_words() -> None:
    plain = FakeNvml((Card(bus=1), Card(bus=2)))
    assert str(found(plain).links[0]) == (
        "GPU 0 - GPU 1: PCIe through several host bridges of one NUMA node (NODE)"
    )
    bridged = FakeNvml((Card(bus=1, nvlinks=(2, 2, 9)), Card(bus=2, nvlinks=(1, 1, 9))))
    assert found(bridged).links[0].relation == "NVLink, 2 links"
    switched = FakeNvml(tuple(Card(bus=bus, nvlinks=(None,) * 18) for bus in (1, 2)))
    (link,) = found(switched).links
    assert (link.nvlinks, link.relation) == (18, "NVLink through NVSwitch, 18 links")


def test_links_are_asked_between_the_chosen_only() -> None:
    nvml = FakeNvml(tuple(Card(bus=bus) for bus in range(1, 5)))
    assert len(found(nvml).links) == 6
    assert [(link.a, link.b) for link in found(nvml, 1, 3).links] == [(1, 3)]
    assert found(nvml, 9).links == ()


def test_a_record_holds_plain_values() -> None:
    nvml = FakeNvml((Card(bus=1), Card(bus=2)))
    record = described(found(nvml))
    assert json.loads(json.dumps(record)) == record
    assert record["gpus"][1]["compute_capability"] == "8.9"
    assert record["links"][0]["gpus"] == [0, 1]
    assert indices(found(nvml)) == (0, 1)
