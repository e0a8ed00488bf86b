"""Nsight Systems: the CSV of `nsys stats`, and the SQLite file of `nsys export --type sqlite`.

Of the reports, `cuda_gpu_trace` (every kernel with its start) and `cuda_gpu_kern_sum` (sums by
kernel; no time line, so no busy share). The SQLite file also has NVTX ranges, which vLLM opens
around each step when the server runs with `--profiler-config.profiler cuda`; the step's first
kernel is that of the first call within its range. CUDA graphs must be recorded by node
(`nsys profile --cuda-graph-trace=node`), or nothing is known of what runs in them.

`analysis.formats._nsys_base` reads the database.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from analysis.formats._activity import MOST_TOLD, MOST_WORK, Activities
from analysis.formats._files import is_gzip, lines_of
from analysis.formats._nsys_base import MAGIC, TOOL, read_base
from analysis.formats._sidecar import sidecar_path
from analysis.kernel_classes import KINDS, doubt_of, kind_of
from analysis.model import LARGEST, Kernel, KernelTrace, Record, Skipped, Source

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_TRACE = re.compile(r'^"?Start \((?P<unit>ns|us|ms|s)\)"?,"?Duration \(')
_SUMS = re.compile(r'"?Total Time \((?P<unit>ns|us|ms|s)\)"?,"?Instances"?,')
_UNIT = re.compile(r"\((ns|us|ms|s)\)")
_DEVICE = re.compile(r"\((\d{1,4})\)\s*$")
_MOST_PREAMBLE = 200
_MOST_ROWS = 100_000
_MOST_DEVICES = 64


def sniff(path: Path, head: bytes) -> bool:
    """A database with nsys' tables, or one of the two heads of columns after a few lines."""
    if head.startswith(MAGIC):
        return b"CUPTI_ACTIVITY_KIND" in head or b"StringIds" in head
    if b"Name" not in head or sidecar_path(path).exists():
        return False  # or a table that somebody describes
    lines = head[: 64 * 1024].decode("utf-8", "replace").splitlines()[:_MOST_PREAMBLE]
    return any(_TRACE.search(line) or _SUMS.search(line) for line in lines)


def read(path: Path, file: str) -> list[Record]:
    """One `KernelTrace` a device, or the reason why there is none."""
    if is_gzip(path):
        with_magic = next(iter(lines_of(path)), "").startswith("SQLite format 3")
        if with_magic:
            return [Skipped(file, "a compressed database; unpack it here (gunzip)")]
    else:
        with path.open("rb") as opened:
            if opened.read(len(MAGIC)) == MAGIC:
                return read_base(path, file)
    lines = iter(lines_of(path))
    for line in islice(lines, _MOST_PREAMBLE):
        if _TRACE.search(line):
            return _trace_report(line, lines, file)
        if _SUMS.search(line):
            return _sums_report(line, lines, file)
    return [Skipped(file, "no head of columns of nsys stats; write it anew with --format csv")]


def _rows(head: str, lines: Iterator[str], most: int) -> Iterator[dict[str, str]]:
    """Rows by column; those of another report after an empty line are left out."""
    columns = next(csv.reader([head]))
    reader = csv.reader(_until_blank(lines), strict=False)
    try:
        for row in islice(reader, most):
            if len(row) == len(columns):
                yield dict(zip(columns, row, strict=True))
    except csv.Error:
        return


def _until_blank(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if not line.strip():
            return
        yield line


def _column(row: Mapping[str, str], name: str) -> tuple[str, float]:
    """A column that may name its unit, and the factor to seconds: ("Start (ns)", 1e-9)."""
    for column in row:
        if column == name or column.startswith(f"{name} ("):
            unit = _UNIT.search(column)
            return column, _SECONDS[unit[1]] if unit else 1.0
    return "", 1.0


def _number(text: str) -> float:
    """A number as nsys writes it; NaN for anything else."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if 0 <= value < LARGEST else math.nan


def _trace_report(head: str, lines: Iterator[str], file: str) -> list[Record]:
    works: dict[int, Activities] = {}
    bad = 0
    for row in _rows(head, lines, MOST_WORK):
        begin, factor = _column(row, "Start")
        length, per = _column(row, "Duration")
        start, seconds = _number(row[begin]) * factor, _number(row[length]) * per
        name = row.get("Name", "")
        if not (math.isfinite(start) and math.isfinite(seconds) and name):
            bad += 1
            continue
        said = _DEVICE.search(row.get("Device", ""))
        device = int(said[1]) if said else 0
        if device in works or len(works) < _MOST_DEVICES:
            works.setdefault(device, Activities()).add(start, seconds, name)
    why = "a report of nsys stats has no ranges; export the steps with nsys export --type sqlite"
    found: list[Record] = [
        work.trace(
            Source(file, "Duration"),
            tool=f"{TOOL}, cuda_gpu_trace",
            rank=None,
            device=f"GPU {device}",
            marks=(),
            told_by=why,
        )
        for device, work in sorted(works.items())
    ]
    if not found:
        return [Skipped(file, "no row of a kernel with its start and duration; write it anew")]
    if bad:
        found.append(Skipped(file, f"{bad:,} rows without a time or a name are left out"))
    return found


def _sums_report(head: str, lines: Iterator[str], file: str) -> list[Record]:
    totals: dict[str, tuple[int, float]] = {}
    bad = 0
    for row in _rows(head, lines, _MOST_ROWS):
        column, factor = _column(row, "Total Time")
        seconds, count = _number(row[column]) * factor, _number(row.get("Instances", ""))
        name = row.get("Name", "") or row.get("Operation", "")
        if not (math.isfinite(seconds) and math.isfinite(count) and name):
            bad += 1
            continue
        # Reports by grid have a kernel in several rows.
        held = totals.get(name, (0, 0.0))
        totals[name] = held[0] + int(count), held[1] + seconds
    kernels = sorted(
        (Kernel(name[:2_000], kind_of(name), *held) for name, held in totals.items()),
        key=lambda kernel: (-kernel.seconds, kernel.name),
    )
    total = sum(kernel.seconds for kernel in kernels)
    if not total > 0:
        return [Skipped(file, "no row of a kernel with its time; write it anew")]
    doubt = doubt_of(kernels, total)
    found: list[Record] = [
        KernelTrace(
            source=Source(file, "Total Time"),
            tool=f"{TOOL}, cuda_gpu_kern_sum",
            rank=None,
            device="GPU",
            span=math.nan,
            busy=math.nan,
            gaps=0,
            kinds={kind: sum(k.seconds for k in kernels if k.kind == kind) for kind in KINDS},
            kernels=tuple(kernels[:MOST_TOLD]),
            names=len(kernels),
            told_by="a table of sums has no steps",
            warnings=(doubt,) if doubt else (),
        )
    ]
    if bad:
        found.append(Skipped(file, f"{bad:,} rows without a time or a name are left out"))
    return found
