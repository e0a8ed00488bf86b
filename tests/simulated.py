"""Simulated runs for tests of what reads them: as the client saw them, and what is true of them."""

from __future__ import annotations

import numpy as np

from analysis.model import Requests
from analysis.simulate import Arm, Closed, Delivery, Engine, Open, Simulated, StepCost, Workload
from analysis.simulate import simulate as simulate_run
from analysis.steps import Steps, reconstruct
from analysis.token_times import Refused

COST = StepCost(
    weights=8e-3, sequence=3e-5, context=4e-8, prefill=4e-5, noise=0.02, persistence=0.3
)
DELIVERY = Delivery(to_server=5e-4, to_client=3e-4, jitter=5e-5)


def workload(n: int, seed: int = 0, *, prompt: int = 300, output: int = 60) -> Workload:
    """Lengths that spread evenly from 2 to twice the mean."""
    rng = np.random.default_rng(seed)
    return Workload(rng.integers(2, 2 * prompt, n), rng.integers(2, 2 * output, n))


def simulated(
    n: int = 120,
    load: Closed | Open | int = 8,
    seed: int = 1,
    *,
    cost: StepCost = COST,
    engine: Engine = Engine(),  # noqa: B008  frozen
    delivery: Delivery = DELIVERY,
) -> Simulated:
    """A run; a plain number is a closed loop with so many in flight."""
    offered = Closed(load) if isinstance(load, int) else load
    return simulate_run(Arm(cost, engine), workload(n, seed), offered, seed=seed, delivery=delivery)


def requests_of(run: Simulated) -> Requests:
    """What a result file would hold of it."""
    n = len(run.start)
    return Requests(
        run.ttft,
        run.gaps,
        np.concatenate([[0], np.cumsum(run.workload.output - 1)]),
        run.workload.prompt,
        run.workload.output,
        np.zeros(n, np.bool_),
        run.start,
    )


def steps_of(run: Simulated, *, counted: bool = False) -> Steps:
    """Its steps; `counted` gives the server's counts as well."""
    engine = run.arm.engine
    found = reconstruct(
        requests_of(run),
        engine_of=run.truth.engine_of if engine.replicas > 1 else None,
        token_budget=engine.max_num_batched_tokens,
        server_steps=len(run.truth.end) if counted else None,
        preemptions=run.truth.preemptions if counted else None,
    )
    assert not isinstance(found, Refused), found
    return found
