"""analysis.kernel_steps: which steps are compared, and what a part of them takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.formats import torch_trace
from analysis.kernel_steps import Decoding, best, decoding, near
from analysis.model import KernelTrace
from tests.formats.found import only
from tests.traces import FLASH, GEMM, events, server, write


def trace(path: Path, found: list[dict[str, object]], rank: int = 0) -> KernelTrace:
    return only(torch_trace.read(write(path, found, rank), path.name), KernelTrace)


def of(path: Path, found: list[dict[str, object]]) -> Decoding:
    steps = decoding(trace(path, found))
    assert steps is not None
    return steps


def test_a_part_is_the_mean_over_steps_with_their_middle(tmp_path: Path) -> None:
    steps = of(tmp_path / "a.json", server(4000.0, steps=31))
    found = steps.estimate("gemm", "GEMM")
    assert found.value == pytest.approx(4002e-6)
    assert (found.lo, found.hi) == pytest.approx((4000e-6, 4004e-6))
    assert found.interval == "middle 95 % of 30 steps"
    assert found.sources[0].key == "traceEvents: gemm"
    # Of 31 steps the last has no next one to wait for.
    assert steps.estimate("idle", "idle").value == pytest.approx(100e-6, rel=1e-3)
    assert steps.busy_share == pytest.approx(4502 / 4602)


def test_steps_with_prompts_and_other_batches_are_left_out(tmp_path: Path) -> None:
    mixed = server(4000.0, steps=8) + server(9000.0, steps=3, batch=4)
    prefill = events([[(GEMM, 20_000.0)]] * 20, prompts=2)
    for number, one in enumerate(mixed[8 * 5 :] + prefill):
        one["ts"] += 1e9 * (1 + (number >= 3 * 5))
    steps = of(tmp_path / "a.json", mixed + prefill)
    assert (steps.batch, steps.count, steps.all_steps) == (10, 8, 31)
    assert steps.kinds["gemm"].max() < 5000e-6


def test_the_nearest_batch_comes_first_then_the_lowest_rank(tmp_path: Path) -> None:
    made = [
        trace(tmp_path / f"{batch}-{rank}.json", server(4000.0, batch=batch), rank)
        for batch, rank in ((32, 0), (10, 1), (10, 0))
    ]
    found = best(made, 12)
    assert [(steps.batch, steps.trace.rank) for steps in found] == [(10, 0), (10, 1), (32, 0)]
    assert best([], 12) == ()


def test_what_has_no_decode_steps(tmp_path: Path) -> None:
    assert decoding(trace(tmp_path / "a.json", events([[(FLASH, 5.0)]], prompts=1))) is None
    bare = [one for one in server(100.0) if one["cat"] == "kernel"]
    assert decoding(trace(tmp_path / "b.json", bare)) is None


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [(10, 10, True), (10, 9, True), (10, 8, False), (None, 8, True), (8, None, True)],
)
def test_near(left: int | None, right: int | None, expected: bool) -> None:
    assert near(left, right, 0.1) is expected


def test_busy_and_idle_fill_the_steps(tmp_path: Path) -> None:
    steps = of(tmp_path / "a.json", server(700.0, idle=40.0))
    assert steps.busy + steps.part("idle") == pytest.approx(steps.seconds)
    assert np.all(steps.part("idle") >= 0)
