"""The models of a plan: on this machine or not, with weights or without, and their shapes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from collectors import model_folder
from collectors.commands import random_weights
from collectors.errors import Problem
from collectors.host import Host
from collectors.model_folder import Shape
from collectors.schedule import Plan


@dataclass(slots=True)
class Models:
    """What was found of all models, by the study's names for them."""

    folders: dict[str, Path] = field(default_factory=dict)
    """Of those that are on this machine."""
    shapes: dict[str, Shape] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def look(plan: Plan, host: Host, *, serve: bool) -> Models:
    """Look for the models of a plan's arms.

    Args:
        plan: Its arms.
        host: Which folders stand for which names.
        serve: Whether they are served from here, and must have weights.
    """
    found = Models()
    for name in dict.fromkeys(arm.model for arm in plan.arms):
        said = host.model(name)
        folder = model_folder.find(said)
        if folder is None:
            if serve and (name not in plan.study.made_model or said != name):
                _absent(name, said, found)
            continue
        found.folders[name] = folder
        shape = model_folder.read(folder)
        if isinstance(shape, Problem):
            found.problems.append(shape)
            continue
        found.shapes[name] = shape
        if serve and not random_weights(host, plan.study) and not model_folder.on_disk(folder):
            found.problems.append(
                Problem(
                    f"model {name}",
                    f"no weights in {folder}",
                    "*.safetensors",
                    "fetch them, or serve its shape with --random-weights",
                )
            )
    return found


def _absent(name: str, said: str, found: Models) -> None:
    offline = os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    if model_folder.is_path(said) or said != name:
        found.problems.append(
            Problem(f"model {name}", f"{said} is no folder", todo="name it: --model NAME=FOLDER")
        )
    elif offline:
        found.problems.append(
            Problem(
                f"model {name}",
                "is not on this machine, and HF_HUB_OFFLINE is set",
                todo="fetch it first, or name its folder: --model NAME=FOLDER",
            )
        )
    else:
        found.notes.append(
            f"model {name} is not on this machine: the server fetches it at its first start, and "
            "whether it fits is not known"
        )
