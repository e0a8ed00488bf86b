from __future__ import annotations

from typing import Any

import pytest

from collectors import model_folder, placement
from collectors.hardware import Inventory, NoGpu, inventory
from collectors.schedule import Plan, plan
from collectors.study_file import read_study
from tests.collectors.fake_nvml import GIB, Card, FakeNvml
from tests.collectors.plans import arm, planned
from tests.collectors.test_model_folder import AWQ, QWEN3_14B

SHAPES = {
    "Qwen/Qwen3-14B": model_folder.shape(QWEN3_14B),
    "Qwen/Qwen3-14B-AWQ": model_folder.shape({**QWEN3_14B, "quantization_config": AWQ}),
}
SHAPE = {"m": SHAPES["Qwen/Qwen3-14B-AWQ"]}


def machine(count: int, **card: Any) -> Inventory:
    found = inventory(nvml=FakeNvml(tuple(Card(bus=bus, **card) for bus in range(1, count + 1))))
    assert isinstance(found, Inventory)
    return found


def l4(count: int) -> Inventory:
    return machine(count, name="NVIDIA L4", total=22 * GIB, free=22 * GIB)


def h200(count: int = 1) -> Inventory:
    return machine(count, name="NVIDIA H200", total=140 * GIB, free=140 * GIB, capability=(9, 0))


def told(
    made: Plan, found: Inventory | NoGpu, *chosen: int, shapes: placement.Shapes = SHAPE
) -> list[str]:
    asked = placement.demands(made, 0.92)
    return [
        str(problem)
        for problem in (
            *placement.without_gpus(made, asked, shapes),
            *placement.on_gpus(made, found, chosen, asked, shapes),
        )
    ]


@pytest.mark.parametrize(
    ("study", "found"),
    [
        ("quantization", machine(1)),
        ("parallelism", l4(4)),
        ("headroom", h200()),
        ("crossover", h200(2)),
    ],
)
def test_the_shipped_studies_fit_where_they_are_meant_to_run(study: str, found: Inventory) -> None:
    assert told(plan(read_study(study)), found, shapes=SHAPES) == []


def test_the_write_ups_first_arm_does_not_fit_on_its_second_machine() -> None:
    (line,) = told(plan(read_study("quantization")), l4(1), shapes=SHAPES)
    assert line.startswith("arm 'fp16', GPU 0: 20.2 GiB to use; needed: 27.5 GiB")


def test_servers_that_share_gpus_are_added_up_on_each() -> None:
    fixed = {"flags": ["--kv-cache-memory-bytes", "15G"], "shares_gpu": "x"}
    pair = {**fixed, "gpus": 2, "flags": [*fixed["flags"], "-tp", "2"]}
    made = planned(arm("one", **fixed), arm("two", **pair))
    (line,) = told(made, machine(2))
    assert line.startswith("arms that share GPU 0 (x): ")
    assert "43.6 GiB for weights and KV of 2 servers" in line or "looks for its share" in line


def test_no_gpu_is_one_line() -> None:
    lines = told(planned(arm("a"), arm("b", replicas=2, router="random")), NoGpu("none here"))
    assert lines == [
        "GPU: none here; needed: 2 for the arms chosen; "
        "run it on a GPU host, or with the CPU build of vLLM (make collect-smoke)"
    ]


def test_too_few_gpus_are_told_for_each_arm() -> None:
    made = planned(
        arm("one"), arm("tp", gpus=2, flags=["-tp", "2"]), arm("r", replicas=3, router="random")
    )
    lines = told(made, l4(1))
    assert [line.partition(";")[0] for line in lines] == ["arm 'tp': 1 GPU", "arm 'r': 1 GPU"]
    assert "needed: 3 (3 servers x 1)" in lines[1]
    assert told(made, l4(3)) == []
    assert len(told(made, l4(3), 0)) == 2


def test_a_chosen_gpu_that_is_not_there() -> None:
    assert told(planned(), l4(2), 0, 7)[0].startswith("GPU 7: there is none; this machine has 0, 1")


def test_copies_of_the_weights_take_gpus_too() -> None:
    dp = arm(gpus=4, flags=["-tp", "2", "--data-parallel-size", "2"])
    assert told(planned(dp), l4(4)) == []


def test_equal_gpus_say_equal_things_once() -> None:
    made = planned(arm(gpus=2, flags=["-tp", "2", "--gpu-memory-utilization", "0.2"]))
    assert len(told(made, l4(2))) == 1


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["-tp", "3"], "the model has 40 heads"),
        (["-pp", "64"], "the model has 40 layers"),
        (["--max-model-len", "50000"], "40,960 at most"),
        (["--num-gpu-blocks-override", "10"], "holds 160 tokens; needed: 40,960"),
    ],
)
def test_what_no_machine_can_start(flags: list[str], words: str) -> None:
    gpus = int(flags[1]) if "p" in flags[0][:3] else 1
    made = planned(arm(flags=flags, gpus=gpus))
    asked = placement.demands(made, 0.92)
    (problem,) = placement.without_gpus(made, asked, SHAPE)
    assert words in str(problem)


def test_a_longer_context_that_is_asked_for_on_purpose() -> None:
    long = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}
    made = planned(arm(flags=["--max-model-len", "50000"], env=long))
    assert list(placement.without_gpus(made, placement.demands(made, 0.92), SHAPE)) == []


def test_notes_name_the_gpus_and_what_joins_those_of_one_server() -> None:
    made = planned(arm("tp", gpus=2, flags=["-tp", "2"]))
    notes = list(placement.notes(made, l4(4), ()))
    assert notes[0] == "4 x NVIDIA L4, driver 580.95.05"
    assert notes[1:] == ["GPU 0 - GPU 1: PCIe through several host bridges of one NUMA node (NODE)"]
    assert len(list(placement.notes(planned(), l4(4), (1,)))) == 1


def test_a_step_reads_the_weights_once() -> None:
    made = planned(arm("one"), arm("two", gpus=2, flags=["-tp", "2"]))
    steps = placement.steps(made, machine(2), placement.demands(made, 0.92), SHAPE)
    assert steps["one"] == pytest.approx(SHAPE["m"].weights / 864e9, rel=1e-3)  # type: ignore[operator]
    assert steps["two"] == pytest.approx(steps["one"] / 2)
    assert placement.steps(made, NoGpu(""), placement.demands(made, 0.92), SHAPE) == {}
    assert placement.steps(made, machine(2), placement.demands(made, 0.92), {}) == {}
