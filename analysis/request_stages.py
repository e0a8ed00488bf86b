"""Where a request's stay goes: outside the engine, in its queue, in prefill, in decode.

    stay = outside + queue + prefill + decode + residual

    outside   = the client's TTFT - queue - prefill: network, client, API server, and the wait until
                the engine's loop takes the request up (a step, in a busy engine)
    queue     = from arrival in the engine to the first scheduling
    prefill   = from the first scheduling to the first token
    decode    = from the first token to the last, as the engine counts it
    residual  = the client's time from first to last token - decode: how much later the last token
                came through than the first

Queue, prefill and decode are the server's: of each request by its id where it told of each, else
the means of its histograms over the run. Without either the stay has two parts, before and after
the first token. vLLM's queue time ends at the *first* scheduling: what a preempted request waits
again is in its decode time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.model import Floats, Requests, Run, Source
from analysis.served_by import place_of
from analysis.server_metrics import ServerMetrics, server_metrics
from analysis.token_times import Refused
from analysis.wording import plural

LEAST_JOINED = 0.95
"""Share of the completed requests that the server must have told of to speak for all."""

_ID = re.compile(
    r"cmpl-(?P<client>.*\D)?(?P<number>\d{1,7})-\d{1,4}(?:-[0-9a-f]{8})?"
    r"|chatcmpl-(?P<chat>.*\D)?(?P<turn>\d{1,7})(?:-[0-9a-f]{8})?"
)
"""As servers have it: the client's prefix, the request's number and, of completions, a choice."""
SOONER = 0.001
"""s. By how much a server's queue and prefill may exceed the client's TTFT: two clocks."""

STAGES = ("outside", "queue", "prefill", "decode", "residual")


@dataclass(frozen=True, eq=False, slots=True)
class PerRequest:
    """The stages of each request that client and server told of, s. Shapes (m,)."""

    index: np.ndarray[tuple[int], np.dtype[np.int64]]
    """Position among the requests of the run."""
    outside: Floats
    queue: Floats
    prefill: Floats
    decode: Floats
    residual: Floats


@dataclass(frozen=True, eq=False, slots=True)
class RequestStages:
    """A run's mean stay and its parts, s; they add up to it. NaN where nobody told."""

    stay: float
    ttft: float
    outside: float
    queue: float
    prefill: float
    decode: float
    residual: float
    by: str
    """Who told: "each request's times", "means of the server's histograms", "the client alone"."""
    source: Source
    requests: int
    """That the means are over."""
    client: float = math.nan
    """Of `outside`, what lies outside the server: the client's TTFT less the server's own."""
    each: PerRequest | None = None
    warnings: tuple[str, ...] = ()

    @property
    def api_server(self) -> float:
        """Of `outside`, what lies in the server before the engine takes the request up."""
        return self.outside - self.client


EACH, MEANS, CLIENT = (
    "each request's times", "means of the server's histograms", "the client alone",
)  # fmt: skip


def request_stages(run: Run) -> RequestStages | None:
    """The split of the mean stay of a run's completed requests; None without their times."""
    requests = run.requests
    if requests is None or not (ok := ~requests.failed & (requests.output_tokens > 0)).any():
        return None
    metrics = server_metrics(run)
    told = None if isinstance(metrics, Refused) else metrics
    notes = _notes(told)
    each, warnings = _joined(run, requests, ok)
    if each is not None:
        return _by_each(run, requests, each, told, (*warnings, *notes))
    ttft, decode = float(requests.ttft[ok].mean()), float(requests.decode[ok].mean())
    parts = _means(told)
    count = int(ok.sum())
    if parts is None or told is None:
        none = math.nan
        return RequestStages(
            ttft + decode, ttft, none, none, none, decode, 0.0, CLIENT, run.source, count,
            warnings=warnings,
        )  # fmt: skip
    queue, prefill, decoding = parts
    return RequestStages(
        ttft + decode,
        ttft,
        ttft - queue - prefill,
        queue,
        prefill,
        decoding,
        decode - decoding,
        MEANS,
        told.cite("queue", "_sum over _count"),
        count,
        ttft - _own_ttft(told),
        warnings=(*warnings, *_other_requests(told, count), *notes),
    )


