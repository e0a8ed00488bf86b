"""Per-request arrays of a detailed `vllm bench serve` record, and what its errors say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analysis import ragged
from analysis.formats._files import one_line, some_of
from analysis.formats._values import value_of
from analysis.model import LARGEST, SMALLEST, Requests

ARRAYS = ("input_lens", "output_lens", "ttfts", "itls", "start_times", "errors")
"""Keys with one entry a request that are read here."""
DROPPED = ("generated_texts", "latencies", "queue_times", "server_queue_times", "server_ttfts")
"""One entry a request, of no use yet: neither a figure nor a setting."""


def read_requests(keys: Mapping[str, memoryview]) -> tuple[Requests | None, tuple[str, ...]]:
    """The per-request arrays; None where there are none, and a warning where they are unusable."""
    if not any(key in keys for key in ("ttfts", "itls")):
        return None, ()
    absent = [key for key in ("ttfts", "itls", "input_lens", "output_lens") if key not in keys]
    if absent:
        return None, (f"read as a summary: per-request arrays without {some_of(absent, 4)}",)
    at = "ttfts"
    try:
        ttft = ragged.floats(keys[at])
        at = "itls"
        gaps, offsets = ragged.rows(keys[at])
        at = "input_lens"
        prompts = ragged.integers(keys[at])
        at = "output_lens"
        outputs = ragged.integers(keys[at])
        at = "start_times"
        start = ragged.floats(keys[at]) if at in keys else None
        at = "errors"
        if at in keys:
            failed = np.array([_is_error(item) for item in ragged.items(keys[at])], dtype=np.bool_)
        else:
            failed = outputs == 0
    except (ValueError, OverflowError) as error:
        raise ValueError(_unreadable(at, keys[at], str(error))) from None
    sizes = {"ttfts": len(ttft), "itls": len(offsets) - 1, "input_lens": len(prompts),
             "output_lens": len(outputs), "errors": len(failed)}  # fmt: skip
    if start is not None:
        sizes["start_times"] = len(start)
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{key} {size}" for key, size in sizes.items())
        return None, (f"read as a summary: per-request arrays differ in length ({told})",)
    if (ttft < 0).any() or (gaps < 0).any():
        raise ValueError("ttfts or itls hold negative times, expected seconds; measure it again")
    for key, array in (("ttfts", ttft), ("itls", gaps), ("input_lens", prompts),
                       ("output_lens", outputs), ("start_times", start)):  # fmt: skip
        if array is not None and (np.abs(array) >= LARGEST).any():
            raise ValueError(f"{key} holds a number beyond {LARGEST:g}; measure it again")
        if array is not None and ((np.abs(array) < SMALLEST) & (array != 0)).any():
            raise ValueError(f"{key} holds a number below {SMALLEST:g}; measure it again")
    return Requests(ttft, gaps, offsets, prompts, outputs, failed, start), ()


def _unreadable(key: str, raw: memoryview, trouble: str) -> str:
    held = next((word for word in (b"NaN", b"Infinity") if word in bytes(raw)), None)
    if held:
        return f"{key} holds {held.decode()}, expected finite numbers; measure it again"
    return f"{key} cannot be read as an array: {trouble}"


def first_error(keys: Mapping[str, memoryview]) -> str:
    """The first error text, on one line: of a traceback its last line."""
    try:
        errors = filter(_is_error, ragged.items(keys["errors"]))
        text = next((str(value_of(item)) for item in errors), "")
    except (KeyError, ValueError):
        return ""
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    told = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return f", the first with: {one_line(told, 160)}" if told else ""


def _is_error(item: memoryview) -> bool:
    return bytes(item[:5]) not in (b'""', b"null")
