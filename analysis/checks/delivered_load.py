"""Delivered against requested rate: latencies belong to the load that was really applied.

A client with a cap on requests in flight stops sending at the rate it was asked for once the cap
is full; the run is then a closed loop at the cap, whatever `--request-rate` says. Where the cap is
not full, the client or the server fell behind. The noise of so many arrivals and the drain after
the last one are allowed for. Bears on findings about the load only: a closed loop that is compared
with another one at the same cap is none the worse for it.
"""

from __future__ import annotations

import math

from analysis.accounting import SLACK, Ledger, delivered, least_delivered
from analysis.capacity import FULL
from analysis.dataset import Cell
from analysis.model import Outcome
from analysis.wording import percent, show, span

CODE = "SA102"
NAME = "delivered-load"
CONCERNS = ("load", "standing.valid")


def check(cell: Cell, account: Ledger) -> Outcome:
    """Completed requests a second against the rate asked."""
    run, x = account.run, account.throughput
    if not math.isfinite(run.requested_rate) or run.requested_rate <= 0:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "no finite rate was asked for", run.id)
    if x is None:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "throughput is unknown", run.id)
    met, least = delivered(account), least_delivered(account)
    share = x.value / run.requested_rate
    text = f"{span(x)} of {show(run.requested_rate, '1/s')} asked ({percent(share)})"
    if met is None:
        reason = f"{text}, but too few requests, or too little known of them, to tell it from noise"
        return Outcome(CODE, NAME, "NOT APPLICABLE", reason, run.id)
    if least is None or share >= 1 - SLACK:
        return Outcome(CODE, NAME, "VALID", text, run.id)
    if met:
        reason = f"{text}, above the {percent(least)} that noise and drain may leave"
        return Outcome(CODE, NAME, "VALID", reason, run.id)
    reason = f"{text}, below {percent(least)}: {_why(account)}"
    return Outcome(CODE, NAME, "SUSPECT", reason, run.id)


def _why(account: Ledger) -> str:
    """What kept the rate from being delivered, as far as requests in flight tell."""
    cap, in_flight = account.run.concurrency, account.in_flight
    if not cap:
        return "the client or the server fell behind"
    if in_flight is None:
        return "its cap, the client or the server held it back"
    if in_flight.value >= FULL * cap:
        return "the run is a closed loop at its cap, not a run at that rate"
    return "the client or the server fell behind"
