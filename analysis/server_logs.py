"""Which server log belongs to which run: named in study.toml, else the nearest one above the run.

A folder with logs of different servers says of none of its runs which one served it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from analysis.model import Run, Scalar, Skipped, Startup
from analysis.server_config import LOG_FILE, canonical, said_by


def logs_of(startups: Iterable[Startup]) -> dict[str, Startup]:
    """The logs among the start-up facts, by file; rows of tables name their arm themselves."""
    return {startup.source.file: startup for startup in startups if not startup.arm}


def with_logs(
    runs: Sequence[Run], logs: Mapping[str, Startup], named: Mapping[str, str]
) -> list[Run]:
    """Each run with what its server's log says (`server.` keys) and the log's file.

    Args:
        runs: The runs, each with its arm.
        logs: Every log of the study, by file.
        named: The log of a run that study.toml names, by the run's id.
    """
    nearest = _of_folders(logs)
    found = []
    for run in runs:
        log = logs.get(named.get(run.id, "")) or next(
            (nearest[place] for place in _folders_above(run) if place in nearest), None
        )
        if log is not None:
            said = said_by(log)
            run = replace(run, config={**run.config, **said, LOG_FILE: log.source.file})
        found.append(run)
    return found


def unused_logs(
    runs: Sequence[Run], logs: Mapping[str, Startup], used: Iterable[str]
) -> list[Skipped]:
    """One line for each log that no run has.

    Args:
        runs: The runs as `with_logs` left them.
        logs: Every log of the study, by file.
        used: Files of the start-up facts of arms, which may have no runs.
    """
    told = {run.config.get(LOG_FILE) for run in runs}.union(used)
    of_folders = _of_folders(logs)
    beside = {
        next((place for place in _folders_above(run) if place in of_folders), None) for run in runs
    }
    found = []
    for file in logs:
        folder = PurePosixPath(file).parent
        same = of_folders[folder]
        # Logs beside runs that say the same are of the engines of one server, or of its restarts.
        if file in told or (folder in beside and same is not None and same.source.file in told):
            continue
        why = "lies beside none; name it with log = ... in study.toml"
        if folder in beside and same is None:
            why = (
                "logs of different servers lie in one folder here; name the one of each arm with "
                "log = ... in study.toml"
            )
        found.append(Skipped(file, f"belongs to no run: {why}"))
    return found


def _folders_above(run: Run) -> Sequence[PurePosixPath]:
    """The folders at or above a run's file, the nearest first."""
    return PurePosixPath(run.source.file).parents


def _of_folders(logs: Mapping[str, Startup]) -> dict[PurePosixPath, Startup | None]:
    """The log of each folder that holds one; None where it holds logs of different servers."""
    folders: dict[PurePosixPath, Startup | None] = {}
    said: dict[PurePosixPath, dict[str, Scalar]] = {}
    for file, log in logs.items():
        folder, facts = PurePosixPath(file).parent, canonical(said_by(log))
        if said.setdefault(folder, facts) != facts:
            folders[folder] = None
        folders.setdefault(folder, log)
    return folders
