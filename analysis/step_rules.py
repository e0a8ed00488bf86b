"""Two rules that tell which engine step each chunk came from. Both are vectorised over chunks.

Rule A, by pauses: sort all arrivals; a step begins where the pause exceeds half the median gap, or
where a request would appear twice. It needs chunks of one step to arrive well within a step.

Rule B, by a lattice: a request that is never preempted gets one token a step, so its k-th chunk is
of step s + k. s is the median distance of its arrivals from the clock that earlier requests have
set. It bears delays as long as a step, and cannot bear preemption.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.model import Floats, Ints
from analysis.token_times import Arrivals

PAUSE = 0.5
"""Of the median gap. Counts on recorded GPU runs are the same from 0.35 to 0.7."""
NEAR = 64
"""Steps of the clock looked at before a request's first chunk."""


@dataclass(frozen=True, eq=False, slots=True)
class Assigned:
    """A step for each chunk."""

    step: Ints
    """Shape (m,), from 0, without empty steps for rule A."""
    count: int
    off: Floats
    """Shape (m,). Steps between a chunk's arrival and its place on the lattice; 0 for rule A."""


def by_pauses(found: Arrivals, pause: float = PAUSE) -> Assigned:
    """Rule A. O(m log m).

    The step that begins at the sorted chunk p ends before q = min(next pause, the first chunk
    whose request already has a chunk at or after p). The latter is the least successor over
    i >= p, a running minimum from the right. Every pause begins a step, so the chains p -> q(p)
    are followed from all of them at once, as many times as steps lie between two pauses.
    """
    m = len(found.time)
    order = np.lexsort((found.ordinal, found.time))
    time, place = found.time[order], np.empty(m, np.int64)
    place[order] = np.arange(m)
    successor = np.full(m, m)
    inner = np.flatnonzero(found.request[1:] == found.request[:-1])
    successor[place[inner]] = place[inner + 1]
    following = np.minimum.accumulate(successor[::-1])[::-1]
    if len(inner):
        longest = pause * float(np.median(found.time[inner + 1] - found.time[inner]))
        breaks = np.append(np.flatnonzero(np.diff(time) > longest) + 1, m)
        next_pause = breaks[np.searchsorted(breaks, np.arange(m), side="right").clip(0, None)]
        following = np.minimum(following, next_pause)
    else:  # one token a request: nothing says how long a step is
        following, breaks = np.arange(1, m + 1), np.arange(1, m + 1)
    begins = np.zeros(m, np.bool_)
    reached = np.append(0, breaks[:-1])
    while len(reached):
        begins[reached] = True
        after = following[reached]
        after = after[after < m]
        reached = after[~begins[after]]
    step = (np.cumsum(begins) - 1)[place]
    return Assigned(step, int(begins.sum()), np.zeros(m))


def by_lattice(found: Arrivals) -> Assigned:
    """Rule B. One pass over requests in the order of their first chunks."""
    offsets, time = found.offsets, found.time
    sizes = np.diff(offsets)
    total, seen, clock = (np.zeros(len(time)) for _ in range(3))
    step, off = np.empty(len(time), np.int64), np.zeros(len(time))
    top = 0
    for one in np.argsort(time[offsets[:-1]], kind="stable"):
        mine = slice(int(offsets[one]), int(offsets[one + 1]))
        arrived, k = time[mine], np.arange(sizes[one])
        low = max(0, int(np.searchsorted(clock[:top], arrived[0])) - NEAR)
        around = np.maximum.accumulate(clock[low:top])
        known = arrived <= around[-1] if top else np.zeros(len(arrived), np.bool_)
        begin = top
        if known.any():
            at = low + np.interp(arrived[known], around, np.arange(len(around))) - k[known]
            begin = max(0, int(np.rint(np.median(at))))
            off[mine][known] = at - begin
        step[mine] = begin + k
        span = slice(begin, begin + len(k))
        total[span] += arrived
        seen[span] += 1
        clock[span] = total[span] / seen[span]
        top = max(top, begin + len(k))
    return Assigned(step, top, off)
