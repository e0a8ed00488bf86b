"""Walks a results folder and reads every file with the format that owns it.

    records = scan(Path("results"), jobs=2)

The order is that of the paths, whatever `jobs`, so the same folder gives the same records.
Hidden files, `study.toml`, `claims.toml` and the descriptions of tables are left out: others
read them. Everything else becomes a record, if only one that says why it was not read.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path, PurePosixPath

from analysis.formats import format_of
from analysis.formats._files import HEAD_BYTES, LARGEST_HEAD, head_of, one_line
from analysis.formats._unknown import explain
from analysis.model import LEVELS, Ignored, Level, Record, Run, Skipped, escaped
from analysis.run_folders import gathered

OWN_FILES = ("study.toml", "claims.toml")
"""Files that say what a study is and claims, read elsewhere."""

_TEXTS = ("NOTICE", "LICENSE", "LICENCE", "COPYING", "README")


def scan(root: Path, jobs: int = 1) -> list[Record]:
    """Everything below `root` (a folder or one file), read at the best level.

    The files of a collected run are one `Run`. Two records of the same measurement within a study
    (the first folder of the path, or all of `root` where it has a study.toml or claims.toml itself)
    are one `Run` with `also_in`.

    Args:
        root: the results folder, or a single file of it.
        jobs: processes that read files; the result does not depend on it.
    """
    if root.is_file():
        read_alone = _read_alone(root.resolve(), escaped(root.name))
        return merge(gathered(read_alone), one_study=True)
    if not root.is_dir():
        return [Skipped(root.name or str(root), "no such file or folder")]
    top = root.resolve()
    entries = list(_walk(top))
    work = [entry for entry in entries if isinstance(entry, Path)]
    read = iter(_read_all(top, work, jobs))
    found: list[Record] = []
    for entry in entries:
        found.extend(next(read) if isinstance(entry, Path) else [entry])
    return merge(gathered(found), one_study=any((top / name).is_file() for name in OWN_FILES))


def _walk(top: Path) -> Iterator[Path | Skipped | Ignored]:
    """Files to read, and records for what is not to be read, in the order of their paths."""
    waiting = [top]  # the next one last; no recursion, for folders may nest deeper than the stack
    while waiting:
        path = waiting.pop()
        file = _below(path, top)
        try:
            reason = _refused(path, top)
            is_folder = not reason and path.is_dir()
        except OSError as error:
            reason, is_folder = f"cannot be read: {error.strerror}", False
        if reason:
            yield Skipped(file, reason)
        elif is_folder:
            try:
                names = sorted((item.name for item in path.iterdir()), reverse=True)
            except OSError as error:
                yield Skipped(file, f"the folder cannot be listed: {error.strerror}")
                continue
            waiting.extend(path / name for name in names if not name.startswith("."))
        elif path.suffix == ".md" or path.name.split(".")[0].upper() in _TEXTS:
            yield Ignored(file, "text for people: a read-me, a notice or a licence")
        elif path.name not in OWN_FILES and not _is_sidecar(path):
            yield path


def _below(path: Path, top: Path) -> str:
    """The path as records name it."""
    return escaped(PurePosixPath(path.relative_to(top)).as_posix())


def _refused(path: Path, top: Path) -> str:
    """Why a path must not be opened, or nothing."""
    if path.is_symlink():
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):
            return "a link that leads nowhere or to itself; put the file here"
        if not target.is_relative_to(top):
            return "a link that points outside the results folder; copy the file here"
        if target.is_dir():
            return "a link to a folder, which is read in its own place; link single files"
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return "no regular file (a pipe, a socket or a device)"
    return ""


def _is_sidecar(path: Path) -> bool:
    return path.suffix == ".toml" and path.with_suffix(".csv").is_file()


def _read_all(top: Path, paths: list[Path], jobs: int) -> Iterable[list[Record]]:
    files = [_below(path, top) for path in paths]
    if jobs <= 1 or len(paths) <= 1:
        return map(_read_alone, paths, files)
    with ProcessPoolExecutor(min(jobs, len(paths))) as pool:
        waiting = [
            pool.submit(_read_alone, path, file) for path, file in zip(paths, files, strict=True)
        ]
        found: list[list[Record]] = []
        for file, future in zip(files, waiting, strict=True):
            try:
                found.append(future.result())
            except BrokenProcessPool:
                found.append(
                    [Skipped(file, "a reading process was killed (out of memory?); use --jobs 1")]
                )
    return found


def _read_alone(path: Path, file: str) -> list[Record]:
    """`_read` on a stack of its own: how deep values may nest must not depend on who calls."""
    with ThreadPoolExecutor(1) as own:
        return own.submit(_read, path, file).result()


def _read(path: Path, file: str) -> list[Record]:
    """All records of one file; whatever happens, at least one."""
    try:
        head = head_of(path)
        owner = format_of(path, head) if head else None
        if owner is None and len(head) == HEAD_BYTES:
            owner = format_of(path, head_of(path, LARGEST_HEAD))
        if owner is None:
            return [Skipped(file, explain(path, head))]
        return owner.read(path, file) or [Skipped(file, "the file holds no record")]
    except OSError as error:
        return [Skipped(file, f"cannot be read: {error.strerror or one_line(str(error))}")]
    except Exception as error:
        # A reader's own fault must cost one file, not the analysis of all others.
        told = one_line(f"{type(error).__name__}: {error}", 120)
        return [Skipped(file, f"reading it failed ({told}); please report this with the file")]


def merge(records: Iterable[Record], one_study: bool) -> list[Record]:
    """Identical measurements within a study as one run.

    Two runs are the same measurement when all figures and the date are equal; labels may differ.
    The first is kept, or a collected run before a copy of its result; it knows where else it
    stands, and takes what only the other has: settings and per-request arrays. Rows of published
    tables are never merged: rounding makes twins.
    """
    found: dict[object, Record] = {}
    for number, record in enumerate(records):
        if not isinstance(record, Run) or record.level == Level.PUBLISHED:
            found[number] = record
            continue
        parts = PurePosixPath(record.source.file).parts
        study = "" if one_study or len(parts) == 1 else parts[0]
        numbers = tuple(sorted((name, figure.value) for name, figure in record.figures.items()))
        key: object = (study, record.config.get("date"), numbers)
        first = found.get(key)
        if isinstance(first, Run) and _who(first) and _who(record) not in ((), _who(first)):
            # Two runs by their collector's own word, however alike.
            key = (key, _who(record))
            first = found.get(key)
        found[key] = _merged(first, record) if isinstance(first, Run) else record
    return list(found.values())


def _who(run: Run) -> tuple[object, ...]:
    """Which run a collector says it is; empty for a result that it says nothing of."""
    if not run.arm:
        return ()
    return run.arm, run.workload, run.concurrency, run.config.get("repeat")


def _merged(first: Run, other: Run) -> Run:
    if other.arm and not first.arm:
        first, other = other, first
    return replace(
        first,
        level=max(first.level, other.level, key=LEVELS.index),
        config={**other.config, **first.config},
        requests=first.requests or other.requests,
        server=first.server or other.server,
        also_in=(*first.also_in, other.source, *other.also_in),
    )
