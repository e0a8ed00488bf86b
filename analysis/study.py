"""study.toml: what a folder of results cannot say of itself (which arm, which GPU, which flags)."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from analysis.mistakes import mistake
from analysis.mistakes import nearest as nearest  # of every reader of a file of the user's
from analysis.model import LARGEST, SMALLEST, Scalar
from analysis.server_config import canonical

Count = Annotated[int, msgspec.Meta(ge=1)]
"""A number of things of which there is one at least."""


class LeftOut(int):
    """A number that study.toml does not give: to be counted with, but a server's log may know."""


ONE = LeftOut(1)


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
    gpus: Count = ONE
    """GPUs of all engines together; left out, as many as the engines' ranks."""
    tensor_parallel: Count = ONE
    pipeline_parallel: Count = ONE
    replicas: Count = ONE
    router: str = ""
    """Routing policy in front of the replicas; empty for none."""
    interconnect: str = ""
    clients: Count = 1
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
    log: str = ""
    """The server's log, relative to the study's folder and inside it. Without it, the one in the
    nearest folder at or above each run."""
    traces: tuple[str, ...] = ()
    """Profiler traces, or folders of them, relative to the study's folder and inside it. Without
    it, those below a folder that is named as the arm, or beside runs of it alone."""
    collect_study: str = ""
    """The collector's study that has this arm, where it is not the study's own."""
    collect_arm: str = ""
    """What that study calls it, where it is another name."""


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The cell whose token counts stand in for rows that do not print theirs."""

    arm: str
    concurrency: Count | None = None


class WorkloadSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One workload: the requests that were sent."""

    name: str
    about: str = ""
    reference: Reference | None = None
    lengths: str = ""
    """File of a length sample, relative to the study's folder."""
    shared_prefix_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0


class Assign(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Says which records of result files belong to which arm and workload."""

    where: dict[str, str | int | float | bool]
    """Keys of the record (as in the file), or `file`, `folder` and `record`; all must be equal."""
    arm: str = ""
    workload: str = ""
    concurrency: Count | None = None
    """Requests in flight in all, where it differs from the client's own cap."""
    seed: int | None = None
    """The client's seed, which result files do not hold; runs of one seed make a pair."""
    prefix_cache_emptied: bool | None = None
    """Whether the server's prefix cache was emptied before the run, which no result file tells."""
    log: str = ""
    """The server's log, as in an arm."""
    ignore: bool = False
    """Leave these records out (a warm-up)."""


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


MOST_BYTES = 16 * 2**20
"""Of a study.toml or claims.toml: as tables in memory it needs thirty times as much."""

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
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(f"larger than {MOST_BYTES:,} bytes; split the study")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        _refuse_extreme(found)
        return found
    except UnicodeDecodeError:
        raise BadInput("not UTF-8 text; save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        # Beside what is no TOML: an integer of thousands of digits, or brackets as deep.
        raise BadInput(f"not valid TOML: {error}") from None
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror or error}") from None


def _refuse_extreme(value: object) -> None:
    """Raise `BadInput` for a number with which arithmetic would overflow, or vanish."""
    if isinstance(value, dict):
        for item in value.values():
            _refuse_extreme(item)
    elif isinstance(value, list):
        for item in value:
            _refuse_extreme(item)
    elif isinstance(value, int | float) and LARGEST <= abs(value) < math.inf:
        raise BadInput(f"holds the number {str(value)[:20]}…, expected numbers below {LARGEST:g}")
    elif isinstance(value, float) and 0 < abs(value) < SMALLEST:
        raise BadInput(f"holds the number {value:g}, expected 0 or numbers above {SMALLEST:g}")


def convert(table: dict[str, Any], kind: type[T], noun: str = "") -> T:
    """A table as a struct.

    `noun`: what a `kind` is called where a key is missing: "a magnitude".

    Raises:
        BadInput: one line: what was found, what was expected, the nearest right word.
    """
    try:
        try:
            return msgspec.convert(table, kind)
        except msgspec.ValidationError as error:
            raise BadInput(mistake(table, kind, noun) or str(error)) from None
    except RecursionError:
        raise BadInput("nests tables too deeply; give fewer levels") from None


def read_study(path: Path) -> StudySpec:
    """Read and check a study.toml.

    Raises:
        BadInput: unknown key, wrong type, an arm named twice, an assignment to nobody.
    """
    spec = convert(read_toml(path), StudySpec)
    names = Counter(arm.name for arm in spec.arm)
    for name, times in names.items():
        if times > 1:
            raise BadInput(f"arm {name!r} is described twice; keep one [[arm]] table")
    for rule in spec.assign:
        if rule.arm and rule.arm not in names:
            raise BadInput(f"[[assign]] names arm {rule.arm!r}; {nearest(rule.arm, names)}")
    return spec


def arm_config(arm: ArmSpec) -> dict[str, Scalar]:
    """Every configuration field of an arm that has a value, for naming what differs.

    Flags go by the names of the fields: `-tp 2` is `tensor_parallel`.
    """
    skip = {
        "name",
        "about",
        "flags",
        "startup",
        "collect_study",
        "collect_arm",
        "model_config",
        "log",
        "traces",
    }
    config: dict[str, Scalar] = {
        field: int(value) if isinstance(value, LeftOut) else value
        for field, value in msgspec.structs.asdict(arm).items()
        if field not in skip and value not in ("", None) and (field, value) != ("clients", 1)
    }
    return config | flags_of(arm)


def flags_of(arm: ArmSpec) -> dict[str, Scalar]:
    """The further flags of an arm by canonical names; True for one without a value."""
    found: dict[str, Scalar] = {}
    flags = [word for flag in arm.flags for word in flag.split()]
    while flags:
        flag = flags.pop(0)
        name, _, value = flag.partition("=")
        if not value and flags and not flags[0].startswith("-"):
            value = flags.pop(0)
        found[f"server.{name.lstrip('-').replace('-', '_')}"] = value or True
    return canonical(found)
