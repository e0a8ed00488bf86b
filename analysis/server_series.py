"""What vLLM's /metrics calls each thing: one name of ours -> the series' names, the newest first.

Names are those of a series without `_sum`, `_count`, `_bucket`; a counter's carry `_total`, which
the client library adds. Where a text has several names of one thing the newest is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Kind = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True, slots=True)
class Series:
    """A thing that a server counts."""

    names: tuple[str, ...]
    """The newest first."""
    kind: Kind
    unit: str
    definition: str
    source: str = "vllm/v1/metrics/loggers.py"
    """Where vLLM defines it."""


_STATS = "vllm/v1/metrics/stats.py"

SERIES: Mapping[str, Series] = {
    "running": Series(
        ("vllm:num_requests_running",), "gauge", "", "requests that have a slot",
    ),
    "waiting": Series(
        ("vllm:num_requests_waiting",), "gauge", "", "requests without a slot",
    ),
    "kv_use": Series(
        # gpu_cache_usage_perc until 0.10.
        ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"), "gauge", "",
        "share of the KV cache in use, 1 for all",
    ),
    "preemptions": Series(
        ("vllm:num_preemptions_total", "vllm:num_preemptions"), "counter", "",
        "how often a running request lost its slot and its KV",
    ),
    "prompt_tokens": Series(
        ("vllm:prompt_tokens_total",), "counter", "tok",
        "prompt tokens of requests whose first token came, cached ones included",
    ),
    "output_tokens": Series(
        ("vllm:generation_tokens_total",), "counter", "tok", "tokens generated",
    ),
    "finished": Series(
        ("vllm:request_success_total",), "counter", "",
        "requests that ended, by `finished_reason`",
    ),
    "prefix_queries": Series(
        ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"), "counter",
        "tok", "prompt tokens looked up in the prefix cache",
    ),
    "prefix_hits": Series(
        ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"), "counter", "tok",
        "of them, tokens that were found there",
    ),
    "iteration_tokens": Series(
        ("vllm:iteration_tokens_total",), "histogram", "tok",
        "tokens of an engine step, prompts included; its count is that of the steps",
    ),
    "ttft": Series(
        ("vllm:time_to_first_token_seconds",), "histogram", "s",
        "from arrival in the API server to the first token there", _STATS,
    ),
    "itl": Series(
        # Until 0.10 under the other name, which never was a mean of a request.
        ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"), "histogram",
        "s", "pause between two outputs of one request, each counted", _STATS,
    ),
    "tpot": Series(
        ("vllm:request_time_per_output_token_seconds",), "histogram", "s",
        "decode time / (output tokens - 1), each request counted once", _STATS,
    ),
    "stay": Series(
        ("vllm:e2e_request_latency_seconds",), "histogram", "s",
        "from arrival in the API server to the last token there", _STATS,
    ),
    "queue": Series(
        ("vllm:request_queue_time_seconds",), "histogram", "s",
        "from arrival in the engine to the first scheduling; what a preempted request waits again "
        "is in its decode time", _STATS,
    ),
    "prefill": Series(
        ("vllm:request_prefill_time_seconds",), "histogram", "s",
        "from the first scheduling to the first token", _STATS,
    ),
    "decode": Series(
        ("vllm:request_decode_time_seconds",), "histogram", "s",
        "from the first token to the last, preemptions included", _STATS,
    ),
    "inference": Series(
        ("vllm:request_inference_time_seconds",), "histogram", "s",
        "from the first scheduling to the last token", _STATS,
    ),
}  # fmt: skip

PARTS = ("_bucket", "_sum", "_count")
"""What a histogram's series end in."""

_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
_ESCAPED = re.compile(r"\\(.)")


def series_of(name: str, labels: Mapping[str, str]) -> str:
    """A series as `Counters` name it: labels in the order of their names, values escaped."""
    told = ",".join(f'{key}="{_escaped(labels[key])}"' for key in sorted(labels))
    return f"{name}{{{told}}}" if told else name


def _escaped(value: str) -> str:
    return "".join(_ESCAPES.get(c, c) for c in value)


def split(series: str) -> tuple[str, Mapping[str, str]]:
    """Name and labels of a series."""
    name, _, labels = series.partition("{")
    return name, labels_of(labels.removesuffix("}"))


@lru_cache(maxsize=4096)
def labels_of(text: str) -> Mapping[str, str]:
    """Labels as they stand between the braces; empty where they are none by the format."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        label = _LABEL.match(text, at)
        if label is None:
            return {}
        found[label[1]] = _ESCAPED.sub(lambda m: "\n" if m[1] == "n" else m[1], label[2])
        at = label.end()
        if at < len(text) and text[at] != ",":
            return {}
        at += 1
    return found
