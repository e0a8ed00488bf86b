"""Reconstructed engine steps beside what the server itself counted and logged of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.dataset import Arm, Cell, Study
from analysis.model import Run
from analysis.run_steps import preemptions, server_steps, steps_of
from analysis.steps import Steps
from analysis.token_times import Refused


@dataclass(frozen=True, eq=False, slots=True)
class StepCheck:
    """One run: what its client's times show, and what its server says."""

    run: Run
    cell: Cell
    found: Steps | Refused
    counted: int | None
    """Engine steps by the server."""
    preempted: int | None
    """Preemptions by the server."""
    batch_off: float | None
    """Median of |requests in a step - the server's running count|, where it logged its steps."""
    lag: float | None
    """Median time from the server's record of a step to its first chunk at the client, s."""


def checks_of(study: Study) -> tuple[StepCheck, ...]:
    """Each run of a study that has per-request arrays."""
    return tuple(
        _check(run, cell, cell.arm)
        for cell in study.cells
        for run in cell.runs
        if run.requests is not None
    )


def _check(run: Run, cell: Cell, arm: Arm) -> StepCheck:
    found = steps_of(run, arm)
    off = lag = None
    if isinstance(found, Steps):
        off, lag = _against_log(run, found)
    return StepCheck(run, cell, found, server_steps(run), preemptions(run), off, lag)


def _against_log(run: Run, steps: Steps) -> tuple[float | None, float | None]:
    """Batch and delivery against the server's log of steps, whose clock is the client's."""
    logs = () if run.server is None else run.server.steps
    engines = np.unique(steps.table.engine)
    if not logs or len(logs) != len(engines) or any(not len(log.clock) for log in logs):
        return None, None
    off, lag = [], []
    for engine, log in zip(engines, logs, strict=True):
        mine = steps.table.engine == engine
        end, batch = steps.table.end[mine], steps.table.batch[mine]
        last = (np.searchsorted(log.clock, end, side="right") - 1).clip(0, len(log.clock) - 1)
        off.append(np.abs(batch - log.running[last]))
        lag.append(end - log.clock[last])
    return float(np.median(np.concatenate(off))), float(np.median(np.concatenate(lag)))
