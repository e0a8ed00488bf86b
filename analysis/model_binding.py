"""Which arm a config.json describes: named in study.toml, else the nearest one above its runs.

A config that could describe two different models is bound to none of them, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from analysis.model import ModelShape, Run, Skipped
from analysis.model_config import model_from_config
from analysis.models import Model, model_key
from analysis.study import ArmSpec

_NAMES = ("config.json", "config.json.gz")
"""Names a model's config is found by; one of another name is used where study.toml names it."""


def bind_models(
    arms: Sequence[ArmSpec], runs: Sequence[Run], shapes: Sequence[ModelShape], folder: str = ""
) -> tuple[dict[str, Model], tuple[Skipped, ...]]:
    """The models of arms that a config.json describes, by the arm's name; and what was not used.

    Args:
        arms: Every arm of the study.
        runs: Its runs, each with its arm.
        shapes: The configs of the study.
        folder: The study's folder relative to the results folder, as files are named.
    """
    prefix = f"{folder}/" if folder else ""
    by_file = {shape.source.file: shape for shape in shapes}
    chosen: dict[str, ModelShape] = {}
    near: dict[str, list[ArmSpec]] = {}
    skipped: list[Skipped] = []
    told: set[str] = set()
    for arm in arms:
        if arm.model_config:
            file = prefix + PurePosixPath(arm.model_config).as_posix()
            if file in by_file:
                chosen[arm.name] = by_file[file]
                told.add(file)
            else:
                skipped.append(_not_there(f"{prefix}study.toml", arm))
            continue
        found = _nearest_of([run for run in runs if run.arm == arm.name], shapes)
        told.update(shape.source.file for shape in found)
        if len({_size_only(shape) for shape in found}) > 1:
            skipped += [_two_configs(shape, arm, found) for shape in found]
        elif found:
            chosen[arm.name] = found[0]
            near.setdefault(found[0].source.file, []).append(arm)
    for file, sharers in near.items():
        names = {model_key(arm.model): arm.model for arm in sharers if arm.model}
        if len(names) > 1:
            skipped.append(_two_models(file, list(names.values())))
            for arm in sharers:
                del chosen[arm.name]
    skipped += [_unused(file) for file in by_file if file not in told]
    specs = {arm.name: arm for arm in arms}
    return _models(chosen, specs), tuple(skipped)


def _models(chosen: Mapping[str, ModelShape], specs: Mapping[str, ArmSpec]) -> dict[str, Model]:
    made = {
        name: model_from_config(shape.config, specs[name].model, shape.source.file)
        for name, shape in chosen.items()
    }
    return {name: model for name, model in made.items() if model is not None}


def _nearest_of(runs: Iterable[Run], shapes: Sequence[ModelShape]) -> list[ModelShape]:
    """For each run the config in the nearest folder at or above its file; each config once."""
    by_folder: dict[PurePosixPath, ModelShape] = {}
    for shape in shapes:
        path = PurePosixPath(shape.source.file)
        if path.name in _NAMES:
            by_folder.setdefault(path.parent, shape)
    found: dict[str, ModelShape] = {}
    for run in runs:
        above = PurePosixPath(run.source.file).parents
        for nearest in [by_folder[place] for place in above if place in by_folder][:1]:
            found[nearest.source.file] = nearest
    return list(found.values())


def _size_only(shape: ModelShape) -> Model | None:
    """The config's model without name and file: copies of one config are one model."""
    model = model_from_config(shape.config, "model", "")
    return None if model is None else replace(model, source="")


def _not_there(spec_file: str, arm: ArmSpec) -> Skipped:
    return Skipped(
        spec_file,
        f"arm {arm.name!r}: model_config {arm.model_config!r} is no model's config.json that was "
        "read in this study, so only its `model` is looked up; give the file's path below the "
        "study's folder",
    )


def _two_configs(shape: ModelShape, arm: ArmSpec, found: Sequence[ModelShape]) -> Skipped:
    return Skipped(
        shape.source.file,
        f"the runs of arm {arm.name!r} lie below {len(found)} config.json that differ, so none "
        "was used; name the right one as `model_config` of the arm in study.toml",
    )


def _two_models(file: str, names: Sequence[str]) -> Skipped:
    return Skipped(
        file,
        f"this config.json lies above arms of different models ({', '.join(names[:3])}), so none "
        "uses it; move it beside the runs of its own arm or name it as `model_config` there",
    )


def _unused(file: str) -> Skipped:
    return Skipped(
        file,
        "a model's config.json that no arm uses; put it as config.json in the folder of an arm's "
        "runs, or name it as `model_config` of the arm in study.toml",
    )
