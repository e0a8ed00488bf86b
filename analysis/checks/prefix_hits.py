"""Prefix-cache hits: prompts that an earlier run left in the cache are not prefilled again.

The servers' counters tell which share of the prompt tokens was read from the cache, engine by
engine. In a run that began with an emptied cache the hits are its own prompts' common prefixes. In
one that did not, they may be of the same prompts sent before, and TTFT and throughput those of
another workload.
"""

from __future__ import annotations

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.model import Outcome
from analysis.prefix_hits import prefix_hits
from analysis.wording import listing, percent

CODE = "SA110"
NAME = "prefix-hits"
MOST = 0.05
"""Hits that are let pass where the cache was not emptied: templates that all prompts share."""


def check(cell: Cell, account: Ledger) -> Outcome:
    """The share of each engine; above `MOST` the cache must have been empty at the start."""
    run = account.run
    found = prefix_hits(run)
    if not found:
        reason = "no counters of prefix-cache hits of each engine before and after"
        return Outcome(CODE, NAME, "NOT APPLICABLE", reason, run.id)
    text = listing(f"{percent(one.share)} of {engine}'s" for engine, one in found.items())
    text = f"{text} prompt tokens were read from the prefix cache"
    if run.config.get("prefix_cache_emptied") is True:
        return Outcome(CODE, NAME, "VALID", f"{text}, empty at the start", run.id)
    if max(one.share for one in found.values()) <= MOST:
        return Outcome(CODE, NAME, "VALID", text, run.id)
    known = run.config.get("prefix_cache_emptied") is False
    before = "which was not emptied before" if known else "and nothing says that it was empty"
    reason = f"{text}, {before}: they may be of prompts sent earlier"
    return Outcome(CODE, NAME, "SUSPECT", reason, run.id)
