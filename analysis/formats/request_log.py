"""What a server says of each request: the collector's plugin (requests-*.jsonl), or OTLP spans.

Both are JSON lines. The plugin writes queue, prefill and decode in seconds; a span has them among
its attributes. vLLM's queue time ends at the first scheduling: what a request waits after a
preemption is inside its decode time. Of a request that was aborted before it got so far, vLLM
writes a negative time; that is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from analysis.formats._files import mapped, one_line
from analysis.model import LARGEST, Floats, Record, ServerTimes, Skipped, Source

_PLUGIN = (b'"id"', b'"queue"', b'"prefill"', b'"decode"')
_SPAN = (b'"id"', b'"attributes"', b"gen_ai.latency")
_ATTRIBUTES = {
    "queue": "gen_ai.latency.time_in_queue",
    "prefill": "gen_ai.latency.time_in_model_prefill",
    "decode": "gen_ai.latency.time_in_model_decode",
}


class _Line(msgspec.Struct):
    id: str
    queue: float | None = None
    prefill: float | None = None
    decode: float | None = None
    attributes: Mapping[str, object] | None = None


_LINES = msgspec.json.Decoder(_Line)


def sniff(path: Path, head: bytes) -> bool:
    """JSON lines whose first one tells of a request's times."""
    first = head.lstrip().split(b"\n", 1)[0]
    told = all(key in first for key in _PLUGIN) or all(key in first for key in _SPAN)
    return first[:1] == b"{" and told


def read(path: Path, file: str) -> list[Record]:
    """One `ServerTimes`, or the reason why there are none."""
    data, trouble = mapped(path)
    raw = bytes(data)
    try:
        lines = _LINES.decode_lines(raw[: raw.rfind(b"\n") + 1])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return [Skipped(file, f"no log of requests: {one_line(str(error))}; collect again")]
    if not lines:
        return [Skipped(file, "no whole line; collect again")]
    times = {part: _times(lines, part) for part in _ATTRIBUTES}
    if not any(np.isfinite(values).any() for values in times.values()):
        return [Skipped(file, "no line tells a time; collect again")]
    found: list[Record] = [
        ServerTimes(Source(file, ""), tuple(one_line(line.id, 120) for line in lines), **times)
    ]
    if trouble:
        found.append(Skipped(file, f"{trouble}; what came before it was read"))
    return found


def _times(lines: Sequence[_Line], part: str) -> Floats:
    """Seconds of a part of each request; NaN where it is not told."""
    return np.array([_seconds(line, part) for line in lines], dtype=np.float64)


def _seconds(line: _Line, part: str) -> float:
    value: object = getattr(line, part)
    if value is None and line.attributes is not None:
        value = line.attributes.get(_ATTRIBUTES[part])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value) if 0 <= value < LARGEST else math.nan
