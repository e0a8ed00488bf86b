"""How many requests an engine really ran at once while others waited, read off its steps.

While requests wait, an engine limited to S sequences has S in every step; one limited by KV blocks
has as many as fit, which changes with their lengths. Where nothing waits, the most that ran is only
the least that the engine could.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.steps import Steps

QUEUED = 0.05
"""Share of steps with a queue from which its limit is told."""
AT_THE_LIMIT = 0.8
"""Share of queued steps at one number from which that number is a limit of sequences. Steps that
prefill a prompt in parts, or follow an end at once, hold one fewer."""


@dataclass(frozen=True, slots=True)
class EffectiveSlots:
    """Requests of one engine that ran at once."""

    most: int
    limit: Literal["sequences", "varies", "none seen"]
    """A fixed number, one that moves with the requests (KV blocks), or no queue to tell by."""
    queued: float
    """Share of steps while which at least one more request waited."""
    at_most: float
    """Share of those steps that held `most`."""
    low: float
    """10th percentile of requests in a queued step (`most` where there was none)."""


def effective_slots(steps: Steps) -> dict[int, EffectiveSlots]:
    """What each engine of a run could hold, by its label."""
    t = steps.table
    found = {}
    for engine in np.unique(t.engine):
        mine = t.engine == engine
        batch = t.batch[mine]
        # Those that get their first token in this step wait in it without being in the queue.
        queue = t.waiting[mine] - t.firsts[mine] + t.stalled[mine]
        full = batch[queue >= 1]
        share = len(full) / len(batch)
        # A client that replaces its requests keeps one on the way for a step or two: where more
        # ran when none waited, no limit held them.
        turnover = len(full) and full.max() < batch.max() and not t.stalled[mine].any()
        if share < QUEUED or turnover:
            found[int(engine)] = EffectiveSlots(
                int(batch.max()), "none seen", share, 0.0, float(batch.max())
            )
            continue
        most = int(full.max())
        at_most = float((full == most).mean())
        found[int(engine)] = EffectiveSlots(
            most,
            "sequences" if at_most >= AT_THE_LIMIT and not t.stalled[mine].any() else "varies",
            share,
            at_most,
            float(np.percentile(full, 10)),
        )
    return found
