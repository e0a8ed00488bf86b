"""Percentiles against counts: order, and enough requests to know a tail.

p50 <= p90 <= p99 must hold. The greatest of n requests exceeds the q-th percentile with 95 %
confidence only for n >= ln(0.05) / ln(q): 299 for p99. With fewer, a p99 is the maximum under
another name. ITL percentiles pool gaps, so gaps are counted there.
"""

from __future__ import annotations

import re
from itertools import pairwise

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.metrics import LATENCIES
from analysis.model import Outcome, Run
from analysis.stats import requests_for_percentile

CODE = "SA105"
NAME = "percentiles"
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)_(\w+)")


def check(cell: Cell, account: Ledger) -> Outcome:
    """Order of the percentiles, then the tail each count supports."""
    run = account.run
    rows = _rows(run)
    if not rows:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "no percentiles in the file", run.id)
    for latency, marks in rows.items():
        ordered = sorted(marks.items())
        for (low, a), (high, b) in pairwise(ordered):
            if run.figures[a].lo > run.figures[b].hi:
                reason = f"p{low:g} of {latency} exceeds its p{high:g}"
                return Outcome(CODE, NAME, "INVALID", reason, run.id)
    completed = run.figures.get("completed") or run.figures.get("num_prompts")
    if completed is None:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "requests are not counted", run.id)
    out = account.mean_output_tokens
    thin: list[str] = []
    need = 0
    for latency, marks in rows.items():
        count = completed.value
        if latency == "itl":
            count *= max(1.0, out.value - 1) if out is not None else 1.0
        top = max(marks)
        if count < requests_for_percentile(top):
            thin.append(f"p{top:g} of {latency} from {count:,.0f}")
            need = max(need, requests_for_percentile(top))
    if thin:
        reason = f"too few for the tail ({need} needed): {', '.join(thin)}"
        return Outcome(CODE, NAME, "SUSPECT", reason, run.id)
    return Outcome(CODE, NAME, "VALID", "in order, and enough requests for each", run.id)


def _rows(run: Run) -> dict[str, dict[float, str]]:
    """Latency -> percentile -> figure name; the median counts as p50."""
    rows: dict[str, dict[float, str]] = {}
    for name in run.figures:
        found = _PERCENTILE.fullmatch(name)
        if found and found.group(2) in LATENCIES:
            rows.setdefault(found.group(2), {})[float(found.group(1))] = name
    for latency, marks in rows.items():
        if f"median_{latency}" in run.figures:
            marks.setdefault(50.0, f"median_{latency}")
    return rows
