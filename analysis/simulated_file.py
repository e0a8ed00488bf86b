"""Writes a simulated run as `vllm bench serve --save-detailed` would, with the truth beside it.

Keys, order and definitions are those of vLLM 0.28 (`vllm/benchmarks/serve.py`): TPOT is a mean for
each request over its output tokens but one, ITL is pooled over gaps, percentiles are numpy's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.simulate import Closed, Simulated

PERCENTILES = (50, 90, 95, 99)


def result(run: Simulated) -> dict[str, Any]:
    """The client's result object, JSON-ready."""
    ttft, gaps, offsets = run.ttft, run.gaps, run.offsets
    n = len(ttft)
    output, prompt = run.workload.output, run.workload.prompt
    stay = run.received[offsets[1:] - 1] - run.start
    several = output > 1
    tpot = (stay - ttft)[several] / (output - 1)[several]
    rows = np.split(gaps, (offsets[1:-1] - np.arange(1, n)).tolist())
    closed = isinstance(run.load, Closed)
    return {
        "date": "20260101-000000",
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": "simulated",
        "tokenizer_id": "simulated",
        "num_prompts": n,
        "request_rate": "inf" if isinstance(run.load, Closed) else run.load.rate,
        "burstiness": 1.0,
        "max_concurrency": run.load.concurrency if isinstance(run.load, Closed) else None,
        "duration": run.duration,
        "completed": n,
        "failed": 0,
        "total_input_tokens": int(prompt.sum()),
        "total_output_tokens": int(output.sum()),
        "request_throughput": n / run.duration,
        "request_goodput": None,
        "output_throughput": float(output.sum()) / run.duration,
        "total_token_throughput": float((prompt + output).sum()) / run.duration,
        "input_lens": prompt.tolist(),
        "output_lens": output.tolist(),
        "ttfts": ttft.tolist(),
        "itls": [row.tolist() for row in rows],
        "start_times": run.start.tolist(),
        "generated_texts": [""] * n,
        "errors": [""] * n,
        "max_concurrent_requests": _seconds_peak(run) if closed else n,
        **_latency("ttft", ttft),
        **_latency("tpot", tpot),
        **_latency("itl", gaps),
        **_latency("e2el", stay),
    }


def truth(run: Simulated) -> dict[str, Any]:
    """What the engine knows and the client does not, JSON-ready."""
    return {
        "iterations": len(run.truth.end),
        "preemptions": run.truth.preemptions,
        "mean_queue_time": float(run.truth.queued.mean()),
        "mean_running": float(np.average(run.truth.running, weights=run.truth.duration)),
        "step_end": run.truth.end.tolist(),
        "step_duration": run.truth.duration.tolist(),
        "step_running": run.truth.running.tolist(),
        "step_prefilled": run.truth.prefilled.tolist(),
        "engine_of": run.truth.engine_of.tolist(),
    }


def write(run: Simulated, path: Path) -> None:
    """Write the result to `path` and the truth to the same name with `.truth.json`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result(run)), "utf-8")
    path.with_suffix(".truth.json").write_text(json.dumps(truth(run)), "utf-8")


def _latency(name: str, seconds: NDArray[np.float64]) -> dict[str, float]:
    ms = seconds * 1000 if len(seconds) else np.zeros(1)
    return {
        f"mean_{name}_ms": float(ms.mean()),
        f"median_{name}_ms": float(np.median(ms)),
        f"std_{name}_ms": float(ms.std()),
        **{f"p{p}_{name}_ms": float(np.percentile(ms, p)) for p in PERCENTILES},
    }


def _seconds_peak(run: Simulated) -> int:
    """The client's own figure: requests that touch the same whole second, at most."""
    first = (run.start - run.start.min()).astype(np.int64)
    last = (run.received[run.offsets[1:] - 1] - run.start.min()).astype(np.int64)
    change = np.zeros(int(last.max()) + 2, np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, last + 1, -1)
    return int(np.cumsum(change).max())
