"""steps-ENGINE.jsonl: one line an engine step, written inside the server by the collector's plugin.

Told in `collectors.stat_logger`. A line without the scheduler's state (`running` is null) is no
step of its own: its tokens belong to the step before it.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np

from analysis.formats._files import mapped, one_line
from analysis.model import LARGEST, Record, Skipped, Source, Steps

_KEYS = (b'"mono"', b'"running"', b'"waiting"')


class _Line(msgspec.Struct):
    mono: float
    running: int | None = None
    waiting: int | None = None
    prompt: int | None = None
    gen: int | None = None
    preempted: int | None = None
    kv: float | None = None


_LINES = msgspec.json.Decoder(_Line)


def sniff(path: Path, head: bytes) -> bool:
    """JSON lines whose first one tells of a step."""
    first = head.lstrip().split(b"\n", 1)[0]
    return first[:1] == b"{" and all(key in first for key in _KEYS)


def read(path: Path, file: str) -> list[Record]:
    """One `Steps`, or the reason why there are none."""
    data, trouble = mapped(path)
    raw = bytes(data)
    # A killed server leaves half a line at the end: all before it counts.
    whole = raw[: raw.rfind(b"\n") + 1]
    try:
        lines = _LINES.decode_lines(whole)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return [Skipped(file, f"no log of engine steps: {one_line(str(error))}; collect again")]
    steps = [line for line in lines if line.running is not None]
    if not steps:
        return [Skipped(file, "no line tells how many requests ran; collect again")]
    table = np.array(
        [
            (s.mono, s.running, s.waiting or 0, s.prompt or 0, s.gen or 0, s.preempted or 0)
            for s in steps
        ],
        dtype=np.float64,
    )
    if not (np.isfinite(table).all() and (np.abs(table) < LARGEST).all() and (table >= 0).all()):
        return [Skipped(file, "a step has a negative or endless figure; collect again")]
    if (np.diff(table[:, 0]) < 0).any():
        return [Skipped(file, "its clock goes backwards; collect again")]
    kv = [math.nan if s.kv is None else s.kv for s in steps]
    counts = table[:, 1:].astype(np.int64)
    found: list[Record] = [
        Steps(
            source=Source(file, ""),
            engine=path.name.partition("-")[2].partition(".")[0],
            clock=table[:, 0],
            running=counts[:, 0],
            waiting=counts[:, 1],
            prompt=counts[:, 2],
            generated=counts[:, 3],
            preempted=counts[:, 4],
            kv_use=np.array(kv, dtype=np.float64),
        )
    ]
    if trouble:
        found.append(Skipped(file, f"{trouble}; what came before it was read"))
    return found
