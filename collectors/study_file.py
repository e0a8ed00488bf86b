"""A study file (TOML) -> a Study, checked; what is wrong is told in the words of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from collectors import study_check
from collectors.errors import BadInput, Problem
from collectors.study import Arm, Load, MadeModel, Servers, Study, Workload
from collectors.tables import convert, nearest, read_toml

T = TypeVar("T", bound=msgspec.Struct)

SHIPPED = Path(__file__).parent / "studies"


def shipped() -> list[str]:
    """The names of the studies that ship."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def read_study(word: str) -> Study:
    """The study that a word names: one that ships, or a file.

    Raises:
        BadInput: there is none, or something in it is wrong.
    """
    path = SHIPPED / f"{word}.toml"
    if "/" in word or word.endswith(".toml") or not _is(path, Path.is_file):
        path = Path(word)
        if word and _is(path, Path.is_dir):
            raise BadInput(
                Problem(f"study {word!r}", "is a folder", "a .toml file", f"see {word}/*.toml")
            )
        if not _is(path, Path.is_file):
            raise BadInput(
                Problem(
                    f"study {word[:80]!r}",
                    "no such study ships and no such file is here",
                    todo=f"{nearest(word, shipped())}; a study of your own is a .toml file",
                )
            )
    return parse_study(read_toml(path), path.name)


def _is(path: Path, kind: Callable[[Path], bool]) -> bool:
    try:
        return kind(path)
    except (OSError, ValueError):
        # No name of a file: too long, or with a NUL.
        return False


def parse_study(table: Mapping[str, Any], file: str) -> Study:
    """A study from its table, checked.

    Raises:
        BadInput: an unknown key, a wrong value or a reference to nothing, in one line.
    """
    # Arms, workloads and models are read one by one, so that a message can name the one meant.
    for key in ("arm", "workload"):
        if not isinstance(table.get(key), list) or not table[key]:
            raise BadInput(Problem(file, f"has no [[{key}]]", todo=f"write at least one [[{key}]]"))
    made = table.get("made_model", {})
    if not isinstance(made, dict):
        raise BadInput(Problem(file, "made_model is no table", todo="write [made_model.NAME]"))
    bare: dict[str, object] = {"arm": [], "workload": [], "made_model": {}, "servers": {}}
    head = convert({**table, **bare}, Study, file)
    study = msgspec.structs.replace(
        head,
        arm=tuple(_entry(entry, Arm, f"{file}, arm") for entry in table["arm"]),
        workload=tuple(_workload(entry, f"{file}, workload") for entry in table["workload"]),
        servers=convert(table.get("servers", {}), Servers, f"{file}, servers"),
        made_model={
            name: convert(entry, MadeModel, f"{file}, made_model {name!r}")
            for name, entry in made.items()
        },
    )
    found = dict.fromkeys(study_check.problems(study, file))
    if found:
        raise BadInput(*found)
    return study


def with_arm(study: Study, arm: Arm) -> Study:
    """The study with one other arm in place of its own.

    Raises:
        BadInput: its name cannot be that of a folder.
    """
    other = msgspec.structs.replace(study, arm=(arm,))
    found = tuple(study_check.names(other, "--arm"))
    if found:
        raise BadInput(*found)
    return other


def _entry(entry: object, kind: type[T], where: str) -> T:
    name = entry.get("name", "") if isinstance(entry, dict) else ""
    return convert(entry, kind, f"{where} {name!r}")


def _workload(entry: object, where: str) -> Workload:
    loads = entry.get("loads") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(loads, list):
        return _entry(entry, Workload, where)
    bare = _entry({**entry, "loads": []}, Workload, where)
    return msgspec.structs.replace(
        bare,
        loads=tuple(
            convert(load, Load, f"{where} {bare.name!r}, load {n}")
            for n, load in enumerate(loads, 1)
        ),
    )
