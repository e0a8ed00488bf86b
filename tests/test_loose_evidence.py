"""analysis.loose_evidence: whose a text beside a result is, and what becomes of nobody's."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from analysis.load import load
from analysis.model import Ignored, Level, Run, Skipped
from analysis.scan import scan
from analysis.server_metrics import ServerMetrics, server_metrics
from tests.simulated import simulated
from tests.simulated_metrics import texts, write

SIM = simulated(n=30)
SAMPLE = '# scraped_at 1.0\nvllm:num_requests_running{engine="0"} 1\n'


def runs(root: Path) -> list[Run]:
    return [one for one in scan(root) if isinstance(one, Run)]


def reasons(root: Path) -> dict[str, str]:
    return {one.file: one.reason for one in scan(root) if isinstance(one, Skipped)}


def test_a_pair_of_texts_is_the_results_that_they_are_named_as(tmp_path: Path) -> None:
    write(tmp_path / "a/fast", SIM)
    write(tmp_path / "b/fast", simulated(n=40, seed=2))
    (tmp_path / "a/fast.metrics.txt").write_text(SAMPLE)
    first, second = runs(tmp_path)
    assert reasons(tmp_path) == {}
    assert first.level is second.level is Level.ENGINE
    assert first.server is not None
    assert [one.when for one in first.server.counters] == ["before", "after"]
    assert len(first.server.samples) == 1
    for run, count in ((first, 30), (second, 40)):
        found = server_metrics(run)
        assert isinstance(found, ServerMetrics)
        assert found.counter("finished") == count


def test_the_order_is_that_of_the_folder(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        write(tmp_path / name, simulated(n=20, seed=ord(name)))
    assert [run.source.file for run in runs(tmp_path)] == ["a.json.gz", "b.json.gz", "c.json.gz"]


@pytest.mark.parametrize(("kept", "lost"), [("before", "after"), ("after", "before")])
def test_one_moment_is_no_difference(tmp_path: Path, kept: str, lost: str) -> None:
    write(tmp_path / "a", SIM)
    (tmp_path / f"a.{lost}.txt.gz").unlink()
    (run,) = runs(tmp_path)
    assert (run.level, run.server) == (Level.REQUESTS, None)
    (why,) = reasons(tmp_path).items()
    assert why[0] == f"a.{kept}.txt.gz"
    assert f"none that can be read {lost} it" in why[1]
    assert f"keep a.{lost}.txt" in why[1]


def test_a_text_that_is_empty_is_none(tmp_path: Path) -> None:
    write(tmp_path / "a", SIM)
    (tmp_path / "a.after.txt.gz").unlink()
    (tmp_path / "a.after.txt").write_text("")
    assert reasons(tmp_path).keys() == {"a.after.txt", "a.before.txt.gz"}
    assert runs(tmp_path)[0].level is Level.REQUESTS


def test_texts_of_a_result_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path / "a", SIM)
    (tmp_path / "other").mkdir()
    for end in ("before", "after"):
        shutil.move(tmp_path / f"a.{end}.txt.gz", tmp_path / "other" / f"a.{end}.txt.gz")
    (tmp_path / "b.metrics.txt").write_text(SAMPLE)
    found = reasons(tmp_path)
    assert found.keys() == {"b.metrics.txt", "other/a.after.txt.gz", "other/a.before.txt.gz"}
    assert "no result a.json that can be read" in found["other/a.after.txt.gz"]
    assert "no result b.json that can be read" in found["b.metrics.txt"]


def test_a_result_of_several_runs_has_no_counters_of_one(tmp_path: Path) -> None:
    write(tmp_path / "a", SIM)
    one = gzip.decompress((tmp_path / "a.json.gz").read_bytes()).decode()
    two = json.dumps({**json.loads(one), "date": "20260102-000000"})
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(f"{one}\n{two}\n".encode()))
    assert [run.level for run in runs(tmp_path)] == [Level.REQUESTS] * 2
    assert all("a.json holds 2 runs" in why for why in reasons(tmp_path).values())
    assert len(reasons(tmp_path)) == 2


def test_a_text_that_is_there_packed_and_not_counts_once(tmp_path: Path) -> None:
    write(tmp_path / "a", SIM)
    (tmp_path / "a.before.txt").write_text(texts(SIM)[0])
    (file, why), = reasons(tmp_path).items()  # fmt: skip
    assert file == "a.before.txt.gz"
    assert "there twice" in why
    assert runs(tmp_path)[0].level is Level.ENGINE


def test_samples_alone_lift_no_level(tmp_path: Path) -> None:
    write(tmp_path / "a", SIM)
    for end in ("before", "after"):
        (tmp_path / f"a.{end}.txt.gz").unlink()
    (tmp_path / "a.samples.txt").write_text(SAMPLE)
    (run,) = runs(tmp_path)
    assert run.level is Level.REQUESTS
    assert run.server is not None
    assert len(run.server.samples) == 1


def test_without_requests_of_the_client_it_stays_a_summary(tmp_path: Path) -> None:
    write(tmp_path / "a", SIM)
    path = tmp_path / "a.json.gz"
    whole = json.loads(gzip.decompress(path.read_bytes()))
    lists = ("input_lens", "output_lens", "ttfts", "itls", "start_times", "errors")
    path.write_bytes(
        gzip.compress(json.dumps({k: v for k, v in whole.items() if k not in lists}).encode())
    )
    (run,) = runs(tmp_path)
    assert run.level is Level.SUMMARY
    assert isinstance(server_metrics(run), ServerMetrics)


def test_a_copy_of_the_result_elsewhere_keeps_what_the_server_told(tmp_path: Path) -> None:
    write(tmp_path / "b/run", SIM)
    (tmp_path / "a").mkdir()
    shutil.copy(tmp_path / "b/run.json.gz", tmp_path / "a/run.json.gz")
    (tmp_path / "study.toml").write_text("")
    (run,) = runs(tmp_path)
    assert run.source.file == "a/run.json.gz"
    assert (run.level, isinstance(server_metrics(run), ServerMetrics)) == (Level.ENGINE, True)


def test_a_warm_up_is_left_out_with_its_texts(tmp_path: Path) -> None:
    write(tmp_path / "s/run", SIM)
    write(tmp_path / "s/first", simulated(n=10, seed=3))
    (tmp_path / "s/study.toml").write_text(
        '[[assign]]\nwhere = { file = "first.json.gz" }\nignore = true\n'
    )
    found = load(tmp_path)
    (study,) = found.studies
    assert [run.source.file for run in study.runs] == ["s/run.json.gz"]
    (skipped,) = found.skipped
    assert (skipped.file, skipped.wanted) == ("s/first.json.gz", True)


def test_texts_of_a_result_that_holds_nothing_new_hold_nothing_either(tmp_path: Path) -> None:
    write(tmp_path / "warmup", SIM)
    found = [one for one in scan(tmp_path) if isinstance(one, Ignored)]
    assert [one.file for one in found] == [
        "warmup.after.txt.gz", "warmup.before.txt.gz", "warmup.json.gz",
    ]  # fmt: skip
    assert {one.reason for one in found} == {"the warm-up of a sweep, not a measurement"}
