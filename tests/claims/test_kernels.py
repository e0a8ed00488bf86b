"""analysis.claims._kernels: the kind kernel_time with traces of both arms."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.dataset import Arm, Cell, Study
from analysis.evidence import Judgement, Missing
from analysis.formats import torch_trace
from analysis.model import KernelTrace, Level
from tests import builders
from tests.claims.helpers import figure_of, judge, measured
from tests.traces import BF16, FLASH, GEMM, MACHETE, MARLIN, NCCL, NORM, events, server, write

KEYS: dict[str, Any] = {"baseline": "a", "treatment": "b", "workload": "chat", "concurrency": 10}
Events = list[dict[str, Any]]


def traced(folder: Path, name: str, *found: Events) -> Arm:
    traces: list[KernelTrace] = []
    for number, one in enumerate(found):
        path = write(folder / f"{name}-{number}.json", one)
        traces += [t for t in torch_trace.read(path, path.name) if isinstance(t, KernelTrace)]
    return replace(builders.arm(name), traces=tuple(traces))


def repeated(path: Path, times: int = 4) -> Events:
    """The two real decode steps of a cut trace, again and again."""
    found: Events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    starts = [one["ts"] for one in found if one["cat"] == "gpu_user_annotation"]
    whole = 2 * (starts[1] - starts[0])
    return [{**one, "ts": one["ts"] + k * whole} for k in range(times) for one in found]


def study(a: Arm, b: Arm, *, itl: float = 0.007) -> Study:
    cells: list[Cell] = [measured(arm, "mean_itl", itl) for arm in (a, b)]
    return builders.study(*cells)


def kernels(
    folder: Path, before: Events, after: Events, *, itl: float = 0.007, **more: Any
) -> Judgement:
    arms = traced(folder, "a", before), traced(folder, "b", after)
    return judge(study(*arms, itl=itl), "kernel_time", **{**KEYS, **more})


@pytest.mark.parametrize(
    # Of whole captures on an H200 at batch 10: 7.413, 4.548 and 4.122 ms of GEMM a step.
    ("path", "ratio", "busy"),
    [(MACHETE, 0.6135, 0.88), (MARLIN, 0.5561, 0.95)],
)
def test_gemm_of_real_steps_is_not_unchanged(
    tmp_path: Path, path: Path, ratio: float, busy: float
) -> None:
    found = kernels(tmp_path, repeated(BF16), repeated(path), itl=0.0091)
    assert found.verdict == "refuted"
    assert figure_of(found, "ratio of GEMM times") == pytest.approx(ratio, rel=3e-3)
    assert figure_of(found, "GEMM a step, a") == pytest.approx(7.413e-3, rel=2e-3)
    assert figure_of(found, "busy share of the GPU, b") == pytest.approx(busy, abs=0.01)
    assert "The whole step is" in found.reasons[2]


@pytest.mark.parametrize(
    ("after", "unchanged", "faster"),
    [
        (4000.0, "supported", "refuted"),
        (3800.0, "supported", "refuted"),
        (2454.0, "refuted", "supported"),
        (6000.0, "refuted", "refuted"),
    ],
)
def test_the_ratio_of_measured_times_decides(
    tmp_path: Path, after: float, unchanged: str, faster: str
) -> None:
    for change, verdict in (("unchanged", unchanged), ("faster", faster)):
        found = kernels(tmp_path, server(4000.0), server(after), change=change)
        assert found.verdict == verdict
        assert figure_of(found, "ratio of GEMM times") == pytest.approx(after / 4000, rel=1e-3)
    assert found.level is Level.ENGINE
    assert found.cells == ()
    assert "GEMM 87 %" in found.reasons[1]
    assert "busy for 97.8 %" in found.reasons[1]


def test_a_spread_over_the_margin_decides_nothing(tmp_path: Path) -> None:
    wide = events([[(GEMM, 3000.0 if k % 2 else 5000.0), (NORM, 100.0)] for k in range(30)])
    assert kernels(tmp_path, server(4000.0), wide).verdict == "inconclusive"
    assert kernels(tmp_path, server(4000.0), wide, margin=60.0).verdict == "supported"


@pytest.mark.parametrize("part", ["attention", "elementwise", "idle"])
def test_other_parts(tmp_path: Path, part: str) -> None:
    same = kernels(tmp_path, server(4000.0), server(2000.0), part=part)
    assert same.verdict == "supported"
    half = server(4000.0, other=250.0, idle=50.0)
    assert kernels(tmp_path, server(4000.0), half, part=part).verdict == "refuted"
    assert (part == "attention") == any("grows with them" in note for note in same.assumptions)


def test_communication_of_two_ranks(tmp_path: Path) -> None:
    def ranks(wire: float) -> Events:
        return events([[(GEMM, 900.0), (NCCL, wire), (FLASH, 90.0)]] * 20)

    assert kernels(tmp_path, ranks(400.0), ranks(100.0), part="communication").verdict == "refuted"
    with pytest.raises(Missing, match="communication between GPUs: there are none"):
        kernels(tmp_path, server(900.0), ranks(100.0), part="communication")


def test_idle_time_is_not_judged_where_the_profiler_slowed_the_host(tmp_path: Path) -> None:
    slow = server(4000.0, idle=2000.0)
    found = kernels(tmp_path, slow, server(4000.0), part="idle", itl=0.0046)
    assert found.verdict == "inconclusive"
    assert found.reasons[0].startswith("The profiler slowed the host")
    gemm = kernels(tmp_path, slow, server(4000.0), itl=0.0046)
    assert gemm.verdict == "supported"
    assert any("the profiler slowed the host: steps of the trace of a" in n
               for n in gemm.assumptions)  # fmt: skip


def test_kernels_longer_than_a_step_of_the_runs_are_not_theirs(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"kernels take 4\.50 ms a step, and its runs 2 ms"):
        kernels(tmp_path, server(4000.0), server(2000.0), itl=0.002, part="attention")


def test_unequal_batches_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="10 sequences a step in a and 32 in b"):
        kernels(tmp_path, server(4000.0), server(2000.0, batch=32), part="attention")
    with pytest.raises(Missing, match="at a batch near 64; there are 10"):
        kernels(tmp_path, server(4000.0), server(2000.0), part="attention", concurrency=64)


def test_of_several_captures_the_pair_at_the_claimed_load_is_taken(tmp_path: Path) -> None:
    a = traced(tmp_path, "a", server(9000.0, batch=32), server(4000.0))
    b = traced(tmp_path, "b", server(4000.0), server(2000.0, batch=32))
    found = judge(study(a, b), "kernel_time", **KEYS)
    assert found.verdict == "supported"
    assert judge(study(a, b), "kernel_time", **{**KEYS, "concurrency": 32}).verdict == "refuted"


def test_few_steps_decide_nothing_and_some_more_carry_a_warning(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="at least 5 decode steps at one batch; that of b has 4"):
        kernels(tmp_path, server(4000.0), server(2000.0, steps=5), part="attention")
    found = kernels(tmp_path, server(4000.0), server(2000.0, steps=7))
    assert "only 6 decode steps of b were captured" in found.assumptions


def test_a_trace_of_one_arm_only_leaves_the_bound(tmp_path: Path) -> None:
    b = traced(tmp_path, "b", server(4000.0))
    with pytest.raises(Missing, match="profiler trace of a and b; a has none") as missing:
        judge(study(builders.arm("a"), b), "kernel_time", **KEYS)
    assert missing.value.experiment is not None
    assert "weights / bandwidth" in missing.value.tried


def test_a_trace_without_steps_says_why(tmp_path: Path) -> None:
    bare = [one for one in server(4000.0) if one["cat"] == "kernel"]
    with pytest.raises(Missing, match="marks no engine steps"):
        kernels(tmp_path, server(4000.0), bare, part="attention")


def test_an_arm_without_runs_is_judged_by_its_traces(tmp_path: Path) -> None:
    arms = traced(tmp_path, "a", server(4000.0)), traced(tmp_path, "b", server(2000.0))
    bare = replace(builders.study(), arms={arm.name: arm for arm in arms})
    assert judge(bare, "kernel_time", **KEYS).verdict == "refuted"
