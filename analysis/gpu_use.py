"""What a run asked of its GPUs: utilisation, power, energy a token, clocks and why they fell.

Utilisation as NVML and nvidia-smi tell it is the share of a window of up to a second in which some
kernel ran. One kernel on one of 132 multiprocessors makes it 100 %, and pauses of microseconds
between kernels do not show: on an H200 it was 99.9 % where a profiler's trace has 87 % of a step
busy. So at or above 97 % the GPU had no long pauses, and no more can be said; well below, under
load, it waited for the host.

Energy is the integral of power over samples (trapezoids). Between two samples power may have been
that of either, which gives the interval: the sum of the lesser and that of the greater of each
two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.gpu_binding import part
from analysis.in_flight import steady
from analysis.model import Floats, GpuSamples, Run, Source
from analysis.token_times import Arrivals, arrivals

FULL = 0.97
"""Utilisation from which on a GPU is reckoned to have had no long pauses."""
FELL = 0.95
"""Share of its own greatest clock below which a GPU ran slower than it can."""
LEAST = 4
"""Samples of a GPU below which nothing is said."""
_LONGEST_GAP = 5.0
"""Seconds between two samples beyond which the time between is not known."""

REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
"""NVML's clocksEventReasons that hold a clock down, by bit; idle and settings are no fault."""


@dataclass(frozen=True, slots=True)
class Span:
    """A number with the interval that sampling leaves."""

    value: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True)
class GpuUse:
    """One run over the part in which its load was steady; of several GPUs the mean, or the sum."""

    source: Source
    gpus: int
    samples: int
    window: str
    """Which part of the run, in words."""
    seconds: float
    utilisation: float
    """Mean share of time in which some kernel ran; NaN where no file says."""
    full: float
    """Share of samples at or above `FULL`."""
    power: float
    """W, over all GPUs together."""
    energy: Span | None
    """J in `seconds`, of all GPUs; None where power was not sampled densely."""
    energy_per_token: Span | None
    """J for each generated token of these seconds."""
    counter: float
    """J by the GPUs' own counters over nearly the same time; NaN where no file says."""
    memory_used: float
    """The most that one GPU held, bytes."""
    clock: float
    """Mean SM clock while a GPU had work, MHz."""
    lowest_clock: float
    top_clock: float
    """The greatest that any sample of the run shows, MHz."""
    slowest: float
    """Of the GPU whose clock fell furthest: its mean clock over its own greatest."""
    temperature: float
    """The greatest, degrees Celsius."""
    pstates: tuple[int, ...]
    reasons: tuple[tuple[str, float], ...]
    """Why clocks were held down, and the share of samples that say so."""
    reasons_known: bool


def gpu_use(run: Run) -> GpuUse | None:
    """What the GPUs of a run did; None where nothing was sampled while they worked."""
    samples = run.server.gpu if run.server is not None else None
    if samples is None:
        return None
    found = _window(run, samples)
    if found is None:
        return None
    begin, end, tokens, words = found
    inside = part(samples, (samples.clock >= begin) & (samples.clock <= end))
    gpus = np.unique(samples.gpu)
    if min((int((inside.gpu == gpu).sum()) for gpu in gpus), default=0) < LEAST:
        return None
    each = [part(samples, samples.gpu == gpu) for gpu in gpus]
    energies = [_energy(one.clock, one.power, begin, end) for one in each]
    energy = _sum([one for one in energies if one is not None]) if None not in energies else None
    known = inside.utilisation[np.isfinite(inside.utilisation)]
    # A GPU without work lowers its clock; where use is not told, it is taken for work.
    work = part(inside, inside.utilisation != 0)
    ratios = [
        _mean(work.sm_clock[work.gpu == gpu]) / top if (top := _most(one.sm_clock)) > 0 else np.nan
        for gpu, one in zip(gpus, each, strict=True)
    ]
    told = work.throttle[work.throttle >= 0]
    return GpuUse(
        source=samples.source,
        gpus=len(gpus),
        samples=len(inside.clock),
        window=words,
        seconds=end - begin,
        utilisation=_mean(inside.utilisation),
        full=float((known >= FULL - 1e-9).mean()) if len(known) else float("nan"),
        power=sum(_mean(inside.power[inside.gpu == gpu]) for gpu in gpus),
        energy=energy,
        energy_per_token=_per(energy, tokens),
        counter=sum(_counter(one, begin, end) for one in each),
        memory_used=_most(inside.memory_used),
        clock=_mean(work.sm_clock),
        lowest_clock=_least(work.sm_clock),
        top_clock=_most(samples.sm_clock),
        slowest=_least(np.array(ratios)),
        temperature=_most(inside.temperature),
        pstates=tuple(sorted({int(p) for p in inside.pstate[np.isfinite(inside.pstate)]})),
        reasons=tuple(
            (words, float(((told & bit) > 0).mean()))
            for bit, words in REASONS.items()
            if ((told & bit) > 0).any()
        ),
        reasons_known=len(told) > 0,
    )


