"""Profiler traces for tests: the small real ones, and made ones in the torch profiler's format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data" / "traces"
BF16 = DATA / "bf16.rank0.pt.trace.json.gz"
MACHETE = DATA / "awq-machete.rank0.pt.trace.json.gz"
MARLIN = DATA / "awq-marlin.rank0.pt.trace.json.gz"

GEMM = "nvjet_sm90_tst_64x16_64x16_4x1_v_bz_TNT"
FLASH = "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128> >"
NORM = "triton_red_fused_fused_add_rms_norm_0"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

Step = Sequence[tuple[str, float]]
"""Kernels of a step and their µs, one after the other."""


def event(name: str, category: str, start: float, length: float, **args: Any) -> dict[str, Any]:
    """One event; on the device's side the process is the device."""
    on_device = category.startswith(("kernel", "gpu_"))
    return {
        "ph": "X", "cat": category, "name": name, "pid": 0 if on_device else 3707,
        "tid": 7 if on_device else 3707, "ts": start, "dur": length, "args": args,
    }  # fmt: skip


def events(
    steps: Sequence[Step], *, batch: int = 10, prompts: int = 0, idle: float = 100.0
) -> list[dict[str, Any]]:
    """Annotated steps whose kernels follow each other; `idle` µs pass before the next step."""
    found: list[dict[str, Any]] = []
    at = 5e12
    for number, step in enumerate(steps):
        name = f"execute_context_{prompts}({64 * prompts})_generation_{batch}({batch})"
        found.append(event(name, "user_annotation", at - 50, 40))
        found.append(event(name, "gpu_user_annotation", at, sum(length for _, length in step)))
        for kernel, length in step:
            found.append(event(kernel, "kernel", at, length, device=0, correlation=number))
            at += length
        at += idle
    return found


def text(found: Sequence[Mapping[str, Any]], rank: int = 0) -> str:
    """A trace as the profiler writes it, as far as it is read."""
    head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank}}
    return json.dumps({**head, "traceEvents": list(found), "traceName": "x.json"}, indent=1)


def write(path: Path, found: Sequence[Mapping[str, Any]], rank: int = 0) -> Path:
    """A trace file, compressed where its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text(found, rank).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def server(
    gemm: float, *, steps: int = 30, batch: int = 10, idle: float = 100.0, other: float = 500.0
) -> list[dict[str, Any]]:
    """Steps of which GEMM takes about `gemm` µs, attention and norms `other` together."""
    return events(
        [[(GEMM, gemm + k % 5), (FLASH, 0.6 * other), (NORM, 0.4 * other)] for k in range(steps)],
        batch=batch,
        idle=idle,
    )
