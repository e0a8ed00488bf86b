"""What run.json says of a run: what was run, with what, on what."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from collectors import mask
from collectors.commands import Command, random_weights
from collectors.host import Host
from collectors.rundir import sha256
from collectors.schedule import Job
from collectors.server import Engine, Fleet
from collectors.study import Study

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Identity:
    """What every record of one call of `collect` says."""

    collector: str
    """Name and version of this package."""
    command: str
    """The line that was typed, masked."""
    versions: Mapping[str, str]
    """Of vLLM, the router, Python."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    """GPUs, driver, topology, processor."""


def definition(study: Study, host: Host, job: Job) -> Json:
    """What makes two runs of one name the same run: the study's words, no ports or paths."""
    arm, workload = study.arms[job.arm], study.workloads[job.workload]
    dataset = host.dataset(workload)
    return {
        "model": mask.text(arm.model),
        "random_weights": random_weights(host, study),
        "server_flags": mask.flags([*study.servers.flags, *arm.flags]),
        "server_env": mask.environment({**study.servers.env, **arm.env}, {}),
        "gpus": arm.gpus,
        "replicas": arm.replicas,
        "replica_env": [mask.environment(env, {}) for env in arm.replica_env],
        "router": arm.router,
        "router_flags": mask.flags(arm.router_flags),
        "telemetry": arm.telemetry,
        "spans": arm.spans,
        "workload_flags": mask.flags(workload.flags),
        "dataset": "" if dataset is None else mask.text(dataset.name),
        "dataset_sha256": "" if dataset is None else _digest(dataset),
        "request_rate": workload.request_rate,
        "prompts": job.prompts,
        "concurrency": job.concurrency,
        "clients": job.clients,
        "seed": job.seed,
    }


@cache
def _digest(path: Path) -> str:
    """SHA-256 of a dataset; of one that is not there, nothing."""
    return sha256(path) if path.is_file() else ""


def opening(study: Study, host: Host, job: Job, identity: Identity, order: int) -> Json:
    """The record of a run that begins."""
    return {
        "collector": identity.collector,
        "collect": identity.command,
        "study": study.name,
        "arm": job.arm,
        "workload": job.workload,
        "concurrency": job.concurrency,
        "repeat": job.repeat,
        "order": order,
        "order_seed": study.seed,
        "definition": definition(study, host, job),
        "versions": dict(identity.versions),
        "machine": dict(identity.machine),
    }


def fleet(servers: Fleet) -> Json:
    """The servers that were driven."""
    return {
        "servers": [_engine(engine) for engine in servers.engines],
        "router": None if servers.router is None else _engine(servers.router),
    }


def _engine(engine: Engine) -> Json:
    return {
        "name": engine.name,
        **command(engine.command),
        "log": engine.log.name if engine.log else None,
        "started_by_collector": engine.process is not None,
        "gpus": list(engine.gpus),
        "ready_seconds": round(engine.ready_seconds, 3),
        "kv_tokens": engine.kv.tokens if engine.kv else None,
        "kv_said_in": engine.kv.said_in if engine.kv else None,
    }


def command(line: Command) -> Json:
    """A command line and its environment, without secrets."""
    return {"argv": mask.words(line.argv), "env": mask.environment(line.env, os.environ)}


def processor() -> Json:
    """The host, as far as it shapes a figure; its name is nobody's business."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "processor": _processor_name(),
    }


def _processor_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123
            names = [
                line.partition(":")[2].strip() for line in file if line.startswith("model name")
            ]
    except OSError:
        return platform.processor()
    return names[0] if names else platform.processor()
