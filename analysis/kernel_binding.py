"""Which profiler trace is of which arm: as study.toml or a collector's record says, or the folder.

In this order: `traces` of an `[[arm]]` names the file or a folder above it; the collector's
run.json in a folder above it names the arm; the nearest folder that is named as an arm; the nearest
folder with runs, where they are all of one arm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from analysis.dataset import Arm
from analysis.model import KernelTrace, Run, Skipped
from analysis.study import nearest


@dataclass(frozen=True, slots=True)
class Bound:
    """Traces by arm, and a line for each one that is of no arm."""

    of_arm: Mapping[str, tuple[KernelTrace, ...]] = field(default_factory=dict)
    unused: tuple[Skipped, ...] = ()
    absent: tuple[str, ...] = ()
    """One line for each trace that study.toml names and that was not read."""


def bind_traces(
    traces: Sequence[KernelTrace], arms: Mapping[str, Arm], runs: Iterable[Run], prefix: str
) -> Bound:
    """Give each trace of a study to an arm.

    Args:
        traces: of the study, in the order of their files.
        arms: the study's arms by name.
        runs: its runs, each with its arm.
        prefix: the study's folder with a slash, or nothing.
    """
    named = {
        PurePosixPath(prefix + place): name
        for name, arm in arms.items()
        for place in arm.spec.traces
    }
    folders = _arms_of_folders(runs)
    found: dict[str, list[KernelTrace]] = {}
    unused: dict[str, Skipped] = {}
    met: set[PurePosixPath] = set()
    for trace in traces:
        file = PurePosixPath(trace.source.file)
        places = (file, *file.parents)
        said = next((place for place in places if place in named), None)
        if said is not None:
            met.add(said)
        below = PurePosixPath(prefix)
        folder = next(
            (p.name for p in file.parents if p.name in arms and p != below and below in p.parents),
            next((folders[place] for place in places if place in folders), ""),
        )
        arm = named[said] if said is not None else trace.arm or folder
        if arm in arms:
            found.setdefault(arm, []).append(trace)
        else:
            unused.setdefault(trace.source.file, Skipped(trace.source.file, _why(arm)))
    read = sorted({trace.source.file.removeprefix(prefix) for trace in traces})
    absent = tuple(
        f"arm {name!r}: traces names {str(place).removeprefix(prefix)!r}, where no profiler's "
        f"trace was read; {nearest(str(place).removeprefix(prefix), read)}"
        for place, name in named.items()
        if place not in met
    )
    return Bound({arm: tuple(own) for arm, own in found.items()}, tuple(unused.values()), absent)


def _arms_of_folders(runs: Iterable[Run]) -> dict[PurePosixPath, str]:
    """The arm of each folder that holds runs; "" where they are of several."""
    found: dict[PurePosixPath, str] = {}
    for run in runs:
        folder = PurePosixPath(run.source.file).parent
        found[folder] = run.arm if found.setdefault(folder, run.arm) == run.arm else ""
    return found


def _why(arm: str) -> str:
    said = f"its record names {arm!r}, which has no runs and no [[arm]]; " if arm else ""
    return (
        f"a profiler's trace that belongs to no arm: {said}name it with traces = [...] in an "
        "[[arm]] of study.toml, or put it below a folder that is named as the arm"
    )
