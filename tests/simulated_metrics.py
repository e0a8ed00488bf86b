"""What /metrics of a simulated run's servers would say before and after it, and the files of it.

    before, after = texts(sim)
    write(root / "run", sim)      # run.json.gz, run.before.txt.gz, run.after.txt.gz

The truth is the simulated engine's own: when each step ended, when each request was scheduled.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.simulate import Delivery, Simulated
from analysis.simulated_file import result
from tests.simulated import DELIVERY

EDGES = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
BASE = 1000.0
"""What every counter stood at before the run."""

OLD = {"vllm:inter_token_latency_seconds": "vllm:time_per_output_token_seconds",
       "vllm:prefix_cache_": "vllm:gpu_prefix_cache_",
       "vllm:kv_cache_usage_perc": "vllm:gpu_cache_usage_perc"}  # fmt: skip
"""Names of the series before vLLM 0.11."""


@dataclass(frozen=True, eq=False)
class Truth:
    """Seconds of each request as the engine knows them. Shapes (n,)."""

    queue: NDArray[np.float64]
    prefill: NDArray[np.float64]
    decode: NDArray[np.float64]

    @property
    def ttft(self) -> NDArray[np.float64]:
        """From arrival in the engine to the first token's step."""
        return self.queue + self.prefill


def truth(sim: Simulated, delivery: Delivery = DELIVERY) -> Truth:
    """The stages of each request."""
    end = sim.truth.end[sim.truth.step_of]
    first, last = end[sim.offsets[:-1]], end[sim.offsets[1:] - 1]
    scheduled = sim.start + delivery.to_server + sim.truth.queued
    return Truth(sim.truth.queued, first - scheduled, last - first)


def texts(sim: Simulated, *, delivery: Delivery = DELIVERY, old: bool = False) -> tuple[str, str]:
    """The text before the run and after it, with every engine under its label."""
    before, after = (_text(sim, delivery, share) for share in (0.0, 1.0))
    for new, name in OLD.items() if old else ():
        before, after = before.replace(new, name), after.replace(new, name)
    return before, after


def _text(sim: Simulated, delivery: Delivery, share: float) -> str:
    told = truth(sim, delivery)
    end = sim.truth.end[sim.truth.step_of]
    owner = np.repeat(sim.truth.engine_of, np.diff(sim.offsets))
    gaps = np.delete(np.diff(end), sim.offsets[1:-1] - 1)
    of_gap = np.delete(owner[1:], sim.offsets[1:-1] - 1)
    lines = ["# HELP vllm:any What the model knows.", "# TYPE vllm:any gauge"]
    for engine in range(sim.arm.engine.replicas):
        mine = sim.truth.engine_of == engine
        label = f'engine="{engine}",model_name="m"'
        counts = {
            "prompt_tokens_total": sim.workload.prompt[mine].sum(),
            "generation_tokens_total": sim.workload.output[mine].sum(),
            "num_preemptions_total": sim.truth.preemptions if engine == 0 else 0,
            "prefix_cache_queries_total": sim.workload.prompt[mine].sum(),
            "prefix_cache_hits_total": 0,
        }
        lines += [f"vllm:{n}{{{label}}} {BASE + share * int(v)}" for n, v in counts.items()]
        for reason, count in (("length", mine.sum()), ("abort", 0)):
            value = BASE + share * int(count)
            lines.append(
                f'vllm:request_success_total{{{label},finished_reason="{reason}"}} {value}'
            )
        lines += [f"vllm:kv_cache_usage_perc{{{label}}} 0.5"]
        stay = told.ttft + told.decode
        for name, values in {
            "request_queue_time_seconds": told.queue[mine],
            "request_prefill_time_seconds": told.prefill[mine],
            "request_decode_time_seconds": told.decode[mine],
            "request_inference_time_seconds": (told.prefill + told.decode)[mine],
            "time_to_first_token_seconds": told.ttft[mine],
            "e2e_request_latency_seconds": stay[mine],
            "inter_token_latency_seconds": gaps[of_gap == engine],
            "iteration_tokens_total": sim.truth.emitted[sim.truth.engine == engine],
        }.items():
            lines += _histogram(name, label, np.asarray(values, np.float64), share)
    return "\n".join(lines) + "\n"


def _histogram(name: str, label: str, values: NDArray[np.float64], share: float) -> list[str]:
    rows = [(f"{edge:g}", int((values <= edge).sum())) for edge in EDGES] + [("+Inf", len(values))]
    found = [
        f'vllm:{name}_bucket{{{label},le="{edge}"}} {BASE + share * count}' for edge, count in rows
    ]
    total = BASE + share * float(values.sum())
    return [
        *found,
        f"vllm:{name}_sum{{{label}}} {total!r}",
        f"vllm:{name}_count{{{label}}} {BASE + share * len(values)}",
    ]


def write(place: Path, sim: Simulated, *, delivery: Delivery = DELIVERY, old: bool = False) -> None:
    """A result and the texts beside it, all with the name that `place` ends in."""
    place.parent.mkdir(parents=True, exist_ok=True)
    before, after = texts(sim, delivery=delivery, old=old)
    files = {"json": json.dumps(result(sim)), "before.txt": before, "after.txt": after}
    for end, text in files.items():
        path = place.with_name(f"{place.name}.{end}.gz")
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
