"""A run's folder: made whole or not at all, resumed by its state and checksums.

A run is written into `<run>.part`. When it is over, `run.json` is written there with the SHA-256 of
every other file, and the folder is renamed to `<run>`: a folder of that name is always whole. What
a killed collector leaves is a `.part`; the next one keeps it as `<run>.half-1` and marks it.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from collectors.errors import BadInput, Problem

SCHEMA = 1
# History of run.json's schema:
# 1  first.

RECORD = "run.json"
PART = ".part"
_BLOCK = 1 << 20


def write_atomically(path: Path, content: str) -> None:
    """Write a file so that after a crash there is the old one or the new one.

    Raises:
        OSError: no space, no rights.
    """
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write a folder's run.json."""
    whole = {"schema": SCHEMA, **record}
    write_atomically(folder / RECORD, json.dumps(whole, indent=1, sort_keys=True) + "\n")


def read_record(folder: Path) -> dict[str, Any] | None:
    """A folder's run.json; None where there is none that can be read."""
    try:
        record = json.loads((folder / RECORD).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def open_part(final: Path, record: Mapping[str, Any]) -> Path:
    """A fresh folder for a run that begins; what was left of an earlier try is put aside."""
    part = final.with_name(final.name + PART)
    if part.exists():
        put_aside(part, final, "half", "interrupted")
    part.mkdir(parents=True)
    write_record(part, {**record, "state": "running"})
    return part


def close_part(part: Path, record: Mapping[str, Any]) -> Path:
    """Seal a run's folder under its final name; an older one of that name is put aside.

    Returns:
        The final folder.
    """
    write_record(part, {**record, "files": checksums(part)})
    return _settle(part)


def _settle(part: Path) -> Path:
    final = part.with_name(part.name.removesuffix(PART))
    if final.exists():
        # A record that says "complete" of files that are not as it says would be believed.
        was = (read_record(final) or {}).get("state")
        put_aside(final, final, "failed", "changed" if was == "complete" else "")
    part.rename(final)
    _sync(final.parent)
    return final


def put_aside(folder: Path, final: Path, word: str, state: str = "") -> Path:
    """Rename a folder to `<run>.<word>-<n>`, with another state in its record if one is given."""
    number = 1
    while (aside := final.with_name(f"{final.name}.{word}-{number}")).exists():
        number += 1
    if state:
        write_record(folder, {**(read_record(folder) or {}), "state": state})
    folder.rename(aside)
    return aside


def mark_halves(arm: Path) -> list[Path]:
    """Put aside every run of an arm that a killed collector left unfinished.

    One that was sealed already gets its name: nothing of it is missing.
    """
    halves = []
    for part in sorted(arm.glob(f"*{PART}")) if arm.is_dir() else ():
        if whole(part):
            final = part.with_name(part.name.removesuffix(PART))
            halves.append(put_aside(part, final, "half", "interrupted"))
        else:
            _settle(part)
    return halves


def whole(folder: Path) -> str:
    """Why a run must be made (again); empty where its folder is complete and unchanged."""
    if not folder.is_dir():
        return "not yet run"
    record = read_record(folder)
    if record is None:
        return f"its {RECORD} cannot be read"
    if record.get("state") != "complete":
        return f"its state is {record.get('state')!r}"
    files = record.get("files")
    if not isinstance(files, dict) or not files:
        return f"its {RECORD} lists no files"
    for name, digest in files.items():
        if "/" in name or not _there(folder / name):
            return f"its file {name!r} is missing"
        if sha256(folder / name) != digest:
            return f"its file {name!r} was changed"
    return ""


def packed(path: Path) -> Path:
    """Where a file lies when somebody has put it away with gzip."""
    return path.with_name(f"{path.name}.gz")


def _there(path: Path) -> bool:
    return path.is_file() or packed(path).is_file()


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of each file of a run but its record."""
    return {
        path.name: sha256(path)
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != RECORD and not path.name.startswith(".")
    }


def sha256(path: Path) -> str:
    """SHA-256 of a file as it was written, as 64 hexadecimal digits; packed or not."""
    found = hashlib.sha256()
    try:
        with path.open("rb") if path.is_file() else gzip.open(packed(path), "rb") as file:
            while block := file.read(_BLOCK):
                found.update(block)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return "damaged"
    return found.hexdigest()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other collectors out of a study's folder; the lock goes with the process.

    Raises:
        BadInput: another one is in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(
                Problem(
                    str(folder),
                    "another collect is writing there",
                    todo="wait for it, or give another folder with --results",
                )
            ) from None
        yield


def _sync(folder: Path) -> None:
    """Make a rename last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
