"""The two clocks: an identity, and what moves each of them in simulated arms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from analysis.clocks import Clocks, two_clocks
from analysis.simulate import Engine
from analysis.steps import LATENCIES, Latency, Steps, reconstruct
from analysis.token_times import Refused
from tests.builders import requests
from tests.simulated import COST, simulated, steps_of

FASTER = replace(COST, weights=COST.weights * 0.7)
TIGHT = Engine(kv_blocks=120)
FEW = Engine(max_num_seqs=4)


def clocks(baseline: Steps, treatment: Steps, latency: Latency = "itl") -> Clocks:
    found = two_clocks(baseline, treatment, latency)
    assert isinstance(found, Clocks), found
    return found


@pytest.fixture(scope="module")
def plain() -> Steps:
    return steps_of(simulated())


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("engine", [TIGHT, FEW], ids=str)
def test_the_two_terms_add_up_to_the_log_ratio(plain, latency, engine):
    other = simulated(cost=FASTER, engine=engine)
    found = clocks(plain, steps_of(other), latency)
    assert found.log_steps.value + found.log_seconds.value == pytest.approx(found.log_latency.value)
    for arm in (found.baseline, found.treatment):
        assert arm.steps * arm.seconds_a_step == pytest.approx(arm.latency)
    if latency == "itl":
        assert found.treatment.latency == pytest.approx(other.gaps.mean())


def test_faster_steps_move_time_a_step_only(plain):
    for latency in LATENCIES:
        found = clocks(plain, steps_of(simulated(cost=FASTER)), latency)
        assert found.log_steps.value == pytest.approx(0, abs=0.02)
        assert found.log_seconds.hi < -0.05


def test_preemption_moves_steps_in_a_gap(plain):
    found = clocks(plain, steps_of(simulated(engine=TIGHT)))
    assert found.log_steps.lo > 0.02
    assert found.log_seconds.value < 0.05


def test_few_sequences_move_the_wait_and_not_the_gap(plain):
    other = steps_of(simulated(engine=FEW))
    assert clocks(plain, other).log_steps.value == 0
    assert clocks(plain, other, "ttft").log_steps.lo > 1
    assert clocks(plain, other, "ttft").treatment.steps > 20


def test_a_wait_in_seconds_falls_with_the_step_while_its_steps_stay():
    """The queue of two arms with the same room: shorter in seconds, the same in steps."""
    queued = [steps_of(simulated(cost=c, engine=FEW)) for c in (COST, FASTER)]
    found = clocks(*queued, "ttft")
    assert found.log_steps.value == pytest.approx(0, abs=0.01)
    assert found.log_latency.value == pytest.approx(math.log(0.75), abs=0.05)


def test_a_short_run_has_points_and_no_interval(plain):
    found = clocks(plain, steps_of(simulated(40, 16)))
    assert np.isnan(found.log_steps.lo)
    assert "no interval: a run lasted" in found.warnings[-1]


def test_different_work_is_said():
    found = clocks(steps_of(simulated(120)), steps_of(simulated(119)))
    assert found.warnings[0].startswith("the arms completed different work")


def test_the_same_input_gives_the_same_interval(plain):
    other = steps_of(simulated(cost=FASTER))
    assert clocks(plain, other) == clocks(plain, other)


def test_the_same_requests_are_paired(plain):
    other = steps_of(simulated(cost=FASTER))
    apart = two_clocks(plain, other, "itl", same_requests=False)
    assert isinstance(apart, Clocks)
    paired = clocks(plain, other)
    assert paired.log_seconds.hi - paired.log_seconds.lo < (
        apart.log_seconds.hi - apart.log_seconds.lo
    )


def test_no_gaps_no_clock(plain):
    lone = reconstruct(requests([0.5, 0.7], [[], []], start=[0.0, 0.0]))
    assert isinstance(lone, Steps)
    for pair in ((lone, plain), (plain, lone)):
        found = two_clocks(*pair, "itl")
        assert isinstance(found, Refused)
        assert "nothing to count" in found.reasons[0]


def test_durations_of_one_and_two_engines_are_not_compared(plain):
    found = two_clocks(plain, steps_of(simulated(engine=Engine(replicas=2))), "duration")
    assert isinstance(found, Refused)
