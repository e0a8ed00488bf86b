"""Waiting for a slot: who has room to spare, and whether a queue explains a TTFT."""

from __future__ import annotations

from analysis.capacity import capacity, forecast_ttft, queue_in_sight, running_slots, waiting
from analysis.dataset import Cell
from analysis.evidence import Missing
from analysis.model import Estimate, Verdict
from analysis.quantity import Quantity, constant
from analysis.wording import listing, percent, show, span

SPARE = 2.0
"""Slots must exceed requests in flight by this factor before preemption counts as excluded."""


DEFAULT_SEQUENCES = 256
"""vLLM's default max_num_seqs on a GPU server: 256, on large cards more."""


def spare(cell: Cell) -> bool | None:
    """Whether the cell's slots hold its load with room to spare; None where that is not known.

    A sequence limit alone can show that they do not, never that they do: memory may hold fewer.
    """
    found, n = capacity(cell), float(cell.concurrency or 0)
    if found.slots is None:
        return None
    if found.slots.hi < SPARE * n:
        return False
    if found.sequence_limit is None and n * SPARE > DEFAULT_SEQUENCES * cell.arm.spec.replicas:
        return None
    if found.sequence_limit is None and queue_in_sight(cell):
        return None
    return True if found.kv_slots is not None and found.slots.lo >= SPARE * n else None


def room_word(cell: Cell) -> str:
    """What the cell's slots are: of the KV cache alone where no max_num_seqs is stated."""
    return "KV slots" if capacity(cell).sequence_limit is None else "slots"


def unstated_limits(*cells: Cell) -> tuple[str, ...]:
    """The assumption behind slots to spare where no max_num_seqs is stated."""
    names = [c.arm.name for c in dict.fromkeys(cells) if capacity(c).sequence_limit is None]
    if not names:
        return ()
    return (
        f"max_num_seqs of {listing(dict.fromkeys(names))} is not stated; vLLM's default of "
        f"{DEFAULT_SEQUENCES} or more is taken",
    )


TOLERANCE = 0.10
"""A forecast within this share of the TTFT seen counts as met."""

NEAR = 0.5
"""Requests by which those that run may miss the slots that are said to limit them."""

QUEUE = 0.5
"""Requests that wait on average before one speaks of a queue."""


def slot_queue(
    cell: Cell, slots: Quantity, prefill: Quantity, reference: str
) -> tuple[Verdict, tuple[str, ...], list[Estimate]]:
    """Whether waiting for one of so many slots makes the cell's TTFT what it is.

    `prefill` is the TTFT of `reference`, an arm that does not queue. Supported where S_hat is the
    limit, somebody waits, most of the TTFT is that wait, and the forecast meets the TTFT seen.
    """
    seen, queued = running_slots(cell, prefill), waiting(cell, prefill)
    forecast, ttft = forecast_ttft(cell, slots, prefill), cell.account("ttft")
    if seen is None or queued is None or forecast is None or ttft is None:
        raise Missing(
            f"mean TTFT, mean ITL or token counts of {cell.name}",
            "S_hat = L_decode + X x prefill needs throughput, TTFT and ITL of the same run",
        )
    met = (forecast / ttft).as_unit("")
    off = met.value - 1
    wait = constant(1.0) - (prefill / ttft).as_unit("")
    numbers: list[Estimate] = [
        seen.estimate("running (S_hat)", "L_decode + X x prefill of the reference"),
        queued.estimate("waiting", "L - S_hat"),
        forecast.estimate("forecast TTFT", "(L - slots) / X + prefill"),
        prefill.estimate("prefill service", f"mean TTFT of {reference}"),
        wait.estimate("waiting's share of the TTFT", "1 - prefill service / mean TTFT"),
    ]
    full = slots.value - NEAR < seen.lo and seen.hi < slots.value + NEAR
    forecast_met = met.lo >= 1 - TOLERANCE and met.hi <= 1 + TOLERANCE
    near = f" ({'within' if full else 'not within'} {NEAR:g} of them)"
    body = (
        f"{span(seen)} requests run where {show(slots.value)} slots are said to limit{near}; "
        f"{span(queued)} wait"
    )
    test = (
        f"A server with {show(slots.value)} slots would show a TTFT of {span(forecast)}; seen "
        f"is {span(ttft)} ({percent(abs(off))} {'less' if off > 0 else 'more'}, "
        f"{'within' if forecast_met else 'not within'} the allowed {percent(TOLERANCE, 0)})"
    )
    if full and queued.lo >= QUEUE and forecast_met and wait.lo > 0.5:
        head = (
            f"Waiting for one of {show(slots.value)} slots is {percent(wait.value, 0)} of the "
            f"TTFT: {body}."
        )
        return "supported", (head, f"{test}."), numbers
    if queued.hi < QUEUE or seen.lo > slots.value + NEAR:
        return "refuted", (f"No queue for {show(slots.value)} slots: {body}.", f"{test}."), numbers
    if wait.hi < 0.5:
        head = f"At most {percent(max(0.0, wait.hi), 0)} of the TTFT is waiting for a slot"
        return "refuted", (f"{head}: {body}.", f"{test}."), numbers
    return "inconclusive", (f"{body[0].upper()}{body[1:]}.", f"{test}."), numbers
