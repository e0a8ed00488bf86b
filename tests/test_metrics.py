"""The table of metrics: what a figure's name means and how it is called."""

from __future__ import annotations

import pytest

from analysis.metrics import LATENCIES, METRICS, label_of, metric_of


@pytest.mark.parametrize(
    ("name", "metric", "label"),
    [
        ("duration", "duration", "duration"),
        ("mean_ttft", "ttft", "mean TTFT"),
        ("median_tpot", "tpot", "median TPOT"),
        ("std_e2el", "e2el", "std end-to-end latency"),
        ("p99_itl", "itl", "p99 ITL"),
        ("p99.9_ttft", "ttft", "p99.9 TTFT"),
        ("mean_output_tokens", "mean_output_tokens", "mean output tokens"),
        ("total_token_throughput", "total_token_throughput", "total throughput"),
    ],
)
def test_a_figure_finds_its_metric(name, metric, label):
    found = metric_of(name)
    assert found is not None
    assert found.name == metric
    assert label_of(name) == label


@pytest.mark.parametrize(
    "name", ["kv_tokens", "p_ttft", "prefill_ttft", "max_ttft", "p99_nothing", "p99", "", "mean_"]
)
def test_a_name_that_is_no_metric(name):
    assert metric_of(name) is None
    assert label_of(name) == name.replace("_", " ")


def test_every_latency_is_a_time_that_should_be_short():
    for name in (*LATENCIES, "stay"):
        assert (METRICS[name].unit, METRICS[name].better) == ("s", "lower")


def test_every_throughput_should_be_high():
    rates = [metric for metric in METRICS.values() if metric.name.endswith("throughput")]
    assert len(rates) == 3
    assert {metric.better for metric in rates} == {"higher"}


def test_every_metric_says_what_it_means():
    assert all(metric.definition and metric.label for metric in METRICS.values())
    assert all(name == metric.name for name, metric in METRICS.items())
