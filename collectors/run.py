"""One run: empty the prefix cache, watch, drive, gather the evidence, seal the folder."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from collectors import commands, cut, record, rundir
from collectors.client import Start, drive
from collectors.errors import Problem
from collectors.evidence import Watcher
from collectors.host import Host
from collectors.http import get, post
from collectors.judge_run import Outcome, drop_texts, outcome
from collectors.record import Identity
from collectors.schedule import Job, Plan
from collectors.server import Fleet

MOMENT = 1.5
"""Seconds that a keeper may be behind a server that has died."""

_SERVED = re.compile(r"^vllm:request_success_total\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Made:
    """A run's folder and how it ended."""

    folder: Path
    outcome: Outcome


def make(
    plan: Plan,
    host: Host,
    identity: Identity,
    job: Job,
    fleet: Fleet,
    watcher: Watcher | None,
    start: Start,
    final: Path,
    *,
    keep_texts: bool = False,
) -> Made:
    """Make a run against servers that are ready.

    Args:
        plan: The run's plan.
        host: Where.
        identity: What every record says.
        job: The run.
        fleet: Its servers.
        watcher: What watches them; None: nothing (a warm-up).
        start: How a client is started.
        final: The run's folder when it is whole.
        keep_texts: Keep generated texts even if the weights are random.

    Raises:
        OSError: the folder cannot be written.
    """
    study = plan.study
    order = plan.jobs.index(job) + 1 if job in plan.jobs else 0
    entry = record.opening(study, host, job, identity, order) | record.fleet(fleet)
    part = rundir.open_part(final, entry)
    clients = commands.clients(host, study, job, fronts=fleet.fronts, folder=str(part))
    results = [part / name for name, _ in clients]
    calls = [
        (command, part / name.replace("bench", "client").replace("json", "log"))
        for name, command in clients
    ]
    emptied = [_empty_prefix_cache(engine.url) for engine in fleet.engines]
    served = [_served(engine.url) for engine in fleet.engines]
    logs = {each.log: each.log.stat().st_size for each in fleet.parts if each.log}
    if watcher is not None:
        watcher.begin(part, fleet)
    began, clock = time.time(), time.monotonic()
    try:
        driven = drive(calls, start, fleet.dead)
    finally:
        seconds = time.monotonic() - clock
        evidence = {} if watcher is None else watcher.end(part, fleet, job, began, began + seconds)
    _cut_logs(fleet, logs, part)
    result = outcome(driven, results, job.prompts)
    if driven.problem is None and result.completed < job.prompts:
        died = _died_meanwhile(fleet)
        if died is not None:
            result = replace(result, state="failed", reason=str(died))
    texts = 0
    if commands.random_weights(host, study) and not keep_texts:
        texts = sum(drop_texts(path) for path in results)
    entry |= {
        "state": result.state,
        "reason": result.reason,
        "completed": result.completed,
        "failed": result.failed,
        "started": round(began, 3),
        "ended": round(began + seconds, 3),
        "seconds": round(seconds, 3),
        "clients": [
            {**record.command(command), "status": status}
            for (command, _), status in zip(calls, driven.statuses, strict=True)
        ],
        "prefix_cache_emptied": all(emptied),
        "requests_by_server": {
            engine.name: _difference(before, _served(engine.url))
            for engine, before in zip(fleet.engines, served, strict=True)
        },
        "generated_texts_left_out": texts,
        "evidence": evidence,
    }
    return Made(rundir.close_part(part, entry), result)


def _died_meanwhile(fleet: Fleet) -> Problem | None:
    """Why requests failed, if a server has died; its keeper may be some moments behind."""
    end = time.monotonic() + MOMENT
    while (died := fleet.dead()) is None and time.monotonic() < end:
        time.sleep(0.1)
    return died


def _empty_prefix_cache(url: str) -> bool:
    """Whether the server forgot the prompts it has seen."""
    with suppress(OSError):
        post(f"{url}/reset_prefix_cache")
        return True
    return False


def _served(url: str) -> int | None:
    """Requests that a server has finished; None where it does not count."""
    try:
        found = _SERVED.findall(get(f"{url}/metrics"))
    except OSError:
        return None
    return round(sum(map(float, found))) if found else None


def _difference(before: int | None, after: int | None) -> int | None:
    return after - (before or 0) if after is not None else None


def _cut_logs(fleet: Fleet, sizes: dict[Path, int], part: Path) -> None:
    """Each server's log of its start and of this run; what lies between is other runs'."""
    for engine in fleet.parts:
        if engine.log is None:
            continue
        name = "server.log" if engine.name == "server" else f"{engine.name}.log"
        whole = engine.log.read_bytes()
        mine = cut.log(whole, engine.log_ready, sizes[engine.log], len(whole))
        (part / name).write_bytes(mine)
