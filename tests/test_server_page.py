"""analysis.server_page: what the page of data quality says of the servers, cell by cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.pipeline import StudyReport, analyse
from analysis.report import pages
from analysis.server_page import agreements, meanings, stages, told
from analysis.simulate import Engine, Simulated
from analysis.wording import show
from tests.simulated import simulated
from tests.simulated_metrics import truth, write


def queued() -> Simulated:
    return simulated(n=60, engine=Engine(max_num_seqs=3))


def samples(sim: Simulated, waiting: int) -> str:
    """A waiting count that holds over the whole run, each second."""
    seconds = range(int(sim.duration) + 2)
    return "".join(
        f"# scraped_at {100 + n}\nvllm:num_requests_waiting {waiting}\n"
        f"vllm:kv_cache_usage_perc 0.{n % 9 + 1}\n"
        for n in seconds
    )


@pytest.fixture
def watched(tmp_path: Path) -> tuple[Simulated, StudyReport, str]:
    sim = queued()
    write(tmp_path / "run", sim)
    (tmp_path / "run.metrics.txt").write_text(samples(sim, 4))
    found = analyse(tmp_path)
    return sim, found.studies[0], pages(found)["quality.md"]


def test_counters_and_samples_tell_of_queue_waiting_preemptions_and_kv(
    watched: tuple[Simulated, StudyReport, str],
) -> None:
    sim, report, _ = watched
    (row,) = told(report)
    assert row.wait == show(float(truth(sim).queue.mean()), "s")
    assert (row.preempted, row.served) == ("0", "-")
    seconds = int(sim.duration) + 1
    waiting, seen = row.waiting.split(" ")
    assert seen == "(sampled)"
    assert float(waiting) == pytest.approx(4 * seconds / sim.duration, rel=0.01)
    assert row.kv_use == f"{min(seconds + 1, 9)}0.0 % (sampled)"


def test_a_stay_and_its_parts(watched: tuple[Simulated, StudyReport, str]) -> None:
    sim, report, page = watched
    ((run, cells, by),) = stages(report)
    known = truth(sim)
    assert run.id == "run.json.gz"
    assert cells[0] == show(float(np.mean(sim.ttft + _decode(sim))), "s")
    assert cells[3:6] == [
        show(float(part.mean()), "s") for part in (known.queue, known.prefill, known.decode)
    ]
    assert by == "means of the server's histograms"
    assert f"| {' | '.join(cells)} | {by} |" in page


def _decode(sim: Simulated) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return sim.received[sim.offsets[1:] - 1] - sim.received[sim.offsets[:-1]]


def test_what_both_ends_counted(watched: tuple[Simulated, StudyReport, str]) -> None:
    sim, report, page = watched
    ((_, cells),) = agreements(report)
    # Equal counts stand once, unequal times twice; the model's server has no TPOT.
    assert cells[:3] == ["60", f"{sim.workload.prompt.sum():,}", f"{sim.workload.output.sum():,}"]
    client, server = cells[3].split("; ")
    assert client == show(float(sim.ttft.mean()), "s")
    assert server == show(float(truth(sim).ttft.mean()), "s")
    assert cells[5] == "-"
    assert f"| {' | '.join(cells)} |" in page
    assert [what for what, _ in meanings(report)] == [
        "requests", "prompt tokens", "output tokens", "TTFT", "ITL", "stay",
    ]  # fmt: skip


def test_counts_that_differ_stand_beside_each_other(tmp_path: Path) -> None:
    write(tmp_path / "run", queued())
    other = simulated(n=90, seed=4)
    write(tmp_path / "other", other)
    (tmp_path / "other.after.txt.gz").rename(tmp_path / "run.after.txt.gz")
    for end in ("json", "before.txt"):
        (tmp_path / f"other.{end}.gz").unlink()
    found = analyse(tmp_path)
    ((_, cells),) = agreements(found.studies[0])
    assert cells[0] == "60; 90"
    page = pages(found)["quality.md"]
    assert "30 requests beside the 60 of the client" in page
    assert "SUSPECT" in page


def test_runs_of_which_no_server_told_have_no_such_tables(tmp_path: Path) -> None:
    write(tmp_path / "run", queued())
    for end in ("before.txt", "after.txt"):
        (tmp_path / f"run.{end}.gz").unlink()
    found = analyse(tmp_path)
    report = found.studies[0]
    assert (told(report), stages(report), agreements(report)) == ([], [], [])
    page = pages(found)["quality.md"]
    assert "Where a stay went" not in page
    assert "Client and servers" not in page
