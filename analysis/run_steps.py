"""The engine steps of a run, with all that its files tell: its engines, budget and counters.

    steps = steps_of(run, arm)

What is found is kept as long as the run is: every claim and page asks again.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from analysis.dataset import Arm, Cell
from analysis.model import Ints, Run
from analysis.served_by import engine_of
from analysis.server_metrics import server_metrics
from analysis.steps import Steps, reconstruct
from analysis.token_times import Refused

_FOUND: WeakKeyDictionary[Run, Steps | Refused] = WeakKeyDictionary()


def steps_of(run: Run, arm: Arm) -> Steps | Refused:
    """The steps of a run, or why they are not known."""
    if run not in _FOUND:
        _FOUND[run] = _steps(run, arm)
    return _FOUND[run]


def of_cell(cell: Cell) -> tuple[Steps, ...]:
    """The steps of those of a cell's runs that show them."""
    found = (steps_of(run, cell.arm) for run in cell.runs)
    return tuple(one for one in found if isinstance(one, Steps))


def standing_still(cell: Cell) -> float:
    """Requests past their first token that are preempted, averaged over the runs; 0 if unknown.

    They are in L_decode and do not run (design, section 4: stalled request-seconds / T).
    """
    found = [
        float(steps.table.stalled @ steps.table.duration) / float(steps.table.duration.sum())
        for steps in of_cell(cell)
        if steps.table.duration.sum() > 0
    ]
    return sum(found) / len(found) if found else 0.0


def _steps(run: Run, arm: Arm) -> Steps | Refused:
    if run.requests is None:
        return Refused(("The file has no per-request arrays (`--save-detailed`).",))
    engines = engines_of(run, arm)
    if isinstance(engines, Refused):
        return engines
    return reconstruct(
        run.requests,
        engine_of=engines,
        token_budget=arm.spec.max_num_batched_tokens,
        server_steps=server_steps(run),
        preemptions=preemptions(run),
    )


def engines_of(run: Run, arm: Arm) -> Ints | Refused | None:
    """Which engine served each request; None where there is one."""
    if arm.spec.replicas == 1:
        return None
    served = engine_of(run)
    if served is not None and len(np.unique(served)) == arm.spec.replicas:
        return served
    requests = run.requests
    clients = None if requests is None else requests.client
    if clients is not None and len(np.unique(clients)) == arm.spec.replicas and not arm.spec.router:
        # Each replica has a client of its own.
        return clients
    return Refused((
        f"{arm.spec.replicas} engines answer, and no file says which request went to which: their "
        "steps cannot be told apart. The servers' logs of requests would tell.",
    ))  # fmt: skip


def server_steps(run: Run) -> int | None:
    """Engine steps as the servers counted them: by their counter, else by their step logs."""
    metrics = server_metrics(run)
    told = None if isinstance(metrics, Refused) else metrics
    counted = None if told is None else told.iterations
    if counted is not None:
        return round(counted)
    if run.server is not None and run.server.steps:
        return sum(len(one.clock) for one in run.server.steps)
    return None


def preemptions(run: Run) -> int | None:
    """Preemptions as the servers counted them: by their counter, else by their step logs."""
    metrics = server_metrics(run)
    told = None if isinstance(metrics, Refused) else metrics
    counted = None if told is None else told.counter("preemptions")
    if counted is not None:
        return round(counted)
    if run.server is not None and run.server.steps:
        return sum(int(one.preempted.sum()) for one in run.server.steps)
    return None
