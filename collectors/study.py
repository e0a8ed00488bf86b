"""A study file (TOML) -> frozen Study, Arm, Workload and Load; an unknown key is an error.

A study names the arms to compare, the workloads that drive them and the loads of each workload.
Flags are written as on the command line, so that a line of a write-up can be pasted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from collectors.errors import BadInput, Problem
from collectors.tables import convert, nearest, read_toml

T = TypeVar("T", bound=msgspec.Struct)

SHIPPED = Path(__file__).parent / "studies"
DIRECT = "direct"
"""Pseudo-policy: no router; every replica is driven by a client of its own at the same time."""

FIXES_KV = ("--kv-cache-memory-bytes", "--num-gpu-blocks-override")
"""Flags of `vllm serve` that say how much room there is for KV."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class MadeModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small model that the collector writes itself: a config, a tokenizer and no weights."""

    hidden: int = 512
    layers: int = 12
    heads: int = 8
    kv_heads: int = 4
    vocab: int = 16384
    max_len: int = 4096


class Load(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How hard a workload drives a server."""

    concurrency: int
    """Requests in flight in all."""
    prompts: int
    repeats: int | None = None
    """Where this load is repeated more or less often than the study says."""
    arms: tuple[str, ...] = ()
    """The arms that are driven so; all where empty."""


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is sent."""

    name: str
    loads: tuple[Load, ...]
    flags: tuple[str, ...] = ()
    """For `vllm bench serve`, as on its command line."""
    dataset: str = ""
    """A file that `--dataset-path` names; looked for by `--dataset NAME=PATH`, then here."""
    request_rate: float | None = None
    """Requests a second; None: as fast as the cap lets them."""
    about: str = ""


class Servers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every server of a study is started with, before an arm's own flags."""

    flags: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)


class Arm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to serve: a model, flags and how many servers."""

    name: str
    model: str
    flags: tuple[str, ...] = ()
    """For `vllm serve`, as on its command line."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    gpus: int = 1
    """GPUs of one server."""
    replicas: int = 1
    replica_env: tuple[dict[str, str], ...] = ()
    """One table a replica: cores of a CPU build, say."""
    router: str = ""
    """A policy of the router in front of the replicas, or "direct"."""
    router_flags: tuple[str, ...] = ()
    shares_gpu: str = ""
    """Arms with the same word stay up together on the same GPUs and are driven in turn, which
    interleaves them without restarts; each must fix its room for KV by a flag."""
    telemetry: bool = True
    """Whether anything watches the servers while they are driven."""
    spans: bool = False
    """Whether OTLP spans are received as well: one for each request, which the server exports."""
    about: str = ""


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A comparison of arms under workloads."""

    name: str
    arm: tuple[Arm, ...]
    workload: tuple[Workload, ...]
    title: str = ""
    about: str = ""
    repeats: int = 3
    starts: int | None = None
    """How often each server is started; None: for every repeat."""
    seed: int = 20261130
    """Of the order of arms and repeats, and of the prompts."""
    random_weights: bool = False
    """Serve shapes with random weights (`--load-format dummy`): timings are real, texts are not."""
    servers: Servers = Servers()
    made_model: dict[str, MadeModel] = msgspec.field(default_factory=dict)

    @property
    def arms(self) -> Mapping[str, Arm]:
        """The arms by name, in the file's order."""
        return {arm.name: arm for arm in self.arm}

    @property
    def workloads(self) -> Mapping[str, Workload]:
        """The workloads by name, in the file's order."""
        return {workload.name: workload for workload in self.workload}


