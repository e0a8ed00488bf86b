"""Can results be written, kept and fetched back? Asked with a file as large as a real result.

A benchmark whose results cannot be fetched is lost, however well it ran.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from collectors.errors import Problem

_CHUNK = 2**20
PROBE = ".serving-assay-probe"
LEAST_PROBE, MOST_PROBE = 300_000, 256_000_000
"""Bytes of the file that is written and read back."""
UPLOAD_TIMEOUT_S = 60.0


def problems(results: Path, url: str, size: int, largest: int) -> list[Problem]:
    """All that keeps results from being written and fetched; both round trips at once.

    Args:
        results: The folder, which need not exist yet.
        url: The upload target; empty: none.
        size: Bytes of all results, by estimate.
        largest: Bytes of the largest run folder.
    """
    probe = min(max(largest, LEAST_PROBE), MOST_PROBE)
    aside = _Aside(url, probe) if url else None
    found = [disk(results, size + probe), round_trip(results, probe)]
    if aside is not None:
        found.append(aside.answer())
    return [problem for problem in found if problem is not None]


class _Aside:
    """The upload's round trip, which may hang, in a thread that is left behind then."""

    def __init__(self, url: str, size: int) -> None:
        self.url, self.size = url, size
        self.result: Problem | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.result = upload(self.url, self.size)

    def answer(self) -> Problem | None:
        self.thread.join(UPLOAD_TIMEOUT_S)
        if self.thread.is_alive():
            return Problem(
                f"upload target {without_password(self.url)}",
                f"no answer in {UPLOAD_TIMEOUT_S:.0f} s",
                todo="check its name and the network",
            )
        return self.result


def disk(folder: Path, needed: int) -> Problem | None:
    """Why results would not fit below a folder.

    Args:
        folder: It need not exist yet.
        needed: Bytes.
    """
    at = existing(folder)
    free = shutil.disk_usage(at).free
    if free >= needed:
        return None
    return Problem(
        f"disk of {folder}",
        f"{megabytes(free)} free",
        f"{megabytes(needed)} by estimate",
        "free some, or name another folder with --results",
    )


def existing(folder: Path) -> Path:
    """The folder, or the nearest above it that exists."""
    at = folder.absolute()
    while not at.exists() and at != at.parent:
        at = at.parent
    return at


def round_trip(folder: Path, size: int) -> Problem | None:
    """Write a file below a results folder, read it back and compare; it is removed again.

    Args:
        folder: It need not exist yet: the nearest above it is written to then, and it is not made.
        size: Bytes of the file.
    """
    at = existing(folder)
    what = f"results folder {folder}"
    if not at.is_dir():
        return Problem(what, f"{at} is no folder", todo="name another with --results")
    try:
        handle, name = tempfile.mkstemp(prefix=PROBE, dir=at)
    except OSError as error:
        return Problem(
            what, f"cannot be written: {error.strerror}", todo="name another with --results"
        )
    path = Path(name)
    try:
        written = hashlib.sha256()
        with os.fdopen(handle, "wb") as file:
            for chunk in _noise(size):
                file.write(chunk)
                written.update(chunk)
            file.flush()
            os.fsync(file.fileno())
        read = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                read.update(chunk)
    except OSError as error:
        return Problem(
            what,
            f"a file of {megabytes(size)} cannot be written and read: {error.strerror}",
            todo="free some space, or name another with --results",
        )
    finally:
        path.unlink(missing_ok=True)
    if read.digest() != written.digest():
        return Problem(
            what, f"a file of {megabytes(size)} came back changed", todo="check the disk"
        )
    return None


def upload(url: str, size: int) -> Problem | None:
    """Copy a file to an upload target, fetch it, compare; it is removed there again.

    Args:
        url: as fsspec takes it: s3://bucket/folder, file:///mnt/results.
        size: Bytes of the file.
    """
    what = f"upload target {without_password(url)}"
    try:
        fsspec: Any = importlib.import_module("fsspec")
    except ImportError:
        return Problem(
            what, "fsspec is not installed", todo="pip install fsspec, and s3fs for s3://"
        )
    where = f"{url.rstrip('/')}/{PROBE}-{os.urandom(6).hex()}"
    written, read = hashlib.sha256(), hashlib.sha256()
    try:
        system, path = fsspec.core.url_to_fs(where)
        try:
            system.makedirs(system._parent(path), exist_ok=True)
            with system.open(path, "wb") as file:
                for chunk in _noise(size):
                    file.write(chunk)
                    written.update(chunk)
            with system.open(path, "rb") as file:
                while chunk := file.read(_CHUNK):
                    read.update(chunk)
        finally:
            with contextlib.suppress(Exception):
                system.rm(path)
    except ImportError as error:
        return Problem(what, str(error), todo="install the package that it names")
    except Exception as error:  # each backend has errors of its own
        told = " ".join(str(error).split())[:160].replace(where, without_password(url))
        return Problem(
            what,
            f"{type(error).__name__}: {told}",
            "to be written and read",
            "check its name and the credentials in the environment",
        )
    if read.digest() != written.digest():
        return Problem(what, f"a file of {megabytes(size)} came back changed", todo="do not use it")
    return None


def without_password(url: str) -> str:
    """A URL fit to be printed: no user, no password, no query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(no address)"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def megabytes(size: float) -> str:
    """Bytes, for print."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def _noise(size: int) -> Iterator[bytes]:
    """Bytes that nothing on the way can compress."""
    for start in range(0, size, _CHUNK):
        yield os.urandom(min(_CHUNK, size - start))
