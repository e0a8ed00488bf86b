"""Names for the arms of runs that nobody named: one for each group with equal server settings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import PurePosixPath

from analysis.model import Run, Scalar
from analysis.server_config import server_side

LONGEST = 60
"""Characters of a name, which is shown in tables and charts."""

_Config = tuple[tuple[str, Scalar], ...]
"""A server's configuration as sorted pairs, so that equal servers are equal keys."""


def named_arms(runs: Sequence[Run]) -> list[Run]:
    """Name the arms of runs that have none.

    By the folder that holds all runs of one server and none of another, where there is one; else
    by what differs between the servers, where that is short; else by what the names of its files
    begin with, or the folder they share, or the first one's.
    """
    files: dict[_Config, list[str]] = {}
    keys = [_key(run) for run in runs]
    for run, key in zip(runs, keys, strict=True):
        if not run.arm:
            files.setdefault(key, []).append(run.source.file)
    varying = _varying([dict(config) for config in files])
    taken = {run.arm for run in runs if run.arm}
    times: dict[str, int] = {}
    names: dict[_Config, str] = {}
    for config in files:
        names[config] = _free(_name(config, files, varying), taken, times)
        taken.add(names[config])
    return [
        run if run.arm else replace(run, arm=names[key])
        for run, key in zip(runs, keys, strict=True)
    ]


def _key(run: Run) -> _Config:
    return tuple(sorted(server_side(run.config).items()))


def _name(config: _Config, files: Mapping[_Config, Sequence[str]], varying: Collection[str]) -> str:
    own = _own_folder(config, files)
    if own:
        return own
    by_settings = _server_name(dict(config), varying)
    if len(by_settings) <= LONGEST:
        return by_settings
    first = files[config][0]
    folder = (_common(files[config]) or first.split("/")[:-1] or [""])[-1]
    return _stem(files[config]) or folder or by_settings


def _free(name: str, taken: Collection[str], times: dict[str, int]) -> str:
    """The name, cut; where another arm has it, with a number behind."""
    name = name[:LONGEST].strip()
    found = name
    while found in taken:
        times[name] = times.get(name, 1) + 1
        number = f" ({times[name]})"
        found = name[: LONGEST - len(number)] + number
    return found


def _varying(configs: Sequence[Mapping[str, Scalar]]) -> frozenset[str]:
    """Fields that are not equal in all servers."""
    keys = {key for config in configs for key in config}
    return frozenset(key for key in keys if len({config.get(key) for config in configs}) > 1)


def _common(files: Sequence[str]) -> list[str]:
    """The folders that all the files are in, from the outermost."""
    common: list[str] = []
    for level in zip(*(file.split("/")[:-1] for file in files), strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return common


def _own_folder(config: _Config, files: Mapping[_Config, Sequence[str]]) -> str:
    """Name of the deepest folder with all runs of this server, if it has no others."""
    common = _common(files[config])
    prefix = "/".join(common) + "/"
    if not common or any(
        file.startswith(prefix)
        for other, theirs in files.items()
        if other != config
        for file in theirs
    ):
        return ""
    return common[-1]


def _server_name(facts: Mapping[str, Scalar], varying: Collection[str]) -> str:
    """The model's name and every field that is not equal in all servers."""
    model = str(facts.get("model") or "server").rstrip("/")
    differing = [
        f"{key}={value}" for key, value in facts.items() if key in varying and key != "model"
    ]
    return " ".join([model.rpartition("/")[2], *differing])


def _stem(files: Sequence[str]) -> str:
    """What the files' names begin with, up to the end of a word; nothing where they share none."""
    stems = {PurePosixPath(file.removesuffix(".gz")).stem for file in files}
    # The first and the last in order differ where any two do.
    alike = takewhile(lambda two: two[0] == two[1], zip(min(stems), max(stems), strict=False))
    prefix = "".join(letter for letter, _ in alike)
    if any(stem[len(prefix) :][:1].isalnum() for stem in stems):
        prefix = re.sub(r"[^-_ .=]*$", "", prefix)
    return prefix.strip("-_ .=")
