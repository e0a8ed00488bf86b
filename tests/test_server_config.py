"""One name a fact: flags, logs, sweeps and result files say the same thing differently."""

from __future__ import annotations

import pytest

from analysis.model import Scalar
from analysis.server_config import canonical, is_result, said_by, server_side, weight_format
from tests.builders import between, startup

# names and values


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("tensor_parallel_size", "tensor_parallel"),
        ("serve.tensor_parallel_size", "tensor_parallel"),
        ("server.tensor_parallel_size", "tensor_parallel"),
        ("tp", "tensor_parallel"),
        ("server.pp", "pipeline_parallel"),
        ("pipeline_parallel", "pipeline_parallel"),
        ("data_parallel_size", "replicas"),
        ("max_num_seqs", "max_num_seqs"),
        ("serve.compilation_config.level", "compilation_config.level"),
    ],
)
def test_a_fact_has_one_name(key: str, field: str) -> None:
    assert canonical({key: 2}) == {field: 2}


@pytest.mark.parametrize("key", ["model", "server.model", "model_tag", "model_id"])
def test_a_model_has_one_name(key: str) -> None:
    assert canonical({key: "m"}) == {"model": "m"}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ("8", 8),
        ("-1", -1),
        ("0", 0),
        ("0.95", 0.95),
        ("True", True),
        ("false", False),
        ("0012", "0012"),
        ("1e5", "1e5"),
        ("²", "²"),
        ("9" * 5000, "9" * 5000),
        ("auto", "auto"),
        (8, 8),
        (0.5, 0.5),
        (True, True),
    ],
)
def test_a_value_has_one_spelling(value: Scalar, plain: Scalar) -> None:
    found = canonical({"x": value})["x"]
    assert (found, type(found)) == (plain, type(plain))


@pytest.mark.parametrize("field", ["model", "gpu", "version"])
def test_a_name_stays_text_also_where_it_is_a_number(field: str) -> None:
    assert canonical({field: "4090"}) == {field: "4090"}
    assert canonical({field: 0.11}) == {field: "0.11"}


def test_what_is_not_stated_is_left_out() -> None:
    assert canonical({"quantization": None, "server.x": None}) == {}


def test_a_flag_that_switches_off() -> None:
    assert canonical({"server.no_enable_prefix_caching": True}) == {"enable_prefix_caching": False}
    assert canonical({"no_of_things": 3}) == {"no_of_things": 3}


def test_a_plain_key_counts_before_a_sweeps_flag_and_that_before_the_log() -> None:
    three = {"server.max_num_seqs": 1, "serve.max_num_seqs": 2, "max_num_seqs": 3}
    for config in (three, dict(reversed(three.items()))):
        assert canonical(config) == {"max_num_seqs": 3}
    del three["max_num_seqs"]
    assert canonical(three) == {"max_num_seqs": 2}
    # The name that says more counts before the place.
    assert canonical({"model_id": "short", "server.model": "org/long"}) == {"model": "org/long"}


@pytest.mark.parametrize("key", ["host", "port", "served_model_name", "kv_tokens_printed_times"])
def test_a_logs_address_and_notes_are_no_configuration(key: str) -> None:
    assert canonical({f"server.{key}": "x"}) == {}
    assert canonical({key: "x"}) == {key: "x"}


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("awq", "awq"),
        ("auto_awq", "awq"),
        ("awq_marlin", "awq"),
        (" AWQ ", "awq"),
        ("gptq_marlin", "gptq"),
        ("auto_gptq", "gptq"),
        ("fp8", "fp8"),
        ("", ""),
    ],
)
def test_weights_in_one_format_are_one_quantisation(word: str, name: str) -> None:
    assert weight_format(word) == name
    assert canonical({"quantization": word}) == {"quantization": name}


# what is a setting


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("probe_failed", 0),
        ("spec_decode_draft_tokens", 12),
        ("rps_change_events", "x"),
        ("probe_median_e2el_ms", 28.2),
        ("x_ms", 1),
        ("peak_output_throughput", 5),
        ("output_throughput", 5),
        ("request_goodput", None),
        ("goodput", 1),
        ("anything", "[1,2]"),
        ("anything", '{"a":1}'),
        ("anything", 134230.7),
        ("anything", 0.12345),
    ],
)
def test_what_a_client_measured(key: str, value: Scalar) -> None:
    assert is_result(key, value)
    assert not is_result(f"server.{key}", value)
    assert not is_result(f"serve.{key}", value)


@pytest.mark.parametrize(
    "value", [0.95, 0.925, 0.9125, 1.0, 40960.0, 131072.0, 7, True, None, "", "text", "a [b]"]
)
def test_what_somebody_set(value: Scalar) -> None:
    assert not is_result("gpu_memory_utilization", value)


def test_a_runs_configuration_is_what_is_left_of_it() -> None:
    config: dict[str, Scalar] = {
        "date": "1",
        "seed": 3,
        "bench.max_concurrency": 8,
        "probe_failed": 0,
        "serve.tp": "2",
        "server.log": "x/server.log",
        "commit": "abc",
    }
    assert server_side(config) == {"tensor_parallel": 2, "commit": "abc"}


# start-up facts


def test_a_log_speaks_for_the_server_and_a_table_for_the_arm() -> None:
    said = {"max_num_seqs": 8}
    assert said_by(startup(arm="", config=said)) == {"server.max_num_seqs": 8}
    assert said_by(startup(arm="one", config=said)) == {"max_num_seqs": 8}


def test_a_printed_length_limit_stands_in_for_the_flag() -> None:
    printed = {"max_model_len": 40960}
    assert said_by(startup(printed, arm="one")) == {"max_model_len": 40960}
    flag = startup(printed, arm="one", config={"max_model_len": 1024})
    assert said_by(flag) == {"max_model_len": 1024}


def test_a_rounded_length_limit_does_not() -> None:
    for limit in (
        between("max_model_len", 41e3, 40.5e3, 41.5e3),
        between("max_model_len", *[1.5] * 3),
    ):
        assert said_by(startup({"max_model_len": limit}, arm="one")) == {}
