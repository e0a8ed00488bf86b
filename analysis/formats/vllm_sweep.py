"""What `vllm bench sweep` and `vllm bench serve` leave beside their results, recognised by name.

A sweep's folder holds `run=N.json` (read as results), `summary.json` and `summary.csv` (the same
numbers again), `*.failure.json` and `warmup.json`; `vllm bench serve` adds `*.pytorch.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from analysis.formats._files import mapped, one_line
from analysis.model import Ignored, Record, Skipped

_TELLING = ("error", "exception", "message", "reason", "stderr", "traceback", "returncode")
"""Keys that may hold why a run failed, the plainest first."""
_MOST_READ = 1 << 20


def sniff(path: Path, head: bytes) -> bool:
    """By the file's name; a `summary.json` only where the runs that it sums up lie beside it."""
    name = path.name.removesuffix(".gz")
    if name == "summary.csv":
        return b"run_number" in head.split(b"\n", 1)[0]
    if name == "summary.json":
        return any(path.parent.glob("run=*.json*"))
    return name == "warmup.json" or name.endswith((".failure.json", ".pytorch.json"))


def read(path: Path, file: str) -> list[Record]:
    """One `Ignored` saying what the file repeats, or the reason of a failed run as `Skipped`."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".failure.json"):
        return [Skipped(file, f"the sweep noted a failed run: {_reason(path)}; run it again")]
    if name == "warmup.json":
        return [Ignored(file, "the warm-up of a sweep, not a measurement")]
    if name.endswith(".pytorch.json"):
        return [Ignored(file, "the same numbers in the layout of PyTorch's benchmark hub")]
    return [Ignored(file, "a sweep's own summary of the run=*.json files, which are read")]


def _reason(path: Path) -> str:
    data, _ = mapped(path)
    try:
        found = msgspec.json.decode(data[:_MOST_READ])
    except (msgspec.DecodeError, RecursionError):
        return one_line(bytes(data[:400]).decode(errors="replace"), 160) or "no reason given"
    if isinstance(found, Mapping):
        told = next((found[key] for key in _TELLING if found.get(key) not in (None, "")), found)
    else:
        told = found
    text = told if isinstance(told, str) else msgspec.json.encode(told).decode()
    lines = [line for line in text.splitlines() if line.strip()] or ["no reason given"]
    return one_line(lines[-1], 160)
