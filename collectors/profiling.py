"""One capture of the torch profiler: requests decode, the server is told to start and to stop.

The server writes a trace for each rank. It is never one that is timed: what records every kernel
slows the host, and the server is started with the profiler from the beginning.
"""

from __future__ import annotations

import gzip
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collectors import cut, record, rundir
from collectors.captures import PROMPT, STEPS
from collectors.decoding import Decoding, prompts
from collectors.errors import Problem
from collectors.host import Host
from collectors.http import get, get_json, post
from collectors.judge_run import Outcome
from collectors.profiler import Profiler
from collectors.record import Identity
from collectors.run import Made
from collectors.schedule import Job, Plan
from collectors.server import Engine, Fleet

TRACE = ".pt.trace.json"
"""What the name of every trace holds."""

START_S, STOP_S = 120.0, 600.0
"""Seconds to begin (the driver loads its part), and to write all ranks' traces."""
DECODE_S = 300.0
"""Seconds until all requests have two tokens, and then until the steps are over."""

_RUNNING = re.compile(r"^vllm:num_requests_running\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)
_GENERATED = re.compile(r"^vllm:generation_tokens_total\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)
_POLL = 0.005
_HOST_NAME = re.compile(rb'^(\s*"host_name": ")[^"]*')
_LONGEST_LINE = 1 << 20


def make(
    plan: Plan,
    host: Host,
    identity: Identity,
    job: Job,
    fleet: Fleet,
    profiler: Profiler,
    final: Path,
) -> Made:
    """Capture the decode steps of a batch on a server that is ready.

    Args:
        plan: The capture's plan.
        host: Where.
        identity: What every record says.
        job: Which batch of which arm.
        fleet: Its one server.
        profiler: What the server was started with.
        final: The capture's folder when it is whole.

    Raises:
        OSError: the folder cannot be written.
    """
    order = plan.jobs.index(job) + 1
    entry = record.opening(plan.study, host, job, identity, order) | record.fleet(fleet)
    part = rundir.open_part(final, entry)
    (engine,) = fleet.engines
    log_begin = engine.log.stat().st_size if engine.log else 0
    before = _files(profiler.folder)
    began = time.time()
    model = plan.study.arms[job.arm].model
    captured = _captured(engine, model, job, fleet.dead)
    for path in sorted(_files(profiler.folder) - before):
        _keep(path, part / path.name)
    ranks = sum(TRACE in path.name for path in part.iterdir())
    wanted = plan.study.arms[job.arm].gpus
    reason = captured.reason
    if not reason and ranks < wanted:
        reason = f"{ranks} of {wanted} ranks left a trace (see server.log)"
    if engine.log:
        whole = engine.log.read_bytes()
        mine = cut.log(whole, engine.log_ready, log_begin, len(whole))
        (part / "server.log").write_bytes(mine)
    state = "failed" if reason else "complete"
    entry |= {
        "state": state,
        "reason": reason,
        "started": round(began, 3),
        "ended": round(time.time(), 3),
        "profile": {"batch": job.concurrency, "traces": ranks, **captured.said},
    }
    return Made(rundir.close_part(part, entry), Outcome(state, reason))


@dataclass(frozen=True, slots=True)
class _Captured:
    """What was seen of a capture from outside."""

    said: dict[str, Any]
    reason: str = ""


def _captured(
    engine: Engine, model: str, job: Job, dead: Callable[[], Problem | None]
) -> _Captured:
    """Make a batch decode and have it recorded."""
    batch = job.concurrency
    tokens = _longest(engine.url) - PROMPT
    said: dict[str, Any] = {"prompt_tokens": PROMPT, "steps_asked": STEPS}
    if tokens < 2 * STEPS:
        return _Captured(said, f"its longest request leaves {tokens} tokens for the steps")
    # What is compiled or loaded at a first use is no part of a step.
    warm = Decoding(engine.url, model, prompts(batch, PROMPT, job.seed + 500_000), 8)
    warm.wait(DECODE_S)
    if warm.problem:
        return _Captured(said, f"a request of the warm-up failed: {warm.problem}")
    before = _counted(_GENERATED, engine.url)
    requests = Decoding(engine.url, model, prompts(batch, PROMPT, job.seed), tokens)
    try:
        if reason := _until(2, requests, dead):
            return _Captured(said | {"decoding": requests.decoding}, reason)
        post(f"{engine.url}/start_profile", START_S)
        first, running = requests.least, _counted(_RUNNING, engine.url)
        now = _counted(_GENERATED, engine.url)
        made = first if before is None or now is None else -((before - now) // batch)
        said |= {"running": running, "context_tokens": PROMPT + made}
        reason = _until(first + STEPS, requests, dead, may_end=True)
        ended, running = requests.ended, _counted(_RUNNING, engine.url)
        post(f"{engine.url}/stop_profile", STOP_S)
        said |= {"running_at_the_end": running, "chunks_of_each": requests.least - first}
        # The server may be done long before a client that lags: its own count tells.
        if made + STEPS > tokens and (ended or (running is not None and running < batch)):
            reason = f"{running} of {batch} requests ran to the end of the steps"
        return _Captured(said, reason)
    except OSError as error:
        return _Captured(said, f"the server's profiler does not answer: {error}")
    finally:
        requests.stop()
        _until_idle(engine.url)


_FEWER = "a request was over before the others decoded: fewer fit than are asked for"


def _until(
    tokens: int,
    requests: Decoding,
    dead: Callable[[], Problem | None],
    *,
    may_end: bool = False,
) -> str:
    """Wait until every request has so many tokens; returns why that did not happen."""
    end, looked = time.monotonic() + DECODE_S, 0.0
    while requests.least < tokens:
        now = time.monotonic()
        if requests.problem:
            return f"a request failed: {requests.problem}"
        if requests.ended and may_end:
            return ""
        if requests.ended:
            return _FEWER
        if now > looked + 1 and (problem := dead()) is not None:
            return str(problem)
        if now > end:
            return f"{requests.decoding} requests decode after {DECODE_S:.0f} s: no more fit"
        looked = now if now > looked + 1 else looked
        time.sleep(_POLL)
    # Between two looks one may have ended and left its slot to the last: fewer fit all the same.
    return _FEWER if requests.ended and not may_end else ""


def _until_idle(url: str) -> None:
    """What nobody reads any more ends within a step or two."""
    end = time.monotonic() + 20
    while _counted(_RUNNING, url) and time.monotonic() < end:
        time.sleep(0.1)


def _counted(what: re.Pattern[str], url: str) -> int | None:
    """A counter of the server over its engines; None where it does not count."""
    try:
        found = what.findall(get(f"{url}/metrics"))
    except OSError:
        return None
    return round(sum(map(float, found))) if found else None


def _longest(url: str) -> int:
    """Tokens of the longest request that the server takes."""
    told = get_json(f"{url}/v1/models")
    try:
        return int(told["data"][0]["max_model_len"])
    except (TypeError, LookupError, ValueError):
        return 2048


def _keep(path: Path, target: Path) -> None:
    """Move what the profiler wrote; of a packed trace, the host's name is left out."""
    if TRACE not in path.name or path.suffix != ".gz":
        shutil.move(path, target)
        return
    with gzip.open(path, "rb") as trace, gzip.open(target, "wb", compresslevel=6) as kept:
        while line := trace.readline(_LONGEST_LINE):
            kept.write(_HOST_NAME.sub(b"\\1", line))
    path.unlink()


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.iterdir() if path.is_file()} if folder.is_dir() else set()
