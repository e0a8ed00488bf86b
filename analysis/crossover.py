"""Where the load curves of two arms cross, and how far the data allows to say so.

Curves are compared at equal requests in flight in all. Inside the measured range a crossing is a
change of sign of the log ratio between two neighbouring loads. Outside it is an extrapolation:
several models are tried, and a crossing is only as good as their agreement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analysis.dataset import Cell
from analysis.quantity import Quantity

FARTHEST = 1024
"""Extrapolated crossings beyond this many requests in flight count as none."""


_FAR = 700.0
"""ln of more than any ratio: the end of an interval that has none."""


@dataclass(frozen=True, eq=False, slots=True)
class Point:
    """Both arms at one load."""

    n: int
    ratio: Quantity
    """First arm's metric over the second's."""
    noise: float = 0.0
    """What runs vary, as a half width on ln ratio; it adds to the interval of rounding."""

    @property
    def log(self) -> tuple[float, float]:
        """The interval of ln ratio that rounding and noise allow."""
        lo, hi = self.ratio.lo, self.ratio.hi
        # A print as coarse as its value reaches 0, and a spread of powers of ten infinity.
        least = math.log(lo) - self.noise if lo > 0 else -_FAR
        return max(-_FAR, least), min(_FAR, math.log(hi) + self.noise)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Between two measured loads; `at` by interpolation of the log ratio in log load.

    `cut`: the measured loads at which the interval is cut, since the arms may be equal there and
    the crossing beyond.
    """

    below: int
    above: int
    at: float
    lo: float
    hi: float
    cut: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Forecast:
    """Where one model says the curves cross beyond the measured loads; None for nowhere."""

    model: str
    at: float | None
    up_to: float = FARTHEST
    """The highest load that was looked at."""


def points(first: Sequence[Cell], second: Sequence[Cell], metric: str) -> tuple[Point, ...]:
    """The common loads of two arms, from the lowest up."""
    other = {cell.concurrency: cell for cell in second}
    found = []
    for cell in first:
        partner = other.get(cell.concurrency)
        if partner is None or cell.concurrency is None:
            continue
        a, b = cell.metric(metric), partner.metric(metric)
        if a is not None and b is not None and a.value > 0 and b.value > 0:
            found.append(Point(cell.concurrency, (a / b).as_unit("")))
    return tuple(found)


def crossings(found: Sequence[Point]) -> tuple[Crossing, ...]:
    """Changes of sign between neighbouring loads, with the interval of rounding and noise."""
    result = []
    clear = [point for point in found if point.ratio.value != 1]
    for low, high in pairwise(clear):
        a, b = math.log(low.ratio.value), math.log(high.ratio.value)
        if a * b > 0:
            continue
        path = [point for point in found if low.n <= point.n <= high.n]
        equal = [float(point.n) for point in path[1:-1]]
        at = equal[0] if equal else _between(low.n, a, high.n, b)
        # A corner without a change of sign says nothing; where rounding and noise can make the
        # arms equal at a measured load, the crossing may lie there.
        reach = [at]
        reach += [
            _between(left.n, x, right.n, y)
            for left, right in pairwise(path)
            for x in left.log
            for y in right.log
            if x * y < 0
        ]
        equal_at = [point.n for point in path if point.log[0] <= 0 <= point.log[1]]
        reach += [float(n) for n in equal_at]
        cut = tuple(n for n in (low.n, high.n) if n in equal_at)
        result.append(Crossing(low.n, high.n, at, min(reach), max(reach), cut))
    return tuple(result)


def _between(n1: float, y1: float, n2: float, y2: float) -> float:
    """Zero of the line through two points of (ln n, y) whose signs differ."""
    x1, x2 = math.log(n1), math.log(n2)
    return min(n2, max(n1, math.exp(x1 - y1 * (x2 - x1) / (y2 - y1))))


def _zero(n1: float, y1: float, n2: float, y2: float) -> float | None:
    """Zero of the line through two points of (ln n, y)."""
    if y1 == y2:
        return None
    x1, x2 = math.log(n1), math.log(n2)
    exponent = x1 - y1 * (x2 - x1) / (y2 - y1)
    return math.exp(exponent) if exponent < math.log(FARTHEST) else None