def _by_each(
    run: Run,
    requests: Requests,
    each: PerRequest,
    told: ServerMetrics | None,
    warnings: tuple[str, ...],
) -> RequestStages:
    ttft = float(requests.ttft[each.index].mean())
    stay = ttft + float(requests.decode[each.index].mean())
    outside, queue, prefill, decode, residual = (
        float(part.mean())
        for part in (each.outside, each.queue, each.prefill, each.decode, each.residual)
    )
    times = () if run.server is None else run.server.times
    n = len(each.index)
    source = Source(times[0].source.file, f"queue, prefill and decode of {plural(n, 'request')}")
    # The counters' TTFT is of all requests; of a part of them it would be another mean.
    client = (
        ttft - _own_ttft(told) if told is not None and not _other_requests(told, n) else math.nan
    )
    return RequestStages(
        stay, ttft, outside, queue, prefill, decode, residual, EACH, source, n, client, each,
        warnings,
    )  # fmt: skip


def _joined(
    run: Run, requests: Requests, ok: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[PerRequest | None, tuple[str, ...]]:
    """Stages of each request whose id the server has, and why there are none of any."""
    times = () if run.server is None else run.server.times
    if not times:
        return None, ()
    found = _by_place(run, requests)
    if found is None:
        return None, (
            "no id among the server's times names a request of this client: its means are used",
        )
    index = np.array([n for n in sorted(found) if ok[n]], np.int64)
    if len(index) < LEAST_JOINED * ok.sum():
        told = f"{len(index):,} of {plural(int(ok.sum()), 'completed request')}"
        return None, (f"the server's times are of {told} only: not used",)
    queue, prefill, decode = np.array([found[n] for n in index.tolist()]).T
    ttft, seen = requests.ttft[index], requests.decode[index]
    outside = ttft - queue - prefill
    if float((outside >= -SOONER).mean()) < LEAST_JOINED:
        return None, ("by the server's times requests began before they were sent: not used",)
    return PerRequest(index, outside, queue, prefill, decode, seen - decode), ()


def _by_place(run: Run, requests: Requests) -> Mapping[int, tuple[float, float, float]] | None:
    """Queue, prefill and decode by the request's position in the run; None where no id tells it."""
    found: dict[int, tuple[float, float, float]] = {}
    clients: set[str] = set()
    for times in run.server.times if run.server is not None else ():
        rows = zip(
            times.request, times.queue.tolist(), times.prefill.tolist(), times.decode.tolist(),
            strict=True,
        )  # fmt: skip
        for name, queue, prefill, decode in rows:
            told, place = _place(name, requests)
            if place is None or not all(map(math.isfinite, (queue, prefill, decode))):
                continue
            clients.add(told)
            # A request may be told of twice: by the plugin and by a span.
            found.setdefault(place, (queue, prefill, decode))
    # Ids of two prefixes are of two runs, and their numbers mean two things.
    return found if len(clients) == 1 else None


def _place(name: str, requests: Requests) -> tuple[str, int | None]:
    """Whose request it is, and its position: of several clients by the collector's ids only."""
    if requests.client is not None:
        return "", place_of(name, requests)
    found = _ID.fullmatch(name)
    if found is None:
        return "", None
    number = int(found["number"] or found["turn"])
    return found["client"] or found["chat"] or "", number if number < len(requests.ttft) else None


def _means(metrics: ServerMetrics | None) -> tuple[float, float, float] | None:
    """Mean queue, prefill and decode time, s."""
    parts = [
        None if metrics is None else metrics.histogram(n) for n in ("queue", "prefill", "decode")
    ]
    known = [one for one in parts if one is not None and one.count]
    if len(known) < len(parts):
        return None
    queue, prefill, decode = (one.mean for one in known)
    return queue, prefill, decode


def _own_ttft(metrics: ServerMetrics) -> float:
    ttft = metrics.histogram("ttft")
    return math.nan if ttft is None else ttft.mean


def _other_requests(metrics: ServerMetrics, count: int) -> tuple[str, ...]:
    """A warning where the histograms are not of the requests that the client completed."""
    queue = metrics.histogram("queue")
    if queue is None or queue.count == count:
        return ()
    return (
        f"the server's means are of {queue.count:,.0f} requests, the client's of {count:,}: "
        "warm-ups, failed requests, or those of others",
    )


def _notes(metrics: ServerMetrics | None) -> tuple[str, ...]:
    preempted = None if metrics is None else metrics.counter("preemptions")
    if not preempted:
        return ()
    return (
        f"{plural(int(preempted), 'preemption')}: what a preempted request waited again is in "
        "decode, not in queue",
    )
