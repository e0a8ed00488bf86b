"""Latencies of zero: a client that recorded failed or buffered requests as 0 s.

A mean TTFT of 0 is impossible; a mean ITL of 0 with more than one output token means that whole
answers came in one chunk, so ITL says nothing about tokens.
"""

from __future__ import annotations

import numpy as np

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.model import Outcome

CODE = "SA104"
NAME = "zeros"


def check(cell: Cell, account: Ledger) -> Outcome:
    """Means and, where there, the completed requests' own TTFT."""
    run = account.run
    names = [name for name in ("mean_ttft", "mean_itl", "mean_tpot") if name in run.figures]
    if not names:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "no latencies in the file", run.id)
    out = account.mean_output_tokens
    one_token = out is not None and out.value <= 1
    zero = [
        name
        for name in names
        if run.figures[name].value == 0 and not (one_token and name != "mean_ttft")
    ]
    if zero:
        return Outcome(CODE, NAME, "INVALID", f"{', '.join(zero)} is 0", run.id)
    if run.requests is not None:
        ok = ~run.requests.failed
        bad = int(np.count_nonzero(run.requests.ttft[ok] <= 0))
        if bad:
            reason = f"{bad} completed requests have a TTFT of 0 and pull the mean down"
            return Outcome(CODE, NAME, "INVALID", reason, run.id)
    return Outcome(CODE, NAME, "VALID", f"{', '.join(names)} above 0", run.id)
