"""The engine steps of a run, with all that its files tell: its engines, budget and counters.

    steps = steps_of(run, arm)

What is found is kept as long as the run is: every claim and page asks again.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from analysis.dataset import Arm, Cell
from analysis.model import Counters, Ints, Run
from analysis.served_by import engine_of
from analysis.steps import Steps, reconstruct
from analysis.token_times import Refused

_ITERATIONS = "vllm:iteration_tokens_total_count"
_PREEMPTIONS = "vllm:num_preemptions_total"
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
    if served is not None:
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
    counted = _counted(run, _ITERATIONS)
    if counted is None and run.server is not None and run.server.steps:
        return sum(len(one.clock) for one in run.server.steps)
    return counted


def preemptions(run: Run) -> int | None:
    """Preemptions as the servers counted them."""
    counted = _counted(run, _PREEMPTIONS)
    if counted is None and run.server is not None and run.server.steps:
        return sum(int(one.preempted.sum()) for one in run.server.steps)
    return counted


def _counted(run: Run, name: str) -> int | None:
    """How far a counter went over all engines; None where one does not say or was restarted."""
    counters = () if run.server is None else run.server.counters
    before = {one.engine: _total(one, name) for one in counters if one.when == "before"}
    after = {one.engine: _total(one, name) for one in counters if one.when == "after"}
    if not after or before.keys() != after.keys():
        return None
    went = 0.0
    for engine, end in after.items():
        start = before[engine]
        if start is None or end is None or end < start:
            return None
        went += end - start
    return round(went)


def _total(counters: Counters, name: str) -> float | None:
    found = [v for series, v in counters.values.items() if series.partition("{")[0] == name]
    return sum(found) if found else None
