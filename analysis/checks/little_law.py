"""Little's law: throughput x stay is the mean number of requests in flight.

It may not exceed the cap on requests in flight (the mean stay would be impossible: a wrong cap,
duration, or latency), and in a closed loop it should fill it. Well below the cap, the run was
mostly ramp and drain, or the client could not keep up. A run at a rate that was delivered is no
closed loop.
"""

from __future__ import annotations

from analysis.accounting import Ledger, delivered
from analysis.capacity import CLOSED
from analysis.dataset import Cell
from analysis.model import Outcome
from analysis.wording import percent, span

CODE = "SA101"
NAME = "little-law"
OVER = 1.02
"""Requests in flight above the cap by more than 2 % are impossible."""
UNDER = CLOSED
"""A closed loop that fills less than 80 % of its cap."""


def check(cell: Cell, account: Ledger) -> Outcome:
    """L against the cap."""
    run, in_flight = account.run, account.in_flight
    if in_flight is None or not run.concurrency:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "no cap, TTFT, ITL or token counts", run.id)
    fill = in_flight.value / run.concurrency
    text = f"{span(in_flight)} of {run.concurrency} in flight ({percent(fill)})"
    if in_flight.lo > OVER * run.concurrency:
        return Outcome(CODE, NAME, "INVALID", f"{text}: more than the cap allows", run.id)
    if fill < UNDER and not delivered(account):
        reason = f"{text}, below {percent(UNDER, 0)}: ramp and drain, the client, or another cap"
        return Outcome(CODE, NAME, "SUSPECT", reason, run.id)
    return Outcome(CODE, NAME, "VALID", text, run.id)
