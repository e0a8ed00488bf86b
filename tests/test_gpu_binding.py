"""analysis.gpu_binding: samples by the run they name, by time, and those of no run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from analysis.gpu_binding import with_samples
from analysis.model import GpuSamples, Run, ServerSide, Skipped, Source
from tests.builders import run
from tests.gpus import samples

END = datetime(2026, 11, 30, 18, 9, 12, tzinfo=UTC).timestamp()


def of(file: str, **more: object) -> Run:
    plain = run({"duration": 10.0}, id=file, file=file, config={"date": "20261130-180912"})
    return replace(plain, **more)  # type: ignore[arg-type]


def bound(runs: list[Run], *files: GpuSamples) -> tuple[list[GpuSamples | None], list[Skipped]]:
    found, unused = with_samples(runs, files)
    assert [one.id for one in found] == [one.id for one in runs]
    return [None if one.server is None else one.server.gpu for one in found], unused


def test_the_column_names_the_result_beside_it() -> None:
    labels = ["startup", "c10", "c10", "c32", "c32", "c32"]
    file = samples([100.0] * 6, labels=labels, file="a/nvml.csv")
    runs = [of("a/c10.json"), of("a/c32.json.gz"), of("b/c10.json"), of("a/other.json")]
    found, unused = bound(runs, file)
    assert [None if one is None else len(one.clock) for one in found] == [2, 3, None, None]
    assert unused == []


def test_a_record_in_two_places_is_named_by_either() -> None:
    file = samples([100.0] * 2, labels=["x", "x"], file="b/nvml.csv")
    (found,), _ = bound([of("a/c10.json", also_in=(Source("b/x.json", ""),))], file)
    assert found is not None


@pytest.mark.parametrize("zone", [0, 9, -5.5])
def test_without_the_column_by_the_time_of_the_run_in_any_zone(zone: float) -> None:
    begin = END - zone * 3600 - 30
    file = samples([100.0] * 80, times=[begin + 0.5 * k for k in range(80)], file="a/nvml.csv")
    (found,), unused = bound([of("a/c10.json")], file)
    assert unused == []
    assert found is not None
    # Ten seconds and a second and a half at each end.
    assert len(found.clock) == 27
    assert found.clock[-1] <= END - zone * 3600 + 1.5


def test_samples_of_hours_in_which_several_zones_fit_are_not_guessed() -> None:
    times = [END - 7200 + 10 * k for k in range(1440)]
    _, unused = bound([of("a/c10.json")], samples([1.0] * 1440, times=times, file="a/nvml.csv"))
    assert "no column `run`" in unused[0].reason


def test_what_belongs_to_no_run_is_told() -> None:
    file = samples([1.0] * 2, labels=["startup", "profile"], file="a/nvml.csv")
    _, unused = bound([of("a/c10.json")], file)
    assert unused[0].file == "a/nvml.csv"
    assert "names startup and profile" in unused[0].reason
    _, unused = bound([of("b/c10.json")], file)
    assert "no result lies beside them" in unused[0].reason
    _, unused = bound([of("a/c.json", config={"date": "99999999-999999"})],
                      samples([1.0], file="a/nvml.csv"))  # fmt: skip
    assert "by its key `date`" in unused[0].reason


def test_a_collected_runs_own_samples_stay() -> None:
    own = samples([1.0] * 5, file="a/gpu.jsonl")
    other = samples([1.0] * 2, labels=["c10", "c10"], file="a/nvml.csv")
    (found,), _ = bound([of("a/c10.json", server=ServerSide(gpu=own))], other)
    assert found is own
