"""Samples of GPUs over time: the collector's gpu.jsonl, or a CSV of NVML's figures (nvml.csv).

The first is told in `collectors.gpu_sampler`. The second has a head of columns; `time` is Unix time
in s, `run` the name of the run that went on (the stem of its result file). Others are util_gpu_pct,
mem_used_mib, power_w, sm_mhz, mem_mhz, temp_c, gpu, pstate, throttle_reasons and energy_j; what a
column would say that is missing is not known.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

import msgspec
import numpy as np

from analysis.formats._files import lines_of, one_line
from analysis.formats._sidecar import sidecar_path
from analysis.model import LARGEST, Floats, GpuSamples, Ints, Record, Skipped, Source

MOST_SAMPLES = 1_000_000
"""Of a file: a week of one GPU at two a second."""
_MOST_LABELS = 10_000
_JSON_KEYS = (b'"t"', b'"gpu"', b'"utilization_gpu"')
_CSV_KEYS = ("time", "util_gpu_pct", "power_w")
_MIB = 2.0**20

_FIELDS: Mapping[str, tuple[str, str, float]] = {
    # Field of `GpuSamples` -> key of the JSON line, column of the CSV, factor of both to its unit.
    "utilisation": ("utilization_gpu", "util_gpu_pct", 0.01),
    "power": ("power", "power_w", 1.0),
    "sm_clock": ("clock_sm", "sm_mhz", 1.0),
    "memory_clock": ("clock_memory", "mem_mhz", 1.0),
    "temperature": ("temperature", "temp_c", 1.0),
    "pstate": ("pstate", "pstate", 1.0),
    "energy": ("energy", "energy_j", 1.0),
}


def sniff(path: Path, head: bytes) -> bool:
    """JSON lines of samples, or a CSV whose head names time, utilisation and power."""
    first = head.split(b"\n", 1)[0]
    if first[:1] == b"{":
        return all(key in first for key in _JSON_KEYS)
    if sidecar_path(path).exists():
        return False  # a table that somebody describes
    columns = first[:10_000].decode("utf-8", "replace").strip().split(",")
    return all(key in columns for key in _CSV_KEYS)


def read(path: Path, file: str) -> list[Record]:
    """One `GpuSamples`, or the reason why there is none."""
    lines = lines_of(path)
    first = next(lines, "")
    as_json = first[:1] == "{"
    rows = _json_rows(first, lines) if as_json else _csv_rows(first, lines)
    kept: list[Mapping[str, object]] = []
    bad = more = 0
    for row in rows:
        if len(kept) >= MOST_SAMPLES:
            more += 1
        elif _time(row) is None:
            bad += 1
        else:
            kept.append(row)
    if not kept:
        return [Skipped(file, "no whole line with a time; sample again (nvml.csv, gpu.jsonl)")]
    found: list[Record] = [_samples(kept, Source(file, ""), as_json=as_json)]
    if bad:
        # A sampler that is stopped leaves half a line.
        found += [Skipped(file, f"{bad:,} lines without a time are left out")] if bad > 1 else []
    if more:
        most = f"{MOST_SAMPLES:,}"
        found.append(Skipped(file, f"{more:,} samples beyond the first {most} are left out"))
    return found


def _json_rows(first: str, lines: Iterator[str]) -> Iterator[Mapping[str, object]]:
    for line in chain([first], islice(filter(None, lines), 2 * MOST_SAMPLES)):
        try:
            row = msgspec.json.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            row = {}
        yield row if isinstance(row, dict) else {}


def _csv_rows(first: str, lines: Iterator[str]) -> Iterator[Mapping[str, object]]:
    columns = [column.strip() for column in first.split(",")]
    reader = csv.reader(line for line in lines if line and not line.startswith("#"))
    try:
        for cells in islice(reader, 2 * MOST_SAMPLES):
            yield dict(zip(columns, cells, strict=False)) if len(cells) == len(columns) else {}
    except csv.Error:
        return


def _time(row: Mapping[str, object]) -> float | None:
    value = _number(row.get("t", row.get("time")))
    return None if math.isnan(value) else value


def _number(value: object) -> float:
    """A number of a line, finite and not negative; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return number if 0 <= number < LARGEST else math.nan


def _samples(rows: list[Mapping[str, object]], source: Source, *, as_json: bool) -> GpuSamples:
    def column(key: str, factor: float = 1.0) -> Floats:
        return np.array([_number(row.get(key)) for row in rows], dtype=np.float64) * factor

    def counts(key: str, missing: int) -> Ints:
        values = column(key)
        return np.where(np.isfinite(values), values, missing).astype(np.int64)

    fields = {
        field: column(key if as_json else name, factor)
        for field, (key, name, factor) in _FIELDS.items()
    }
    labels: dict[str, int] = {}
    label: Ints | None = None
    if any("run" in row for row in rows):
        label = np.array([_label(row, labels) for row in rows], dtype=np.int64)
    return GpuSamples(
        source=source,
        clock=np.array([_time(row) for row in rows], dtype=np.float64),
        gpu=counts("gpu", 0),
        memory_used=column("memory_used") if as_json else column("mem_used_mib", _MIB),
        throttle=counts("throttle_reasons", -1),
        labels=tuple(labels),
        label=label,
        **fields,
    )


def _label(row: Mapping[str, object], labels: dict[str, int]) -> int:
    """The place of a line's run among the names; beyond the most they share the last one."""
    name = one_line(str(row.get("run", "")), 200)
    if name not in labels and len(labels) >= _MOST_LABELS:
        return _MOST_LABELS - 1
    return labels.setdefault(name, len(labels))
