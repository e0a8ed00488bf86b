"""What a study's types cannot say: names, counts within reason, references, room for KV (pure)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from collectors import fit, made_model, own_flags
from collectors.errors import Problem
from collectors.flags import values
from collectors.study import (
    DIRECT,
    FIXES_KV,
    MOST_BATCH,
    MOST_CONCURRENCY,
    MOST_GPUS,
    MOST_LISTED,
    MOST_PROMPTS,
    MOST_REPEATS,
    Arm,
    Study,
    Workload,
    fixes_kv,
)
from collectors.tables import nearest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VARIABLE = re.compile(r"[^=\0]+")
_SEEDS = 2**63


def problems(study: Study, file: str) -> Iterator[Problem]:
    """All that is wrong with a study, one line each.

    Args:
        study: Of right types.
        file: How a message calls it.
    """
    yield from names(study, file)
    yield from _counts(study, file)
    yield from _variables(study.servers.env, f"{file}, servers")
    yield from _words(study.servers.flags, f"{file}, servers", "flags")
    for name, model in study.made_model.items():
        at = f"{file}, made_model {name[:80]!r}"
        if reason := made_model.problem(model):
            yield Problem(at, reason)
    for arm in study.arm:
        yield from _arm(study, arm, f"{file}, arm {arm.name!r}")
    for workload in study.workload:
        yield from _workload(study, workload, f"{file}, workload {workload.name!r}")
    yield from own_flags.problems(study, file)


def names(study: Study, file: str) -> Iterator[Problem]:
    """Names become folders, of results and of models that are made, and words of commands."""
    for what, said in (
        ("study", [study.name]),
        ("arm", [arm.name for arm in study.arm]),
        ("workload", [workload.name for workload in study.workload]),
        ("made_model", list(study.made_model)),
    ):
        for name in said:
            if not _NAME.fullmatch(name):
                yield Problem(
                    f"{file}, {what} {name[:80]!r}",
                    "is no name of a folder",
                    "letters, digits, '.', '_' and '-', at most 64",
                )
        for name in _twice(said):
            yield Problem(f"{file}, {what} {name!r}", "stands twice", todo="rename one")
    for arm in study.arm:
        if not arm.model.strip() or arm.model[0] == "-" or not arm.model.isprintable():
            yield Problem(
                f"{file}, arm {arm.name[:80]!r}",
                f"model = {arm.model[:80]!r}",
                "a model's name, or its folder",
            )


def _arm(study: Study, arm: Arm, at: str) -> Iterator[Problem]:
    for key, words in (("flags", arm.flags), ("router_flags", arm.router_flags)):
        yield from _words(words, at, key)
    yield from _words([arm.router], at, "router")
    for variables in (arm.env, *arm.replica_env):
        yield from _variables(variables, at)
    if arm.replicas > 1 and not arm.router:
        yield Problem(
            at,
            f"has {arm.replicas} replicas and no router",
            todo='write router = "round_robin" or "direct"',
        )
    if arm.router and arm.replicas < 2:
        yield Problem(
            at, f"has a router ({arm.router[:40]}) and one server", todo="write replicas = 2"
        )
    if arm.router_flags and arm.router in ("", DIRECT):
        yield Problem(at, "has router_flags and no router", todo="name a policy in router")
    if arm.replica_env and len(arm.replica_env) != arm.replicas:
        yield Problem(
            at,
            f"has {len(arm.replica_env)} tables in replica_env",
            f"{arm.replicas}, one a replica",
        )
    flags = (*study.servers.flags, *arm.flags)
    if arm.shares_gpu and not fixes_kv(flags):
        yield Problem(
            at,
            "shares a GPU, and what it finds free there becomes its KV cache",
            f"its room fixed by one of {', '.join(FIXES_KV)}",
        )
    split = fit.demand(flags).split
    split *= fit.human(values(flags, "--data-parallel-size", "-dp")) or 1
    if split != arm.gpus > 0:
        yield Problem(
            at,
            f"its flags split a server over {split} GPU{'s' if split != 1 else ''}, and "
            f"gpus = {arm.gpus}",
            todo=f"write gpus = {split}, or other flags",
        )


def _workload(study: Study, workload: Workload, at: str) -> Iterator[Problem]:
    yield from _words(workload.flags, at, "flags")
    yield from _words([workload.dataset], at, "dataset")
    rate = workload.request_rate
    if rate is not None and not (0 < rate < math.inf):
        yield Problem(
            at, f"request_rate = {rate}", "a number above 0", "leave it out for as fast as it goes"
        )
    if not workload.loads:
        yield Problem(
            at, "has no loads", todo="write loads = [{ concurrency = 10, prompts = 100 }]"
        )
    known = study.arms
    driven: dict[str, list[str]] = {name: [] for name in known}
    for load in workload.loads:
        for name in load.arms or known:
            if name in driven:
                driven[name].append(str(load.concurrency))
            else:
                yield Problem(
                    at, f"names an arm {name[:80]!r} that is not there", todo=nearest(name, known)
                )
    for name, loads in driven.items():
        for twice in _twice(loads):
            # Both runs would have one name.
            yield Problem(
                at,
                f"drives arm {name!r} twice with concurrency = {twice}",
                todo="write one load of it, with repeats",
            )


def _counts(study: Study, file: str) -> Iterator[Problem]:
    """Counts below one measure nothing; absurd ones are slips of a finger."""
    counts: list[tuple[str, str, float | None, int]] = [
        (file, "repeats", study.repeats, MOST_REPEATS),
        (file, "starts", study.starts, MOST_REPEATS),
        (file, "number of arms", len(study.arm), MOST_LISTED),
        (file, "number of workloads", len(study.workload), MOST_LISTED),
    ]
    for arm in study.arm:
        at = f"{file}, arm {arm.name!r}"
        counts += [(at, "gpus", arm.gpus, MOST_GPUS), (at, "replicas", arm.replicas, MOST_GPUS)]
        counts += [(at, "profile", batch, MOST_BATCH) for batch in arm.profile]
    for workload in study.workload:
        at = f"{file}, workload {workload.name!r}"
        if len(workload.loads) > MOST_LISTED:
            yield Problem(at, f"has {len(workload.loads):,} loads", f"at most {MOST_LISTED:,}")
        for load in workload.loads:
            counts += [
                (at, "concurrency", load.concurrency, MOST_CONCURRENCY),
                (at, "prompts", load.prompts, MOST_PROMPTS),
                (at, "repeats", load.repeats, MOST_REPEATS),
            ]
    for at, key, count, most in counts:
        if count is not None and not 1 <= count <= most:
            wanted = "1 or more" if count < 1 else f"{most:,} at most"
            yield Problem(at, f"{key} = {count}", wanted)
    if abs(study.seed) >= _SEEDS:
        yield Problem(file, f"seed of {study.seed.bit_length()} bits", "63 bits at most")


def _words(words: Sequence[str], at: str, key: str) -> Iterator[Problem]:
    for word in words:
        if "\0" in word:
            yield Problem(at, f"{key} holds a NUL: {word[:80]!r}", "words of a command line")


def _variables(variables: Mapping[str, str], at: str) -> Iterator[Problem]:
    for name, value in variables.items():
        if not _VARIABLE.fullmatch(name):
            yield Problem(at, f"env names {name[:80]!r}", "a variable's name, without '=' and NUL")
        if "\0" in value:
            yield Problem(at, f"env {name[:80]!r} holds a NUL", "a variable's value")


def _twice(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
