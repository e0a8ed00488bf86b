"""analysis.evidence: what a claim names, against what is there and what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.evidence import BadClaim, Evidence, Missing, again, level_of, single
from analysis.model import HelpText, Level, Source
from analysis.study import WorkloadSpec
from tests.builders import arm, cell, dataset, run, startup, study
from tests.claims.helpers import ROUND

A = arm("a")
HERE = study(
    cell(A, run(arm="a")),
    cell(A, run(arm="a", concurrency=20)),
    cell(arm("b"), run(arm="b", workload="code", concurrency=None)),
    workloads=(WorkloadSpec(name="chat", lengths="gone.csv"), WorkloadSpec(name="code")),
)
THERE = study(cell(arm("c"), run(arm="c")), name="there")
EV = Evidence(dataset(HERE, THERE), HERE)


def test_the_own_study_needs_no_name() -> None:
    assert EV.in_study("") is HERE
    assert EV.in_study("there") is THERE


def test_a_study_that_is_not_below_the_folder_is_missing_with_those_that_are() -> None:
    with pytest.raises(Missing, match="the study 'gone'") as missing:
        EV.in_study("gone")
    assert missing.value.tried == "studies here: s, there"


def test_arms_and_workloads_by_name() -> None:
    assert EV.arm("a") is A
    assert EV.arm("c", "there").name == "c"
    assert EV.workload("code") == "code"
    with pytest.raises(BadClaim, match="names arm 'c', which is not there; known: a, b"):
        EV.arm("c")
    with pytest.raises(BadClaim, match="names workload 'coda', which is not there; did you mean"):
        EV.workload("coda")


def test_a_cell_at_another_load_is_missing_with_the_loads_that_were_measured() -> None:
    assert EV.cell("a", "chat", 20).concurrency == 20
    with pytest.raises(Missing) as missing:
        EV.cell("a", "chat", 15)
    assert str(missing.value) == ("a result file of a on chat at 15 in flight; measured at 10, 20")
    assert missing.value.tried == "no other load stands in for it"
    assert missing.value.experiment is not None
    assert missing.value.experiment.concurrency == (15,)


def test_a_cell_without_a_cap() -> None:
    assert EV.cell("b", "code", None).concurrency is None
    with pytest.raises(Missing) as missing:
        EV.cell("a", "chat", None)
    assert str(missing.value) == (
        "a result file of a on chat without a cap on requests in flight; measured at 10, 20; "
        "set concurrency"
    )
    assert missing.value.experiment is not None
    assert missing.value.experiment.concurrency == ()


def test_a_cell_that_was_measured_without_a_cap_or_never() -> None:
    with pytest.raises(Missing, match=r"at 10 in flight; not measured at all$"):
        EV.cell("a", "code", 10)
    with pytest.raises(
        Missing, match="10 in flight; measured without a cap; leave concurrency out"
    ):
        EV.cell("b", "code", 10)
    both = study(cell("a", run(arm="a")), cell("a", run(arm="a", concurrency=None)))
    with pytest.raises(Missing, match=r"at 20 in flight; measured at 10 and without a cap$"):
        Evidence(dataset(both), both).cell("a", "chat", 20)


def test_a_metric_is_printed_or_follows_or_is_missing() -> None:
    one = EV.cell("a", "chat", 10)
    assert EV.need(one, "mean_itl").value == pytest.approx(9.8 / 49)
    assert EV.need(one, "in_flight").value == pytest.approx(9.9)
    with pytest.raises(Missing, match=r"p99 TTFT of a on chat, 10 in flight in runs/a\.json"):
        EV.need(one, "p99_ttft")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("mean_itll", "mean_itl"), ("p99_ttftt", "p99_ttft"), ("in_fligt", "in_flight")],
)
def test_a_metric_that_is_not_known_names_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(BadClaim, match=f"names metric '{name}'.*did you mean '{nearest}'"):
        EV.metric(name)


def test_an_account_needs_times_and_counts() -> None:
    assert EV.account(EV.cell("a", "chat", 10), "l_first").value == pytest.approx(0.1)
    bare = cell("a", run({"completed": 1}, arm="a", bare=True))
    with pytest.raises(Missing, match="mean TTFT, mean ITL or token counts of a"):
        EV.account(bare, "l_first")


# facts


PAIR = replace(
    arm(
        "pair",
        startup({"kv_tokens": 1000.0, "kv_bytes": 1e7, "model_bytes": 4e8}, arm="pair"),
        tensor_parallel=2,
        gpus=4,
        replicas=2,
        gpu="L40S",
        max_model_len=4096,
    ),
    own_model=ROUND,
)


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("kv_tokens", 1000, "tok"),
        ("kv_bytes", 1e7, "B"),
        ("model_bytes", 4e8, "B"),
        ("kv_tokens_total", 2000, "tok"),  # two engines
        ("kv_bytes_per_token", 10_000, "B"),  # half of 20,000: two ranks
        ("kv_bytes_total", 2000 * 20_000, "B"),
        ("weights_read", 4e8, "B"),  # tied embedding: nothing is unread
        ("gpu_memory", 46068 * 2**20, "B"),
        ("max_model_len", 4096, "tok"),
    ],
)
def test_a_fact_is_logged_or_follows(name: str, value: float, unit: str) -> None:
    found = EV.fact(PAIR, name)
    assert (found.value, found.unit) == (pytest.approx(value), unit)
    assert found.sources


def test_the_log_comes_before_study_toml() -> None:
    logged = arm("x", startup({"max_model_len": 2048.0}, arm="x"), max_model_len=4096)
    assert EV.fact(logged, "max_model_len").value == 2048


@pytest.mark.parametrize(
    "name",
    ["kv_tokens", "kv_tokens_total", "kv_bytes_total", "kv_bytes_per_token", "weights_read",
     "gpu_memory", "max_model_len", "reported_max_concurrency"],
)  # fmt: skip
def test_a_fact_that_nothing_gives_is_missing(name: str) -> None:
    with pytest.raises(Missing, match=rf"start-up log of a \({name.replace('_', ' ')}\)"):
        EV.fact(A, name)


def test_a_shape_without_tokens_gives_no_size_of_the_cache() -> None:
    with pytest.raises(Missing):
        EV.fact(replace(A, own_model=ROUND), "kv_bytes_total")


def test_a_fact_that_is_not_known_names_the_nearest() -> None:
    with pytest.raises(BadClaim, match=r"names fact 'kv_token', .*did you mean 'kv_tokens'"):
        EV.fact(A, "kv_token")


# samples, help texts


def test_a_length_sample_that_is_not_there_is_missing() -> None:
    for workload in ("chat", "code"):
        with pytest.raises(Missing, match=f"a length sample of {workload}"):
            EV.lengths(workload)
    with pytest.raises(BadClaim, match=r"study\.toml does not describe; did you mean 'code'"):
        EV.lengths("cod")


def test_a_help_text_is_found_in_the_own_study_first() -> None:
    def page(text: str, command: str = "serve") -> HelpText:
        return HelpText(Source("help.txt", ""), command, "1", text)

    mine = replace(HERE, help_texts=(page("mine"),))
    other = replace(THERE, help_texts=(page("other"), page("bench", "bench")))
    ev = Evidence(dataset(other, mine), mine)
    assert ev.help_text("serve").text == "mine"
    assert ev.help_text("bench").text == "bench"
    with pytest.raises(Missing, match="stored output of `run --help`"):
        ev.help_text("run")


# what a verdict rests on


def test_the_level_is_the_weakest_among_the_runs() -> None:
    weak = cell("a", run(arm="a", level=Level.SUMMARY), run(arm="a", level=Level.ENGINE))
    strong = cell("b", run(arm="b", level=Level.REQUESTS))
    assert level_of((strong,)) == Level.REQUESTS
    assert level_of((strong, weak)) == Level.SUMMARY
    assert level_of(()) == Level.PUBLISHED


def test_a_single_run_among_repeats_is_single() -> None:
    one, two = cell("a", run(arm="a")), cell("b", run(arm="b"), run(arm="b"))
    assert single((one, two))
    assert not single((two,))


def test_the_same_cells_again() -> None:
    found = again(*HERE.cells, repeats=3, note="warm")
    assert (found.arms, found.workloads, found.concurrency) == (
        ("a", "b"),
        ("chat", "code"),
        (10, 20),
    )
    assert (found.repeats, found.note) == (3, "warm")
