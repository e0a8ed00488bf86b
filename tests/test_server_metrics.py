"""analysis.server_metrics: differences by hand, of an engine whose truth is known, of a GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model import Counters, Run, ServerSide, Source
from analysis.scan import scan
from analysis.server_metrics import Histogram, ServerMetrics, bounds, server_metrics
from analysis.simulate import Engine
from analysis.token_times import Refused
from tests.builders import run
from tests.simulated import simulated
from tests.simulated_metrics import BASE, EDGES, truth, write

ROOT = Path(__file__).parents[1]


def counters(
    when: Literal["before", "after"], values: Mapping[str, float], engine: str = "server"
) -> Counters:
    return Counters(Source(f"{engine}.{when}.txt", ""), engine, when, values)


def watched(*texts: Counters) -> Run:
    return replace(run(), server=ServerSide(counters=texts))


def between(before: Mapping[str, float], after: Mapping[str, float]) -> ServerMetrics | Refused:
    found = server_metrics(watched(counters("before", before), counters("after", after)))
    assert found is not None
    return found


def metrics(before: Mapping[str, float], after: Mapping[str, float]) -> ServerMetrics:
    found = between(before, after)
    assert isinstance(found, ServerMetrics), found
    return found


def of_file(folder: Path) -> ServerMetrics:
    (found,) = [one for one in scan(folder) if isinstance(one, Run)]
    told = server_metrics(found)
    assert isinstance(told, ServerMetrics), told
    return told


def histogram(name: str, count: float, total: float, **buckets: float) -> dict[str, float]:
    edges = {"a": "0.1", "b": "0.5", "inf": "+Inf"}
    found = {f'{name}_bucket{{le="{edges[k]}"}}': v for k, v in buckets.items()}
    return {**found, f"{name}_count": count, f"{name}_sum": total}


# ---- by hand


def test_counters_are_what_they_rose_by_over_all_labels() -> None:
    found = metrics(
        {'vllm:generation_tokens_total{model_name="a"}': 10, "vllm:num_preemptions_total": 3},
        {'vllm:generation_tokens_total{model_name="a"}': 15,
         'vllm:generation_tokens_total{model_name="b"}': 7, "vllm:num_preemptions_total": 3},
    )  # fmt: skip
    assert found.counter("output_tokens") == 12
    assert found.counter("preemptions") == 0
    assert found.counter("prompt_tokens") is None


def test_requests_by_the_reason_of_their_end() -> None:
    name = "vllm:request_success_total"
    before = {f'{name}{{finished_reason="stop"}}': 4.0, f'{name}{{finished_reason="abort"}}': 1.0}
    after = {f'{name}{{finished_reason="stop"}}': 9.0, f'{name}{{finished_reason="abort"}}': 1.0,
             f'{name}{{finished_reason="length"}}': 2.0}  # fmt: skip
    found = metrics(before, after)
    assert found.finished == {"stop": 5, "abort": 0, "length": 2}
    assert found.counter("finished") == 7


def test_a_mean_is_exact_and_a_percentile_is_a_bucket() -> None:
    name = "vllm:request_queue_time_seconds"
    found = metrics(histogram(name, 10, 1.0, a=5, b=8, inf=10),
                    histogram(name, 110, 21.0, a=55, b=103, inf=110))  # fmt: skip
    queue = found.histogram("queue")
    assert queue is not None
    assert (queue.count, queue.mean) == (100, 0.2)
    assert queue.buckets == ((0.1, 50), (0.5, 95), (math.inf, 100))
    assert queue.percentile(50) == (0.0, 0.1)
    assert queue.percentile(51) == (0.1, 0.5)
    assert queue.percentile(99) == (0.5, math.inf)
    assert bounds(queue, 90) == "p90 between 100 ms and 500 ms"
    assert bounds(queue, 99) == "p99 above 500 ms"


def test_nothing_observed_has_no_mean_and_no_percentile() -> None:
    name = "vllm:request_queue_time_seconds"
    same = histogram(name, 10, 1.0, a=5, inf=10)
    queue = metrics(same, same).histogram("queue")
    assert queue is not None
    assert math.isnan(queue.mean)
    assert queue.percentile(50) is None
    assert bounds(queue, 50) == "p50 not known"


@pytest.mark.parametrize("buckets", [{}, {"a": 5, "b": 8}, {"a": 9, "b": 3, "inf": 10}])
def test_without_whole_buckets_there_is_no_percentile(buckets: dict[str, float]) -> None:
    name = "vllm:request_queue_time_seconds"
    queue = metrics(histogram(name, 0, 0.0), histogram(name, 10, 1.0, **buckets)).histogram("queue")
    assert queue is not None
    assert (queue.mean, queue.percentile(50)) == (0.1, None)


def test_a_count_without_a_sum_is_a_count_and_no_mean() -> None:
    steps = "vllm:iteration_tokens_total_count"
    found = metrics({steps: 5.0}, {steps: 12.0})
    assert found.iterations == 7
    told = found.histogram("iteration_tokens")
    assert told is not None
    assert math.isnan(told.mean)


def test_names_of_both_generations_and_the_newest_of_two() -> None:
    old, new = "vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds"
    a = metrics(histogram(old, 0, 0.0), histogram(old, 4, 1.0)).histogram("itl")
    both = ({**histogram(old, 0, 0), **histogram(new, 0, 0)},
            {**histogram(old, 4, 1.0), **histogram(new, 4, 2.0)})  # fmt: skip
    b = metrics(*both).histogram("itl")
    assert a is not None
    assert b is not None
    assert (a.mean, b.mean) == (0.25, 0.5)
    gpu = "vllm:gpu_prefix_cache_queries_total"
    assert metrics({gpu: 1.0}, {gpu: 9.0}).counter("prefix_queries") == 8


def test_engines_by_label_and_by_file_add_up() -> None:
    name = "vllm:generation_tokens_total"
    texts = (
        counters("before", {f'{name}{{engine="0"}}': 1, f'{name}{{engine="1"}}': 2}, "a"),
        counters("before", {name: 3}, "b"),
        counters("after", {f'{name}{{engine="0"}}': 11, f'{name}{{engine="1"}}': 22}, "a"),
        counters("after", {name: 33}, "b"),
    )
    found = server_metrics(watched(*texts))
    assert isinstance(found, ServerMetrics)
    assert [one.engine for one in found.engines] == ["a, engine 0", "a, engine 1", "b"]
    assert found.counter("output_tokens") == 60
    assert found.cite("output_tokens").key == f"{name}, of all engines"
    # One that does not say leaves the sum unknown.
    silent = (*texts[:1], counters("before", {"x": 1}, "b"), *texts[2:3], texts[3])
    told = server_metrics(watched(*silent))
    assert isinstance(told, ServerMetrics)
    assert told.counter("output_tokens") is None


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"vllm:prompt_tokens_total": 9.0}, {"vllm:prompt_tokens_total": 5.0}, "fell"),
        ({"process_start_time_seconds": 1.0, "vllm:prompt_tokens_total": 5.0},
         {"process_start_time_seconds": 2.0, "vllm:prompt_tokens_total": 9.0}, "restarted"),
        ({'vllm:request_success_total{finished_reason="stop"}': 9.0},
         {'vllm:request_success_total{finished_reason="length"}': 9.0}, "fell"),
    ],
)  # fmt: skip
def test_a_server_that_was_restarted_has_no_difference(
    before: dict[str, float], after: dict[str, float], said: str
) -> None:
    found = between(before, after)
    assert isinstance(found, Refused)
    assert said in found.reasons[0]


def test_without_both_moments_of_every_server_there_is_nothing() -> None:
    one = counters("after", {"vllm:prompt_tokens_total": 1.0})
    assert server_metrics(run()) is None
    assert server_metrics(watched(one)) is None
    assert server_metrics(watched(one, counters("before", {}, "other"))) is None


# ---- an engine whose truth is known


@pytest.mark.parametrize("old", [False, True], ids=["new names", "old names"])
def test_a_simulated_run_is_told_as_it_was(tmp_path: Path, old: bool) -> None:
    sim = simulated(n=80, engine=Engine(max_num_seqs=4))
    write(tmp_path / "a", sim, old=old)
    found, told = of_file(tmp_path), truth(sim)
    assert found.iterations == len(sim.truth.end)
    assert found.counter("preemptions") == sim.truth.preemptions
    assert found.counter("output_tokens") == sim.workload.output.sum()
    assert found.finished == {"length": 80, "abort": 0}
    for name, values in (("queue", told.queue), ("prefill", told.prefill), ("ttft", told.ttft),
                         ("decode", told.decode), ("stay", told.ttft + told.decode)):  # fmt: skip
        got = found.histogram(name)
        assert got is not None
        assert got.mean == pytest.approx(values.mean(), abs=1e-12 * BASE)
        for percent in (1, 50, 90, 99):
            rank = max(math.ceil(percent / 100 * len(values)), 1)
            exact = np.sort(values)[rank - 1]
            low, high = got.percentile(percent) or (math.nan, math.nan)
            assert low <= exact <= high


def test_two_simulated_engines_are_told_apart(tmp_path: Path) -> None:
    sim = simulated(n=60, engine=Engine(replicas=2))
    write(tmp_path / "a", sim)
    found = of_file(tmp_path)
    served = [one.counters["finished"] for one in found.engines]
    assert served == [int((sim.truth.engine_of == n).sum()) for n in (0, 1)]
    assert found.iterations == len(sim.truth.end)


SAMPLES = st.lists(st.floats(0, 10), min_size=1, max_size=50)


@given(SAMPLES, st.floats(0, 100))
def test_a_percentile_lies_in_its_bucket(values: list[float], percent: float) -> None:
    edges = (*EDGES, math.inf)
    rows = tuple((edge, float(sum(v <= edge for v in values))) for edge in edges)
    found = Histogram(len(values), sum(values), rows).percentile(percent)
    assert found is not None
    exact = sorted(values)[max(math.ceil(percent / 100 * len(values)), 1) - 1]
    assert found[0] <= exact <= found[1]


# ---- what a real server said


def test_two_engines_of_a_real_server_by_their_label() -> None:
    found = of_file(ROOT / "tests/data/metrics")
    assert [one.engine for one in found.engines] == ["server, engine 0", "server, engine 1"]
    assert found.counter("finished") == 16
    assert found.counter("prompt_tokens") == 2051


def test_recorded_runs_on_a_gpu() -> None:
    """Figures that were read off the texts by another program."""
    runs = {
        one.source.file: one
        for one in scan(ROOT / "results/h200-recorded/awq-tuned")
        if isinstance(one, Run)
    }
    found = server_metrics(runs["sharegpt-c10-s42.json.gz"])
    assert isinstance(found, ServerMetrics)
    assert found.iterations == 5699
    means = [one.mean for n in ("queue", "prefill", "ttft") if (one := found.histogram(n))]
    assert means == pytest.approx([0.35352, 0.03068, 0.40418], abs=1e-5)
