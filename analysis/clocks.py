"""Two clocks: does a latency differ because it takes more steps, or because steps take longer?

A mean latency is steps in a period times time for such a step, so between two arms

    ln(latency ratio) = ln(ratio of steps in a period) + ln(ratio of time a step)

exactly, without a model. The first term is scheduling: skipped steps in a gap between tokens
(preemption), steps waited before the first token, steps that a whole job takes. The second is what
steps cost with what was in them. A wait in seconds falls when steps get shorter; in steps it falls
only when there was more room.

The interval is of a paired block bootstrap: both runs are cut at the same shares of their length,
into as many blocks as the shorter has mean stays, and the same blocks are drawn in both where both
served the same requests. It says what other requests of this kind might have given; the unit of a
test stays the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analysis.in_flight import residences
from analysis.model import Floats
from analysis.steps import Latency, Steps, periods
from analysis.token_times import Refused

DRAWS = 2000
LEAST_BLOCKS = 10
MOST_BLOCKS = 100


@dataclass(frozen=True, slots=True)
class Log:
    """A logarithm of a ratio, treatment over baseline, with its 95 % interval (nan: not given)."""

    value: float
    lo: float = math.nan
    hi: float = math.nan


@dataclass(frozen=True, slots=True)
class Clock:
    """One arm: a mean latency as steps in a period and time for such a step."""

    latency: float
    """s."""
    steps: float
    seconds_a_step: float


@dataclass(frozen=True, slots=True)
class Clocks:
    """Two arms: `log_latency` = `log_steps` + `log_seconds`."""

    latency: Latency
    baseline: Clock
    treatment: Clock
    log_latency: Log
    log_steps: Log
    log_seconds: Log
    share: Log
    """Of the steps in a period: `log_steps` / `log_latency`, the rest being time a step. nan where
    the interval of the latency ratio holds 1, for nothing has no shares."""
    warnings: tuple[str, ...] = ()


def clock(steps: Steps, latency: Latency) -> Clock | Refused:
    """A run's mean latency on its own clock of steps."""
    p = periods(steps, latency)
    mean = float(p.weight @ steps.table.duration) / p.count + p.beside
    if p.steps <= 0 or mean <= 0:
        return Refused((f"No step is part of any {latency}: there is nothing to count.",))
    return Clock(mean, p.steps, mean / p.steps)


def two_clocks(
    baseline: Steps,
    treatment: Steps,
    latency: Latency,
    *,
    same_requests: bool = True,
    seed: int = 0,
) -> Clocks | Refused:
    """Split a latency ratio between two runs into steps and time a step."""
    a, b = clock(baseline, latency), clock(treatment, latency)
    if isinstance(a, Refused):
        return a
    if isinstance(b, Refused):
        return b
    if latency == "duration" and len(np.unique(baseline.engine_of)) != len(
        np.unique(treatment.engine_of)
    ):
        return Refused(("The arms have different numbers of engines, whose steps run at once.",))
    points = (
        math.log(b.latency / a.latency),
        math.log(b.steps / a.steps),
        math.log(b.seconds_a_step / a.seconds_a_step),
    )
    lasted = min(residences(baseline.found), residences(treatment.found))
    count = min(int(lasted), MOST_BLOCKS)
    if count < LEAST_BLOCKS:
        words = (
            f"no interval: a run lasted {lasted:.1f} mean stays, below {LEAST_BLOCKS} it is mostly "
            "ramp and drain"
        )
        total, more, longer = map(Log, points)
        warnings = (*_work(baseline, treatment), words)
        return Clocks(latency, a, b, total, more, longer, Log(_share(points)), warnings)
    draws = np.random.default_rng(seed)
    picked_a = _multiplicities(draws, count)
    picked_b = picked_a if same_requests else _multiplicities(draws, count)
    drawn = np.log(_drawn(treatment, latency, picked_b) / _drawn(baseline, latency, picked_a))
    whole = np.ones((1, count))
    centre = np.log(_drawn(treatment, latency, whole) / _drawn(baseline, latency, whole))
    spread = drawn - centre
    total, more, longer = (
        Log(point, *(point + np.percentile(around, [2.5, 97.5])).tolist())
        for point, around in zip(points, (spread.sum(axis=0), *spread), strict=True)
    )
    share = Log(math.nan)
    if not total.lo <= 0 <= total.hi:
        around = np.array(points)[:, None] + np.stack([spread.sum(axis=0), *spread])
        share = Log(_share(points), *np.percentile(around[1] / around[0], [2.5, 97.5]).tolist())
    return Clocks(latency, a, b, total, more, longer, share, _work(baseline, treatment))


def _share(points: tuple[float, float, float]) -> float:
    return points[1] / points[0] if points[0] else math.nan


def _work(baseline: Steps, treatment: Steps) -> tuple[str, ...]:
    """A warning where the arms did not complete the same tokens."""
    a, b = (int(run.found.output_tokens.sum()) for run in (baseline, treatment))
    if a == b:
        return ()
    return (f"the arms completed different work: {a:,} and {b:,} output tokens",)


def _multiplicities(draws: np.random.Generator, count: int) -> Floats:
    """Shape (draws, blocks). How often each block is in each draw."""
    return draws.multinomial(count, np.full(count, 1 / count), DRAWS).astype(np.float64)


def _drawn(run: Steps, latency: Latency, picked: Floats) -> Floats:
    """Steps in a period, and seconds a step, of each draw. Shape (2, draws)."""
    t, p = run.table, periods(run, latency)
    begin, end = float(run.found.start.min()), float(t.end.max())
    blocks = picked.shape[1]
    place = ((t.end - begin) / (end - begin) * blocks).astype(np.int64).clip(0, blocks - 1)
    # What the periods are counted by: gaps that end, requests that begin, or work done.
    counted = {"itl": t.decoding, "ttft": t.firsts, "stay": t.firsts, "duration": t.batch}[latency]
    work = np.bincount(place, counted, blocks)
    steps = np.bincount(place, p.weight, blocks)
    seconds = np.bincount(place, p.weight * t.duration, blocks)
    return np.stack([(picked @ steps) / (picked @ work), (picked @ seconds) / (picked @ steps)])
