"""The measured window: no request can stay longer than the run, and the run should be many stays.

A mean stay above the duration is impossible. A run shorter than ten stays is mostly ramp and
drain, so its means are those of a server filling up and emptying.
"""

from __future__ import annotations

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.model import Outcome
from analysis.wording import show

CODE = "SA107"
NAME = "window"
STAYS = 10.0
"""Fewer stays than this leave no steady part to speak of."""


def check(cell: Cell, account: Ledger) -> Outcome:
    """Duration in stays."""
    run, stay = account.run, account.stay
    duration = run.figures.get("duration")
    if duration is None or stay is None:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "duration or stay is unknown", run.id)
    if stay.value <= 0:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "the mean stay is not above 0", run.id)
    stays = duration.value / stay.value
    text = f"{show(duration.value, 's')} is {stays:.1f} stays of {show(stay.value, 's')}"
    if duration.hi < stay.lo:
        return Outcome(CODE, NAME, "INVALID", f"{text}: a request outlasts the run", run.id)
    if stays < STAYS:
        reason = f"{text}, below {STAYS:g}: mostly ramp and drain"
        return Outcome(CODE, NAME, "SUSPECT", reason, run.id)
    return Outcome(CODE, NAME, "VALID", text, run.id)
