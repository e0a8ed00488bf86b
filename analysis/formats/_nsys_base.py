"""The SQLite file of `nsys export --type sqlite`: kernels, calls of the host, and NVTX ranges.

The file is not to be trusted: it is opened read-only, only real tables are read (a view may run
for ever), each query ends after a minute, and texts are cut. All times there are whole nanoseconds,
since the start of the capture or since 1970, so they are told from the first kernel's start before
they become floats. Correlations count calls of one process, so nothing is matched across processes.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from analysis.formats._activity import (
    MOST_MARKS,
    MOST_WORK,
    Activities,
    marks_by_launch,
    step_of,
)
from analysis.formats._files import one_line
from analysis.model import Record, Skipped, Source

TOOL = "nsys"
MAGIC = b"SQLite format 3\x00"
_LONGEST = 60.0
"""Seconds that all queries of one file may take."""
_LARGEST_VALUE = 16 << 20
_MOST_TEXTS = 100_000
_MOST_DEVICES = 64
_LAST = 2**62
_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_COPIES = {
    "CUPTI_ACTIVITY_KIND_MEMCPY": "[CUDA memcpy]",
    "CUPTI_ACTIVITY_KIND_MEMSET": "[CUDA memset]",
}
_RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
_RANGES = "NVTX_EVENTS"
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_WAITS = re.compile(r"((?:cuda|cu)(?:Stream|Device|Ctx|Event)Synchronize)(?:_v\d+)?")
_ANEW = "record with --trace=cuda,nvtx --cuda-graph-trace=node and export again"


@dataclass(eq=False, slots=True)
class _Process:
    """What the host's side of one process did."""

    launches: list[float] = field(default_factory=list)
    correlations: list[int] = field(default_factory=list)
    waits: dict[str, tuple[int, float]] = field(default_factory=dict)
    ranges: list[tuple[float, int, int]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Capture:
    """What was read so far; `origin` is the start of the first kernel, ns."""

    origin: int
    works: dict[tuple[int, int], Activities] = field(default_factory=dict)
    """By process and device."""
    processes: dict[int, _Process] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Row:
    start: int
    end: int
    process: int
    device: int
    correlation: int
    name: int


def read_base(path: Path, file: str) -> list[Record]:
    """One `KernelTrace` a device and process, or the reason why there is none."""
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    deadline = time.monotonic() + _LONGEST
    try:
        with closing(sqlite3.connect(uri, uri=True)) as base:
            base.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
            base.execute("PRAGMA trusted_schema = OFF")
            base.execute("PRAGMA query_only = ON")
            return _read(base, file)
    except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, OverflowError) as error:
        told = one_line(str(error), 120)
        return [Skipped(file, f"the database cannot be read ({told}); export it again")]


def _read(base: sqlite3.Connection, file: str) -> list[Record]:
    tables = _tables(base)
    if _KERNELS not in tables:
        return [Skipped(file, f"the database has no table of kernels; {_ANEW}")]
    columns = tables[_KERNELS]
    named = next((c for c in ("demangledName", "shortName", "mangledName") if c in columns), "")
    if not {"start", "end"} <= columns or not named or "StringIds" not in tables:
        return [Skipped(file, "its table of kernels lacks start, end or names; export it again")]
    texts = _texts(base, _KERNELS, named)
    capture: _Capture | None = None
    for row in _rows(base, _KERNELS, columns, named):
        capture = capture or _Capture(row.start)
        _add(capture, row, texts.get(row.name, f"kernel {row.name}"))
    if capture is None:
        return [Skipped(file, f"its table of kernels is empty; {_ANEW}")]
    for table, name in _COPIES.items():
        if {"start", "end"} <= tables.get(table, frozenset()):
            for row in _rows(base, table, tables[table], ""):
                _add(capture, row, name)
    _calls(base, tables, capture)
    _ranges(base, tables, capture)
    warnings = []
    if _GRAPHS in tables and _first(base, f"SELECT 1 FROM {_GRAPHS} LIMIT 1"):  # noqa: S608
        warnings.append(f"graphs were recorded whole, so most kernels are missing; {_ANEW}")
    found: list[Record] = []
    for (process, device), work in sorted(capture.works.items()):
        host = capture.processes.get(process, _Process())
        found.append(
            work.trace(
                Source(file, _KERNELS),
                tool=TOOL,
                rank=None,
                device=f"GPU {device}",
                marks=marks_by_launch(host.ranges, host.launches, host.correlations, work),
                told_by="the first kernel that the host launched in each step's NVTX range",
                synchronisations=host.waits,
                warnings=warnings,
            )
        )
    return found


def _first(base: sqlite3.Connection, query: str, *values: str) -> tuple[object, ...] | None:
    found: tuple[object, ...] | None = base.execute(query, values).fetchone()
    return found


