"""Clocks that fell under load, with and without a reason in the file."""

from __future__ import annotations

import pytest

from analysis.checks import throttled_clocks
from tests.builders import run
from tests.checks.helpers import outcome
from tests.gpus import sampled, samples


def test_without_samples_it_is_not_applicable() -> None:
    assert outcome(throttled_clocks, run()).status == "NOT APPLICABLE"


@pytest.mark.parametrize(
    ("clock", "bits", "status"),
    [
        (1950.0, 4, "VALID"),
        (1600.0, 4, "SUSPECT"),
        (1600.0, 0x40, "SUSPECT"),
        (1600.0, -1, "SUSPECT"),
        # A clock that its user has set is as it was meant.
        (1600.0, 2, "VALID"),
    ],
)
def test_a_fall_counts_with_power_heat_or_no_word(clock: float, bits: int, status: str) -> None:
    found = samples([690.0] * 41, clock=[1980.0] + [clock] * 40, throttle=bits)
    assert outcome(throttled_clocks, sampled(found)).status == status


def test_the_reason_has_the_numbers() -> None:
    found = samples([690.0] * 41, clock=[1980.0] + [1485.0] * 40, throttle=[0] + [4] * 40)
    reason = outcome(throttled_clocks, sampled(found)).reason
    assert "75.6 % of its own greatest (1,980 MHz)" in reason
    assert "below 95 %: power cap in 98 % of the samples" in reason
    silent = samples([690.0] * 41, clock=[1980.0] + [1485.0] * 40)
    assert (
        "at 690 W; the file does not tell why" in outcome(throttled_clocks, sampled(silent)).reason
    )


def test_of_several_gpus_the_slowest_counts() -> None:
    clock = [1980.0, 1980.0] + [1980.0, 1500.0] * 40
    times = [1000.0 + 0.5 * (k // 2) for k in range(82)]
    found = samples([600.0] * 82, gpu=[0, 1] * 41, clock=clock, throttle=4, times=times)
    told = outcome(throttled_clocks, sampled(found))
    assert told.status == "SUSPECT"
    assert "the slowest of 2 GPUs" in told.reason


def test_a_gpu_without_work_is_not_throttled() -> None:
    clock = [1980.0, 1980.0] + [1980.0, 345.0] * 40
    use = [1.0, 1.0] + [1.0, 0.0] * 40
    times = [1000.0 + 0.5 * (k // 2) for k in range(82)]
    found = samples([600.0] * 82, gpu=[0, 1] * 41, clock=clock, utilisation=use, times=times)
    assert outcome(throttled_clocks, sampled(found)).status == "VALID"
