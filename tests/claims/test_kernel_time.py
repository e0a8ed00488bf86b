"""analysis.claims.kernel_time: a bound on matrix multiplications without a trace."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.dataset import Cell
from analysis.evidence import BadClaim, Judgement, Missing
from tests.builders import study
from tests.claims.helpers import arm, figure_of, judge, measured


def base(**spec: Any) -> Cell:
    """Reads 0.864e9 x 20 bytes a step: 20 ms on an L40S of 864 GB/s."""
    return measured(
        arm("a", log={"model_bytes": 0.864e9 * 20}, **{"gpu": "L40S", **spec}), "mean_itl", 0.03
    )


def kernels(itl: float | str, change: str = "unchanged", **more: Any) -> Judgement:
    keys = {"baseline": "a", "treatment": "b", "workload": "chat", "concurrency": 10, **more}
    treat = measured("b", "mean_itl", itl, factor=1e-3 if isinstance(itl, str) else 1.0)
    return judge(study(base(), treat), "kernel_time", **keys, change=change)


@pytest.mark.parametrize(("change", "verdict"), [("unchanged", "refuted"), ("faster", "supported")])
def test_a_step_shorter_than_the_baselines_reading_is_faster(change: str, verdict: str) -> None:
    found = kernels(0.012, change)
    assert found.verdict == verdict
    # At most 12 of at least 20 ms.
    assert figure_of(found, "greatest ratio of GEMM times") == pytest.approx(0.6)
    assert found.reasons[0].startswith("GEMM time fell by at least 40 %")


@pytest.mark.parametrize("change", ["unchanged", "faster"])
@pytest.mark.parametrize("itl", [0.0181, 0.025, "18"])  # 18 means up to 18.5 of 20 ms
def test_a_step_as_long_as_the_reading_needs_a_trace(itl: float | str, change: str) -> None:
    with pytest.raises(Missing, match="profiler trace of a and b") as missing:
        kernels(itl, change)
    assert "leaves both open" in missing.value.tried


def test_the_margin_is_the_claims() -> None:
    assert kernels(0.0181, margin=5.0).verdict == "refuted"


def test_without_a_gpu_there_is_no_floor() -> None:
    keys = {"baseline": "a", "treatment": "b", "workload": "chat", "concurrency": 10}
    away = study(base(gpu=""), measured("b", "mean_itl", 0.01))
    with pytest.raises(Missing, match="profiler trace") as missing:
        judge(away, "kernel_time", **keys)
    assert "needs model size and GPU" in missing.value.tried


def test_an_arm_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(BadClaim, match="names arm 'c'"):
        kernels(0.01, treatment="c")
