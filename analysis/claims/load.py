"""What limited the load: the rate the client was asked to send, or its cap on requests in flight.

A client asked for 10 requests a second with 10 in flight sends at 10 a second only while the
server answers that fast. Where fewer are delivered and the cap is full, the run is a closed loop
at the cap, and its latencies say nothing about that rate.
"""

from __future__ import annotations

import math
from typing import Literal

from analysis.accounting import delivered
from analysis.capacity import CLOSED, FULL
from analysis.claims import ClaimBase
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement
from analysis.model import Estimate
from analysis.wording import percent, show, span


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a load claim."""

    arms: tuple[str, ...]
    workload: str
    concurrency: int
    limited_by: Literal["rate", "cap"]


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Delivered against requested rate, and L against the cap, for each arm."""
    if not claim.arms:
        raise BadClaim("names no arms; list them in `arms`")
    cells = tuple(ev.cell(arm, claim.workload, claim.concurrency) for arm in claim.arms)
    seen, reasons = [], []
    numbers: list[Estimate] = []
    for cell in cells:
        x, in_flight = ev.account(cell, "throughput"), ev.account(cell, "in_flight")
        asked = cell.runs[0].requested_rate
        numbers += [
            x.estimate(f"delivered, {cell.arm.name}", "completed / duration"),
            in_flight.estimate(f"requests in flight, {cell.arm.name}", "X x stay"),
        ]
        met = all(delivered(account) for account in cell.ledgers)
        missed = math.isinf(asked) or all(delivered(a) is False for a in cell.ledgers)
        # Without a rate the loop is closed by construction, but for ramp and drain.
        share_needed = FULL if math.isfinite(asked) else CLOSED
        full = in_flight.lo >= share_needed * claim.concurrency
        room = in_flight.hi < share_needed * claim.concurrency
        limit = "rate" if met and room else "cap" if full and missed else "neither"
        seen.append(limit)
        rate = f"of {show(asked, '1/s')} asked" if math.isfinite(asked) else "(no rate asked)"
        share = f" ({percent(x.value / asked)})" if math.isfinite(asked) else ""
        what = {
            "rate": "the rate limits",
            "cap": "the cap limits",
            "neither": "neither clearly limits",
        }[limit]
        reasons.append(
            f"{cell.arm.name}: {span(x)} {rate} are delivered{share} with {span(in_flight)} of "
            f"{claim.concurrency} allowed in flight: {what}."
        )
    if all(limit == claim.limited_by for limit in seen):
        verdict = "supported"
    elif any(limit not in (claim.limited_by, "neither") for limit in seen):
        verdict = "refuted"
    else:
        verdict = "inconclusive"
    return Judgement(
        verdict,  # type: ignore[arg-type]
        tuple(reasons),
        tuple(numbers),
        flips="a delivered rate that meets the one asked while the cap has room",
        cells=cells,
        experiment=Experiment(claim.arms, (claim.workload,), (claim.concurrency,), repeats=1),
    )
