"""How many requests are in flight at each moment, and the window in which the load is steady.

Counted from sending to last token of each completed request, exactly. A closed loop is steady from
the first moment at which its cap is reached to the last: before it fills, after it drains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.model import Floats, Ints
from analysis.token_times import Arrivals


@dataclass(frozen=True, eq=False, slots=True)
class InFlight:
    """L(t): `count[i]` requests from `time[i]` to `time[i + 1]`. Shapes (2n,), times in s."""

    time: Floats
    count: Ints

    @property
    def mean(self) -> float:
        """L over the whole run: the sum of all stays over the duration."""
        return self.between(float(self.time[0]), float(self.time[-1]))

    def between(self, begin: float, end: float) -> float:
        """Mean of L(t) over a window."""
        edges = np.clip(self.time, begin, end)
        spans = np.diff(edges)
        return float(self.count[:-1] @ spans) / (end - begin) if end > begin else float("nan")


@dataclass(frozen=True, slots=True)
class Window:
    """A span of a run on the client's clock, s, and what was measured within it."""

    begin: float
    end: float
    share: float
    """Of the run's duration."""
    in_flight: float
    itl: float
    """Mean of the gaps that lie within, s."""
    output_throughput: float
    """Tokens that arrived within, 1/s."""


def in_flight(found: Arrivals) -> InFlight:
    """L(t) of a run. At one moment an end comes before a beginning: a client replaces requests."""
    time = np.concatenate([found.start, found.last])
    change = np.repeat([1, -1], len(found.start))
    order = np.lexsort((change, time))
    return InFlight(time[order], np.cumsum(change[order]))


def window(found: Arrivals, begin: float, end: float) -> Window:
    """What a span of the run shows. A gap that crosses an edge is left out."""
    inner = np.flatnonzero(found.request[1:] == found.request[:-1])
    within = (found.time[inner] >= begin) & (found.time[inner + 1] <= end)
    gaps = (found.time[inner + 1] - found.time[inner])[within]
    tokens = int(((found.time > begin) & (found.time <= end)).sum())
    flight = in_flight(found)
    run = float(flight.time[-1] - flight.time[0])
    return Window(
        begin,
        end,
        (end - begin) / run,
        flight.between(begin, end),
        float(gaps.mean()) if len(gaps) else float("nan"),
        tokens / (end - begin),
    )


def whole(found: Arrivals) -> Window:
    """The run from the first request sent to the last token."""
    return window(found, float(found.start.min()), float(found.last.max()))


def steady(found: Arrivals, cap: int) -> Window | None:
    """The span between the first and the last moment with `cap` requests in flight, if any."""
    flight = in_flight(found)
    full = np.flatnonzero(flight.count >= cap)
    if not len(full):
        return None
    begin, end = float(flight.time[full[0]]), float(flight.time[full[-1] + 1])
    return window(found, begin, end) if end > begin else None


def residences(found: Arrivals) -> float:
    """How many mean stays the run lasted: fewer than ten are mostly ramp and drain."""
    stay = float((found.last - found.start).mean())
    return float(found.last.max() - found.start.min()) / stay
