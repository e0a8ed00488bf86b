from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from collectors import storage


def test_a_folder_that_works_is_left_as_it_was(tmp_path: Path) -> None:
    results = tmp_path / "results" / "deep"
    assert storage.problems(results, f"file://{tmp_path}/up", 10, 5_000_000) == []
    assert [path.name for path in tmp_path.rglob("*")] == ["up"]


def test_disk_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil._ntuple_diskusage(10, 9, 2_000_000)  # type: ignore[attr-defined]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    (problem,) = storage.problems(tmp_path, "", 3_000_000, 1)
    assert str(problem) == (
        f"disk of {tmp_path}: 2.0 MB free; needed: 3.3 MB by estimate; "
        "free some, or name another folder with --results"
    )


def test_a_write_that_fails_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    problem = storage.round_trip(tmp_path, 2_500_000)
    assert "a file of 2.5 MB cannot be written and read: No space left" in str(problem)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_folders_place(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_text("")
    assert "is no folder" in str(storage.round_trip(path, 10))
    assert "cannot be written" in str(storage.round_trip(Path("/proc/1"), 10))


def test_what_comes_back_changed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = iter([b"x", b""])
    real = Path.open

    def changed(self: Path, mode: str = "r", **more: Any) -> Any:
        file = real(self, mode, **more)

        class Other:
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *args: object) -> None:
                file.close()

            def read(self, size: int) -> bytes:
                return next(chunks)

        return Other() if mode == "rb" else file

    monkeypatch.setattr(Path, "open", changed)
    assert "came back changed" in str(storage.round_trip(tmp_path, 10))


def test_upload_goes_through_fsspec() -> None:
    import fsspec

    assert storage.upload("memory://bucket/results", 300_000) is None
    assert fsspec.filesystem("memory").find("/bucket/results") == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense://x/y", "ValueError: Protocol not known"),
        ("file:///proc/1/no", "to be written and read"),
    ],
)
def test_a_target_that_does_not_work_is_told(url: str, words: str) -> None:
    problem = storage.upload(url, 10)
    assert words in str(problem)
    assert "\n" not in str(problem)


def test_no_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert "pip install fsspec" in str(storage.upload("s3://x/y", 10))


def test_a_target_that_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "UPLOAD_TIMEOUT_S", 0.05)
    monkeypatch.setattr(storage, "upload", lambda url, size: time.sleep(1))
    (problem,) = storage.problems(tmp_path, "s3://user:secret@bucket/x?key=1", 1, 1)
    assert str(problem).startswith("upload target s3://bucket/x: no answer in")