def _tables(base: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """Columns of the real tables that are read; a view or a virtual table may hold anything."""
    found = {}
    for name in (_KERNELS, *_COPIES, _RUNTIME, _RANGES, _GRAPHS, "StringIds"):
        made = _first(base, "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", name)
        if made is None or not re.match(r"CREATE TABLE\b", str(made[0])):
            continue
        columns = base.execute("SELECT name FROM pragma_table_info(?)", (name,)).fetchall()
        found[name] = frozenset(str(column) for (column,) in columns)
    return found


def _texts(base: sqlite3.Connection, table: str, column: str) -> dict[int, str]:
    """Names that a table refers to, by id; each cut."""
    # The names of tables and columns in queries are this module's own, here and below.
    query = (
        "SELECT id, substr(CAST(value AS TEXT), 1, 2000) FROM StringIds "  # noqa: S608
        f"WHERE id IN (SELECT DISTINCT {column} FROM {table}) LIMIT {_MOST_TEXTS}"
    )
    rows = base.execute(query)
    return {key: text for key, text in rows if isinstance(key, int) and isinstance(text, str)}


def _rows(
    base: sqlite3.Connection, table: str, columns: frozenset[str], named: str
) -> Iterator[_Row]:
    """Sound rows of a table, by their start."""
    process = next((column for column in ("globalPid", "globalTid") if column in columns), "")
    wanted = ["start", "end", process, "deviceId", "correlationId", named]
    parts = [f'CAST("{c}" AS INTEGER)' if c in columns else "0" for c in wanted]
    query = (
        f"SELECT {', '.join(parts)} FROM {table} "  # noqa: S608
        f'WHERE "start" IS NOT NULL AND "end" IS NOT NULL ORDER BY "start" LIMIT {MOST_WORK}'
    )
    for values in base.execute(query):
        row = _Row(*(value if isinstance(value, int) else -1 for value in values))
        if 0 <= row.start <= row.end < _LAST:
            yield row


def _process(row: _Row) -> int:
    """The process of a row: 24 bits of nsys' global identifier, above those of the thread."""
    return row.process >> 24 & 0xFFFFFF


def _add(capture: _Capture, row: _Row, name: str) -> None:
    place = (_process(row), max(0, row.device))
    if place in capture.works or len(capture.works) < _MOST_DEVICES:
        capture.works.setdefault(place, Activities()).add(
            (row.start - capture.origin) / 1e9,
            (row.end - row.start) / 1e9,
            name,
            row.correlation if 0 < row.correlation < _LAST else -1,
        )


def _calls(
    base: sqlite3.Connection, tables: Mapping[str, frozenset[str]], capture: _Capture
) -> None:
    """When calls were made, and those in which the host waited."""
    columns = tables.get(_RUNTIME, frozenset())
    if not {"start", "end", "correlationId", "nameId"} <= columns:
        return
    texts = _texts(base, _RUNTIME, "nameId")
    for row in _rows(base, _RUNTIME, columns, "nameId"):
        host = capture.processes.setdefault(_process(row), _Process())
        host.launches.append((row.start - capture.origin) / 1e9)
        host.correlations.append(row.correlation)
        if wait := _WAITS.fullmatch(texts.get(row.name, "")):
            count, seconds = host.waits.get(wait[1], (0, 0.0))
            host.waits[wait[1]] = count + 1, seconds + (row.end - row.start) / 1e9


def _ranges(
    base: sqlite3.Connection, tables: Mapping[str, frozenset[str]], capture: _Capture
) -> None:
    """Each whole NVTX range that names a step."""
    columns = tables.get(_RANGES, frozenset())
    if not {"start", "end", "text"} <= columns:
        return
    text, join = "n.text", ""
    if "textId" in columns:
        text, join = "COALESCE(n.text, s.value)", "LEFT JOIN StringIds AS s ON s.id = n.textId"
    thread = 'CAST(n."globalTid" AS INTEGER)' if "globalTid" in columns else "0"
    query = (
        f"SELECT CAST(n.start AS INTEGER), {thread}, substr({text}, 1, 200) "  # noqa: S608
        f"FROM {_RANGES} AS n {join} WHERE n.end IS NOT NULL AND {text} LIKE 'execute%' "
        f"ORDER BY n.start LIMIT {MOST_MARKS}"
    )
    for start, owner, name in base.execute(query):
        step = step_of(name) if isinstance(name, str) else None
        if step is None or not isinstance(start, int) or not 0 <= start < _LAST:
            continue
        row = _Row(start, start, owner if isinstance(owner, int) else 0, 0, -1, -1)
        host = capture.processes.setdefault(_process(row), _Process())
        host.ranges.append(((start - capture.origin) / 1e9, *step))