def _window(run: Run, samples: GpuSamples) -> tuple[float, float, float, str] | None:
    """Begin and end in Unix time, tokens generated within, and what this part is.

    The client's clock is not that of the samples, so its beginning is laid on the first sample in
    which a GPU worked: right to one period of sampling.
    """
    working = samples.clock[samples.utilisation > 0]
    if not len(working):
        return None
    first, last = float(working.min()), float(working.max())
    duration = run.figures.get("duration")
    if duration is not None and last - first > duration.value:
        # What came before (a warm-up, the client's own test request) is not of the run.
        first = last - duration.value
    total = run.figures.get("total_output_tokens")
    tokens = float("nan") if total is None else total.value
    found = arrivals(run.requests) if run.requests is not None else None
    if isinstance(found, Arrivals) and run.concurrency is not None:
        flat = steady(found, run.concurrency)
        origin = float(found.start.min())
        if flat is not None:
            begin, end = first + flat.begin - origin, first + flat.end - origin
            if begin < end <= last:
                return begin, end, flat.output_throughput * (end - begin), "steady load"
    return first, last, tokens, "first to last work"


def _energy(clock: Floats, power: Floats, begin: float, end: float) -> Span | None:
    """J of one GPU between two moments; None where samples are missing."""
    known = np.isfinite(power)
    time, watts = clock[known], power[known]
    order = np.argsort(time, kind="stable")
    time, watts = time[order], watts[order]
    if len(time) < LEAST or time[0] > begin + _LONGEST_GAP or time[-1] < end - _LONGEST_GAP:
        return None
    inner = (time > begin) & (time < end)
    edges = np.concatenate([[begin], time[inner], [end]])
    at = np.concatenate(
        [np.interp([begin], time, watts), watts[inner], np.interp([end], time, watts)]
    )
    steps = np.diff(edges)
    if steps.max() > _LONGEST_GAP:
        return None
    # At an edge the power is between that of the samples on either side of it.
    low, high = np.minimum(at[:-1], at[1:]), np.maximum(at[:-1], at[1:])
    for place, moment in ((0, begin), (-1, end)):
        right = min(int(np.searchsorted(time, moment)), len(time) - 1)
        sides = watts[max(0, right - 1)], watts[right]
        low[place], high[place] = min(low[place], *sides), max(high[place], *sides)
    value = float(((at[:-1] + at[1:]) / 2) @ steps)
    return Span(value, float(low @ steps), float(high @ steps))


def _counter(samples: GpuSamples, begin: float, end: float) -> float:
    """J by the GPU's own counter, from the first to the last sample within, scaled to all of it."""
    within = np.isfinite(samples.energy) & (samples.clock >= begin) & (samples.clock <= end)
    if within.sum() < 2:
        return float("nan")
    time, joules = samples.clock[within], samples.energy[within]
    return float((joules[-1] - joules[0]) / (time[-1] - time[0]) * (end - begin))


def _sum(parts: list[Span]) -> Span:
    return Span(
        sum(one.value for one in parts), sum(one.lo for one in parts), sum(one.hi for one in parts)
    )


def _per(energy: Span | None, tokens: float) -> Span | None:
    if energy is None or not tokens > 0:
        return None
    return Span(energy.value / tokens, energy.lo / tokens, energy.hi / tokens)


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _most(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else float("nan")


def _least(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.min()) if len(known) else float("nan")
