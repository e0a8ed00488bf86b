"""analysis.claims.roofline: least times of reading and computing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analysis.dataset import Cell
from analysis.evidence import BadClaim, Judgement, Missing
from tests.builders import between, study
from tests.claims.helpers import ROUND, arm, figure_of, judge, served

BANDWIDTH, FLOPS = 864e9, 362.05e12
"""L40S."""
WEIGHTS = 0.864e9 * 10
"""10 ms of reading."""
KEYS = {"arm": "a", "workload": "chat", "concurrency": 10}


def cell(weights: Any = WEIGHTS, load: float = 9.8, **more: Any) -> Cell:
    """`load` requests past their first token, 150 tokens each at the end, 125 half way."""
    spec = {"gpu": "L40S", **{k: more.pop(k) for k in ("replicas", "gpus") if k in more}}
    log = None if weights is None else {"model_bytes": weights}
    return served(arm("a", log=log, shape=ROUND, **spec), x=1.0, ttft=0.1, itl=load / 49, **more)


def roofline(of: Cell, phase: str = "decode", dominates: str = "weights") -> Judgement:
    return judge(study(of), "roofline", **KEYS, phase=phase, dominates=dominates)


def parameters() -> float:
    """By hand: attention 1000 x (1000 + 500 + 500 + 1000), MLP 3 x 1000 x 4000, two norms."""
    block = 1000 * 3000 + 3 * 1000 * 4000 + 2 * 1000
    return 10 * block + 1000 + 10_000 * 1000


def test_the_least_times_are_the_bytes_and_operations_by_hand() -> None:
    found = roofline(cell())
    assert found.verdict == "supported"
    assert figure_of(found, "least time of reading the weights") == pytest.approx(0.010)
    kv = 20_000 * 125 * 9.8 / BANDWIDTH
    assert figure_of(found, "least time of reading the KV cache") == pytest.approx(kv)
    computing = 2 * parameters() * 9.8 / FLOPS
    assert figure_of(found, "least time of computing") == pytest.approx(computing)
    assert f"{100 * kv / 0.010:.1f} %" in found.reasons[1]


@pytest.mark.parametrize("dominates", ["kv", "computing"])
def test_what_takes_less_does_not_dominate(dominates: str) -> None:
    assert roofline(cell(), dominates=dominates).verdict == "refuted"


def test_many_long_requests_make_the_kv_cache_dominate() -> None:
    # 500 requests of 10,000 tokens of prompt: 20,000 x 10,025 x 500 B = 116 ms.
    long = cell(load=500, prompt=10_000)
    assert roofline(long, dominates="kv").verdict == "supported"
    assert roofline(long).verdict == "refuted"


def test_a_near_tie_is_left_open() -> None:
    kv = 20_000 * 125 * 9.8
    for factor, verdict in ((1.2, "inconclusive"), (1.3, "supported"), (0.85, "inconclusive")):
        assert roofline(cell(weights=factor * kv)).verdict == verdict


def test_rounding_that_straddles_the_tie_is_left_open() -> None:
    kv = 20_000 * 125 * 9.8
    printed = between("model_bytes", 1.3 * kv, 1.2 * kv, 1.4 * kv, "B", file="a.log")
    assert roofline(cell(weights=printed)).verdict == "inconclusive"


def test_reading_weights_and_kv_together_against_computing() -> None:
    found = roofline(cell(), dominates="reading")
    assert found.verdict == "supported"
    kv = 20_000 * 125 * 9.8 / BANDWIDTH
    assert figure_of(found, "least time of reading weights and KV") == pytest.approx(0.010 + kv)


def test_engines_share_the_requests_in_reading_and_in_computing() -> None:
    one, two = roofline(cell()), roofline(cell(replicas=2, gpus=2))
    for name in ("least time of reading the KV cache", "least time of computing"):
        assert figure_of(two, name) == pytest.approx(figure_of(one, name) / 2)
    weights = "least time of reading the weights"
    assert figure_of(two, weights) == figure_of(one, weights)


def test_a_prefill_reads_the_weights_once_and_computes_every_token() -> None:
    found = roofline(cell(), "prefill", "reading")
    assert found.verdict == "supported"
    computing = 2 * parameters() * 100 / FLOPS
    assert figure_of(found, "least time of computing") == pytest.approx(computing)
    assert found.assumptions[1] == "the prefill of one prompt of 100 tokens"
    # 100,000 tokens: 2 x 1.6e8 x 1e5 / 362e12 = 89 ms of computing against 10 ms.
    long = roofline(cell(prompt=100_000), "prefill", "computing")
    assert long.verdict == "supported"
    assert roofline(cell(prompt=100_000), "prefill", "reading").verdict == "refuted"


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_without_a_gpu_or_a_model_it_is_untestable(phase: str) -> None:
    known = cell()
    for of in (
        replace(known, arm=arm("a", shape=ROUND)),
        replace(known, arm=arm("a", log={"model_bytes": WEIGHTS}, gpu="L40S")),
    ):
        with pytest.raises(Missing, match="GPU and model of a"):
            roofline(of, phase, "computing")


def test_the_shape_stands_in_for_a_log() -> None:
    found = roofline(cell(weights=None))
    reading = figure_of(found, "least time of reading the weights")
    assert reading == pytest.approx(2 * parameters() / BANDWIDTH)


def test_prompts_of_unknown_length_are_untestable() -> None:
    of = cell(total_input_tokens=None, total_token_throughput=None)
    with pytest.raises(Missing, match="mean token counts"):
        roofline(of)
    with pytest.raises(Missing, match="mean input tokens"):
        roofline(of, "prefill", "reading")


def test_a_model_of_no_size_is_untestable() -> None:
    with pytest.raises(Missing, match="above 0"):
        roofline(cell(weights=0.0))


@pytest.mark.parametrize("dominates", ["weights", "kv"])
def test_a_prefill_has_no_such_part(dominates: str) -> None:
    with pytest.raises(BadClaim, match="dominates a prefill; expected reading, computing"):
        roofline(cell(), "prefill", dominates)


def test_an_arm_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(BadClaim, match="names arm 'b'"):
        judge(study(cell()), "roofline", **{**KEYS, "arm": "b"}, phase="decode", dominates="kv")
