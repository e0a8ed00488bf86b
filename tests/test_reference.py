"""analysis.reference: one number that a claim names, and how it is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.evidence import BadClaim, Evidence, Missing
from analysis.model import Lengths, Quoted, Source
from analysis.reference import (
    Ref,
    base_unit,
    cells_of,
    describe,
    described_beside,
    is_cell,
    resolve,
    stated,
    units_for,
)
from analysis.study import WorkloadSpec
from tests.builders import arm, cell, dataset, figure, run, startup, study

A = arm("a", startup({"kv_tokens": 1000.0, "model_bytes": 8e9}, arm="a"))
B = arm("b", startup({"kv_tokens": 3000.0}, arm="b"))
SAMPLE = Lengths(Source("lengths.csv", ""), np.array([5, 10, 30]), np.array([1, 2, 6]))
HERE = study(
    cell(A, run({"mean_itl": 0.04}, arm="a")),
    cell(A, run({"mean_itl": 0.06}, arm="a", concurrency=20)),
    cell(B, run({"mean_itl": 0.01}, arm="b")),
    workloads=(WorkloadSpec(name="chat", lengths="lengths.csv"),),
    lengths={"lengths.csv": SAMPLE},
    quoted=(Quoted(Source("quoted.csv", ""), {"total": figure("total", 474, "tok/s")}),),
)
THERE = study(cell(arm("c"), run({"mean_itl": 0.02}, arm="c")), name="there")
EV = Evidence(dataset(HERE, THERE), HERE)


def itl(of: str = "a", load: int | None = 10, **more: Any) -> Ref:
    return Ref(arm=of, workload="chat", concurrency=load, metric="mean_itl", **more)


def test_a_metric_of_a_cell() -> None:
    found = resolve(EV, itl())
    assert (found.value, found.unit) == (0.04, "s")
    assert [str(source) for source in found.sources] == ["runs/a.json: mean_itl"]


def test_a_metric_of_another_study() -> None:
    assert resolve(EV, itl("c", study="there")).value == 0.02


def test_a_fact_of_an_arm_and_of_a_gpu() -> None:
    assert resolve(EV, Ref(arm="a", fact="kv_tokens")).value == 1000
    assert resolve(EV, Ref(gpu="L40S", fact="bandwidth")).value == 864e9


def test_a_quoted_and_a_stated_number() -> None:
    assert resolve(EV, Ref(quoted="total")).value == 474
    found = resolve(EV, Ref(value="43.1", unit="ms"))
    assert (found.value, found.lo, found.hi) == pytest.approx((0.0431, 0.04305, 0.04315))


@pytest.mark.parametrize(
    ("stat", "value"),
    [
        ("min_prompt", 5),
        ("max_output", 6),
        ("mean_prompt", 15),
        ("median_total", 12),
        ("count_total", 3),
    ],
)
def test_a_statistic_of_a_sample(stat: str, value: float) -> None:
    found = resolve(EV, Ref(sample="chat", stat=stat))
    assert (found.value, found.unit) == (value, "tok")
    assert found.sources[0].file == "lengths.csv"


def test_times_plus_minus_and_over_in_this_order() -> None:
    ref = itl(times=3.0, plus=itl("b"), minus=itl(load=20), over=itl("b"))
    # (3 x 0.04 + 0.01 - 0.06) / 0.01
    assert resolve(EV, ref).value == pytest.approx(7.0)
    assert describe(ref) == (
        "3 x mean ITL of a on chat at 10 in flight plus mean ITL of b on chat at 10 in flight "
        "minus mean ITL of a on chat at 20 in flight over mean ITL of b on chat at 10 in flight"
    )


def test_a_figure_that_enters_twice_is_one_figure() -> None:
    printed = Ref(value="43.1", unit="ms", over=Ref(value="43.1", unit="ms"))
    assert (resolve(EV, printed).lo, resolve(EV, printed).hi) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        (itl("c", study="there"), "mean ITL of c on chat at 10 in flight (there)"),
        (Ref(arm="a", fact="kv_bytes"), "KV cache size as printed of a"),
        (Ref(gpu="L40S", fact="memory_bytes"), "memory of L40S"),
        (itl(load=None), "mean ITL of a on chat without a cap"),
        (Ref(quoted="total"), "the quoted total"),
        (Ref(value="2.74", unit="x"), "the stated 2.74 x"),
        (Ref(value="2"), "the stated 2"),
        (Ref(sample="chat", stat="max_prompt"), "max prompt tokens in the sample of chat"),
    ],
)
def test_a_reference_in_words(ref: Ref, words: str) -> None:
    assert describe(ref) == words


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (itl("b"), "that of b"),
        (itl(load=20), "that at 20 in flight"),
        (itl(load=None), "that without a cap"),
        (Ref(arm="a", workload="code", concurrency=10, metric="mean_itl"), "that on code"),
        (itl(study="there"), "mean ITL of a on chat at 10 in flight (there)"),
        (itl("b", 20), "mean ITL of b on chat at 20 in flight"),
        (itl("b", times=2.0), "2 x mean ITL of b on chat at 10 in flight"),
        (Ref(quoted="total"), "the quoted total"),
    ],
)
def test_beside_a_figure_that_differs_in_one_thing_only_that_is_said(
    other: Ref, words: str
) -> None:
    assert described_beside(other, itl()) == words


def test_beside_a_sum_of_figures_all_is_said() -> None:
    nested = itl(over=itl("b"))
    assert described_beside(itl("b"), nested) == describe(itl("b"))


def test_which_references_have_repeats() -> None:
    assert is_cell(itl())
    assert not any(
        is_cell(ref)
        for ref in (
            itl(times=2.0),
            itl(plus=itl("b")),
            itl(minus=itl("b")),
            itl(over=itl("b")),
            Ref(arm="a", fact="kv_tokens"),
        )
    )


def test_the_cells_behind_a_reference_each_once() -> None:
    ref = itl(over=itl("b", minus=itl(load=20, plus=itl())))
    names = [found.name for found in cells_of(EV, ref, None, Ref(value="1"))]
    assert names == [
        "a on chat, 10 in flight",
        "b on chat, 10 in flight",
        "a on chat, 20 in flight",
    ]


@pytest.mark.parametrize(
    ("text", "unit", "value", "half", "base"),
    [
        ("43.1", "ms", 0.0431, 0.00005, "s"),
        ("18.08", "GiB", 18.08 * 2**30, 0.005 * 2**30, "B"),
        ("46", "GB", 46e9, 0.5e9, "B"),
        ("-64", "%", -0.64, 0.005, ""),
        ("2.74", "x", 2.74, 0.005, ""),
        ("40,960", "tok", 40960, 0.5, "tok"),
        (" 3 ", "", 3, 0.5, ""),
        (".5", "", 0.5, 0.05, ""),
    ],
)
def test_a_stated_number_is_half_its_last_digit_either_way(
    text: str, unit: str, value: float, half: float, base: str
) -> None:
    found = stated(text, unit)
    assert (found.value, found.lo, found.hi) == pytest.approx((value, value - half, value + half))
    assert (found.unit, base_unit(unit)[0]) == (base, base)
    assert found.interval == "rounding"


@pytest.mark.parametrize(
    ("base", "units"),
    [("s", ["s", "ms"]), ("tok", ["tok"]), ("", ["x", "ratio", "%", "percent"])],
)
def test_the_units_a_figure_may_be_stated_in(base: str, units: list[str]) -> None:
    assert units_for(base) == units
    assert {base_unit(unit)[0] for unit in units} == {base}


@given(st.decimals(-(10**9), 10**9, places=3, allow_nan=False, allow_infinity=False))
def test_any_decimal_can_be_stated_and_lies_in_its_interval(number: object) -> None:
    found = stated(f"{number:,f}")
    assert found.lo < float(f"{number:f}") < found.hi
    assert found.hi - found.lo == pytest.approx(0.001, abs=1e-6)


@given(st.text(max_size=8))
def test_what_is_no_plain_decimal_is_refused(text: str) -> None:
    try:
        found = stated(text)
    except BadClaim as error:
        assert "\n" not in str(error)
    else:
        assert found.finite
        assert set(text.strip()) <= set("0123456789.,+-")


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        (itl(quoted="total"), "a reference with metric and quoted; give one of them"),
        (itl(plus=Ref(quoted="total")), "adds figures in s and in tok/s"),
        (itl(minus=Ref(value="1")), "adds figures in s and in no unit"),
        (Ref(), "without metric, fact, quoted, value or sample"),
        (Ref(metric="stay"), "a reference with metric and no arm or workload; add arm"),
        (Ref(metric="stay", arm="a"), "a reference with metric and no workload; add workload"),
        (Ref(fact="kv_tokens"), "a reference with fact and no arm or gpu; add the one"),
        (itl("aa"), "names arm 'aa', which is not there; did you mean 'a'?"),
        (Ref(arm="a", workload="cat", concurrency=10, metric="mean_itl"), "did you mean 'chat'?"),
        (Ref(arm="a", workload="chat", concurrency=10, metric="mean_itll"), "did you mean 'mean_"),
        (Ref(arm="a", fact="kv_token"), "names fact 'kv_token', which is not known; did you mean"),
        (Ref(gpu="L40", fact="bandwidth"), "names GPU 'L40', which hardware.toml does not have"),
        (Ref(gpu="L40S", fact="bandwith"), "names GPU fact 'bandwith'; did you mean 'bandwidth'?"),
        (Ref(quoted="totl"), "names the quoted figure 'totl', which is not there; did you mean"),
        (Ref(sample="chat", stat="max"), "names the statistic 'max'; expected one of"),
        (Ref(sample="chat", stat="p99_prompt"), "names the statistic 'p99_prompt'"),
        (Ref(sample="code", stat="max_prompt"), "which study.toml does not describe"),
        (Ref(value="much"), "states 'much', which is no plain number"),
    ],
)
def test_what_is_not_there_is_the_authors_mistake(ref: Ref, message: str) -> None:
    with pytest.raises(BadClaim) as error:
        resolve(EV, ref)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        (itl(load=64), "a result file of a on chat at 64 in flight"),
        (itl(study="elsewhere"), "the study 'elsewhere'"),
        (Ref(arm="b", fact="model_bytes"), r"the start-up log of b \(model bytes\)"),
    ],
)
def test_what_no_file_holds_is_missing(ref: Ref, message: str) -> None:
    with pytest.raises(Missing, match=message):
        resolve(EV, ref)
