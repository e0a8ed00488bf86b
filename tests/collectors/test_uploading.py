"""Copies of runs: compared, the record last, nothing twice."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from collectors.errors import CollectError
from collectors.uploading import send


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "sub").mkdir(parents=True)
    for name in ("bench.json", "run.json", "steps"):
        (folder / name).write_text(name)
    return folder


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_files_arrive(tmp_path: Path, run: Path, kind: str) -> None:
    url = (tmp_path / "target").as_uri() if kind == "file" else f"memory://{tmp_path.name}/"
    send(run, url, "study/arm/run")
    system, root = fsspec.core.url_to_fs(url)
    for name in ("bench.json", "run.json", "steps"):
        assert system.cat_file(f"{root.rstrip('/')}/study/arm/run/{name}") == name.encode()


def test_what_is_there_already_is_not_sent_again(tmp_path: Path, run: Path) -> None:
    url = (tmp_path / "target").as_uri()
    send(run, url, "r")
    (tmp_path / "target/r/steps").unlink()
    send(run, url, "r")
    assert not (tmp_path / "target/r/steps").exists()
    # Another record: another run.
    (run / "run.json").write_text("new")
    send(run, url, "r")
    assert (tmp_path / "target/r/steps").exists()


class Lossy(MemoryFileSystem):  # type: ignore[misc]
    """A store that loses the end of each file."""

    protocol = "lossy"
    store: dict[str, object] = {}  # noqa: RUF012 - as the base has it

    def cat_file(self, path: str, **_: object) -> bytes:
        return b""

    def _open(self, path: str, mode: str = "rb", **more: object) -> object:
        file = super()._open(path, mode, **more)
        if mode == "wb":
            write = file.write
            file.write = lambda content: write(content[:-1])
        return file


def test_a_store_that_loses_something(run: Path) -> None:
    fsspec.register_implementation("lossy", Lossy, clobber=True)
    with pytest.raises(CollectError, match=r"upload of r: bench.json came back changed; check"):
        send(run, "lossy://x", "r")
    # The record was to go last.
    assert not Lossy().exists("/x/r/run.json")


@pytest.mark.parametrize("url", ["nosuch://x", "file:///proc/none"])
def test_a_target_that_cannot_be_had(run: Path, url: str) -> None:
    with pytest.raises(CollectError, match=r"upload of r: \w+Error .*; the run is kept here"):
        send(run, url, "r")
