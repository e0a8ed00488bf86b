"""study.toml: what a folder of results cannot say of itself (which arm, which GPU, which flags)."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from analysis.model import Scalar

Count = Annotated[int, msgspec.Meta(ge=1)]
"""A number of things of which there is one at least."""


class ArmSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One arm: the server configuration under test, as far as it is known."""

    name: str
    about: str = ""
    model: str = ""
    model_config: str = ""
    """The model's config.json, relative to the study's folder and inside it. Without it, the one
    in the nearest folder at or above the arm's runs; without that, `model` in models.toml."""
    gpu: str = ""
    """A name that `analysis/hardware.toml` knows."""
    gpus: Count = 1
    """GPUs of all engines together."""
    tensor_parallel: Count = 1
    pipeline_parallel: Count = 1
    replicas: Count = 1
    router: str = ""
    """Routing policy in front of the replicas; empty for none."""
    interconnect: str = ""
    clients: int = 1
    """Load clients that drove it side by side, each with its own prompts and cap."""
    host: str = ""
    version: str = ""
    quantization: str = ""
    max_num_seqs: Count | None = None
    max_model_len: Count | None = None
    max_num_batched_tokens: Count | None = None
    enable_prefix_caching: bool | None = None
    gpu_memory_utilization: float | None = None
    block_size: Count | None = None
    flags: tuple[str, ...] = ()
    """Further server flags, verbatim."""
    startup: str = ""
    """Arm name in the startup tables; its own name when empty."""
    collect_study: str = ""
    """The collector's study that has this arm, where it is not the study's own."""


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The cell whose token counts stand in for rows that do not print theirs."""

    arm: str
    concurrency: int | None = None


class WorkloadSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One workload: the requests that were sent."""

    name: str
    about: str = ""
    reference: Reference | None = None
    lengths: str = ""
    """File of a length sample, relative to the study's folder."""
    shared_prefix_tokens: int = 0


class Assign(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Says which records of result files belong to which arm and workload."""

    where: dict[str, str | int | float | bool]
    """Keys of the record (as in the file), or `file` and `record`; all must be equal."""
    arm: str = ""
    workload: str = ""
    concurrency: int | None = None
    """Requests in flight in all, where it differs from the client's own cap."""


class StudySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A study.toml."""

    name: str = ""
    """Defaults to the folder's name."""
    title: str = ""
    about: str = ""
    order: int = 1000
    """Place among the studies; lower first."""
    warnings: tuple[str, ...] = ()
    """Said wherever the study is shown (random weights, another host ...)."""
    collect_study: str = ""
    """The collector's study that would repeat it, for suggested experiments."""
    arm: tuple[ArmSpec, ...] = ()
    workload: tuple[WorkloadSpec, ...] = ()
    assign: tuple[Assign, ...] = ()


T = TypeVar("T")


class BadInput(Exception):
    """A file of the user's that cannot be used; the message is one line for the user."""


_SAFE_NAME = re.compile(r"[^\w.+-]+")


def slug(name: str) -> str:
    """A name as a file name: letters, digits, `_.+-`; never empty, never a path."""
    return _SAFE_NAME.sub("-", name).strip("-.") or "unnamed"


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file, or raise `BadInput` with one line."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise BadInput("not UTF-8 text; save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        # Beside what is no TOML: an integer of thousands of digits, or brackets as deep.
        raise BadInput(f"not valid TOML: {error}") from None
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror or error}") from None


def convert(table: dict[str, Any], kind: type[T]) -> T:
    """A table as a struct; an unknown key names the nearest right one.

    Raises:
        BadInput: with what was found and what was expected.
    """
    try:
        return msgspec.convert(table, kind)
    except RecursionError:
        raise BadInput("nests tables too deeply; give fewer levels") from None
    except msgspec.ValidationError as error:
        text = str(error)
        unknown = re.search(r"unknown field `([^`]*)`(?: - at `([^`]*)`)?", text)
        if unknown is None:
            raise BadInput(text) from None
        place = f" in {unknown.group(2).lstrip('$.')}" if unknown.group(2) else ""
        raise BadInput(
            f"unknown key {unknown.group(1)!r}{place}; {nearest(unknown.group(1), _keys(kind))}"
        ) from None


def nearest(word: str, known: Iterable[str]) -> str:
    """ "did you mean 'x'?" for a misspelt word, else the words there are."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return "there are none"
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"known: {', '.join(names[:12])}{more}"


def read_study(path: Path) -> StudySpec:
    """Read and check a study.toml.

    Raises:
        BadInput: unknown key, wrong type, an arm named twice, an assignment to nobody.
    """
    spec = convert(read_toml(path), StudySpec)
    names = [arm.name for arm in spec.arm]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"arm {name!r} is described twice; keep one [[arm]] table")
    for rule in spec.assign:
        if rule.arm and rule.arm not in names:
            raise BadInput(f"[[assign]] names arm {rule.arm!r}; {nearest(rule.arm, names)}")
    return spec


def arm_config(arm: ArmSpec) -> dict[str, Scalar]:
    """Every configuration field of an arm that has a value, for naming what differs."""
    skip = {"name", "about", "flags", "startup", "collect_study", "model_config"}
    config: dict[str, Scalar] = {
        field: value
        for field, value in msgspec.structs.asdict(arm).items()
        if field not in skip and value not in ("", None) and (field, value) != ("clients", 1)
    }
    flags = [word for flag in arm.flags for word in flag.split()]
    while flags:
        flag = flags.pop(0)
        name, _, value = flag.partition("=")
        if not value and flags and not flags[0].startswith("-"):
            value = flags.pop(0)
        config[name.lstrip("-").replace("-", "_")] = value or True
    return config


def _keys(kind: type[Any]) -> set[str]:
    """Field names of a struct and of the structs inside it."""
    keys: set[str] = set()
    todo: list[Any] = [kind]
    seen: set[Any] = set()
    while todo:
        item = todo.pop()
        if item in seen:
            continue
        seen.add(item)
        if isinstance(item, type) and issubclass(item, msgspec.Struct):
            for field in msgspec.structs.fields(item):
                keys.add(field.encode_name)
                todo.append(field.type)
        else:
            todo.extend(getattr(item, "__args__", ()))
    return keys
