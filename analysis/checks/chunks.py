"""Chunks against tokens: ITL counts gaps between stream chunks, which are not always tokens.

Speculative decoding, multi-step scheduling, parsers and a busy client put several tokens into one
chunk. Where chunks are well below tokens, pooled ITL is not a time per token, and stay - TTFT
over output - 1 is used instead. Without per-request arrays it shows in a mean ITL above the mean
TPOT, which divides the same time by tokens.
"""

from __future__ import annotations

import numpy as np

from analysis.accounting import Ledger, tokens_a_chunk
from analysis.dataset import Cell
from analysis.model import Outcome, Status
from analysis.wording import percent, show

CODE = "SA109"
NAME = "chunks"
MERGED = 0.99
"""Below 99 % chunks a token, ITL is of chunks."""
FUSED = 0.50
"""Median ITL far below its mean: most gaps are chunks that arrived together."""


def check(cell: Cell, account: Ledger) -> Outcome:
    """Chunks counted where arrays are there; else ITL against TPOT and its own median."""
    run = account.run
    requests = run.requests
    if requests is None:
        if (several := tokens_a_chunk(run)) is not None:
            itl, tpot = (show(run.figures[name].value, "s") for name in ("mean_itl", "mean_tpot"))
            reason = f"ITL {itl} is {several:.3g} x TPOT {tpot}: several tokens a chunk"
            return Outcome(CODE, NAME, "SUSPECT", reason, run.id)
        mean, median = run.figures.get("mean_itl"), run.figures.get("median_itl")
        if mean is None or median is None or mean.value <= 0:
            return Outcome(CODE, NAME, "NOT APPLICABLE", "no per-request arrays", run.id)
        ratio = median.value / mean.value
        if ratio < FUSED:
            reason = f"median ITL is {percent(ratio)} of its mean: chunks arrive in bunches"
            return Outcome(CODE, NAME, "SUSPECT", reason, run.id)
        return Outcome(CODE, NAME, "VALID", f"median ITL is {percent(ratio)} of its mean", run.id)
    ok = ~requests.failed
    chunks = float((np.diff(requests.offsets)[ok] + 1).sum())
    tokens = float(requests.output_tokens[ok].sum())
    if tokens <= 0:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "no output tokens", run.id)
    text = f"{chunks:,.0f} chunks for {tokens:,.0f} tokens ({percent(chunks / tokens)})"
    status: Status = "SUSPECT" if chunks / tokens < MERGED else "VALID"
    return Outcome(CODE, NAME, status, text, run.id)
