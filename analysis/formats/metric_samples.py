"""A server's /metrics sampled over time, in one file.

`metrics-samples.txt` is of a collected run, `NAME.metrics.txt` or `NAME.samples.txt` of the result
NAME.json beside it. Each scrape is Prometheus text under a comment with the Unix time in seconds
and, where several servers are in one file, the server's name. Only the few series of `_FIELDS` are
looked for, in the bytes of the file: the whole text of a run may be a hundred times as large.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from analysis.formats._files import mapped, one_line
from analysis.formats.metrics_text import ALONE
from analysis.model import LARGEST, Floats, MetricSamples, Record, Skipped, Source
from analysis.server_series import SERIES, labels_of

_NAME = re.compile(r"(?:metrics-samples|.+\.(?:metrics|samples))\.txt(?:\.gz)?")
_HEADINGS = (b"# scraped_at ", b"# scrape_failed ")
_FIELDS: Mapping[str, str] = {
    "running": "",
    "waiting": "",
    "kv_use": "",
    "preemptions": "",
    "iteration_tokens": "_count",
    "prompt_tokens": "",
    "output_tokens": "",
}
"""What is read, and what its series end in; each is a column, in this order."""

_MOST_ROWS = 500_000
"""Scrapes of one file, each engine's counted: six days at 1 Hz."""
_MOST_ENGINES = 1_000
"""Engines of all servers together."""


def _columns() -> dict[bytes, tuple[int, int]]:
    """Column of each series, and how old its name is (0: the newest)."""
    return {
        f"{name}{end}".encode(): (column, age)
        for column, (what, end) in enumerate(_FIELDS.items())
        for age, name in enumerate(SERIES[what].names)
    }


_COLUMNS = _columns()
_WANTED = re.compile(
    rb"^(?:# (?P<told>scraped_at|scrape_failed) (?P<at>\S+)(?: (?P<server>[\w.-]+))?[^\n]*"
    rb"|(?P<name>" + b"|".join(map(re.escape, _COLUMNS)) + rb")"
    rb"(?:\{(?P<labels>[^\n]*)\})? (?P<value>[^\s{}]{1,40})(?: -?\d+)?)$",
    re.MULTILINE,
)


def sniff(path: Path, head: bytes) -> bool:
    """A name of samples, and the first scrape's heading."""
    return _NAME.fullmatch(path.name) is not None and head.startswith(_HEADINGS)


@dataclass
class _Engine:
    """Rows of one engine while its file is read. Mutable: seen by nobody else."""

    clock: list[float] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    ages: list[int] = field(default_factory=list)
    scrape: int = -1


def read(path: Path, file: str) -> list[Record]:
    """One `MetricSamples` an engine, or the reason why there are none."""
    data, trouble = mapped(path)
    engines: dict[tuple[str, str], _Engine] = {}
    failures: dict[str, int] = {}
    server, at, scrape, rows = ALONE, math.nan, 0, 0
    # Half a line at the end would be another number.
    end = _last_line(data)
    for found in _WANTED.finditer(data[:end]):
        if found["told"]:
            server = (found["server"] or ALONE.encode()).decode()
            at, scrape = _number(found["at"]), scrape + 1
            if scrape > _MOST_ROWS:
                trouble = trouble or f"more than {_MOST_ROWS:,} scrapes"
                break
            if not math.isfinite(at):
                return [Skipped(file, "a scrape has no time; collect again")]
            if found["told"] == b"scrape_failed":
                failures[server] = failures.get(server, 0) + 1
            continue
        if not math.isfinite(at):
            continue
        labels = labels_of((found["labels"] or b"").decode("utf-8", "replace"))
        key = (server, labels.get("engine", ""))
        engine = engines.get(key)
        if engine is None and len(engines) == _MOST_ENGINES:
            trouble = trouble or f"more than {_MOST_ENGINES:,} engines"
            break
        if engine is None or engine.scrape != scrape:
            rows += 1
            if rows > _MOST_ROWS:
                trouble = trouble or f"more than {_MOST_ROWS:,} samples"
                break
            engine = engines.setdefault(key, _Engine())
            engine.scrape = scrape
            engine.clock.append(at)
            engine.rows.append([math.nan] * len(_FIELDS))
            engine.ages = [len(_COLUMNS)] * len(_FIELDS)
        _put(engine, *_COLUMNS[found["name"]], _number(found["value"]))
    if not engines:
        return [Skipped(file, f"{trouble or 'no sample in it'}; collect again")]
    out: list[Record] = []
    labels_of_server = Counter(name for name, _ in engines)
    for (name, label), engine in engines.items():
        told = f"{name}, engine {label}" if labels_of_server[name] > 1 else name
        clock = np.array(engine.clock)
        if (np.diff(clock) < 0).any():
            out.append(Skipped(file, f"the clock of {one_line(told, 60)} goes back; collect again"))
            continue
        out.append(_samples(Source(file, ""), told, clock, engine, failures.get(name, 0)))
    if trouble:
        out.append(Skipped(file, f"{trouble}; what came before it was read"))
    return out


def _samples(
    source: Source, name: str, clock: Floats, engine: _Engine, failures: int
) -> MetricSamples:
    running, waiting, kv_use, preemptions, iterations, prompt, output = np.array(engine.rows).T
    return MetricSamples(
        source, name, clock, running, waiting, kv_use, preemptions, iterations, prompt, output,
        failures,
    )  # fmt: skip


def _put(engine: _Engine, column: int, age: int, value: float) -> None:
    """Note a value; of several names the newest counts, of several label sets the sum."""
    row = engine.rows[-1]
    if age < engine.ages[column]:
        row[column], engine.ages[column] = value, age
    elif age == engine.ages[column]:
        row[column] += value


def _number(text: bytes) -> float:
    """A figure that a server may give; NaN for any other."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if 0 <= value < LARGEST else math.nan


def _last_line(data: memoryview) -> int:
    """Where the last whole line ends; 0 where a line is longer than any is."""
    tail = bytes(data[-(1 << 20) :])
    return max(len(data) - len(tail) + tail.rfind(b"\n") + 1, 0) if b"\n" in tail else 0
