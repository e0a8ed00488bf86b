"""Cuts what was recorded over a server's whole life down to one run (pure).

Steps, samples and scrapes are cut by Unix time, requests by their ids, the log by its length. A
window of time is closed: a record at `began` or `ended` is inside. A line without a time, or cut
off because the server was killed while it wrote, is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from collectors import scrape


def lines(records: Iterable[str], began: float, ended: float, key: str = "t") -> Iterator[str]:
    """The JSON lines of a window: steps, finished requests, samples of GPUs.

    Args:
        records: lines with their ends.
        began: Unix time, seconds.
        ended: the same.
        key: of the time in a line.
    """
    for record in records:
        at = _table(record).get(key)
        if isinstance(at, int | float) and began <= at <= ended and record.endswith("\n"):
            yield record


def requests(records: Iterable[str], prefixes: Iterable[str], key: str = "id") -> Iterator[str]:
    """The JSON lines of a run's requests: spans and finished requests.

    vLLM puts a word and a dash before the client's id (`cmpl-` or `chatcmpl-`). By the id and not
    by time, so that what another client sent meanwhile is out, and what ended late is in.

    Args:
        records: lines with their ends.
        prefixes: what the ids of the run begin with, one a client.
        key: of the id in a line.
    """
    wanted = tuple(prefixes)
    for record in records:
        name = _table(record).get(key)
        if isinstance(name, str) and record.endswith("\n"):
            bare = name.partition("-")[2] if name.startswith(("cmpl-", "chatcmpl-")) else name
            if bare.startswith(wanted):
                yield record


def metrics(text: Iterable[str], began: float, ended: float) -> Iterator[str]:
    """The scrapes of a window, each with its heading; failed ones too.

    Args:
        text: lines of the sampled metrics, with their ends.
        began: Unix time, seconds.
        ended: the same.
    """
    inside = False
    for line in text:
        if line.startswith((scrape.AT, scrape.FAILED)):
            at = _heading_time(line)
            inside = at is not None and began <= at <= ended
        if inside:
            yield line


def log(whole: bytes, ready: int, began: int, ended: int) -> bytes:
    """What a server printed while it started and during one run.

    By places in the file, which whoever started the server knows, and not by time: vLLM's stamps
    have no year and no zone, and half of the lines have none at all.

    Args:
        whole: the log.
        ready: its length when the server was ready.
        began: its length when the run began; `ready` or more.
        ended: its length when the run was over.

    Returns:
        Whole lines; one line in between tells how many bytes of other runs are left out.
    """
    start = whole[: _line_end(whole, ready)]
    begin = max(_line_end(whole, began), len(start))
    window = whole[begin : max(_line_end(whole, ended), begin)]
    left_out = begin - len(start)
    if not left_out:
        return start + window
    return start + b"[... %d bytes of other runs ...]\n" % left_out + window


def _line_end(whole: bytes, at: int) -> int:
    """The first place from `at` on where a line begins, or the end."""
    if at <= 0:
        return 0
    found = whole.find(b"\n", at - 1)
    return len(whole) if found < 0 else found + 1


def _table(record: str) -> dict[str, object]:
    try:
        table = json.loads(record)
    except (ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}


def _heading_time(line: str) -> float | None:
    """When a scrape began; None where the comment is cut off."""
    try:
        return float(line.split(" ", 3)[2])
    except (IndexError, ValueError):
        return None
