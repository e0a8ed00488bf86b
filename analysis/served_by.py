"""Which engine served each request, by the servers' own logs of requests.

A client of `vllm bench serve` names its requests PREFIX + INDEX, and the collector's prefixes end
in the client's number: `cmpl-RUN.CLIENT-INDEX-0` reaches the server as it is, through a router too.
"""

from __future__ import annotations

import re

import numpy as np

from analysis.model import Ints, Requests, Run

_ID = re.compile(r"\.(?P<client>\d{1,6})-(?P<index>\d{1,9})-\d{1,6}")


def place_of(request_id: str, requests: Requests) -> int | None:
    """Where a request stands in the run's arrays; None for ids of another form or another run."""
    found = _ID.search(request_id)
    if found is None:
        return None
    client, index = int(found["client"]), int(found["index"])
    count = len(requests.ttft)
    if requests.client is None:
        return index if client == 0 and index < count else None
    mine = np.flatnonzero(requests.client == client)
    return int(mine[index]) if index < len(mine) else None


def engine_of(run: Run) -> Ints | None:
    """Shape (requests,). The engine of each request, numbered as the servers' logs are.

    None where a completed request is in no log, or where there are no logs. Failed requests that
    no engine finished are given to the first: they have no tokens to be placed.
    """
    requests = run.requests
    if requests is None or run.server is None or not run.server.times:
        return None
    engine = np.full(len(requests.ttft), -1, np.int64)
    for number, times in enumerate(run.server.times):
        for name in times.request:
            place = place_of(name, requests)
            if place is not None and engine[place] < 0:
                engine[place] = number
    if (engine[~requests.failed] < 0).any():
        return None
    return np.maximum(engine, 0)
