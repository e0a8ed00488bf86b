"""The floor of a decode step: bytes by hand over the bandwidth of a data sheet."""

from __future__ import annotations

import pytest

from analysis.dataset import Arm
from analysis.floor import (
    Floor,
    kv_token_bytes,
    least_step_cost_share,
    prefill_times,
    read_bytes,
    step_floor,
)
from analysis.quantity import constant, quantity
from tests.builders import arm, between, cell, printed, run, startup

GIB = 2.0**30
EMBEDDING = 151_936 * 5_120 * 2
"""Bytes of the input embedding table of Qwen3-14B."""
KV = 2 * 40 * 8 * 128 * 2
"""KV bytes a token: 40 layers, 8 heads of 128, 16 bits: 163,840."""


def on_l40s(gib: str, model: str, **spec: object) -> Arm:
    figures = {"model_bytes": printed("model_bytes", gib, GIB, "B")}
    return arm(log=startup(figures), model=model, gpu="L40S", **spec)


SIXTEEN = on_l40s("27.52", "Qwen/Qwen3-14B")
FOUR = on_l40s("9.44", "Qwen/Qwen3-14B-AWQ")


def test_reading_the_weights_without_the_embedding_table_by_hand():
    """(27.52 GiB - 1.556 GB) / 864 GB/s = 32.4 ms, and 9.93 ms for 4-bit weights."""
    for of, gib, ms in ((SIXTEEN, 27.52, 32.4), (FOUR, 9.44, 9.93)):
        bytes_ = gib * GIB - EMBEDDING
        assert read_bytes(of).value == pytest.approx(bytes_)
        found = step_floor(cell(of)).weights
        assert found.value == pytest.approx(bytes_ / 864e9)
        assert found.value * 1e3 == pytest.approx(ms, abs=0.05)
        assert found.unit == "s"
        # The log's GiB are printed to two decimals: half a hundredth either way.
        assert found.hi - found.lo == pytest.approx(0.01 * GIB / 864e9)


def test_reading_the_kv_of_running_requests_by_hand():
    """9.8 past their first token, each holding 100 + 50 / 2 tokens of 163,840 bytes."""
    found = step_floor(cell(SIXTEEN))
    assert found.kv_bytes.value == pytest.approx(9.8 * 125 * KV)
    assert found.kv_bytes.unit == "B"
    expected = (27.52 * GIB - EMBEDDING + 9.8 * 125 * KV) / 864e9
    assert found.total.value == pytest.approx(expected)
    assert found.total.unit == "s"


def test_without_lengths_the_floor_is_that_of_the_weights():
    bare = cell(SIXTEEN, run({"mean_ttft": 0.1}, bare=True))
    found = step_floor(bare)
    assert found.kv_bytes is None
    assert found.total.value == found.weights.value


def test_two_replicas_share_the_running_requests():
    one, two = (
        step_floor(cell(SIXTEEN)),
        step_floor(cell(on_l40s("27.52", "Qwen3-14B", replicas=2))),
    )
    assert two.kv_bytes.value == pytest.approx(one.kv_bytes.value / 2)
    assert two.weights.value == pytest.approx(one.weights.value)


def test_two_tensor_ranks_read_half_the_geometry_each():
    alone = arm(model="Qwen/Qwen3-14B", gpu="L40S")
    pair = arm(model="Qwen/Qwen3-14B", gpu="L40S", tensor_parallel=2)
    four = arm(model="Qwen/Qwen3-14B", gpu="L40S", tensor_parallel=2, pipeline_parallel=2)
    whole = read_bytes(alone).value
    # 14.768 billion parameters of two bytes, less the table.
    assert whole == pytest.approx(14.768e9 * 2 - EMBEDDING, rel=1e-4)
    assert read_bytes(pair).value == pytest.approx(whole / 2)
    assert read_bytes(four).value == pytest.approx(whole / 4)


def test_the_log_of_one_rank_says_what_that_rank_holds():
    pair = on_l40s("13.77", "Qwen/Qwen3-14B", tensor_parallel=2)
    assert read_bytes(pair).value == pytest.approx(13.77 * GIB - EMBEDDING / 2)


def test_a_log_without_a_known_model_counts_the_table_as_read():
    assert read_bytes(on_l40s("27.52", "someone/unknown")).value == pytest.approx(27.52 * GIB)


def test_no_log_and_no_known_model_have_no_floor():
    assert read_bytes(arm()) is None
    assert read_bytes(arm(log=startup({"kv_tokens": 1}))) is None
    assert step_floor(cell(arm(gpu="L40S"))) is None


