"""Room for KV of one engine, as its log or its counters tell it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from collectors.http import get

_IN_LOG = re.compile(r"KV cache size: ([\d,]+) tokens")
_IN_METRICS = re.compile(r"^vllm:cache_config_info\{(?P<labels>.*)\}", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Kv:
    """Room for KV of one engine."""

    tokens: int
    block: int | None
    """Tokens of a block; None where only the log tells."""
    said_in: str
    """ "log" or "metrics"."""


def room(log: Path | None, url: str) -> Kv | None:
    """Room for KV as the log says it, else as the counters do."""
    blocks, block = _blocks(url)
    said = _IN_LOG.findall(log.read_text("utf-8", "replace")) if log is not None else []
    if said:
        return Kv(int(said[-1].replace(",", "")), block, "log")
    if blocks is not None and block is not None:
        return Kv(blocks * block, block, "metrics")
    return None


def _blocks(url: str) -> tuple[int | None, int | None]:
    """Number of KV blocks and tokens of one, from `vllm:cache_config_info`."""
    try:
        found = _IN_METRICS.search(get(f"{url}/metrics"))
    except OSError:
        return None, None
    labels = dict(_LABEL.findall(found["labels"])) if found else {}

    def number(key: str) -> int | None:
        return int(labels[key]) if labels.get(key, "").isdigit() else None

    return number("num_gpu_blocks"), number("block_size")
