"""steps-ENGINE.jsonl: one line an engine step, written inside the server by the collector's plugin.

Told in `collectors.stat_logger`. A line without the scheduler's state (`running` or `waiting` is
null) is no step of its own: its tokens belong to the step before it.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np

from analysis.formats._files import mapped, one_line
from analysis.model import LARGEST, Floats, Record, Skipped, Source, Steps

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
        events = np.array(
            [(o.prompt or 0, o.gen or 0, o.preempted or 0) for o in lines], dtype=np.float64
        )
        begins = [n for n, o in enumerate(lines) if None not in (o.running, o.waiting)]
        steps = [lines[n] for n in begins]
        state = np.array([(o.mono, o.running, o.waiting) for o in steps], dtype=np.float64)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        return [Skipped(file, f"no log of engine steps: {one_line(str(error))}; collect again")]
    if not steps:
        return [Skipped(file, "no line tells how many requests ran; collect again")]
    kv_use = np.array([math.nan if o.kv is None else o.kv for o in steps], dtype=np.float64)
    counts = np.add.reduceat(events, begins)
    if not all(_sound(table) for table in (events, counts, state, kv_use[~np.isnan(kv_use)])):
        return [Skipped(file, "a step has a negative or endless figure; collect again")]
    if (np.diff(state[:, 0]) < 0).any():
        return [Skipped(file, "its clock goes backwards; collect again")]
    found: list[Record] = [
        Steps(
            source=Source(file, ""),
            engine=path.name.partition("-")[2].partition(".jsonl")[0],
            clock=state[:, 0],
            running=state[:, 1].astype(np.int64),
            waiting=state[:, 2].astype(np.int64),
            prompt=counts[:, 0].astype(np.int64),
            generated=counts[:, 1].astype(np.int64),
            preempted=counts[:, 2].astype(np.int64),
            kv_use=kv_use,
        )
    ]
    if trouble:
        found.append(Skipped(file, f"{trouble}; what came before it was read"))
    return found


def _sound(table: Floats) -> bool:
    """Whether every number is finite and none is negative."""
    return bool(((table >= 0) & (table < LARGEST)).all())
