"""Folders of runs: whole or not at all, whatever happens in between."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import rundir
from collectors.errors import BadInput


def made(final: Path, state: str = "complete") -> Path:
    part = rundir.open_part(final, {"arm": "a"})
    (part / "bench.json").write_text("{}")
    return rundir.close_part(part, {"arm": "a", "state": state})


def test_a_run_is_whole_when_it_has_its_name(tmp_path: Path) -> None:
    final = tmp_path / "arm" / "run"
    part = rundir.open_part(final, {"arm": "a"})
    assert not final.exists()
    assert rundir.whole(final) == "not yet run"
    assert (rundir.read_record(part) or {})["state"] == "running"
    (part / "bench.json").write_text("{}")
    (part / ".hidden").write_text("")
    assert rundir.close_part(part, {"state": "complete"}) == final
    assert not part.exists()
    assert rundir.whole(final) == ""
    record = json.loads((final / "run.json").read_text())
    assert record["schema"] == rundir.SCHEMA
    assert list(record["files"]) == ["bench.json"]
    assert len(record["files"]["bench.json"]) == 64


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda run: (run / "bench.json").write_text("{ }"), "'bench.json' was changed"),
        (lambda run: (run / "bench.json").unlink(), "'bench.json' is missing"),
        (lambda run: (run / "run.json").unlink(), "its run.json cannot be read"),
        (lambda run: (run / "run.json").write_text("[]"), "its run.json cannot be read"),
        (lambda run: (run / "run.json").write_bytes(b"\xff"), "its run.json cannot be read"),
        (lambda run: rundir.write_record(run, {"state": "failed"}), "its state is 'failed'"),
        (lambda run: rundir.write_record(run, {"state": "complete"}), "lists no files"),
        (
            lambda run: rundir.write_record(
                run, {"state": "complete", "files": {"../run/bench.json": "x"}}
            ),
            "is missing",
        ),
    ],
)
def test_why_a_run_is_made_again(tmp_path: Path, change: object, reason: str) -> None:
    run = made(tmp_path / "run")
    change(run)  # type: ignore[operator]
    assert reason in rundir.whole(run)


def test_an_older_run_of_the_name_is_put_aside(tmp_path: Path) -> None:
    for _ in range(3):
        made(tmp_path / "run", "failed")
    made(tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "run",
        "run.failed-1",
        "run.failed-2",
        "run.failed-3",
    ]
    # A complete one that must be made again was changed.
    made(tmp_path / "run")
    assert (rundir.read_record(tmp_path / "run.failed-4") or {})["state"] == "changed"


def test_what_a_killed_collector_left(tmp_path: Path) -> None:
    rundir.open_part(tmp_path / "running", {"arm": "a"})
    (tmp_path / "empty.part").mkdir()
    made(tmp_path / "sealed").rename(tmp_path / "sealed.part")
    made(tmp_path / "renewed", "failed")
    made(tmp_path / "renewed-x").rename(tmp_path / "renewed.part")
    halves = rundir.mark_halves(tmp_path)
    assert [path.name for path in halves] == ["empty.half-1", "running.half-1"]
    for half in halves:
        assert (rundir.read_record(half) or {})["state"] == "interrupted"
    assert (rundir.read_record(halves[1]) or {})["arm"] == "a"
    assert rundir.whole(tmp_path / "sealed") == ""
    assert rundir.whole(tmp_path / "renewed") == ""
    assert (tmp_path / "renewed.failed-1").is_dir()
    assert rundir.mark_halves(tmp_path) == []
    assert rundir.mark_halves(tmp_path / "none") == []


def test_a_run_begins_where_another_try_was_left(tmp_path: Path) -> None:
    for number in (1, 2):
        (rundir.open_part(tmp_path / "run", {}) / f"file-{number}").touch()
    part = rundir.open_part(tmp_path / "run", {})
    assert [path.name for path in part.iterdir()] == ["run.json"]
    assert (tmp_path / "run.half-1/file-1").exists()
    assert (tmp_path / "run.half-2/file-2").exists()


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    rundir.write_atomically(tmp_path / "file", "old")
    (tmp_path / ".file.draft").mkdir()
    with pytest.raises(OSError, match="directory"):
        rundir.write_atomically(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "old"


def test_a_full_disk_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    import resource
    import signal

    rundir.write_atomically(tmp_path / "file", "old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            rundir.write_atomically(tmp_path / "file", "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_one_collector_a_folder(tmp_path: Path) -> None:
    with rundir.locked(tmp_path / "study"):
        with (
            pytest.raises(BadInput, match="another collect is writing there"),
            rundir.locked(tmp_path / "study"),
        ):
            pass
        # No process that is started meanwhile holds it on.
        other = subprocess.Popen(["/bin/sleep", "600"])
    with rundir.locked(tmp_path / "study"):
        other.kill()
        other.wait()


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.none(), max_size=5))
def test_any_record_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, record: dict[str, object]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    rundir.write_record(folder, record)
    assert rundir.read_record(folder) == {"schema": rundir.SCHEMA, **record}


def test_a_packed_file_counts_as_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "bench.json").write_text("{}")
    rundir.write_record(folder, {"state": "complete", "files": rundir.checksums(folder)})
    with gzip.open(folder / "bench.json.gz", "wb") as file:
        file.write(b"{}")
    (folder / "bench.json").unlink()
    assert rundir.whole(folder) == ""
    (folder / "bench.json.gz").write_bytes((folder / "bench.json.gz").read_bytes()[:-9])
    assert "was changed" in rundir.whole(folder)
