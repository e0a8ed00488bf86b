"""Arms, cells and studies: repeats, levels, finding cells, what differs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as sps

from analysis.accounting import Borrowed
from analysis.dataset import Cell, differing, mean
from analysis.model import Level
from analysis.models import find_model
from analysis.quantity import constant, quantity
from tests.builders import arm, between, cell, dataset, figure, printed, run, study


def repeats(*values: float, name: str = "mean_itl") -> Cell:
    return cell(
        arm(),
        *(run({name: value}, file=f"runs/{i}.json") for i, value in enumerate(values)),
    )


# Arms


def test_an_arm_finds_its_gpu_and_model_by_name():
    found = arm("a", gpu="NVIDIA L40S", model="Qwen/Qwen3-14B")
    assert found.name == "a"
    assert found.gpu is not None
    assert found.gpu.name == "L40S"
    assert found.model is not None
    assert found.model.layers == 40


@pytest.mark.parametrize("spec", [{}, {"gpu": "Abacus 9000", "model": "someone/unknown"}])
def test_an_arm_of_unknown_make(spec):
    found = arm("a", **spec)
    assert found.gpu is None
    assert found.model is None


def test_an_arms_own_config_comes_before_the_table():
    other = find_model("Qwen/Qwen3-8B")
    assert other is not None
    assert replace(arm("a", model="Qwen/Qwen3-14B"), own_model=other).model is other


# Cells


def test_a_metric_of_repeats_is_their_mean():
    found = repeats(0.010, 0.020, 0.060).metric("mean_itl")
    assert found.value == pytest.approx(0.030)
    assert len(found.sources) == 3


def test_the_rounding_of_repeats_averages_too():
    runs = [
        run({"mean_itl": between("mean_itl", v, v - 1, v + 1, "s", file=f"{v}")}) for v in (5, 7)
    ]
    found = cell(arm(), *runs).metric("mean_itl")
    assert (found.value, found.lo, found.hi) == pytest.approx((6, 5, 7))


def test_a_metric_that_one_repeat_lacks_is_not_averaged():
    found = cell(arm(), run(), run({"mean_ttft": None}, file="b.json"))
    assert found.each("mean_ttft") == ()
    assert found.metric("mean_ttft") is None
    assert found.account("l_first") is None
    assert len(found.each("mean_itl")) == 2


def test_an_account_of_repeats_is_the_mean_of_their_accounts():
    found = cell(arm(), run(), run({"duration": 200, "request_throughput": 0.5}, file="b.json"))
    assert found.account("throughput").value == pytest.approx(0.75)
    assert found.account("in_flight").value == pytest.approx((9.9 + 4.95) / 2)


def test_a_cell_is_as_good_as_its_weakest_run():
    runs = [run(level=level, file=level) for level in (Level.ENGINE, Level.PUBLISHED)]
    assert cell(arm(), *runs).level == Level.PUBLISHED
    assert cell(arm(), run(level=Level.EXPERIMENT)).level == Level.EXPERIMENT


def test_a_cell_in_words():
    assert cell("base").name == "base on chat, 10 in flight"
    assert cell("base", concurrency=None).name == "base on chat, no cap"


def test_assumptions_of_a_cell_are_those_of_its_runs():
    lent = Borrowed(constant(50.0, "tok"), None, "other")
    row = run({"mean_ttft": 0.1}, bare=True)
    found = cell(arm(), row, borrowed=lent)
    assert [note.what for note in found.assumptions] == ["mean output tokens"]
    assert found.borrows
    assert not cell().borrows
    assert cell().assumptions == ()


def test_one_run_is_shown_with_its_rounding():
    found = repeats(0.02).estimate("mean_itl", "ITL", "gaps")
    assert (found.name, found.value, found.lo, found.hi) == ("ITL", 0.02, 0.02, 0.02)
    assert (found.interval, found.definition, found.unit) == ("exact", "gaps", "s")


def test_repeats_are_shown_with_the_interval_between_them():
    values = [0.0400, 0.0410, 0.0405]
    found = repeats(*values).estimate("mean_itl", "ITL")
    logs = np.log(values)
    half = sps.t.ppf(0.975, 2) * sps.sem(logs)
    assert found.value == pytest.approx(0.0405)
    assert (found.lo, found.hi) == pytest.approx(
        (0.0405 * math.exp(-half), 0.0405 * math.exp(half))
    )
    assert found.interval == "95 % between 3 runs (t on logs)"


def test_equal_repeats_keep_the_interval_of_their_rounding():
    runs = [
        run({"mean_itl": between("mean_itl", 5, 4, 6, "s", file=f"{i}")}, file=f"{i}")
        for i in range(3)
    ]
    found = cell(arm(), *runs).estimate("mean_itl", "ITL")
    assert (found.lo, found.hi) == (pytest.approx(4), pytest.approx(6))


def test_repeats_of_a_count_that_may_be_zero_have_no_interval_on_logs():
    found = repeats(0, 2, name="failed").estimate("failed", "failed")
    assert (found.value, found.interval) == (1, "exact")


def test_a_metric_that_is_not_there_is_not_shown():
    assert cell().estimate("p99_ttft", "p99") is None


# Studies


def test_a_study_finds_its_cells():
    one, other = arm("one"), arm("other")
    cells = [
        cell(one, run(arm="one", concurrency=n, workload=w))
        for w in ("chat", "long")
        for n in (32, None, 1)
    ]
    found = study(*cells, cell(other, run(arm="other")), name="s", title="")
    assert found.cell("one", "chat", 32) is cells[0]
    assert found.cell("one", "chat", None) is cells[1]
    assert found.cell("one", "chat", 2) is None
    assert found.cell("nobody", "chat", 32) is None
    assert [c.concurrency for c in found.loads("one", "long")] == [1, 32]
    assert found.loads("other", "long") == ()
    assert found.workloads == ("chat", "long")
    assert len(found.runs) == 7
    assert found.title == "s"
    assert study(title="A title").title == "A title"


def test_a_results_folder_finds_its_studies():
    one = study(cell(), name="one")
    found = dataset(one, study(name="two"))
    assert found.study("one") is one
    assert found.study("three") is None
    assert found.skipped == ()


# Helpers


def test_the_mean_of_none_one_and_many():
    assert mean(()) is None
    one = quantity(figure("duration", 3))
    assert mean([one]) is one
    found = mean([one, constant(9.0, "s"), constant(0.0, "s")])
    assert found.value == pytest.approx(4)
    assert found.unit == "s"


def test_the_mean_of_thousands_of_repeats():
    found = mean([quantity(printed("duration", f"{n}", file=f"{n}.json")) for n in range(5_000)])
    assert found.value == pytest.approx(2499.5)
    assert (found.lo, found.hi) == pytest.approx((2499, 2500))
    assert len(found.sources) == 5_000


def test_fields_that_differ_between_two_arms():
    left = arm("left", max_num_seqs=8, model="m", flags=("--enforce-eager",))
    right = arm("right", max_num_seqs=256, model="m", quantization="awq")
    assert differing(left, right) == {
        "max_num_seqs": (8, 256),
        "enforce_eager": (True, None),
        "quantization": (None, "awq"),
    }
    assert differing(left, left) == {}
