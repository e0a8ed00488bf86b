"""Results of `vllm bench serve` and its forerunner benchmark_serving.py, vLLM 0.6 to 0.33.

One object a file, pretty-printed or not, JSON lines, the concatenated objects that
`--append-result` writes, a list of results, and gzip of all of these. With `--save-detailed` a
record holds per-request arrays and is read at level R, without them at level S. Every key that
is no figure is kept in `Run.config`, unknown ones included.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from analysis import ragged
from analysis.formats import vllm_sweep
from analysis.formats._bench_requests import ARRAYS, DROPPED, first_error, read_requests
from analysis.formats._files import mapped, one_line, some_of
from analysis.formats._printed import scalar_of
from analysis.formats._secrets import MASK, is_secret
from analysis.formats._values import setting_of, shown, value_of
from analysis.metrics import LATENCIES, METRICS
from analysis.model import (
    LARGEST,
    SMALLEST,
    Figure,
    Level,
    Record,
    Run,
    Scalar,
    Skipped,
    Source,
)

REQUIRED = ("duration", "completed", "total_input_tokens", "total_output_tokens")
"""Keys that every version writes, and without which nothing can be said."""

_TELLING = (*REQUIRED, "request_throughput", "output_throughput", "mean_ttft_ms", "num_prompts")
_PLAIN = (*REQUIRED, "failed", "num_prompts", "request_throughput", "output_throughput",
          "total_token_throughput")  # fmt: skip
_COUNTS = ("completed", "failed", "num_prompts", "total_input_tokens", "total_output_tokens")
_LATENCY = re.compile(rf"(mean|median|std|p\d+(?:\.\d+)?)_({'|'.join(LATENCIES)})_ms")
_LOADS = ("request_rate", "max_concurrency")
"""Keys that have a field of `Run`."""
_COMBINATION = re.compile(r"SERVE--.*|BENCH--.*")


def sniff(path: Path, head: bytes) -> bool:
    """JSON whose beginning names at least two keys that only a benchmark result has."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] not in (b"{", b"[") or vllm_sweep.sniff(path, head):
        return False
    return sum(f'"{key}"'.encode() in text for key in _TELLING) >= 2


def read(path: Path, file: str) -> list[Record]:
    """One `Run` a record, or `Skipped` with the record's number and the reason."""
    buffer, trouble = mapped(path)
    spans = ragged.values(buffer)
    of_sweep = _combination(path.parent.name)
    found: list[Record] = []
    for number, span in enumerate(spans[: ragged.MOST_VALUES], start=1):
        place = f"record {number}" if len(spans) > 1 else ""
        try:
            found.append(_run(span, file, place, of_sweep))
        except ValueError as error:
            found.append(Skipped(file, f"{place}: {error}" if place else str(error)))
    if len(spans) > ragged.MOST_VALUES:
        most = f"{ragged.MOST_VALUES:,} records"
        found.append(Skipped(file, f"more than {most}; the first were read, split the file"))
    if trouble:
        found.append(Skipped(file, f"{trouble}; what came before it was read, copy it again"))
    return found


def _run(span: ragged.Span, file: str, place: str, of_sweep: Mapping[str, Scalar]) -> Run:
    """One record as a run; a ValueError says why it cannot be one."""
    if not span.complete and span.data[0] != ord("{"):
        began = one_line(bytes(span.data[:40]).decode(errors="replace"), 40)
        raise ValueError(f"not valid JSON: Expected `object`, found text that begins {began!r}")
    if not span.complete:
        raise ValueError(
            f"the JSON object is not complete ({len(span.data)} bytes, beginning "
            f"{one_line(bytes(span.data[:40]).decode(errors='replace'), 40)!r}); "
            "the writer was probably stopped, run it again"
        )
    try:
        keys = ragged.fields(span.data)
    except ValueError as error:
        raise ValueError(f"not valid JSON: {error}") from None
    missing = [key for key in REQUIRED if key not in keys]
    if missing:
        raise ValueError(
            f"no result of vllm bench serve: {some_of(missing, 4)} missing among the keys "
            f"{some_of(list(keys))}"
        )
    figures = _figures(keys, file, place)
    _refuse_empty(figures, keys)
    requests, warnings = read_requests(keys)
    failed = figures.get("failed")
    if failed is not None and failed.value < 0:
        warnings = (*warnings, f"completed exceeds num_prompts by {-failed.value:g}")
        figures = {name: figure for name, figure in figures.items() if name != "failed"}
    return Run(
        id=f"{file}#{place.removeprefix('record ')}" if place else file,
        level=Level.SUMMARY if requests is None else Level.REQUESTS,
        source=Source(file, place),
        figures=figures,
        config={**_config(keys), **of_sweep},
        requests=requests,
        concurrency=_concurrency(keys),
        requested_rate=_rate(keys),
        warnings=warnings,
    )


def _figures(keys: Mapping[str, memoryview], file: str, place: str) -> dict[str, Figure]:
    found: dict[str, Figure] = {}

    def add(name: str, value: float, unit: str, key: str) -> None:
        source = Source(file, f"{place}: {key}" if place else key)
        found[name] = Figure(name, value, value, value, unit, source)

    for key, raw in keys.items():
        latency = _LATENCY.fullmatch(key)
        value = _number(key, raw) if latency or key in _PLAIN else None
        if value is not None and latency:
            add(key.removesuffix("_ms"), value / 1000, "s", key)
        elif value is not None:
            add(key, value, METRICS[key].unit, key)
    if "failed" not in found and "num_prompts" in found:
        lost = found["num_prompts"].value - found["completed"].value
        add("failed", lost, "", "num_prompts - completed")
    return found


def _number(key: str, raw: memoryview) -> float | None:
    """The figure under a key; None for an optional key that is null."""
    value = value_of(raw)
    if value is None and key not in REQUIRED:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key} is {shown(raw)}, expected a number")
    if not abs(value) < LARGEST:
        raise ValueError(
            f"{key} is {shown(raw)}, expected a finite number below {LARGEST:g}; measure it again"
        )
    if value < 0:
        raise ValueError(f"{key} is {shown(raw)}, expected no negative number; measure it again")
    if 0 < value < SMALLEST:
        raise ValueError(
            f"{key} is {shown(raw)}, expected 0 or a number above {SMALLEST:g}; measure it again"
        )
    if key in _COUNTS and value != int(value):
        raise ValueError(f"{key} is {shown(raw)}, expected a whole number")
    return float(value)


def _refuse_empty(figures: Mapping[str, Figure], keys: Mapping[str, memoryview]) -> None:
    if figures["completed"].value == 0:
        failed = figures.get("failed")
        how_many = f"{failed.value:g} failed" if failed else "how many failed is not recorded"
        raise ValueError(
            f"completed is 0 ({how_many}{first_error(keys)}): nothing was measured, "
            "see that the server answers and run again"
        )
    if figures["duration"].value == 0:
        raise ValueError("duration is 0 although requests were completed; measure it again")


def _config(keys: Mapping[str, memoryview]) -> dict[str, Scalar]:
    known = (*_PLAIN, *_LOADS, *ARRAYS, *DROPPED)
    return {
        key: MASK if is_secret(key) and bytes(raw[:1]) == b'"' else setting_of(raw)
        for key, raw in keys.items()
        if key not in known and not _LATENCY.fullmatch(key)
    }


def _concurrency(keys: Mapping[str, memoryview]) -> int | None:
    raw = keys.get("max_concurrency")
    value = value_of(raw) if raw else None
    if raw is None or value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        value = math.nan
    if not 0 < value < LARGEST or value != int(value):
        raise ValueError(f"max_concurrency is {shown(raw)}, expected a positive count or null")
    return int(value)


def _rate(keys: Mapping[str, memoryview]) -> float:
    raw = keys.get("request_rate")
    value = None if raw is None else value_of(raw)
    if value is None:
        return math.inf
    try:
        rate = math.nan if isinstance(value, bool) else float(str(value))
    except ValueError:
        rate = math.nan
    if not rate > 0:
        raise ValueError(f'request_rate is {value!r}, expected a positive number or "inf"')
    return rate


def _combination(folder: str) -> dict[str, Scalar]:
    """Settings in the name of a sweep's folder: `SERVE--max_num_seqs=4-BENCH--max_concurrency=8`.

    vLLM joins key=value pairs by a hyphen; a value may hold hyphens, a key never begins after one
    without its equals sign.
    """
    if not _COMBINATION.fullmatch(folder):
        return {}
    found: dict[str, Scalar] = {}
    for part in re.split(r"(?:^|-)(?=(?:SERVE|BENCH)--)", folder):
        side, _, pairs = part.partition("--")
        for pair in re.split(r"-(?=[A-Za-z_][\w.]*=)", pairs):
            key, equals, value = pair.partition("=")
            if equals:
                found[f"{side.lower()}.{key}"] = scalar_of(value)
    return found