def test_an_unknown_gpu_has_no_floor():
    assert step_floor(cell(arm(model="Qwen/Qwen3-14B"))) is None
    assert step_floor(cell(arm(model="Qwen/Qwen3-14B", gpu="Abacus 9000"))) is None


def test_an_unknown_model_has_no_kv_in_its_floor():
    found = step_floor(cell(on_l40s("27.52", "someone/unknown")))
    assert found.kv_bytes is None


@pytest.mark.parametrize(
    ("ranks", "size"),
    [
        ({}, KV),
        ({"tensor_parallel": 2}, KV / 2),
        ({"pipeline_parallel": 2}, KV / 2),
        ({"tensor_parallel": 4, "pipeline_parallel": 2}, KV / 8),
    ],
)
def test_kv_bytes_of_a_token_on_one_gpu(ranks, size):
    found = kv_token_bytes(arm(model="Qwen/Qwen3-14B", **ranks))
    assert found.value == size
    assert found.unit == "B"
    assert found.sources[0].file == "models.toml"


def test_kv_heads_that_do_not_divide_over_the_ranks():
    assert kv_token_bytes(arm(model="Qwen/Qwen3-14B", tensor_parallel=3)) is None
    assert kv_token_bytes(arm()) is None


def test_the_least_times_of_a_prefill_by_hand():
    """Reading as above; computing 2 x parameters without the table x tokens / 362.05 TFLOP/s."""
    reading, computing = prefill_times(SIXTEEN, constant(1000.0, "tok"))
    assert reading.value == pytest.approx((27.52 * GIB - EMBEDDING) / 864e9)
    parameters = 14.768e9 - EMBEDDING / 2
    assert computing.value == pytest.approx(2 * parameters * 1000 / 362.05e12, rel=1e-3)
    assert (reading.unit, computing.unit) == ("s", "s")


def test_four_bit_weights_are_multiplied_like_any_other():
    tokens = constant(1000.0, "tok")
    assert prefill_times(FOUR, tokens)[1].value == pytest.approx(
        prefill_times(SIXTEEN, tokens)[1].value
    )


def test_ranks_share_the_arithmetic_of_a_prefill():
    tokens = constant(1000.0, "tok")
    pair = on_l40s("13.77", "Qwen/Qwen3-14B", tensor_parallel=2)
    assert prefill_times(pair, tokens)[1].value == pytest.approx(
        prefill_times(SIXTEEN, tokens)[1].value / 2
    )


@pytest.mark.parametrize(
    "of",
    [
        arm(),
        arm(model="Qwen/Qwen3-14B"),
        on_l40s("27.52", "someone/unknown"),
    ],
)
def test_no_least_prefill_where_gpu_or_model_is_unknown(of):
    assert prefill_times(of, constant(1000.0, "tok")) is None


# The share of a fall that must be cheaper steps


def floor_of(seconds: float) -> Floor:
    return Floor(constant(seconds, "B"), None, constant(1.0, "B/s"))


def test_the_least_step_cost_share_of_a_fall_by_hand():
    """(32.4 - 15.6) / (43.1 - 15.6) = 61 %."""
    before = quantity(printed("mean_itl", "43.1", 1e-3, file="before.csv"))
    after = quantity(printed("mean_itl", "15.6", 1e-3, file="after.csv"))
    share = least_step_cost_share(step_floor(cell(SIXTEEN)), before, after)
    assert share.value == pytest.approx(0.611, abs=0.001)
    assert share.unit == ""
    weights = (27.52 * GIB - EMBEDDING) / 864e9
    half = 0.005 * GIB / 864e9
    low = (weights - half - 0.01565) / (0.04315 - 0.01565)
    high = (weights + half - 0.01555) / (0.04305 - 0.01555)
    assert (share.lo, share.hi) == pytest.approx((low, high))


def test_a_treatment_slower_than_the_floor_says_nothing():
    share = least_step_cost_share(floor_of(10.0), constant(30.0, "s"), constant(20.0, "s"))
    assert share.value == 0.0


def test_a_baseline_at_its_floor_can_fall_by_cheaper_steps_only():
    share = least_step_cost_share(floor_of(30.0), constant(30.0, "s"), constant(20.0, "s"))
    assert share.value == 1.0


def test_a_fall_that_may_be_a_rise_leaves_the_share_without_bound():
    before = quantity(between("a", 20.0, 19.0, 21.0, "s"))
    after = quantity(between("b", 19.9, 18.9, 20.9, "s"))
    share = least_step_cost_share(floor_of(25.0), before, after)
    assert share.hi == float("inf")
