"""Several load clients that ran at the same time, as one run.

Counts add up; the run lasts from the first sending to the last token of any client. Latencies are
those of all requests where every client kept its requests; else means alone, weighted by what each
client averaged over, since percentiles and spreads of parts give none of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np

from analysis.metrics import LATENCIES
from analysis.model import LEVELS, Figure, Floats, Ints, Requests, Run, Source
from analysis.wording import listing, percent

LEAST_TOGETHER = 0.8
"""Clients that share less of the run than this drove it one after another, not together."""

_SUMS = ("completed", "failed", "num_prompts", "total_input_tokens", "total_output_tokens")
_LATENCY = re.compile(
    rf"(?P<statistic>mean|median|std|p(?P<rank>\d+(?:\.\d+)?))_(?P<of>{'|'.join(LATENCIES)})"
)


def together(clients: Sequence[Run]) -> Run:
    """One run of all clients; the first one's configuration stands for all.

    Args:
        clients: Two at least, each with the figures that a result file must have.
    """
    first, *others = clients
    requests = _requests([run.requests for run in clients])
    names = [name for name in first.figures if all(name in run.figures for run in others)]
    longest = max(run.figures["duration"].value for run in clients)
    window = requests.window if requests is not None else None
    duration = longest if window is None else max(longest, window[1] - window[0])
    values = {name: sum(run.figures[name].value for run in clients) for name in names
              if name in _SUMS}  # fmt: skip
    values["duration"] = duration
    tokens = values["total_output_tokens"]
    rates = {
        "request_throughput": values["completed"],
        "output_throughput": tokens,
        "total_token_throughput": values["total_input_tokens"] + tokens,
    }
    values |= {name: count / duration for name, count in rates.items() if name in names}
    values |= _means(clients, names) if requests is None else _statistics(requests, names)
    files = listing(PurePosixPath(run.source.file).name for run in others)
    found = {
        name: _figure(first.figures[name], value, f"{name}, with {files}")
        for name, value in values.items()
    }
    warnings = dict.fromkeys(note for run in clients for note in run.warnings)
    return replace(
        first,
        id=f"{first.id} with {files}",
        source=Source(first.source.file, f"with {files}"),
        level=min((run.level for run in clients), key=LEVELS.index),
        figures=found,
        requests=requests,
        also_in=tuple(source for run in others for source in (run.source, *run.also_in)),
        requested_rate=sum(run.requested_rate for run in clients),
        warnings=(*warnings, *_apart(clients)),
    )


def _figure(like: Figure, value: float, key: str) -> Figure:
    return replace(like, value=value, lo=value, hi=value, source=Source(like.source.file, key))


def _apart(clients: Sequence[Run]) -> tuple[str, ...]:
    """A warning where the clients did not run at the same time, as far as their clocks tell."""
    windows = [run.requests.window for run in clients if run.requests is not None]
    known = [window for window in windows if window is not None]
    if len(known) < len(clients):
        return ()
    begins, ends = zip(*known, strict=True)
    whole, shared = max(ends) - min(begins), min(ends) - max(begins)
    if whole <= 0 or shared >= LEAST_TOGETHER * whole:
        return ()
    return (
        f"all clients drove at once for {percent(max(shared, 0.0) / whole, 0)} of the run only",
    )


def _statistics(requests: Requests, names: Sequence[str]) -> Mapping[str, float]:
    """Latencies of all completed requests, computed as `vllm bench serve` does."""
    ok = ~requests.failed
    decode, several = requests.decode, ok & (requests.output_tokens > 1)
    samples = {
        "ttft": requests.ttft[ok],
        "itl": requests.gaps[np.repeat(ok, np.diff(requests.offsets))],
        "tpot": decode[several] / (requests.output_tokens[several] - 1),
        "e2el": (requests.ttft + decode)[ok],
    }
    found = {}
    for name in names:
        told = _LATENCY.fullmatch(name)
        if told and len(sample := samples[told["of"]]):
            value = _statistic(sample, told["statistic"], float(told["rank"] or 0))
            if value is not None:
                found[name] = value
    return found


def _statistic(sample: Floats, which: str, rank: float) -> float | None:
    if which == "mean":
        return float(sample.mean())
    if which == "std":
        return float(sample.std())
    if which == "median":
        return float(np.median(sample))
    return float(np.percentile(sample, rank)) if rank <= 100 else None


def _means(clients: Sequence[Run], names: Sequence[str]) -> Mapping[str, float]:
    """Means over all requests, weighted by the requests or gaps that each client averaged over."""
    completed = [run.figures["completed"].value for run in clients]
    tokens = [run.figures["total_output_tokens"].value for run in clients]
    found = {}
    for name in names:
        if name in {f"mean_{which}" for which in LATENCIES}:
            gaps = [max(all_ - n, 0.0) for all_, n in zip(tokens, completed, strict=True)]
            weights = gaps if name == "mean_itl" else completed
            if sum(weights) > 0:
                values = [run.figures[name].value for run in clients]
                found[name] = float(np.average(values, weights=weights))
    return found


def _requests(parts: Sequence[Requests | None]) -> Requests | None:
    """All requests of all clients; None where one has none."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    starts = [part.start for part in known if part.start is not None]
    return Requests(
        ttft=np.concatenate([part.ttft for part in known]),
        gaps=np.concatenate([part.gaps for part in known]),
        offsets=_joined([part.offsets for part in known]),
        input_tokens=np.concatenate([part.input_tokens for part in known]),
        output_tokens=np.concatenate([part.output_tokens for part in known]),
        failed=np.concatenate([part.failed for part in known]),
        # Clients of one host read one monotonic clock.
        start=np.concatenate(starts) if len(starts) == len(known) else None,
        client=np.repeat(np.arange(len(known)), [len(part.ttft) for part in known]),
    )


def _joined(offsets: Sequence[Ints]) -> Ints:
    ends = np.cumsum([0, *(int(part[-1]) for part in offsets)])
    parts = [part[:-1] + end for part, end in zip(offsets, ends[:-1], strict=True)]
    return np.concatenate([*parts, ends[-1:]]).astype(np.int64)
