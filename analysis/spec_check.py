"""What study.toml says and nothing in the folder answers to: typos that would pass in silence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import PurePosixPath

from analysis import hardware
from analysis.dataset import Arm
from analysis.model import Run, Startup
from analysis.models import model_key, models
from analysis.study import ArmSpec, StudySpec, nearest
from analysis.wording import listing


def doubts(
    spec: StudySpec,
    arms: Mapping[str, Arm],
    runs: Iterable[Run],
    startups: Iterable[Startup],
) -> list[str]:
    """One line for each doubt about the arms that study.toml describes.

    Args:
        spec: The study.toml.
        arms: The study's arms as they were built, by name.
        runs: Every run, those that study.toml leaves out as well.
        startups: Every log and every row of a start-up table.
    """
    busy = {run.arm for run in runs}
    described = {arm.name for arm in spec.arm}
    strangers = (busy | {startup.arm for startup in startups}) - described - {""}
    lines: list[str] = []
    for arm in spec.arm:
        if arm.name not in busy and arms[arm.name].startup is None and not arms[arm.name].traces:
            lines.append(_idle(arm, strangers))
        if arm.gpu and hardware.find_gpu(arm.gpu) is None:
            lines.append(_strange_gpu(arm))
        if arm.model and not arm.model_config and arms[arm.name].model is None:
            lines.append(_strange_model(arm))
    return lines


def absent_logs(wanted: Mapping[str, str], logs: Collection[str], prefix: str) -> list[str]:
    """One line for each log that study.toml names and that was not read.

    Args:
        wanted: Who names a log ("arm 'x'") -> the log as it is written there.
        logs: Files of the logs that were read.
        prefix: The study's folder with a slash, or nothing.
    """
    known = {file.removeprefix(prefix) for file in logs}
    return [
        f"{who}: log {log!r} is no server log that was read in this study; give its path below "
        f"the study's folder ({nearest(log, known)})"
        for who, log in wanted.items()
        if PurePosixPath(log).as_posix() not in known
    ]


def _idle(arm: ArmSpec, strangers: Collection[str]) -> str:
    hint = "give it records with [[assign]]"
    if close := get_close_matches(arm.name, sorted(strangers), n=1, cutoff=0.6):
        hint = f"the files have runs or start-up facts of {close[0]!r}"
    return (
        f"arm {arm.name!r} has no runs, no server log and no row in a start-up table; {hint}, or "
        "take the table out"
    )


def _strange_gpu(arm: ArmSpec) -> str:
    names = hardware.nearest(arm.gpu)
    known = sorted(gpu.name for gpu in hardware.gpus())
    hint = f"did you mean {listing(map(repr, names), 'or')}?" if names else nearest("", known)
    return f"arm {arm.name!r}: gpu {arm.gpu!r} is not in hardware.toml; {hint}"


def _strange_model(arm: ArmSpec) -> str:
    by_key = {model_key(model.name): model.name for model in models()}
    close = get_close_matches(model_key(arm.model), sorted(by_key), n=1, cutoff=0.75)
    hint = f"did you mean {by_key[close[0]]!r}?" if close else "put its config.json beside its runs"
    return (
        f"arm {arm.name!r}: model {arm.model!r} is in no table and has no config.json here, so "
        f"that its weights and its KV cache are not computed; {hint}"
    )
