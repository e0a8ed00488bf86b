"""Samples of GPUs for tests, whose energy and clocks are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from analysis.model import GpuSamples, Run, ServerSide, Source
from tests.builders import run

BEGIN = 1_000_000.0
"""When the first sample was taken, Unix time."""


def samples(
    power: Sequence[float],
    *,
    period: float = 0.5,
    utilisation: float | Sequence[float] = 1.0,
    clock: float | Sequence[float] = 1980.0,
    throttle: int | Sequence[int] = -1,
    gpu: int | Sequence[int] = 0,
    file: str = "a/gpu.jsonl",
    labels: Sequence[str] = (),
    times: Sequence[float] | None = None,
    energy: Sequence[float] | None = None,
) -> GpuSamples:
    """One sample a value of `power`, each `period` seconds."""
    n = len(power)
    nothing = np.full(n, np.nan)
    names = tuple(dict.fromkeys(labels))
    at = np.array(BEGIN + period * np.arange(n) if times is None else times, np.float64)
    return GpuSamples(
        source=Source(file, ""),
        clock=at,
        gpu=np.broadcast_to(gpu, n).astype(np.int64),
        utilisation=np.broadcast_to(utilisation, n).astype(np.float64),
        memory_used=np.full(n, 2.0**34),
        power=np.array(power, float),
        sm_clock=np.broadcast_to(clock, n).astype(np.float64),
        memory_clock=nothing,
        temperature=np.full(n, 60.0),
        pstate=np.zeros(n),
        energy=nothing if energy is None else np.array(energy, float),
        throttle=np.broadcast_to(throttle, n).astype(np.int64),
        labels=names,
        label=np.array([names.index(name) for name in labels]) if labels else None,
    )


def sampled(found: GpuSamples, duration: float = 20.0, **more: Any) -> Run:
    """A run with these samples; 5,000 generated tokens unless said otherwise."""
    plain = run({"duration": duration}, **more)
    return replace(plain, server=ServerSide(gpu=found))
