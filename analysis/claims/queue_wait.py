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
from analysis.claims._waiting import NEAR, slot_queue, spare
from analysis.dataset import Cell
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing
from analysis.model import Estimate, Figure, Verdict
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
    flow = _implied_flow(ev, cell)
    warnings = () if flow is None else _length_warnings(ev, cell, flow)
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
                f"{plural(len(confounds), 'other setting')} changed, but the slot count alone "
                "identifies the wait.",
            )
        if warnings and flow is not None:
            corrected = _corrected(cell, flow, prefill)
            numbers += corrected
            run, wait = (span(number) for number in corrected)
            reasons = (
                reasons[0],
                "These intervals are rounding only: with the output length that the other runs "
                f"imply, {run} run and {wait} wait.",
                *reasons[1:],
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
        flips=_flips(verdict, slots),
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


def _flips(verdict: Verdict, slots: Quantity | None) -> str:
    """What a server's own counters would have to show."""
    if verdict == "refuted":
        return "a server queue-time histogram that holds most of the TTFT"
    limit = "the limit" if slots is None else show(slots.value)
    return (
        "a server queue-time histogram near zero, or a running count more than "
        f"{NEAR:g} away from {limit}"
    )


def _implied_flow(ev: Evidence, cell: Cell) -> Quantity | None:
    """Request throughput by Little's law, where output lengths are borrowed and look wrong.

    L = X (TTFT - ITL) + ITL x output throughput, solved for X at the fill of the other runs.
    """
    if not cell.borrows or cell.concurrency is None:
        return None
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
        return None
    fill = statistics.median(own) * cell.concurrency
    x = ((itl * out_tps * -1.0 + fill) / (ttft - itl)).as_unit("1/s")
    if x.value <= 0 or abs(out.value * x.value / out_tps.value - 1) < _ODD_LENGTH:
        return None
    return x


def _length_warnings(ev: Evidence, cell: Cell, flow: Quantity) -> tuple[str, ...]:
    """Borrowed output lengths against what Little's law implies."""
    out, out_tps = ev.account(cell, "mean_output_tokens"), ev.need(cell, "output_throughput")
    ttft, itl = ev.account(cell, "ttft"), ev.need(cell, "mean_itl")
    off = out.value * flow.value / out_tps.value - 1
    fill = flow.value * (ttft.value - itl.value) + itl.value * out_tps.value
    in_flight = cell.account("in_flight")
    return (
        f"the assumed {show(out.value)} output tokens look {percent(abs(off), 0)} "
        f"{'high' if off > 0 else 'low'} here: they give {span(in_flight) if in_flight else '?'} "
        f"requests in flight where other runs of this workload fill {show(fill)}",
    )


def _corrected(cell: Cell, flow: Quantity, prefill: Quantity) -> list[Estimate]:
    """Who runs and who waits at the throughput that Little's law implies."""
    out_tps, itl, ttft = (
        cell.metric("output_throughput"),
        cell.metric("mean_itl"),
        cell.account("ttft"),
    )
    if out_tps is None or itl is None or ttft is None:
        return []
    run = (itl * out_tps + flow * (prefill - itl)).as_unit("")
    wait = (flow * (ttft - prefill)).as_unit("")
    how = "X from the requests in flight of the workload's other runs"
    return [
        run.estimate("running, output length corrected", how),
        wait.estimate("waiting, output length corrected", how),
    ]
