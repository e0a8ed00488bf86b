"""Everything that can fail is asked before a GPU second is spent: `collect --check`.

All is asked, and all that is wrong is told, one line each. Help texts take longest; their commands
print them while everything else is looked at.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collectors import (
    command_check,
    data_check,
    estimate,
    hardware,
    help_texts,
    http,
    installed,
    model_check,
    placement,
    profiler,
    storage,
)
from collectors.errors import Problem
from collectors.estimate import Estimate
from collectors.fit import Demand
from collectors.hardware import Inventory, NoGpu
from collectors.host import Host
from collectors.model_check import Models
from collectors.schedule import Plan


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found."""

    problems: tuple[Problem, ...]
    """What keeps runs from being measured."""
    notes: tuple[str, ...]
    """What is worth knowing, or could not be known."""
    estimate: Estimate
    versions: Mapping[str, str]
    """Of vLLM, the router and what they stand on, by package."""
    gpus: Inventory | NoGpu
    profiler_flag: bool = True
    """Whether the installed `vllm serve` is told of a profiler by a flag."""


@dataclass(slots=True)
class _Told:
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check(
    plan: Plan,
    host: Host,
    base_url: str = "",
    *,
    cache: Path | None = None,
    nvml: Any = None,
) -> Preflight:
    """Ask everything that can fail of a plan on this machine.

    Args:
        plan: What will run.
        host: Where.
        base_url: A server that somebody else runs: nothing of servers is asked then.
        cache: Where help texts are kept; None: the user's cache folder.
        nvml: A module like `pynvml`; None: import it.
    """
    serve = not base_url
    told = _Told()
    router = host.router if serve and command_check.routed(plan) else ()
    told.problems += _missing(plan, host, serve)
    versions = installed.versions(host.vllm, router)
    # On a CPU build nothing depends on a GPU.
    cpu = installed.is_cpu_build(versions)
    asked = help_texts.questions(host.vllm, router, serve=serve)
    with help_texts.asking(asked, versions, folder=cache) as answers:
        models = model_check.look(plan, host, serve=serve)
        python = installed.interpreter(host.vllm)
        data = data_check.look(plan, host, models.folders, deep=bool(host.vllm), python=python)
        gpus: Inventory | NoGpu = NoGpu("not asked")
        if serve and not cpu:
            gpus = hardware.inventory(host.gpus, nvml)
        reckoned = _estimate(plan, host, models, gpus, data, cpu)
        told.problems += storage.problems(
            host.results, host.upload, reckoned.size, reckoned.largest
        )
        if serve and host.port is not None:
            _port(host.port, told)
        help_or_not = answers()
    told.problems += [answer for answer in help_or_not.values() if isinstance(answer, Problem)]
    known = command_check.dialects(help_or_not)
    told.problems += command_check.problems(plan, host, known)
    demands = placement.demands(plan, command_check.utilisation(known))
    told.problems += models.problems
    told.notes += models.notes
    if serve:
        _servers(plan, host, models, demands, gpus, cpu, told)
    told.problems += data.problems
    told.notes += data.notes
    _limits(plan, demands, models, data, told)
    if cpu:
        told.notes.append(f"vLLM {versions.get('vllm', '')} is a CPU build: no GPU is asked about")
    return Preflight(
        tuple(dict.fromkeys(told.problems)),
        tuple(dict.fromkeys(told.notes)),
        reckoned,
        {**versions, "python": platform.python_version()},
        gpus,
        help_texts.SERVE not in known or profiler.FLAG in known[help_texts.SERVE].flags,
    )


def _missing(plan: Plan, host: Host, serve: bool) -> list[Problem]:
    found = []
    if not host.vllm:
        found.append(
            Problem(
                "vLLM",
                "is not installed here",
                "its servers and its benchmark client" if serve else "its benchmark client",
                "pip install vllm on a GPU host, make collect-smoke without a GPU; or name the "
                "command: --vllm",
            )
        )
    needing = command_check.routed(plan)
    if serve and needing and not host.router:
        found.append(
            Problem(
                "vllm-router",
                "is not installed here",
                f"a router for {', '.join(repr(arm.name) for arm in needing)}",
                "pip install vllm-router, or name the command: --router; or leave these arms out "
                "(--arm)",
            )
        )
    return found


def _estimate(
    plan: Plan,
    host: Host,
    models: Models,
    gpus: Inventory | NoGpu,
    data: data_check.Looked,
    cpu: bool,
) -> Estimate:
    # Which GPUs share the weights does not depend on the installed version; the share of memory
    # does, and is not used here.
    split = placement.demands(plan, command_check.utilisation({}))
    return estimate.of_plan(
        plan,
        steps=placement.steps(plan, gpus, split, models.shapes),
        lengths=data.lengths,
        earlier=estimate.recorded(host.results, plan.study.name),
        cpu=cpu,
    )


def _port(port: int, told: _Told) -> None:
    if http.port_is_free(port):
        return
    try:
        free = http.free_port(port)
    except OSError as error:
        told.problems.append(Problem(f"port {port}", str(error), todo="name another: --port"))
    else:
        told.notes.append(f"port {port} is taken; the first server gets {free}")


def _servers(
    plan: Plan,
    host: Host,
    models: Models,
    demands: Mapping[str, Demand],
    gpus: Inventory | NoGpu,
    cpu: bool,
    told: _Told,
) -> None:
    """What keeps servers from starting."""
    found = [*placement.without_gpus(plan, demands, models.shapes)]
    if not cpu:
        found += placement.on_gpus(plan, gpus, host.gpus, demands, models.shapes)
        if isinstance(gpus, Inventory):
            told.notes += placement.notes(plan, gpus, host.gpus)
    told.problems += command_check.merged(found)


def _limits(
    plan: Plan,
    demands: Mapping[str, Demand],
    models: Models,
    data: data_check.Looked,
    told: _Told,
) -> None:
    """What each server's longest context would reject of what is sent to it."""
    limits = {}
    for arm in plan.arms:
        shape = models.shapes.get(arm.model)
        limit = demands[arm.name].max_len or (shape.max_len if shape else None)
        if limit:
            limits[arm.name] = limit
    problems, notes = data_check.rejected(plan, limits, data.lengths)
    told.problems += problems
    told.notes += notes
