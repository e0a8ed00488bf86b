"""How long requests of one run wait for a slot, by four sources that know nothing of each other.

1. The server's own queue time of each request, averaged.
2. The engine's waiting count after each step, averaged over time; divided by X (Little's law).
3. The client's file alone: L requests are in flight and S run, so (L - S) / X.
4. The TTFT over that of an arm that does not queue, whose TTFT is prefill alone.

All in seconds a request. The first counts from arrival in the engine, the last two from sending.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.accounting import Ledger
from analysis.model import Requests, Run, Source, Steps

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
        _by_times(run),
        _by_steps(run, None if x is None else x.value),
        _by_little(account, slots),
    ]
    if prefill is not None and account.ttft is not None:
        source = account.ttft.sources[0] if account.ttft.sources else run.source
        found.append(Wait(TTFT, account.ttft.value - prefill, source))
    return tuple(wait for wait in found if wait is not None)


def _by_times(run: Run) -> Wait | None:
    if run.server is None or not run.server.times:
        return None
    queue = np.concatenate([times.queue for times in run.server.times])
    queue = queue[np.isfinite(queue)]
    if not len(queue):
        return None
    source = Source(run.server.times[0].source.file, "queue, mean of all requests")
    return Wait(TIMES, float(queue.mean()), source)


def _by_steps(run: Run, x: float | None) -> Wait | None:
    window = _window(run.requests)
    if run.server is None or not run.server.steps or window is None or not x:
        return None
    waiting = sum(mean_over_time(steps, *window) for steps in run.server.steps)
    source = Source(run.server.steps[0].source.file, "waiting, mean over time")
    return Wait(STEPS, waiting / x, source)


def mean_over_time(steps: Steps, begin: float, end: float) -> float:
    """Mean of the waiting count between two moments of the steps' clock.

    A step's count holds while it runs: since the step before it ended. Between the last step and
    `end` nobody waits.
    """
    if not end > begin or not len(steps.clock):
        return 0.0
    edges = np.clip(np.concatenate([steps.clock[:1], steps.clock]), begin, end)
    return float((np.diff(edges) * steps.waiting).sum() / (end - begin))


def _window(requests: Requests | None) -> tuple[float, float] | None:
    """From the first sending to the last token, by the client's clock."""
    if requests is None or requests.start is None or not len(requests.start):
        return None
    totals = np.concatenate([[0.0], np.cumsum(requests.gaps)])
    decode = totals[requests.offsets[1:]] - totals[requests.offsets[:-1]]
    return float(requests.start.min()), float((requests.start + requests.ttft + decode).max())


def _by_little(account: Ledger, slots: float | None) -> Wait | None:
    in_flight, x = account.in_flight, account.throughput
    if in_flight is None or x is None or slots is None or x.value <= 0:
        return None
    return Wait(LITTLE, (in_flight.value - slots) / x.value, account.run.source)
