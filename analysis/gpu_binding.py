"""Which samples of a GPU belong to which run: named in the file, else by the time of the run.

A collected run has its samples in its folder (`analysis.run_folders`). Of other files, the column
`run` names the stem of a result file beside it; without that column, the samples of the run's
time are taken, where the result says when it ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from analysis.model import GpuSamples, Run, ServerSide, Skipped
from analysis.wording import count_of

_SUFFIX = re.compile(r"\.jsonl?(?:\.gz)?$")
_DATE = re.compile(r"\d{8}-\d{6}")
_QUARTER = 900.0
"""A zone differs from UTC by whole quarters of an hour, s."""
_ZONES = range(-48, 57)
_AROUND = 1.5
"""The client writes whole seconds, s."""


def with_samples(
    runs: Sequence[Run], files: Iterable[GpuSamples]
) -> tuple[list[Run], list[Skipped]]:
    """Runs with their samples, and one line for each file of which no run has any."""
    found = {run.id: run for run in runs}
    unused = []
    for samples in files:
        mine = [(run, _part_of(run, samples)) for run in runs if _beside(run, samples)]
        used = [(run, part) for run, part in mine if part is not None]
        for run, part in used:
            server = found[run.id].server or ServerSide()
            if server.gpu is None:
                found[run.id] = replace(found[run.id], server=replace(server, gpu=part))
        if not used:
            unused.append(Skipped(samples.source.file, _why(samples, beside=bool(mine))))
    return [found[run.id] for run in runs], unused


def part(samples: GpuSamples, wanted: NDArray[np.bool_]) -> GpuSamples:
    """Some of the samples; `wanted` has shape (n,)."""
    arrays = (
        "clock", "gpu", "utilisation", "memory_used", "power", "sm_clock", "memory_clock",
        "temperature", "pstate", "energy", "throttle",
    )  # fmt: skip
    cut = {name: getattr(samples, name)[wanted] for name in arrays}
    label = None if samples.label is None else samples.label[wanted]
    return replace(samples, label=label, **cut)


def _places(run: Run) -> list[PurePosixPath]:
    return [PurePosixPath(source.file) for source in (run.source, *run.also_in)]


def _beside(run: Run, samples: GpuSamples) -> bool:
    folder = PurePosixPath(samples.source.file).parent
    return any(place.parent == folder for place in _places(run))


def _part_of(run: Run, samples: GpuSamples) -> GpuSamples | None:
    """The samples of a run that lies beside them; None where there are none."""
    if samples.label is not None:
        stems = {_SUFFIX.sub("", place.name) for place in _places(run)}
        wanted = [k for k, name in enumerate(samples.labels) if name in stems]
        own = np.isin(samples.label, wanted)
    else:
        time = _time_of(run, samples)
        if time is None:
            return None
        own = (samples.clock >= time[0]) & (samples.clock <= time[1])
    return part(samples, own) if own.any() else None


def _time_of(run: Run, samples: GpuSamples) -> tuple[float, float] | None:
    """Begin and end of a run in Unix time, from `date`, which is its end in an unnamed zone.

    None where no zone, or more than one, lays the run within the samples.
    """
    date, duration = run.config.get("date"), run.figures.get("duration")
    if not isinstance(date, str) or not _DATE.fullmatch(date) or duration is None:
        return None
    try:
        end = datetime.strptime(date, "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    first, last = float(samples.clock.min()), float(samples.clock.max())
    ends = [end - _QUARTER * zone for zone in _ZONES]
    within = [at for at in ends if first <= at - duration.value and at <= last]
    if len(within) != 1:
        return None
    return within[0] - duration.value - _AROUND, within[0] + _AROUND


def _why(samples: GpuSamples, *, beside: bool) -> str:
    if not beside:
        return "samples of a GPU that belong to no run: no result lies beside them; move them there"
    if samples.label is None:
        return (
            "samples of a GPU that belong to no run: they have no column `run`, and no result "
            "beside them ended within their time by its key `date`"
        )
    return (
        f"samples of a GPU that belong to no run: their column `run` names "
        f"{count_of(list(samples.labels))}; expected names of result files beside them without "
        "the suffix"
    )
