"""How long requests of one run wait for a slot, by sources that know nothing of each other.

1. The server's own queue time of each request, averaged; where only counters were kept, the mean of
   its histogram over the run.
2. The engine's waiting count after each step, averaged over time; divided by X (Little's law). The
   same count, where it was only sampled: request-seconds waited, over completed requests.
3. The client's file alone: L requests are in flight and S run, so (L - S) / X.
4. The TTFT over that of an arm that does not queue, whose TTFT is prefill alone.

All in seconds a request. The first counts from arrival in the engine, the last two from sending.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analysis.accounting import Ledger
from analysis.model import MetricSamples, Run, Source, Steps
from analysis.server_metrics import server_metrics
from analysis.token_times import Refused
from analysis.wording import plural

TIMES = "server queue time"
STEPS = "engine's waiting count"
SAMPLES = "sampled waiting count"
LITTLE = "Little's law on the client's file"
TTFT = "TTFT over an arm without a queue"


LEAST_SAMPLES = 10
"""With fewer scrapes a run's waiting count is not known over time."""


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
        _by_samples(run, None if account.completed is None else account.completed.value),
        _by_little(account, slots),
    ]
    if prefill is not None and account.ttft is not None:
        source = account.ttft.sources[0] if account.ttft.sources else run.source
        found.append(Wait(TTFT, account.ttft.value - prefill, source))
    return tuple(wait for wait in found if wait is not None)


def server_wait(run: Run) -> Wait | None:
    """The server's own queue time, averaged over the requests that it told of, or over all."""
    queue: dict[str, float] = {}
    for times in run.server.times if run.server is not None else ():
        # A request may be told of twice: by the plugin and by a span.
        told = zip(times.request, times.queue.tolist(), strict=True)
        queue = {name: wait for name, wait in told if math.isfinite(wait)} | queue
    if run.server is None or not queue:
        return _by_histogram(run)
    key = f"queue, mean of {plural(len(queue), 'request')}"
    source = Source(run.server.times[0].source.file, key)
    return Wait(TIMES, sum(queue.values()) / len(queue), source)


def _by_histogram(run: Run) -> Wait | None:
    """The mean of the queue times that the servers' counters summed up."""
    metrics = server_metrics(run)
    if metrics is None or isinstance(metrics, Refused):
        return None
    queue = metrics.histogram("queue")
    if queue is None or math.isnan(queue.mean):
        return None
    return Wait(TIMES, queue.mean, metrics.cite("queue", "_sum over _count"))


def _by_samples(run: Run, completed: float | None) -> Wait | None:
    """The waiting count of all engines at each scrape, held until the next; only without steps."""
    if run.server is None or run.server.steps or not run.server.samples or not completed:
        return None
    waited = [request_seconds(one) for one in run.server.samples]
    if any(not math.isfinite(each) for each in waited):
        return None
    key = "waiting, summed over time"
    return Wait(SAMPLES, sum(waited) / completed, Source(run.server.samples[0].source.file, key))


def request_seconds(samples: MetricSamples) -> float:
    """Request-seconds that one engine's waiting count sums up to; NaN where nothing says so.

    By the trapezoid between scrapes. Requests that were preempted and wait again are in the count,
    and not in the server's queue time.
    """
    known = np.isfinite(samples.waiting)
    if known.sum() < LEAST_SAMPLES:
        return math.nan
    waiting, clock = samples.waiting[known], samples.clock[known]
    return float(((waiting[1:] + waiting[:-1]) / 2 * np.diff(clock)).sum())


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
