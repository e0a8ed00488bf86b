"""Repeats of one cell must be repeats: every configuration field that differs between them.

Their spread is used as run-to-run noise. If a flag, a version or the number of prompts moved
between them, the spread holds an effect too.
"""

from __future__ import annotations

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.grouping import CLIENT_KEYS
from analysis.model import Outcome

CODE = "SA108"
NAME = "config-moved"
_MAY_DIFFER = CLIENT_KEYS - {"num_prompts", "request_rate", "burstiness", "max_concurrency"} | {
    "seed",
    "server.log",
}


def check(cell: Cell, account: Ledger) -> Outcome:
    """This run's configuration against the first repeat's."""
    run, first = account.run, cell.runs[0]
    if len(cell.runs) < 2:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "one run only", run.id)
    both = run.config.keys() & first.config.keys()
    moved = [key for key in sorted(both - _MAY_DIFFER) if run.config[key] != first.config[key]]
    for name in ("num_prompts", "total_input_tokens"):
        a, b = run.figures.get(name), first.figures.get(name)
        if a is not None and b is not None and a.value != b.value:
            moved.append(name)
    if run.requested_rate != first.requested_rate:
        moved.append("request_rate")
    if moved:
        reason = f"differs from {first.id} in {', '.join(moved[:5])}"
        return Outcome(CODE, NAME, "SUSPECT", reason, run.id)
    return Outcome(CODE, NAME, "VALID", f"equal to {first.id}", run.id)
