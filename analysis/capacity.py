"""How many requests an arm can run at once on a workload, and what limits that.

A start-up log's "maximum concurrency" is KV tokens / max_model_len: a worst case for requests
that fill the whole context, not a batch width. At a workload the slots are
min(max_num_seqs, KV tokens / resident tokens of a running request), resident being prompt +
output (conservative) or prompt + output / 2 (mean over a request's life).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from analysis.accounting import delivered
from analysis.dataset import Arm, Cell
from analysis.model import Figure
from analysis.quantity import Quantity, minimum, quantity
from analysis.wording import show, span

Limit = Literal[
    "client cap",
    "request rate",
    "max_num_seqs",
    "KV cache",
    "slots of an unknown kind",
    "not identified",
]

FULL = 0.95
"""A cap counts as reached when requests in flight are at least this share of it."""
CLOSED = 0.80
"""A client without a rate keeps its cap filled but for ramp and drain, down to this share."""
QUEUE_SHARE = 0.20
"""A stay with more than this share before the first token may hold a queue."""


@dataclass(frozen=True, eq=False, slots=True)
class Capacity:
    """Slots of one cell, over all engines of its arm."""

    sequence_limit: Quantity | None
    """max_num_seqs x engines; None where it is not stated."""
    kv_slots: Quantity | None
    """KV tokens / (prompt + output tokens), conservative."""
    kv_slots_mean: Quantity | None
    """KV tokens / (prompt + output / 2)."""
    reported: Quantity | None
    """Maximum concurrency as the log prints it, times the engines."""

    @property
    def slots(self) -> Quantity | None:
        """The smaller of the limits that are known."""
        if self.kv_slots is None or self.sequence_limit is None:
            return self.kv_slots or self.sequence_limit
        return minimum(self.kv_slots, self.sequence_limit)


def kv_tokens(arm: Arm) -> Quantity | None:
    """KV cache of all the arm's engines, tokens."""
    if arm.startup is None or "kv_tokens" not in arm.startup.figures:
        return None
    return quantity(arm.startup.figures["kv_tokens"]) * float(arm.spec.replicas)


def capacity(cell: Cell) -> Capacity:
    """Slots of a cell from the start-up facts, the flags and the workload's lengths."""
    arm = cell.arm
    limit = None
    if arm.spec.max_num_seqs is not None:
        source = arm.stated_in("max_num_seqs")
        n = float(arm.spec.max_num_seqs)
        limit = quantity(Figure("max_num_seqs", n, n, n, "", source)) * float(arm.spec.replicas)
    tokens = kv_tokens(arm)
    resident, half = cell.account("mean_tokens"), cell.account("resident_tokens")
    reported = None
    if arm.startup is not None and "reported_max_concurrency" in arm.startup.figures:
        figure = quantity(arm.startup.figures["reported_max_concurrency"])
        reported = figure * float(arm.spec.replicas)
    return Capacity(
        limit,
        (tokens / resident).as_unit("") if tokens is not None and resident is not None else None,
        (tokens / half).as_unit("") if tokens is not None and half is not None else None,
        reported,
    )


def running_slots(cell: Cell, prefill: Quantity) -> Quantity | None:
    """S_hat = L_decode + X x prefill service: requests running, from outside the server.

    `prefill` (s) must come from outside the run (an arm that does not queue, the server's own
    prefill time), or "TTFT = waiting + prefill" is an identity and tests nothing.
    """
    decode, x = cell.account("l_decode"), cell.account("throughput")
    if decode is None or x is None:
        return None
    return (decode + (x * prefill).as_unit("")).as_unit("")


def waiting(cell: Cell, prefill: Quantity) -> Quantity | None:
    """L - S_hat = X x (TTFT - prefill service): requests that wait, on average.

    L, not the cap N, which ramp and drain never fill.
    """
    first, x = cell.account("l_first"), cell.account("throughput")
    # X x TTFT run by run, then averaged: running and waiting add up to L over unlike repeats too.
    return None if first is None or x is None else first - (x * prefill).as_unit("")


def queue_in_sight(cell: Cell) -> bool:
    """Whether requests may wait for slots by the run's own figures.

    More than a fifth of a stay before the first token, and at least one request fewer being
    decoded than allowed: a slow prefill or a queue. Nobody may say "nobody waits" of such a run.
    """
    share, decode = cell.account("first_token_share"), cell.account("l_decode")
    if share is None or decode is None or cell.concurrency is None:
        return False
    return share.value > QUEUE_SHARE and cell.concurrency - decode.value >= 1


def forecast_ttft(cell: Cell, slots: Quantity, prefill: Quantity) -> Quantity | None:
    """Expected TTFT of a slot-limited server: (L - S) / X + prefill, s.

    (L - S), not (N - S): ramp and drain are in N.
    """
    in_flight, x = cell.account("in_flight"), cell.account("throughput")
    if in_flight is None or x is None:
        return None
    return ((in_flight - slots) / x).as_unit("s") + prefill


@dataclass(frozen=True, slots=True)
class Binding:
    """What limits the running batch of a cell."""

    limit: Limit
    reason: str


