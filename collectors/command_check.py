"""Every command line of a plan against the help texts of the installed versions (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from collectors import commands, flags, successors
from collectors.errors import Problem
from collectors.fit import UTILISATION
from collectors.flags import Dialect
from collectors.help_flags import parse
from collectors.help_texts import BENCH, ROUTER, SERVE, Answers, Help
from collectors.host import Host
from collectors.schedule import Plan
from collectors.study import DIRECT, Arm

_PORT = 8000
_URL = f"http://{commands.ADDRESS}:{_PORT}"
_SHARE = re.compile(r"default value of (0?\.\d+)")


def routed(plan: Plan) -> tuple[Arm, ...]:
    """The arms that need a router."""
    return tuple(arm for arm in plan.arms if arm.router not in ("", DIRECT))


def dialects(answers: Answers) -> Mapping[str, Dialect]:
    """What the installed commands take, by name; nothing of one that gave no help."""
    of_serve = {**successors.SERVE}
    made = {
        SERVE: lambda text, version: Dialect(SERVE, version, parse(text), of_serve, positional=1),
        BENCH: lambda text, version: Dialect(BENCH, version, parse(text), successors.BENCH),
        ROUTER: lambda text, version: Dialect(
            ROUTER, version, parse(text), successors.ROUTER_FLAGS, flexible=False
        ),
    }
    return {
        name: made[name](answer.text, answer.version)
        for name, answer in answers.items()
        if isinstance(answer, Help)
    }


def utilisation(known: Mapping[str, Dialect]) -> float:
    """The installed version's share of a GPU's memory where no flag says one."""
    flag = known[SERVE].flags.get("--gpu-memory-utilization") if SERVE in known else None
    if flag is None:
        return UTILISATION
    found = _SHARE.search(flag.about)
    try:
        return float(found[1] if found else flag.default)
    except ValueError:
        return UTILISATION


def problems(plan: Plan, host: Host, known: Mapping[str, Dialect]) -> tuple[Problem, ...]:
    """What the installed versions would refuse of a plan's command lines.

    Args:
        plan: Its arms and workloads.
        host: The commands.
        known: What they take; one that is missing is not checked.
    """
    return merged(
        [
            *(_servers(plan, host, known[SERVE]) if SERVE in known else ()),
            *(_routers(plan, host, known[ROUTER]) if ROUTER in known else ()),
            *(_clients(plan, host, known[BENCH]) if BENCH in known else ()),
        ]
    )


def _servers(plan: Plan, host: Host, dialect: Dialect) -> Iterator[Problem]:
    for arm in plan.arms:
        line = commands.server(host, plan.study, arm, port=_PORT).argv[len(host.vllm) + 1 :]
        yield from flags.problems(line, dialect, f"arm {arm.name!r}")


def _routers(plan: Plan, host: Host, dialect: Dialect) -> Iterator[Problem]:
    if "--static-backends" in dialect.flags and "--worker-urls" not in dialect.flags:
        yield Problem(
            "vllm-router",
            "the installed one is production-stack's router",
            "the package vllm-router of PyPI, another project of that name",
            "pip install vllm-router, or name its command with --router",
        )
        return
    for arm in routed(plan):
        workers = [_URL] * arm.replicas
        line = commands.router(host, arm, port=_PORT, workers=workers, prometheus=_PORT + 1).argv
        yield from flags.problems(line[len(host.router) :], dialect, f"arm {arm.name!r}")


def _clients(plan: Plan, host: Host, dialect: Dialect) -> Iterator[Problem]:
    seen = set()
    for job in plan.jobs:
        if job.workload in seen:
            continue
        seen.add(job.workload)
        arm, workload = plan.study.arms[job.arm], plan.study.workloads[job.workload]
        line = commands.client(host, plan.study, arm, workload, job, url=_URL, folder=".").argv
        yield from flags.problems(
            line[len(host.vllm) + 2 :], dialect, f"workload {workload.name!r}"
        )


def merged(found: Iterable[Problem]) -> tuple[Problem, ...]:
    """The same told of several arms is told once: "arms 'fp16', 'awq': ..."."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for problem in found:
        same = (problem.found, problem.needed, problem.todo)
        places.setdefault(same, []).append(problem.what)
    return tuple(Problem(_together(what), *same) for same, what in places.items())


def _together(places: list[str]) -> str:
    names = list(dict.fromkeys(places))
    if len(names) == 1 or not all(name.startswith("arm ") for name in names):
        return ", ".join(names)
    return "arms " + ", ".join(name.removeprefix("arm ") for name in names)
