"""`collect --profile`: a study's arms -> the captures of their decode steps, as a plan (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from collectors.errors import BadInput, Problem
from collectors.schedule import Plan, Selection, plan
from collectors.study import Arm, Load, Study, Workload

WORKLOAD = "profile"
PROMPT = 256
"""Tokens of each prompt: about the mean of recorded conversations."""
STEPS = 40
"""Decode steps that are recorded at least."""


def captures(study: Study, wanted: Selection, batches: Sequence[int]) -> Plan:
    """One capture of each arm at each batch, on servers of their own.

    Of an arm with replicas one server is profiled: all are alike.

    Args:
        study: Its arms.
        wanted: Which of them.
        batches: Requests that decode at once; none: as each arm's key `profile` says.

    Raises:
        BadInput: an arm that the study has not; no arm says a batch.
    """
    arms = tuple(_alone(arm) for arm in study.arm if batches or arm.profile)
    if not arms:
        raise BadInput(
            Problem(
                "--profile",
                f"no arm of the study {study.name!r} has the key profile",
                todo="name the requests that decode at once: --profile 1,10",
            )
        )
    sizes = sorted({size for arm in arms for size in batches or arm.profile})
    loads = tuple(
        Load(
            size,
            prompts=size,
            arms=tuple(arm.name for arm in arms if size in (batches or arm.profile)),
        )
        for size in sizes
    )
    flags = ["--dataset-name", "random", "--random-input-len", str(PROMPT)]
    flags += ["--random-output-len", str(STEPS)]
    workload = Workload(WORKLOAD, loads, tuple(flags), about="decode steps under a profiler")
    one = msgspec.structs.replace(study, arm=arms, workload=(workload,), repeats=1, starts=1)
    made = plan(one, Selection(arms=wanted.arms))
    sessions = tuple(
        replace(session, jobs=tuple(replace(job, profiled=True) for job in session.jobs))
        for session in made.sessions
    )
    return replace(made, sessions=sessions)


def _alone(arm: Arm) -> Arm:
    """One server of an arm, which nothing else watches."""
    return msgspec.structs.replace(
        arm,
        env={**arm.env, **(arm.replica_env[0] if arm.replica_env else {})},
        replicas=1,
        replica_env=(),
        router="",
        router_flags=(),
        shares_gpu="",
        telemetry=False,
        spans=False,
    )