def binds(cell: Cell, prefill: Quantity | None = None) -> Binding:
    """Which of client cap, request rate, max_num_seqs and KV limits the running batch.

    `prefill` is a prefill service time from outside the run; with it, slots are seen even
    where no flag or log names them.
    """
    n, in_flight = cell.concurrency, cell.account("in_flight")
    x = cell.account("throughput")
    slots = capacity(cell)
    rate = cell.runs[0].requested_rate
    least, name = _least(n, slots)
    if in_flight is None or x is None:
        if n is not None and least < n:
            return Binding(
                name,
                f"the {name} limit allows {show(least)} at once where the client allows "
                f"{n}; that it fills them is assumed",
            )
        if n is not None and least == n and slots.slots is not None and math.isinf(rate):
            return Binding(
                "client cap",
                f"{n} allowed in flight, and the server has room for "
                f"{show(slots.slots.value)}; that the client fills them is assumed",
            )
        return Binding(
            "not identified",
            "TTFT, ITL or token counts are missing, so Little's law "
            "cannot count the requests in flight",
        )
    met = all(delivered(account) for account in cell.ledgers)
    if met and in_flight.value < FULL * least:
        return Binding(
            "request rate",
            f"{show(x.value, '1/s')} of {show(rate, '1/s')} asked are "
            f"delivered with {span(in_flight)} in flight, so nothing fills",
        )
    filled = in_flight.value >= (CLOSED if math.isinf(rate) else FULL) * least
    if name in ("max_num_seqs", "KV cache") and filled:
        text = f"the {name} limit allows {show(least)} at once where {_sent(n)}"
        return Binding(name, text)
    if n is not None and prefill is not None:
        seen, queued = running_slots(cell, prefill), waiting(cell, prefill)
        if seen is not None and queued is not None and _queue_shown(cell, queued, prefill):
            return Binding(
                "slots of an unknown kind",
                f"{span(seen)} requests run (decode and a prefill measured elsewhere), "
                f"{span(queued)} wait",
            )
    closed = math.isinf(rate) and n is not None and in_flight.value >= CLOSED * n
    if n is not None and (closed or in_flight.value >= FULL * n):
        margin = ""
        if slots.slots is not None:
            margin = f"; the server has room for {show(slots.slots.value)}"
        first = cell.account("first_token_share")
        unstated = slots.sequence_limit is None and prefill is None
        if unstated and first is not None and queue_in_sight(cell):
            return Binding(
                "not identified",
                f"{span(in_flight)} of {n} are in flight and "
                f"{100 * first.value:.0f} % of a stay is before the first token: a slow "
                "prefill or a queue for slots; a start-up log or a run with fewer in "
                "flight would tell",
            )
        return Binding("client cap", f"{span(in_flight)} of {n} allowed are in flight{margin}")
    if n is None:
        return Binding("not identified", f"no client cap; {span(in_flight)} in flight")
    return Binding(
        "not identified",
        f"only {span(in_flight)} of {n} are in flight: ramp, drain or the client itself limits",
    )


STAYS = 10.0
"""A run shorter than this many stays is ramp and drain, and shows no queue."""


def _queue_shown(cell: Cell, queued: Quantity, prefill: Quantity) -> bool:
    """Whether a prefill from elsewhere shows a queue for slots, and not a slower prefill here.

    Requests wait, most of the TTFT is that wait, the cap is filled, the run is long, and no known
    limit says that everybody has a slot.
    """
    n, in_flight, stay = cell.concurrency, cell.account("in_flight"), cell.account("stay")
    ttft, known = cell.account("ttft"), capacity(cell)
    if n is None or in_flight is None or stay is None or ttft is None:
        return False
    if known.kv_slots is not None and known.kv_slots.lo >= n:
        return False
    durations = [run.figures["duration"].value for run in cell.runs if "duration" in run.figures]
    if durations and min(durations) < STAYS * stay.value:
        return False
    waits_most = (prefill / ttft).value < 0.5
    return queued.lo >= 1 and waits_most and in_flight.value >= FULL * n


def _least(n: int | None, slots: Capacity) -> tuple[float, Limit]:
    """The smallest of the limits that are known, and its name."""
    known: list[tuple[float, Limit]] = [
        (float(n) if n is not None else math.inf, "client cap"),
        (slots.sequence_limit.value if slots.sequence_limit else math.inf, "max_num_seqs"),
        (slots.kv_slots.value if slots.kv_slots else math.inf, "KV cache"),
    ]
    return min(known, key=lambda item: item[0])


def _sent(n: int | None) -> str:
    return "the client sends without a cap" if n is None else f"{n} are in flight"


def reference_prefill(cell: Cell, others: tuple[Cell, ...]) -> Quantity | None:
    """TTFT of the least loaded cell of the same arm and workload: an upper bound on prefill.

    Used for standing questions only, where no claim names a reference.
    """
    lighter = [
        other
        for other in others
        if other.arm.name == cell.arm.name
        and other.workload == cell.workload
        and other.concurrency is not None
        and cell.concurrency is not None
        and other.concurrency * 2 <= cell.concurrency
        and other.account("ttft") is not None
    ]
    if not lighter:
        return None
    found = [q for c in lighter if (q := c.account("ttft")) is not None]
    return min(found, key=lambda q: q.value)
