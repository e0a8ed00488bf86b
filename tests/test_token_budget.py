"""The budget of a gap between tokens: its parts add up, and are those of the simulator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.simulate import Simulated
from analysis.step_cost import arm_cost
from analysis.token_budget import (
    AGAIN,
    KV,
    PARTS,
    PLAIN_STEP,
    PREFILL,
    REST,
    STOOD,
    WEIGHTS,
    Budget,
    budget,
)
from tests.builders import cell, run
from tests.claims.helpers import ROUND, arm, served
from tests.simulated import COST, Engine, simulated, steps_of

QUIET = replace(COST, noise=0.0, persistence=0.0)
CELL = cell("a", run())


def of(*runs: Simulated) -> Budget:
    found = [steps_of(one, counted=True) for one in runs]
    return budget(CELL, found[0], arm_cost(found))


def prefill_a_gap(one: Simulated) -> float:
    """Time that prompts of others took of a gap, by the engine's own account, s."""
    decoding = one.truth.emitted - np.bincount(
        one.truth.step_of[one.offsets[:-1]], minlength=len(one.truth.end)
    )
    gaps = (one.workload.output - 1).sum()
    return float((decoding * one.truth.prefilled).sum() * one.arm.cost.prefill / gaps)


@pytest.mark.parametrize("engine", [Engine(), Engine(kv_blocks=120)], ids=["ample", "binding"])
def test_parts_add_up_to_the_mean_gap(engine: Engine) -> None:
    one = simulated(200, 8, engine=engine)
    found = of(one)
    assert sum(part.value for part in found.parts) == pytest.approx(found.itl, rel=1e-9)
    assert found.itl == pytest.approx(one.gaps.mean(), rel=0.01)
    assert all(part.lo <= part.value <= part.hi for part in found.parts)


def test_prefill_of_others_is_what_the_engine_spent_on_it() -> None:
    runs = [simulated(200, load, load, cost=QUIET) for load in (8, 4, 2)]
    found = of(*runs)
    truth = prefill_a_gap(runs[0])
    assert truth > 0.05 * found.itl
    assert found.part(PREFILL).value == pytest.approx(truth, rel=0.1)
    assert abs(found.part(REST).value) < 0.01 * found.itl


def test_without_preemption_nobody_stands() -> None:
    found = of(simulated(200, 8))
    assert found.part(STOOD).value == 0
    assert found.part(AGAIN).value == 0


def test_what_a_preempted_request_stood_by_is_told() -> None:
    one = simulated(200, 8, engine=Engine(kv_blocks=100))
    found = of(one)
    steps = steps_of(one, counted=True)
    assert one.truth.preemptions > 10
    stood = float(steps.table.stalled @ steps.table.duration) / steps.gaps
    assert found.part(STOOD).value == pytest.approx(stood)
    assert stood > 0.01 * found.itl


def with_floor(bandwidth_share: float) -> Budget:
    """A model whose weights take this share of a plain step on an L40S (864 GB/s)."""
    held = bandwidth_share * COST.weights * 864e9
    own = arm("a", log={"model_bytes": held}, shape=ROUND, gpu="L40S")
    one = simulated(200, 8, cost=QUIET)
    steps = steps_of(one)
    return budget(served(own, itl=float(one.gaps.mean())), steps, arm_cost([steps]))


def test_the_floor_is_the_lowest_part() -> None:
    found = with_floor(0.5)
    assert found.floor_known
    assert [part.name for part in found.parts[:3]] == [WEIGHTS, KV, PLAIN_STEP]
    assert found.part(WEIGHTS).value == pytest.approx(0.5 * COST.weights, rel=0.01)
    assert sum(part.value for part in found.parts) == pytest.approx(found.itl)


def test_a_floor_above_the_step_is_a_wrong_input_and_said() -> None:
    found = with_floor(3)
    assert not found.floor_known
    assert found.parts[0].name == PLAIN_STEP
    assert any("shorter than its floor" in note for note in found.notes)


def test_parts_have_their_order() -> None:
    found = of(simulated(200, 8, engine=Engine(kv_blocks=100)))
    names = [part.name for part in found.parts]
    assert names == [name for name in PARTS if name in names]
