from __future__ import annotations

from dataclasses import replace

import pytest

from collectors import fit, model_folder
from collectors.hardware import Gpu
from tests.collectors.test_model_folder import AWQ, QWEN3_14B

GIB = 2**30
L40S = Gpu(0, "NVIDIA L40S", "GPU-0", 45 * GIB, 44 * GIB, (8, 9), 2.5e9, 350.0, 864e9)
L4 = replace(L40S, name="NVIDIA L4", memory_total=22 * GIB, memory_free=22 * GIB)
BF16 = model_folder.shape(QWEN3_14B)
INT4 = model_folder.shape({**QWEN3_14B, "quantization_config": AWQ})


def told(line: str, shape: model_folder.Shape | None = BF16, gpu: Gpu = L40S) -> list[str]:
    asked = fit.demand(line.split())
    return [str(problem) for problem in fit.server("arm", shape, asked, gpu)]


@pytest.mark.parametrize(
    ("text", "number"),
    [("4096", 4096), ("4k", 4000), ("4K", 4096), ("1.5M", 1572864), ("x", None), (None, None),
     ("-1", None), ("25.6k", 25600)],
)  # fmt: skip
def test_numbers_are_read_as_vllm_does(text: str | None, number: int | None) -> None:
    assert fit.human(text) == number


def test_flags_say_what_is_asked() -> None:
    asked = fit.demand(
        [
            "-tp",
            "2",
            "-pp",
            "2",
            "--max-model-len",
            "4K",
            "--gpu-memory-utilization=0.5",
            "--kv-cache-dtype",
            "fp8_e5m2",
            "--num-gpu-blocks-override",
            "100",
            "--block-size",
            "32",
            "--cpu-offload-gb",
            "1",
            "-q",
            "awq",
        ]
    )
    assert (asked.split, asked.max_len, asked.utilisation) == (4, 4096, 0.5)
    assert (asked.kv_tokens, asked.kv_number, asked.offloaded) == (3200, 1.0, GIB)
    assert asked.quantization == "awq"
    assert fit.demand(["--gpu-memory-utilization", "much"]).utilisation == fit.UTILISATION


def test_what_the_write_up_ran_fits() -> None:
    assert told("") == []
    assert told("--gpu-memory-utilization 0.95 --max-model-len 1024", INT4) == []
    assert told("", INT4, L4) == []
    assert told("--tensor-parallel-size 2", INT4, L4) == []


def test_weights_that_do_not_fit() -> None:
    (line,) = told("", BF16, L4)
    assert line == (
        "arm: 20.2 GiB to use; needed: 27.5 GiB for the weights alone; "
        "split it over more GPUs (--tensor-parallel-size), or take smaller weights"
    )
    assert told("-tp 2", BF16, L4) == []


def test_kv_of_one_longest_request_does_not_fit() -> None:
    small = replace(L40S, memory_total=33 * GIB, memory_free=33 * GIB)
    (line,) = told("", BF16, small)
    assert "6.2 GiB for the KV of one longest request" in line
    assert told("--max-model-len 4096", BF16, small) == []
    assert told("--max-model-len auto", BF16, small) == []
    assert told("--kv-cache-dtype fp8 --max-model-len 16K", BF16, small) == []


def test_kv_that_is_fixed_does_not_fit() -> None:
    (line,) = told("--kv-cache-memory-bytes 40G --gpu-memory-utilization 0.5")
    assert "40.0 GiB for the KV that is fixed" in line
    (line,) = told("--num-gpu-blocks-override 16000 --gpu-memory-utilization 0.5")
    assert "39.1 GiB for the KV that is fixed" in line


def test_memory_that_is_not_free() -> None:
    (line,) = told("", None, replace(L40S, memory_free=30 * GIB))
    assert line.startswith("arm: 30.0 GiB of 45.0 GiB free; needed: 41.4 GiB")


def test_an_unknown_model_or_memory_is_no_problem() -> None:
    assert told("", None) == []
    assert told("", model_folder.Shape(None, None, None)) == []
    assert told("", BF16, replace(L40S, memory_total=None, memory_free=None)) == []


@pytest.mark.parametrize(
    ("line", "shape", "capability", "words"),
    [
        ("", INT4, (7, 0), "7.5 for awq weights"),
        ("--quantization fp8", None, (7, 0), "7.5 for fp8 weights"),
        ("--quantization modelopt_fp4", None, (7, 5), "8.0 for modelopt_fp4 weights"),
        ("--dtype bfloat16", None, (7, 5), "8.0 for --dtype bfloat16"),
        ("", None, (6, 1), "7.0 for vLLM itself"),
    ],
)
def test_compute_capability(
    line: str, shape: model_folder.Shape | None, capability: tuple[int, int], words: str
) -> None:
    assert words in told(line, shape, replace(L40S, capability=capability))[0]
    assert told(line, shape, replace(L40S, capability=(9, 0))) == []
    assert told(line, shape, replace(L40S, capability=None)) == []


def test_a_kv_head_is_not_split() -> None:
    eight = fit.kv_each(BF16, fit.demand(["-tp", "8"]))
    assert fit.kv_each(BF16, fit.demand(["-tp", "16"])) == eight
    assert eight == 40960 * 163_840 / 8


def side_by_side(share: str, gib: int = 140, shape: model_folder.Shape | None = INT4) -> list[str]:
    line = ["--kv-cache-memory-bytes", "20G", "--gpu-memory-utilization", share]
    servers = [(BF16, fit.demand(line)), (shape, fit.demand(line))]
    gpu = replace(L40S, memory_total=gib * GIB, memory_free=gib * GIB)
    return [str(problem) for problem in fit.side_by_side("arms", servers, gpu)]


def test_servers_that_share_a_gpu() -> None:
    assert side_by_side("0.1") == []
    (line,) = side_by_side("0.92")
    assert "when the last of 2 servers looks for its share (--gpu-memory-utilization 0.92)" in line
    (line,) = side_by_side("0.1", gib=70)
    assert line.startswith("arms: 70.0 GiB free; needed: 76.6 GiB for weights and KV of 2 servers")
    assert side_by_side("0.92", shape=None) == []
