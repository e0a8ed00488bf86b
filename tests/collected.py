"""Run folders as `collect` leaves them, of an engine whose queue is known.

    sim = simulated(in_flight=8, slots=4)
    write_run(root / "s/slotted/chat-c8-r1", [sim], flags=["--max-num-seqs", "4"])

Each engine step takes `STEP` seconds and gives every running request one token; a request that is
done is followed by the next at once. So the server's mean queue time, its waiting count over the
run, and the TTFT less one step are one number, by construction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STEP = 0.02
"""Seconds of an engine step."""

OUT = 10
"""Tokens that each request generates."""


@dataclass
class Simulated:
    """What one client and one engine saw. Times in seconds of one clock."""

    start: list[float] = field(default_factory=list)
    ttft: list[float] = field(default_factory=list)
    queue: list[float] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    in_flight: int = 0

    @property
    def mean_queue(self) -> float:
        """The truth."""
        return sum(self.queue) / len(self.queue)

    @property
    def end(self) -> float:
        """When the last token came."""
        return self.steps[-1]["mono"]


def simulated(
    in_flight: int = 8, slots: int = 4, requests: int = 400, begin: float = 100.0
) -> Simulated:
    """A closed loop: `in_flight` requests on an engine that runs `slots` at once."""
    found = Simulated(in_flight=in_flight)
    clock, sent = begin, 0
    waiting: list[int] = []
    running: dict[int, int] = {}
    while sent < requests or waiting or running:
        while sent < requests and len(waiting) + len(running) < in_flight:
            found.start.append(clock)
            waiting.append(sent)
            sent += 1
        while waiting and len(running) < slots:
            one = waiting.pop(0)
            running[one] = 0
            found.queue.append(clock - found.start[one])
            found.ttft.append(clock + STEP - found.start[one])
        clock += STEP
        found.steps.append(
            {"t": 1e9 + clock, "mono": clock, "prompt": 0, "gen": len(running),
             "running": len(running), "waiting": len(waiting), "kv": 0.5, "preempted": 0}
        )  # fmt: skip
        running = {one: tokens + 1 for one, tokens in running.items() if tokens + 1 < OUT}
    return found


def bench(sim: Simulated, **more: Any) -> dict[str, Any]:
    """The client's detailed result."""
    n = len(sim.start)
    duration = sim.end - sim.start[0]
    ttft = sum(sim.ttft) / n
    return {
        "date": "20261130-120000", "backend": "openai", "model_id": "m", "num_prompts": n,
        "request_rate": "inf", "max_concurrency": sim.in_flight, "duration": duration,
        "completed": n, "failed": 0, "total_input_tokens": 100 * n,
        "total_output_tokens": OUT * n, "request_throughput": n / duration,
        "output_throughput": OUT * n / duration,
        "total_token_throughput": (100 + OUT) * n / duration, "mean_ttft_ms": 1000 * ttft,
        "p99_ttft_ms": 1000 * max(sim.ttft), "mean_itl_ms": 1000 * STEP,
        "mean_tpot_ms": 1000 * STEP, "input_lens": [100] * n, "output_lens": [OUT] * n,
        "ttfts": sim.ttft, "itls": [[STEP] * (OUT - 1)] * n, "start_times": sim.start,
        "errors": [""] * n, **more,
    }  # fmt: skip


def record(**more: Any) -> dict[str, Any]:
    """A run.json; `definition` is joined to what is there."""
    definition = {
        "model": "m", "random_weights": True, "server_flags": [], "gpus": 1, "replicas": 1,
        "router": "", "telemetry": True, "concurrency": 8, "clients": 1, "seed": 7,
        **more.pop("definition", {}),
    }  # fmt: skip
    return {
        "schema": 1, "collector": "serving-assay 0.1.0", "collect": "collect --study s",
        "state": "complete", "reason": "", "study": "s", "arm": "slotted", "workload": "chat",
        "concurrency": 8, "repeat": 1, "order": 1, "order_seed": 1, "definition": definition,
        "versions": {"vllm": "0.28.0"}, "machine": {"gpus": []}, "prefix_cache_emptied": True,
        "requests_by_server": {"server": 400}, **more,
    }  # fmt: skip


def put(path: Path, content: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Path:
    """A file of text, of JSON, or of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Mapping):
        content = json.dumps(content)
    elif not isinstance(content, str):
        content = "".join(json.dumps(line) + "\n" for line in content)
    path.write_text(content, "utf-8")
    return path


def write_run(
    folder: Path,
    clients: Sequence[Simulated],
    *,
    flags: Sequence[str] = (),
    evidence: bool = True,
    date: str = "20261130-120000",
    **more: Any,
) -> Path:
    """A complete run: one client and one server for each that was simulated.

    Args:
        folder: The run's.
        clients: Of each server.
        flags: The servers'.
        evidence: Whether steps and request times were kept.
        date: In the clients' results.
        more: Keys of run.json.
    """
    several = len(clients) > 1
    names = [f"replica-{n}" if several else "server" for n in range(len(clients))]
    total = sum(sim.in_flight for sim in clients)
    definition = {"server_flags": list(flags), "replicas": len(clients), "clients": len(clients),
                  "router": "direct" if several else "", **more.pop("definition", {})}  # fmt: skip
    head = record(
        definition=definition,
        **{
            "concurrency": total,
            "requests_by_server": {n: len(s.start) for n, s in zip(names, clients, strict=True)},
            **more,
        },
    )
    put(folder / "run.json", head)
    metadata = {key: str(head[key]) for key in ("study", "arm", "workload", "repeat")}
    for number, (name, sim) in enumerate(zip(names, clients, strict=True)):
        file = f"bench-{number}.json" if several else "bench.json"
        put(folder / file, bench(sim, date=date, in_flight_total=str(total), **metadata))
        if evidence:
            put(folder / f"steps-{name}.jsonl", sim.steps)
            lines = [{"t": 1.0, "id": f"cmpl-{name}-{n}-0", "queue": wait, "prefill": STEP,
                      "decode": STEP * (OUT - 1)} for n, wait in enumerate(sim.queue)]  # fmt: skip
            put(folder / f"requests-{name}.jsonl", lines)
    return folder