def shipped() -> list[str]:
    """The names of the studies that ship."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def read_study(word: str) -> Study:
    """The study that a word names: one that ships, or a file.

    Raises:
        BadInput: there is none, or something in it is wrong.
    """
    path = SHIPPED / f"{word}.toml"
    if "/" in word or word.endswith(".toml") or not path.is_file():
        path = Path(word)
        if not path.is_file():
            raise BadInput(
                Problem(
                    f"study {word!r}",
                    "no such study ships and no such file is here",
                    todo=f"{nearest(word, shipped())}; a study of your own is a .toml file",
                )
            )
    return parse_study(read_toml(path), path.name)


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
    _check(study, file)
    return study


def with_arm(study: Study, arm: Arm) -> Study:
    """The study with one other arm in place of its own.

    Raises:
        BadInput: its name cannot be that of a folder.
    """
    other = msgspec.structs.replace(study, arm=(arm,))
    _check_names(other, "--arm")
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


def _check(study: Study, file: str) -> None:
    """What a type cannot say."""
    _check_names(study, file)
    _positive(study, file)
    for arm in study.arm:
        _check_arm(study, arm, f"{file}, arm {arm.name!r}")
    for workload in study.workload:
        at = f"{file}, workload {workload.name!r}"
        if not workload.loads:
            raise BadInput(
                Problem(
                    at, "has no loads", todo="write loads = [{ concurrency = 10, prompts = 100 }]"
                )
            )
        for load in workload.loads:
            for name in load.arms:
                if name not in study.arms:
                    raise BadInput(
                        Problem(
                            at,
                            f"names an arm {name!r} that is not there",
                            todo=nearest(name, study.arms),
                        )
                    )
        for name in study.arms:
            mine = [load for load in workload.loads if not load.arms or name in load.arms]
            for twice in _twice([str(load.concurrency) for load in mine]):
                # Both runs would have one name.
                raise BadInput(
                    Problem(
                        at,
                        f"drives arm {name!r} twice with concurrency = {twice}",
                        todo="write one load of it, with repeats",
                    )
                )


def _check_names(study: Study, file: str) -> None:
    for what, names in (
        ("study", [study.name]),
        ("arm", [arm.name for arm in study.arm]),
        ("workload", [workload.name for workload in study.workload]),
    ):
        for name in names:
            if not _NAME.fullmatch(name):
                raise BadInput(
                    Problem(
                        f"{file}, {what} {name!r}",
                        "is no name of a folder",
                        "letters, digits, '.', '_' and '-', at most 64",
                    )
                )
        for name in _twice(names):
            raise BadInput(Problem(f"{file}, {what} {name!r}", "stands twice", todo="rename one"))


def _check_arm(study: Study, arm: Arm, at: str) -> None:
    if arm.replicas > 1 and not arm.router:
        raise BadInput(
            Problem(
                at,
                f"has {arm.replicas} replicas and no router",
                todo='write router = "round_robin" or "direct"',
            )
        )
    if arm.router and arm.replicas < 2:
        raise BadInput(
            Problem(at, f"has a router ({arm.router}) and one server", todo="write replicas = 2")
        )
    if arm.router_flags and arm.router in ("", DIRECT):
        raise BadInput(
            Problem(at, "has router_flags and no router", todo="name a policy in router")
        )
    if arm.replica_env and len(arm.replica_env) != arm.replicas:
        raise BadInput(
            Problem(
                at,
                f"has {len(arm.replica_env)} tables in replica_env",
                f"{arm.replicas}, one a replica",
            )
        )
    if arm.shares_gpu and not fixes_kv((*study.servers.flags, *arm.flags)):
        raise BadInput(
            Problem(
                at,
                "shares a GPU, and what it finds free there becomes its KV cache",
                f"its room fixed by one of {', '.join(FIXES_KV)}",
            )
        )


def fixes_kv(flags: Iterable[str]) -> bool:
    """Whether flags of a server say how much room there is for KV."""
    return any(word.partition("=")[0] in FIXES_KV for word in flags)


def _positive(study: Study, file: str) -> None:
    """Counts below one measure nothing."""
    counts: list[tuple[str, str, float | None]] = [
        (file, "repeats", study.repeats),
        (file, "starts", study.starts),
    ]
    for arm in study.arm:
        at = f"{file}, arm {arm.name!r}"
        counts += [(at, "gpus", arm.gpus), (at, "replicas", arm.replicas)]
    for workload in study.workload:
        at = f"{file}, workload {workload.name!r}"
        for load in workload.loads:
            counts += [
                (at, "concurrency", load.concurrency),
                (at, "prompts", load.prompts),
                (at, "repeats", load.repeats),
            ]
        if workload.request_rate is not None and not workload.request_rate > 0:
            raise BadInput(
                Problem(at, f"request_rate = {workload.request_rate}", "a number above 0")
            )
    for at, key, count in counts:
        if count is not None and count < 1:
            raise BadInput(Problem(at, f"{key} = {count}", "1 or more"))


def _twice(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
