"""What must come out of the recorded H200 runs: steps, the two clocks, windows, kernels.

The figures were found by hand from the same files before this code was written.
"""

from __future__ import annotations

import math
from functools import cache

import pytest

from analysis.cell_gap import CellGap, PairGap, gap_between
from analysis.dataset import Cell, Study
from analysis.in_flight import steady
from analysis.model import Finding
from analysis.run_steps import preemptions, steps_of
from analysis.steps import Latency, Steps
from analysis.steps_agree import checks_of
from tests.whole import findings, shipped


@cache
def study() -> Study:
    return next(one.study for one in shipped().studies if one.study.name == "h200-recorded")


def cell(arm: str, load: int = 10) -> Cell:
    found = study().cell(arm, "sharegpt", load)
    assert found is not None
    return found


def gap(base: str, treat: str, latency: Latency = "itl", load: int = 10) -> CellGap:
    found = gap_between(study(), cell(base, load), cell(treat, load), latency)
    assert isinstance(found, CellGap), found
    return found


def of_seed(found: CellGap, seed: int) -> PairGap:
    (pair,) = (one for one in found.pairs if one.baseline.config["seed"] == seed)
    return pair


def claim(name: str) -> Finding:
    return findings(shipped())["h200-recorded", name]


def test_every_run_meets_the_servers_count_of_steps() -> None:
    found = checks_of(study())
    assert len(found) == 28
    for one in found:
        assert isinstance(one.found, Steps) and one.counted is not None, one.run.id
        short = one.counted - one.found.quality.steps
        # Chunks that were read together hide a step.
        assert 0 <= short <= min(6, one.found.quality.merged_chunks), one.run.id


def test_gaps_that_requests_stood_by_are_the_preemptions() -> None:
    events = {}
    for one in study().cells:
        for run in one.runs:
            steps = steps_of(run, one.arm)
            assert isinstance(steps, Steps)
            skips, counted = steps.quality.skip_events, preemptions(run)
            assert counted is not None and abs(skips - counted) <= 2, run.id
            if counted:
                events[one.arm.name, run.config["seed"]] = (skips, counted)
    assert events["bf16-kv2560", 42] == (171, 173)
    arms = ("bf16-kv2560", "awq-kv2560")
    assert set(events) == {(arm, seed) for arm in arms for seed in (42, 43)}


def test_quantising_at_ten_in_flight_is_all_step_cost() -> None:
    found = gap("bf16", "awq")
    pair = of_seed(found, 42)
    assert pair.clocks.baseline.latency * 1e3 == pytest.approx(9.093, abs=0.001)
    assert pair.clocks.treatment.latency * 1e3 == pytest.approx(6.744, abs=0.001)
    ratio = found.log(lambda clocks: clocks.log_latency)
    ends = [math.exp(x) for x in (ratio.value, ratio.lo, ratio.hi)]
    assert ends == pytest.approx([0.743, 0.738, 0.747], abs=0.001)
    for one in found.pairs:
        assert abs(one.clocks.log_steps.value) < 1e-3
        assert one.clocks.log_seconds.value == pytest.approx(-0.295, abs=0.01)


def test_binding_memory_makes_requests_stand_by() -> None:
    clocks = of_seed(gap("bf16", "bf16-kv2560"), 42).clocks
    assert (clocks.baseline.steps, clocks.treatment.steps) == pytest.approx((1, 1.226), abs=0.001)
    assert clocks.log_steps.value == pytest.approx(0.204, abs=0.001)
    assert clocks.log_seconds.value == pytest.approx(-0.013, abs=0.001)
    assert clocks.treatment.seconds_a_step * 1e3 == pytest.approx(8.98, abs=0.01)


def test_from_binding_16_bit_to_ample_awq_both_act() -> None:
    clocks = of_seed(gap("bf16-kv2560", "awq"), 42).clocks
    assert clocks.log_steps.value == pytest.approx(-0.204, abs=0.001)
    assert clocks.log_seconds.value == pytest.approx(-0.286, abs=0.001)
    assert clocks.share.value == pytest.approx(0.42, abs=0.005)


def test_a_wait_in_seconds_falls_with_the_step_and_in_steps_it_does_not() -> None:
    ttft = of_seed(gap("bf16-kv2560", "awq-kv2560", "ttft"), 42).clocks
    assert ttft.baseline.latency > 1.3 * ttft.treatment.latency
    assert ttft.baseline.steps == pytest.approx(ttft.treatment.steps, rel=0.01)


def test_flags_with_eight_slots_make_requests_wait_in_steps() -> None:
    ttft = gap("awq", "awq-tuned", "ttft").pairs[0].clocks
    assert ttft.treatment.steps > 15 * ttft.baseline.steps
    assert ttft.log_seconds.value < 0


def test_at_128_the_steady_windows_are_equal_and_no_shares_are_given() -> None:
    tokens = []
    for arm in ("bf16", "awq"):
        one = cell(arm, 128)
        steps = steps_of(one.runs[0], one.arm)
        assert isinstance(steps, Steps)
        window = steady(steps.found, 128)
        assert window is not None
        tokens.append(window.output_throughput)
    assert tokens == pytest.approx([6111, 6130], rel=0.002)
    assert claim("throughput-gain-at-128-is-the-batch").verdict == "inconclusive"
    assert "ramp and drain" in claim("itl-gain-at-128").reasons[1]


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("itl-gain-is-headroom", "refuted"),
        ("ample-memory-no-gain", "refuted"),
        ("gain-proportional-to-shortage", "refuted"),
        ("gemm-unchanged", "refuted"),
        ("gemm-unchanged-marlin", "refuted"),
        ("max-num-seqs-8-makes-the-wait", "supported"),
        ("binding-kv-is-headroom", "supported"),
    ],
)
def test_the_sentences_are_judged_with_the_servers_evidence(name: str, verdict: str) -> None:
    found = claim(name)
    assert found.verdict == verdict
    assert found.level == "E"
    if found.kind not in ("composite", "queue_wait"):  # of other claims, and of one run
        assert any(number.lo < number.hi for number in found.numbers)


def test_gemm_time_of_a_step() -> None:
    numbers = {n.name: n.value * 1e3 for n in claim("gemm-unchanged").numbers if n.unit == "s"}
    assert any(value == pytest.approx(7.41, abs=0.01) for value in numbers.values())
    assert any(value == pytest.approx(4.55, abs=0.01) for value in numbers.values())
