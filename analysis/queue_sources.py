"""How long requests of one run wait for a slot, by four sources that know nothing of each other.

1. The server's own queue time of each request, averaged.
2. The engine's waiting count after each step, averaged over time; divided by X (Little's law).
3. The client's file alone: L requests are in flight and S run, so (L - S) / X.
4. The TTFT over that of an arm that does not queue, whose TTFT is prefill alone.

All in seconds a request. The first counts from arrival in the engine, the last two from sending.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analysis.accounting import Ledger
from analysis.model import Run, Source, Steps
from analysis.wording import plural

TIMES = "server queue time"
STEPS = "engine's waiting count"
LITTLE = "Little's law on the client's file"
TTFT = "TTFT over an arm without a queue"


@dataclass(frozen=True, slots=True)
class Wait:
    """Mean wait of a request by one source, s."""

    by: str
    seconds: float
    source: Source


def waits(account: Ledger, slots: float | None, prefill: float | None) -> tuple[Wait, ...]:
    """What each source says of a run; sources that it has not are left out.

    Args:
        account: Of the run.
        slots: S, requests that run at once.
        prefill: Mean TTFT of an arm that does not queue, s.
    """
    run, x = account.run, account.throughput
    found = [
        server_wait(run),
        _by_steps(run, None if x is None else x.value),
        _by_little(account, slots),
    ]
    if prefill is not None and account.ttft is not None:
        source = account.ttft.sources[0] if account.ttft.sources else run.source
        found.append(Wait(TTFT, account.ttft.value - prefill, source))
    return tuple(wait for wait in found if wait is not None)


def server_wait(run: Run) -> Wait | None:
    """The server's own queue time, averaged over the requests that it told of."""
    queue: dict[str, float] = {}
    for times in run.server.times if run.server is not None else ():
        # A request may be told of twice: by the plugin and by a span.
        told = zip(times.request, times.queue.tolist(), strict=True)
        queue = {name: wait for name, wait in told if math.isfinite(wait)} | queue
    if run.server is None or not queue:
        return None
    key = f"queue, mean of {plural(len(queue), 'request')}"
    source = Source(run.server.times[0].source.file, key)
    return Wait(TIMES, sum(queue.values()) / len(queue), source)


def mean_waiting(run: Run) -> float | None:
    """Requests that waited in all engines together, averaged over the run's time."""
    window = run.requests.window if run.requests is not None else None
    if run.server is None or not run.server.steps or window is None:
        return None
    return sum(mean_over_time(steps, *window) for steps in run.server.steps)


def _by_steps(run: Run, x: float | None) -> Wait | None:
    waiting = mean_waiting(run)
    if run.server is None or waiting is None or not x:
        return None
    return Wait(STEPS, waiting / x, Source(run.server.steps[0].source.file, "waiting, over time"))


def mean_over_time(steps: Steps, begin: float, end: float) -> float:
    """Mean of the waiting count between two moments of the steps' clock.

    A step's count holds while it runs: since the step before it ended. The first lasts as long as
    the median step; before it, and after the last, nobody waits.
    """
    if not end > begin or not len(steps.clock):
        return 0.0
    lengths = np.diff(steps.clock)
    first = steps.clock[0] - np.median(lengths) if len(lengths) else begin
    edges = np.clip(np.concatenate([[first], steps.clock]), begin, end)
    return float((np.diff(edges) * steps.waiting).sum() / (end - begin))


def _by_little(account: Ledger, slots: float | None) -> Wait | None:
    in_flight, x = account.in_flight, account.throughput
    if in_flight is None or x is None or slots is None or x.value <= 0:
        return None
    return Wait(LITTLE, (in_flight.value - slots) / x.value, account.run.source)
