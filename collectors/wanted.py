"""What the options of `collect` ask for: a study, the runs of it, and where they are made."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from collectors import mask
from collectors.cache import made_models
from collectors.captures import captures
from collectors.errors import BadInput, Problem
from collectors.host import Host, router_command, vllm_command
from collectors.http import get_json
from collectors.options import DEFAULT_STUDY
from collectors.schedule import Plan, Selection, plan
from collectors.study import Arm, Study
from collectors.study_file import read_study, with_arm
from collectors.tables import nearest


def study(options: argparse.Namespace) -> Study:
    """The study that is asked for; with --base-url, of one arm, made up if the study has it not.

    Raises:
        BadInput: there is none, it is wrong, or no server answers at the address.
    """
    read = read_study(options.study or DEFAULT_STUDY)
    if not options.base_url:
        return read
    names = options.arm or ["server"]
    if len(names) > 1:
        raise BadInput(Problem("--base-url", f"{len(names)} arms", "one --arm: its name"))
    if names[0] in read.arms:
        return read
    told = get_json(f"{options.base_url}/v1/models")
    try:
        model = str(told["data"][0]["id"])
    except (TypeError, LookupError):
        raise BadInput(
            Problem(
                mask.text(options.base_url),
                "no server answers at /v1/models",
                todo="check the address",
            )
        ) from None
    return with_arm(read, Arm(names[0], model, about="a server that somebody else runs"))


def runs(one: Study, options: argparse.Namespace) -> Plan:
    """The runs that are asked for: at least one.

    Raises:
        BadInput: an arm or workload that the study has not, or no run at all.
    """
    wanted = Selection(
        tuple(options.arm or (["server"] if options.base_url else [])),
        tuple(options.workload),
        tuple(options.concurrency),
        options.repeats,
        options.prompts,
    )
    if options.profile is not None:
        _alone(wanted, options.base_url)
        return captures(one, wanted, options.profile)
    made = plan(one, wanted)
    if not made.jobs:
        raise BadInput(
            Problem(f"study {one.name!r}", "has no run of what is asked for", todo="see --list")
        )
    return made


def _alone(wanted: Selection, base_url: str) -> None:
    """Captures have no workload of a study, and servers of their own."""
    given = {
        "--workload": wanted.workloads,
        "--concurrency": wanted.concurrency,
        "--repeats": wanted.repeats,
        "--prompts": wanted.prompts,
        "--base-url": base_url,
    }
    found = [
        Problem(flag, "means nothing with --profile", todo="drop one of them")
        for flag, value in given.items()
        if value
    ]
    if found:
        raise BadInput(*found)


def host(options: argparse.Namespace, made: Plan) -> Host:
    """Where the runs are made; nothing is written.

    Raises:
        BadInput: a mapping names what the study has not, or too few GPUs are named.
    """
    found = [*_unknown_names(options, made.study), *_few_gpus(options.gpus, made.arms)]
    if found:
        raise BadInput(*found)
    models = {name: str(path) for name, path in made_models(made.study).items()}
    return Host(
        vllm=vllm_command(options.vllm),
        router=router_command(options.router),
        results=Path(options.results),
        gpus=options.gpus,
        models={**models, **dict(options.model)},
        datasets={name: Path(path) for name, path in options.dataset},
        random_weights=options.random_weights,
        port=options.port,
        upload=options.upload,
    )


def _unknown_names(options: argparse.Namespace, one: Study) -> Iterable[Problem]:
    """Mappings that map nothing, and names that are mapped twice."""
    models = {arm.model for arm in one.arm}
    datasets = {name for work in one.workload if work.dataset for name in (work.name, work.dataset)}
    for flag, pairs, known in (
        ("--model", options.model, models),
        ("--dataset", options.dataset, datasets),
    ):
        names = [name for name, _ in pairs]
        for name in dict.fromkeys(names):
            if name not in known:
                yield Problem(
                    f"{flag} {name}=",
                    f"the study {one.name!r} names no such {flag[2:]}",
                    todo=nearest(name, known),
                )
            if names.count(name) > 1:
                yield Problem(f"{flag} {name}=", "is given twice", todo="give one")


def _few_gpus(gpus: Sequence[int], arms: Sequence[Arm]) -> Iterable[Problem]:
    for arm in arms:
        needed = arm.gpus * arm.replicas
        if gpus and needed > len(gpus):
            each = f" ({arm.replicas} servers x {arm.gpus})" if arm.replicas > 1 else ""
            yield Problem(
                f"--gpus {','.join(map(str, gpus))}",
                f"names {len(gpus)} for arm {arm.name!r}",
                f"{needed}{each}",
                "name more, or leave the arm out (--arm)",
            )