def forecasts(
    first: Sequence[Cell],
    second: Sequence[Cell],
    metric: str,
    unit: Sequence[Cell] = (),
    k: int = 0,
) -> tuple[Forecast, ...]:
    """Where each of several models puts a crossing above the highest common load.

    `unit` is one instance of the second arm (k of them behind a router), measured alone: at
    k x n in flight each instance sees n, so its curve reaches k times as far.
    """
    last = points(first, second, metric)
    if len(last) < 2:
        return ()
    top = float(last[-1].n)
    models: list[tuple[str, float | None]] = []
    logs = [(float(p.n), math.log(p.ratio.value)) for p in last]
    models.append(("log ratio, last two loads", _zero(*logs[-2], *logs[-1])))
    if len(logs) > 2:
        models.append(("log ratio, all loads", _least_squares_zero(logs)))
    (n1, _), (n2, _) = logs[-2:]
    r1, r2 = last[-2].ratio.value, last[-1].ratio.value
    models.append(("ratio linear in load", _linear_zero(n1, r1 - 1, n2, r2 - 1)))
    for name, label in (("stay", "log ratio of stays"), ("mean_itl", "log ratio of ITL")):
        rows = points(first, second, name)
        if len(rows) >= 2:
            a, b = rows[-2:]
            models.append(
                (label, _zero(a.n, math.log(a.ratio.value), b.n, math.log(b.ratio.value)))
            )
    steps = _affine_steps(first, second)
    if steps is not None:
        (a0, a1), (b0, b1) = steps
        models.append(("step time affine in load", (b0 - a0) / (a1 - b1) if a1 != b1 else None))
    found = [
        Forecast(label, at if at is not None and top < at <= FARTHEST else None)
        for label, at in models
    ]
    own = _unit_curve(unit, k)
    if steps is not None and own is not None:
        (a0, a1), _ = steps
        end = own[-1][0]
        at = _cross_above(top, end, lambda n: a0 + a1 * n, own)
        found.append(Forecast(f"{k} x one instance as measured", at, max(top, end)))
    return tuple(found)


def _linear_zero(n1: float, y1: float, n2: float, y2: float) -> float | None:
    return None if y1 == y2 else n1 - y1 * (n2 - n1) / (y2 - y1)


def _least_squares_zero(logs: Sequence[tuple[float, float]]) -> float | None:
    x, y = np.log([n for n, _ in logs]), np.array([v for _, v in logs])
    slope, intercept = np.polyfit(x, y, 1)
    if slope == 0:
        return None
    exponent = float(-intercept / slope)
    return math.exp(exponent) if exponent < math.log(FARTHEST) else None


def _affine_steps(
    first: Sequence[Cell], second: Sequence[Cell]
) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """The lines of both arms, where both have one."""
    a, b = _affine_step(first), _affine_step(second)
    return None if a is None or b is None else (a, b)


def _affine_step(cells: Sequence[Cell]) -> tuple[float, float] | None:
    """ITL = constant + slope x load through the last two loads, s."""
    have = [(c.concurrency, q.value) for c in cells if (q := c.metric("mean_itl")) is not None]
    if len(have) < 2:
        return None
    (n1, y1), (n2, y2) = have[-2:]
    if n1 is None or n2 is None or n1 == n2:
        return None
    slope = (y2 - y1) / (n2 - n1)
    return y1 - slope * n1, slope


def _unit_curve(unit: Sequence[Cell], k: int) -> list[tuple[float, float]] | None:
    """(requests in flight over k instances, ITL) from one instance measured alone."""
    rows = [
        (float(k * (c.concurrency or 0)), q.value)
        for c in unit
        if (q := c.metric("mean_itl")) is not None
    ]
    return rows if k > 1 and len(rows) >= 2 else None


def _cross_above(
    top: float, end: float, first: Callable[[float], float], curve: Sequence[tuple[float, float]]
) -> float | None:
    """First load above `top` and up to `end` at which the first arm's ITL exceeds the curve."""
    xs, ys = [x for x, _ in curve], [y for _, y in curve]
    for n in np.arange(math.ceil(top) + 1, end + 1):
        if first(float(n)) > float(np.interp(n, xs, ys)):
            return float(n)
    return None
