"""What the page of data quality says of the servers: what they saw, and what both ends counted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from analysis.markdown import Safe
from analysis.model import Run
from analysis.pipeline import StudyReport
from analysis.queue_sources import mean_waiting, request_seconds, server_wait
from analysis.reconciliation import COUNTS, TIMES, Pair, Reconciled, reconciled
from analysis.request_stages import CLIENT, request_stages
from analysis.run_steps import preemptions
from analysis.token_times import Refused
from analysis.wording import percent, show

DASH = Safe("-")


@dataclass(frozen=True, slots=True)
class Told:
    """A run whose servers told, in words."""

    run: Run
    wait: str
    waiting: str
    preempted: str
    kv_use: str
    """The most that any engine had in use."""
    served: str


def told(report: StudyReport) -> list[Told]:
    """Of each run whose servers told: queue time, waiting, preemptions, KV, requests by server."""
    found = []
    for run in report.study.runs:
        server, wait = run.server, server_wait(run)
        if server is None or not (wait or server.steps or server.samples or len(server.served) > 1):
            continue
        waiting, preempted, most = _waiting(run), preemptions(run), _most_kv(run)
        served = ", ".join(f"{name}: {count:,}" for name, count in server.served.items())
        # What happens between two scrapes is not seen: a burst may wait unnoticed.
        seen = "" if server.steps else " (sampled)"
        found.append(
            Told(
                run,
                show(wait.seconds, "s") if wait else DASH,
                f"{show(waiting)}{seen}" if waiting is not None else DASH,
                show(preempted) if preempted is not None else DASH,
                f"{percent(most)}{seen}" if most is not None else DASH,
                served or DASH,
            )
        )
    return found


def _waiting(run: Run) -> float | None:
    """Requests that waited, averaged over the run: after each step, or as sampled."""
    counted = mean_waiting(run)
    window = run.requests.window if run.requests is not None else None
    if counted is not None or window is None or run.server is None or not run.server.samples:
        return counted
    begin, end = window
    waited = sum(request_seconds(one) for one in run.server.samples)
    return waited / (end - begin) if math.isfinite(waited) and end > begin else None


def _most_kv(run: Run) -> float | None:
    """The largest share of a KV cache in use at the end of a step, or at a scrape."""
    if run.server is None:
        return None
    parts = [steps.kv_use for steps in run.server.steps]
    parts = parts or [samples.kv_use for samples in run.server.samples]
    seen = [float(np.nanmax(part)) for part in parts if np.isfinite(part).any()]
    return max(seen, default=None)


def agreements(report: StudyReport) -> list[tuple[Run, list[str]]]:
    """Of each run with counters of its servers: a cell for each thing that both ends counted."""
    return [
        (run, [_cell(found.pair(what)) for what in (*COUNTS, *TIMES[:-1])])
        for run, found in _reconciled(report)
    ]


def meanings(report: StudyReport) -> list[tuple[str, str]]:
    """What the difference of each thing is made of, of those that some run has."""
    found: dict[str, str] = {}
    for _, one in _reconciled(report):
        found.update({pair.what: pair.meaning for pair in one.pairs})
    return [(what, found[what]) for what in (*COUNTS, *TIMES[:-1]) if what in found]


def _reconciled(report: StudyReport) -> Iterable[tuple[Run, Reconciled]]:
    for run in report.study.runs:
        found = reconciled(run)
        if found is not None and not isinstance(found, Refused):
            yield run, found


def _cell(pair: Pair | None) -> str:
    if pair is None:
        return DASH
    # The column's head says what is counted.
    unit = "" if pair.what in COUNTS else pair.unit
    client, server = show(pair.client, unit), show(pair.server, unit)
    if pair.what in COUNTS and pair.difference == 0:
        return client
    return f"{client}; {server}"


def stages(report: StudyReport) -> list[tuple[Run, list[str], str]]:
    """Of each run whose servers told: the mean stay, its parts, and who told them."""
    rows = []
    for run in report.study.runs:
        found = request_stages(run) if run.server is not None else None
        if found is None or found.by == CLIENT:
            continue
        parts = (
            found.stay, found.client, found.api_server, found.queue, found.prefill, found.decode,
            found.residual,
        )  # fmt: skip
        cells = [show(part, "s") if math.isfinite(part) else DASH for part in parts]
        rows.append((run, cells, found.by))
    return rows
