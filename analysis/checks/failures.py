"""Failed requests: the client exits 0 even when every request failed.

Failed requests are missing from every mean, and they are seldom a fair sample: the longest are
refused first, so what is left is easier than what was asked.
"""

from __future__ import annotations

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.model import Outcome
from analysis.wording import percent

CODE = "SA103"
NAME = "failures"
TOLERATED = 0.05
"""Above 5 % the run is another workload."""


def check(cell: Cell, account: Ledger) -> Outcome:
    """Failed among sent."""
    run = account.run
    failed, completed = run.figures.get("failed"), run.figures.get("completed")
    sent = run.figures.get("num_prompts")
    if completed is None or (failed is None and sent is None):
        return Outcome(CODE, NAME, "NOT APPLICABLE", "the file counts no failures", run.id)
    lost = failed.value if failed is not None else sent.value - completed.value if sent else 0.0
    total = lost + completed.value
    if total <= 0:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "the file counts no requests", run.id)
    if lost < 0:
        reason = f"{completed.value:,.0f} requests completed, {-lost:,.0f} more than were sent"
        return Outcome(CODE, NAME, "SUSPECT", reason, run.id)
    text = f"{lost:,.0f} of {total:,.0f} requests failed ({percent(lost / total)})"
    if lost / total > TOLERATED:
        return Outcome(CODE, NAME, "INVALID", text, run.id)
    if lost:
        return Outcome(CODE, NAME, "SUSPECT", text, run.id)
    return Outcome(CODE, NAME, "VALID", text, run.id)
