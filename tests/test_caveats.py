"""What a finding says of its runs beside the verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.caveats import possibly_missing, thin_tails
from analysis.dataset import Cell
from analysis.evidence import Evidence
from analysis.model import Lengths, Source
from analysis.study import WorkloadSpec
from tests.builders import arm, cell, dataset, figure, run, startup, study

UNCOUNTED = {"completed": None, "failed": None}
"""As a published table has it: requests sent, and nothing of what became of them."""


def tail(name: str, n: int, id: str = "") -> Cell:
    """A p99 TTFT of n requests that stands in a file of the arm's."""
    mark = figure("p99_ttft", 0.5, file=f"{name}{id}.json")
    figures = {"completed": n, "p99_ttft": mark}
    return cell(name, run(figures, arm=name, id=name + id, file=f"{name}{id}.json"))


def source(name: str) -> Source:
    return Source(f"{name}.json", "p99_ttft")


# ---- thin tails


def test_a_number_that_rests_on_a_thin_tail_says_so() -> None:
    assert thin_tails((tail("a", 200),), {source("a")}) == (
        "p99 of ttft from 200 requests is near its maximum (299 needed): a on chat, 10 in flight",
    )


def test_a_number_that_does_not_rest_on_it_says_nothing() -> None:
    few = tail("a", 200)
    assert thin_tails((few,), {Source("a.json", "mean_ttft")}) == ()
    assert thin_tails((few,), ()) == ()
    assert thin_tails((tail("a", 299),), {source("a")}) == ()


def test_cells_of_equally_few_requests_share_a_sentence() -> None:
    cells = (*(tail(name, 200) for name in "abcd"), tail("e", 100))
    found = thin_tails((*cells, cells[0]), {source(name) for name in "abcde"})
    assert [text.partition(": ")[2] for text in found] == [
        "a on chat, 10 in flight, b on chat, 10 in flight, c on chat, 10 in flight and 1 more",
        "e on chat, 10 in flight",
    ]


def test_repeats_of_a_cell_are_named_once() -> None:
    repeats = cell("a", *(one.runs[0] for one in (tail("a", 200), tail("a", 200, "2"))))
    assert len(thin_tails((repeats,), {source("a"), source("a2")})) == 1
    assert thin_tails((repeats,), {source("a"), source("a2")})[0].count("a on chat") == 1


# ---- requests that may be missing


def lengths(*totals: int) -> Lengths:
    """Requests of half prompt and half output, of so many tokens together."""
    halves = np.array(totals, np.int64) // 2
    return Lengths(Source("s/lengths.csv", ""), halves, np.array(totals, np.int64) - halves)


def seen(*cells: Cell, sample: Lengths | None = None, file: str = "lengths.csv") -> Evidence:
    """A study of these cells whose workload has this length sample."""
    held = {"s/lengths.csv": sample or lengths(100, 1024, 1025, 5000)}
    workload = WorkloadSpec(name="chat", lengths=file)
    known = replace(study(*cells, workloads=[workload], lengths=held), folder="s")
    return Evidence(dataset(known), known)


def short(context: int | None = 1024, log: int | None = None, **figures: float | None) -> Cell:
    """A published row of an arm with this context length."""
    facts = None if log is None else startup({"max_model_len": log})
    return cell(arm("base", facts, max_model_len=context), run({**UNCOUNTED, **figures}))


def test_requests_beyond_the_context_length_may_be_missing() -> None:
    # 1,025 and 5,000 tokens pass 1,024; 1,024 just fit.
    few = short()
    assert possibly_missing((few,), seen(few)) == (
        "2 of 4 requests in the length sample of chat pass base's max_model_len of 1,024 and may "
        "be missing from its run; failures are not printed",
    )


def test_a_log_knows_the_context_length_better_than_the_description() -> None:
    logged = short(100_000, log=200)
    (note,) = possibly_missing((logged,), seen(logged))
    assert note.startswith("3 of 4 requests")
    assert "max_model_len of 200 " in note


@pytest.mark.parametrize(
    "figures",
    [{"failed": 0}, {"failed": 7, "num_prompts": None}, {"completed": 100}],
)
def test_a_file_that_counts_failures_hides_none(figures: dict[str, float | None]) -> None:
    # Sent and completed together count what failed.
    counted = short(**figures)
    assert possibly_missing((counted,), seen(counted)) == ()


def test_one_of_several_repeats_without_a_count_is_enough() -> None:
    owner = arm("base", max_model_len=1024)
    mixed = cell(owner, run(id="a"), run(UNCOUNTED, id="b"))
    assert len(possibly_missing((mixed,), seen(mixed))) == 1


def test_requests_that_all_fit_are_not_spoken_of() -> None:
    wide = short(5000)
    assert possibly_missing((wide,), seen(wide)) == ()


def test_without_a_context_length_or_a_sample_nothing_is_known() -> None:
    unstated, known = short(None), short()
    assert possibly_missing((unstated,), seen(unstated)) == ()
    assert possibly_missing((known,), seen(known, file="")) == ()
    bare = study(known)
    assert possibly_missing((known,), Evidence(dataset(bare), bare)) == ()


def test_cells_at_several_loads_are_named_once_and_other_arms_for_themselves() -> None:
    owner = arm("base", max_model_len=1024)
    loads = [cell(owner, run(UNCOUNTED, concurrency=n)) for n in (1, 10)]
    other = cell(arm("other", max_model_len=2048), run(UNCOUNTED, arm="other"))
    found = possibly_missing((*loads, other), seen(*loads, other))
    assert [text.split(" requests")[0] for text in found] == ["2 of 4", "1 of 4"]


def test_the_sample_is_that_of_the_study_the_cell_belongs_to() -> None:
    few, far = short(), replace(study(name="far"), folder="far")
    there = seen(few)
    assert len(possibly_missing((few,), replace(there, study=far))) == 1
    assert possibly_missing((few,), Evidence(dataset(far), far)) == ()
