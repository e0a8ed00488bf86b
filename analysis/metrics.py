"""The one table of metrics: name, unit, which direction is better, and what it means.

Tools use the same word for different things (vLLM's ITL pools the gaps between stream chunks,
GuideLLM's is a mean per request); the definition here is what a number of that name means in
this project, and a reader of a file format converts or refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: how to name, read and compare it."""

    name: str
    label: str
    unit: str
    better: Better
    definition: str


_TABLE = (
    Metric("completed", "completed requests", "", "neither", "requests answered in full"),
    Metric("failed", "failed requests", "", "lower", "requests that ended in an error"),
    Metric("num_prompts", "requests sent", "", "neither", "requests the client was asked to send"),
    Metric("duration", "duration", "s", "neither", "first request sent to last token received"),
    Metric(
        "total_input_tokens",
        "input tokens",
        "tok",
        "neither",
        "prompt tokens of the completed requests",
    ),
    Metric(
        "total_output_tokens",
        "output tokens",
        "tok",
        "neither",
        "generated tokens of the completed requests",
    ),
    Metric(
        "request_throughput", "request throughput", "1/s", "higher", "completed requests / duration"
    ),
    Metric(
        "output_throughput", "output throughput", "tok/s", "higher", "generated tokens / duration"
    ),
    Metric(
        "total_token_throughput",
        "total throughput",
        "tok/s",
        "higher",
        "(prompt + generated tokens) / duration; prompt tokens served from a cache count in full",
    ),
    Metric(
        "ttft",
        "TTFT",
        "s",
        "lower",
        "time to first token: request sent to first token received, waiting included",
    ),
    Metric(
        "itl",
        "ITL",
        "s",
        "lower",
        "inter-token latency: gaps between stream chunks, pooled over all requests",
    ),
    Metric(
        "tpot",
        "TPOT",
        "s",
        "lower",
        "time per output token: (stay - TTFT) / (output tokens - 1), each request counted once",
    ),
    Metric("e2el", "end-to-end latency", "s", "lower", "request sent to last token received"),
    Metric(
        "stay",
        "stay",
        "s",
        "lower",
        "mean TTFT + mean ITL x (mean output tokens - 1): a request's time in the system",
    ),
    Metric(
        "in_flight", "requests in flight", "", "neither", "Little's law: request throughput x stay"
    ),
    Metric(
        "first_token_share",
        "share of the stay before the first token",
        "",
        "neither",
        "mean TTFT / stay",
    ),
    Metric(
        "mean_input_tokens",
        "mean input tokens",
        "tok",
        "neither",
        "prompt tokens / completed requests",
    ),
    Metric(
        "mean_output_tokens",
        "mean output tokens",
        "tok",
        "neither",
        "generated tokens / completed requests",
    ),
    Metric(
        "mean_tokens",
        "mean tokens",
        "tok",
        "neither",
        "(prompt + generated tokens) / completed requests",
    ),
    Metric(
        "output_share",
        "output share of counted tokens",
        "",
        "neither",
        "output throughput / total throughput",
    ),
    Metric(
        "prefix_hit_share",
        "share of prompt tokens read from the prefix cache",
        "",
        "neither",
        "cache hits / queries, in tokens, over all engines, by the servers' counters",
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}

STATISTICS = ("mean", "median", "std")
"""Prefixes of a latency's statistic; percentiles are p50, p99, p99.9 ..."""

LATENCIES = ("ttft", "itl", "tpot", "e2el")


def metric_of(name: str) -> Metric | None:
    """The metric behind a figure's name: `p99_ttft` is TTFT, `duration` is itself."""
    if name in METRICS:
        return METRICS[name]
    prefix, _, rest = name.partition("_")
    is_statistic = prefix in STATISTICS or (prefix.startswith("p") and prefix[1:2].isdigit())
    return METRICS.get(rest) if is_statistic else None


def label_of(name: str) -> str:
    """How a figure is called in a sentence: "mean TTFT", "p99 ITL", "total throughput"."""
    metric = metric_of(name)
    if metric is None:
        return name.replace("_", " ")
    if metric.name == name:
        return metric.label
    return f"{name.partition('_')[0]} {metric.label}"
