"""Requests wait for a slot, and that wait makes the TTFT what it is.

By Little's law L_first = X x TTFT requests are waiting or in prefill, and L_decode are past their
first token. With a prefill time from outside the run (`reference`, an arm that does not queue),
S_hat = L_decode + X x prefill requests run, and a server with S slots has an expected TTFT of
(L - S) / X + prefill. The claim holds where S_hat is the configured limit, at least one request
waits, and the forecast meets the TTFT seen. Without a reference, L_first bounds how many can wait.
"""

from __future__ import annotations

import statistics
from typing import Literal

from analysis.capacity import FULL, capacity
from analysis.claims import ClaimBase
from analysis.claims._common import moved
from analysis.claims._waiting import slot_queue, spare
from analysis.dataset import Cell
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing
from analysis.model import Figure, Verdict
from analysis.quantity import Quantity, constant, quantity
from analysis.wording import percent, plural, show, span

_ODD_LENGTH = 0.03
"""Borrowed output lengths this far from what Little's law implies are warned about."""


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a queue claim."""

    arm: str
    workload: str
    concurrency: int
    limit: Literal["max_num_seqs", "slots"] = "slots"
    """What the sentence says holds requests back."""
    slots: int | None = None
    """How many the sentence says run at once, where it is not max_num_seqs."""
    reference: str = ""
    """An arm that does not queue, for the prefill time."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Count who runs and who waits."""
    cell = ev.cell(claim.arm, claim.workload, claim.concurrency)
    first, decode = ev.account(cell, "l_first"), ev.account(cell, "l_decode")
    ttft, in_flight = ev.account(cell, "ttft"), ev.account(cell, "in_flight")
    slots = _slots(claim, ev, cell)
    numbers = [
        in_flight.estimate("requests in flight (L)", "X x stay"),
        first.estimate("waiting or in prefill", "X x mean TTFT"),
        decode.estimate("past the first token", "X x ITL x (output tokens - 1)"),
        ttft.estimate("mean TTFT"),
    ]
    warnings = _length_warnings(ev, cell)
    if not claim.reference:
        verdict, reasons = _bounds(claim, slots, first, decode)
        cells: tuple[Cell, ...] = (cell,)
        confounds: tuple[str, ...] = ()
    else:
        if slots is None:
            raise BadClaim("names neither `slots` nor an arm with max_num_seqs; say how many run")
        other = ev.cell(claim.reference, claim.workload, claim.concurrency)
        prefill = ev.account(other, "ttft")
        if ttft.value <= 0:
            raise Missing(f"a mean TTFT above 0 of {cell.name}", "a share is taken of it")
        verdict, reasons, extra = slot_queue(cell, slots, prefill, claim.reference)
        numbers += extra
        cells = (cell, other)
        room = capacity(other).slots
        if verdict == "supported" and room is not None and room.lo < claim.concurrency:
            verdict = "inconclusive"
            reasons = (
                f"{claim.reference} has {show(room.value)} slots for {claim.concurrency} in "
                "flight itself, so its TTFT is no prefill time.",
                *reasons,
            )
        confounds = moved(other.arm, cell.arm, besides={claim.limit})
        if len(confounds) > 0 and verdict == "supported":
            reasons = (
                *reasons,
                f"{plural(len(confounds), 'other field')} moved too; that the wait is one "
                "for slots is settled by counting, not by the comparison.",
            )
    return Judgement(
        verdict,
        reasons,
        tuple(numbers),
        assumptions=(
            *warnings,
            *(
                (
                    f"prefill service is the mean TTFT of {claim.reference}, "
                    + _room_of(ev.cell(claim.reference, claim.workload, claim.concurrency)),
                )
                if claim.reference
                else ()
            ),
        ),
        confounds=confounds,
        flips="a server queue-time histogram near zero, or a running count above the limit",
        cells=cells,
        experiment=Experiment(
            (claim.arm, *((claim.reference,) if claim.reference else ())),
            (claim.workload,),
            (claim.concurrency,),
        ),
    )


def _room_of(reference: Cell) -> str:
    known = spare(reference)
    if known is None:
        return "which is taken to have slots to spare"
    return "which has slots to spare" if known else "which has none to spare"


def _slots(claim: Claim, ev: Evidence, cell: Cell) -> Quantity | None:
    if claim.slots is not None:
        return constant(float(claim.slots))
    limit = cell.arm.spec.max_num_seqs
    if claim.limit == "max_num_seqs" and limit is None:
        raise BadClaim(f"blames max_num_seqs, which study.toml does not give for {claim.arm}")
    if limit is None:
        return None
    n = float(limit * cell.arm.spec.replicas)
    source = cell.arm.stated_in("max_num_seqs")
    return quantity(Figure("max_num_seqs", n, n, n, "", source))


def _bounds(
    claim: Claim, slots: Quantity | None, first: Quantity, decode: Quantity
) -> tuple[Verdict, tuple[str, ...]]:
    """No prefill time from outside: L_first bounds the waiting, L_decode the running."""
    text = f"On average {span(decode)} of {claim.concurrency} requests are being decoded"
    if slots is not None and decode.lo > slots.value:
        return "refuted", (
            f"{text}, more than the {show(slots.value)} that are said to run.",
            f"Waiting and in prefill together are {span(first)} requests.",
        )
    if first.hi < 1:
        return "refuted", (
            f"On average {span(first)} of {claim.concurrency} requests wait at most, "
            f"prefill included; {span(decode)} are being decoded.",
        )
    return "inconclusive", (
        f"{text}; {span(first)} wait or are in prefill, and means alone do not part the two.",
    )


def _length_warnings(ev: Evidence, cell: Cell) -> tuple[str, ...]:
    """Borrowed output lengths against what Little's law implies from the other closed loops."""
    if not cell.borrows or cell.concurrency is None:
        return ()
    own = [
        found.value / other.concurrency
        for other in ev.study.cells
        if other.workload == cell.workload
        and not other.borrows
        and other.concurrency
        and (found := other.account("in_flight")) is not None
        and found.value >= FULL * other.concurrency
    ]
    out_tps, itl = cell.metric("output_throughput"), cell.metric("mean_itl")
    ttft, out = cell.account("ttft"), cell.account("mean_output_tokens")
    if not own or out_tps is None or itl is None or ttft is None or out is None:
        return ()
    fill = statistics.median(own) * cell.concurrency
    # L = X (TTFT - ITL) + ITL x output throughput, solved for X at the fill of the other rows.
    x = (fill - itl.value * out_tps.value) / (ttft.value - itl.value)
    if x <= 0 or abs(out.value * x / out_tps.value - 1) < _ODD_LENGTH:
        return ()
    off = out.value * x / out_tps.value - 1
    in_flight = cell.account("in_flight")
    return (
        f"the assumed {show(out.value)} output tokens look {percent(abs(off), 0)} "
        f"{'high' if off > 0 else 'low'} here: they give {span(in_flight) if in_flight else '?'} "
        f"requests in flight where other runs of this workload fill {show(fill)}",
    )
