"""Percentiles against counts: order, and enough requests to know a tail.

p50 <= p90 <= p99 must hold. The greatest of n requests exceeds the q-th percentile with 95 %
confidence only for n >= ln(0.05) / ln(q): 299 for p99. With fewer, a p99 is the maximum under
another name. That weakens the tail and not the run: the run stays VALID, and every number that
rests on the tail says so. ITL percentiles pool gaps, so gaps are counted there.
"""

from __future__ import annotations

import re
from itertools import pairwise

from analysis.accounting import Ledger, ledger
from analysis.dataset import Cell
from analysis.metrics import LATENCIES
from analysis.model import Outcome, Run
from analysis.quantity import Quantity
from analysis.stats import requests_for_percentile
from analysis.wording import plural

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
    if not run.figures.keys() & {"completed", "num_prompts"}:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "requests are not counted", run.id)
    tails = (marks[max(marks)] for marks in rows.values())
    thin = [text for name in tails if (text := tail_warning(run, name, account.mean_output_tokens))]
    reason = "; ".join(thin) or "in order, and enough requests for each"
    return Outcome(CODE, NAME, "VALID", reason, run.id)


def tail_warning(run: Run, name: str, output: Quantity | None = None) -> str:
    """What weakens a percentile of few requests; "" where nothing does or it is no percentile.

    Args:
        run: whose figure it is.
        name: of the figure, as `p99_ttft`.
        output: mean output tokens, where the run does not print them.
    """
    found = _PERCENTILE.fullmatch(name)
    completed = run.figures.get("completed") or run.figures.get("num_prompts")
    if found is None or found.group(2) not in LATENCIES or completed is None:
        return ""
    percentile, latency = float(found.group(1)), found.group(2)
    count, noun = completed.value, "request"
    if latency == "itl":
        output = output or ledger(run).mean_output_tokens
        if output is not None and output.finite:
            count, noun = count * max(1.0, output.value - 1), "gap"
    need = requests_for_percentile(percentile)
    if not count < need:
        return ""
    few = plural(round(count), noun)
    return f"p{percentile:g} of {latency} from {few} is near its maximum ({need:,} needed)"


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
