"""analysis.gpu_use: energy with its interval, the steady part, clocks and reasons."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.gpu_use import GpuUse, gpu_use
from analysis.model import Run
from tests.builders import requests, run
from tests.gpus import sampled, samples


def use(found: Run) -> GpuUse:
    result = gpu_use(found)
    assert result is not None
    return result


def test_constant_power_is_exact() -> None:
    found = use(sampled(samples([500.0] * 41)))
    assert found.seconds == pytest.approx(20.0)
    assert found.energy is not None
    assert (found.energy.lo, found.energy.value, found.energy.hi) == pytest.approx((10_000,) * 3)
    assert found.energy_per_token is not None
    assert found.energy_per_token.value == pytest.approx(10_000 / 5_000)
    assert (found.utilisation, found.full, found.power) == (1.0, 1.0, 500.0)
    assert found.window == "first to last work"


def test_the_interval_is_what_two_samples_leave_open() -> None:
    found = use(sampled(samples([400.0, 600.0] * 10 + [400.0]), duration=10.0)).energy
    assert found is not None
    assert (found.lo, found.value, found.hi) == pytest.approx((4_000, 5_000, 6_000))


def test_several_gpus_add_up() -> None:
    power = [300.0, 500.0] * 41
    times = np.repeat(1000.0 + 0.5 * np.arange(41), 2)
    found = use(sampled(samples(power, gpu=[0, 1] * 41, times=times.tolist())))
    assert found.gpus == 2
    assert found.power == pytest.approx(800.0)
    assert found.energy is not None
    assert found.energy.value == pytest.approx(16_000)


def test_idle_time_before_and_after_is_left_out() -> None:
    power = [100.0] * 20 + [500.0] * 41 + [100.0] * 20
    busy = [0.0] * 20 + [0.98] * 41 + [0.0] * 20
    found = use(sampled(samples(power, utilisation=busy)))
    assert found.energy is not None
    assert found.energy.value == pytest.approx(10_000)
    # At either edge the power may still have been, or already be, that of the idle GPU.
    assert found.energy.lo == pytest.approx(10_000 - 0 * 400, abs=401)
    assert found.full == 1.0


def test_work_before_the_run_is_not_of_the_run() -> None:
    warm = samples([500.0] * 61, utilisation=1.0)
    assert use(sampled(warm, duration=20.0)).seconds == pytest.approx(20.0)


def test_the_steady_part_by_the_clients_clock() -> None:
    """Two clients from 0 to 10 s, and one alone to 20 s: steady for the first half."""
    told = requests([1.0, 1.0], [[9.0], [19.0]], start=[0.0, 0.0])
    power = [600.0] * 21 + [200.0] * 20
    found = use(sampled(samples(power), requests=told, concurrency=2))
    assert found.window == "steady load"
    assert found.seconds == pytest.approx(10.0)
    assert found.energy is not None
    assert found.energy.value == pytest.approx(6_000, rel=0.02)
    # Two first tokens and one last within.
    assert found.energy_per_token is not None
    assert found.energy_per_token.value == pytest.approx(found.energy.value / 3)


def test_clocks_and_the_reasons_that_held_them_down() -> None:
    clock = [1980.0] + [1485.0] * 40
    found = use(
        sampled(samples([690.0] * 41, clock=clock, throttle=[0] + [4] * 20 + [4 | 64] * 20))
    )
    assert found.slowest == pytest.approx(0.756, abs=0.001)
    assert (found.lowest_clock, found.top_clock) == (1485.0, 1980.0)
    assert dict(found.reasons) == {
        "power cap": pytest.approx(40 / 41), "heat (hardware)": pytest.approx(20 / 41),
    }  # fmt: skip
    assert found.reasons_known


def test_idle_and_settings_are_no_reason() -> None:
    found = use(sampled(samples([300.0] * 41, throttle=1 | 2)))
    assert found.reasons == ()
    assert found.reasons_known


def test_the_gpus_own_counter_stands_beside_the_integral() -> None:
    found = use(sampled(samples([500.0] * 41, energy=[1e5 + 250 * k for k in range(41)])))
    assert found.counter == pytest.approx(10_000)


def test_a_gap_between_samples_leaves_the_energy_open() -> None:
    times = [*range(1000, 1010), *range(1020, 1031)]
    found = use(sampled(samples([500.0] * 21, times=times), duration=30.0))
    assert found.energy is None
    assert found.energy_per_token is None


def test_what_says_nothing() -> None:
    assert gpu_use(run()) is None
    assert gpu_use(sampled(samples([100.0] * 41, utilisation=0.0))) is None
    assert gpu_use(sampled(samples([500.0] * 3))) is None
    bare = use(sampled(samples([math.nan] * 41, clock=math.nan)))
    assert bare.energy is None
    assert math.isnan(bare.slowest)


@given(
    st.lists(st.floats(50, 700), min_size=8, max_size=60),
    st.floats(0.2, 2.0),
)
@settings(max_examples=150, deadline=None)
def test_the_interval_holds_any_curve_between_the_samples(
    power: list[float], period: float
) -> None:
    """A fine curve that goes from sample to sample in steps, either way, is within."""
    duration = period * (len(power) - 1)
    found = use(sampled(samples(power, period=period), duration=duration)).energy
    assert found is not None
    early = sum(power[:-1]) * period
    late = sum(power[1:]) * period
    slack = 1e-6 * max(early, late)
    assert found.lo - slack <= min(early, late, found.value)
    assert max(early, late, found.value) <= found.hi + slack
