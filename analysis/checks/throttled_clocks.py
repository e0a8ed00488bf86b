"""GPU clocks: a GPU that its power cap or its heat slows down is not the GPU that was meant.

Over the steady part of the run the mean SM clock is set against the greatest one that the same
samples show. A clock that fell below `FELL` of it makes times longer by up to as much, more for
computing than for reading memory, and unequally between arms: the arm that draws more power falls
further. Where the file tells NVML's reasons, a fall counts only with one of power or heat.
"""

from __future__ import annotations

import math

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.gpu_use import FELL, gpu_use
from analysis.model import Outcome
from analysis.wording import digits, listing, percent

CODE = "SA111"
NAME = "throttled-clocks"


def check(cell: Cell, account: Ledger) -> Outcome:
    """The mean clock of the slowest GPU against its own greatest."""
    run = account.run
    use = gpu_use(run)
    if use is None or not math.isfinite(use.slowest):
        reason = "no samples of the GPUs' clocks while they worked"
        return Outcome(CODE, NAME, "NOT APPLICABLE", reason, run.id)
    gpu = "the GPU" if use.gpus == 1 else f"the slowest of {use.gpus} GPUs"
    text = (
        f"the SM clock of {gpu} was {percent(use.slowest)} of its own greatest "
        f"({digits(use.top_clock)} MHz) on average under {use.window}"
    )
    if use.slowest >= FELL:
        return Outcome(CODE, NAME, "VALID", text, run.id)
    if use.reasons_known and not use.reasons:
        reason = f"{text}, and no sample tells of a power cap or of heat"
        return Outcome(CODE, NAME, "VALID", reason, run.id)
    told = listing(f"{word} in {percent(share, 0)} of the samples" for word, share in use.reasons)
    why = f": {told}" if told else f", at {digits(use.power)} W; the file does not tell why"
    reason = f"{text}, below {percent(FELL, 0)}{why}"
    return Outcome(CODE, NAME, "SUSPECT", reason, run.id)
