"""Delivered against requested rate: latencies belong to the load that was really applied.

A client with a cap on requests in flight stops sending at the rate it was asked for once the cap
is full; the run is then a closed loop at the cap, whatever `--request-rate` says.
"""

from __future__ import annotations

import math

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.model import Outcome
from analysis.wording import percent, show, span

CODE = "SA102"
NAME = "delivered-load"
DELIVERED = 0.95
"""Less than 95 % of the rate asked is not that rate."""


def check(cell: Cell, account: Ledger) -> Outcome:
    """Completed requests a second against the rate asked."""
    run, x = account.run, account.throughput
    if not math.isfinite(run.requested_rate) or run.requested_rate <= 0:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "no finite rate was asked for", run.id)
    if x is None:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "throughput is unknown", run.id)
    share = x.value / run.requested_rate
    text = f"{span(x)} of {show(run.requested_rate, '1/s')} asked ({percent(share)})"
    if share < DELIVERED:
        reason = f"{text}: the run is a closed loop at its cap, not a run at that rate"
        return Outcome(CODE, NAME, "SUSPECT", reason, run.id)
    return Outcome(CODE, NAME, "VALID", text, run.id)
