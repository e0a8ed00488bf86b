"""The causes that `gap_attribution` can bound from means: of a throughput, a TTFT, and KV pooling.

Each returns a verdict, its reasons and the numbers behind them; the kind's own page (the docstring
of `gap_attribution`) states the identities.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy import stats as sps

from analysis.accounting import Ledger
from analysis.capacity import capacity, queue_in_sight
from analysis.claims._waiting import SPARE, slot_queue, spare
from analysis.dataset import Cell
from analysis.evidence import BadClaim, Evidence, Missing
from analysis.model import Estimate, Verdict
from analysis.quantity import Quantity
from analysis.stats import CONFIDENCE
from analysis.wording import percent, show, span

Cause = Literal["headroom", "queue", "step_cost", "batch", "stay", "kv_pool", "prefill", "idle"]

Result = tuple[Verdict, tuple[str, ...], tuple[Estimate, ...]]


def throughput(ev: Evidence, cause: Cause, base: Cell, treat: Cell) -> Result:
    """X = L_decode / (time per token x (output - 1)), so ln X splits into three terms.

    L holds the waiting requests and is the cap in any closed loop, whatever the running batch
    does; "more at once" is therefore read off L_decode, the requests past their first token.
    """
    if cause not in ("batch", "headroom", "stay", "step_cost"):
        raise BadClaim(
            f"gives cause {cause!r} for a throughput; expected batch, headroom, "
            "stay, step_cost or kv_pool"
        )
    terms = {name: _ratio(ev, base, treat, name) for name in ("throughput", "l_decode", "decode")}
    x, running = terms["throughput"], terms["l_decode"]
    length = ((_tokens(ev, treat) - 1) / (_tokens(ev, base) - 1)).as_unit("")
    token = (terms["decode"] / length).as_unit("")
    fill, stay = _ratio(ev, base, treat, "in_flight"), _ratio(ev, base, treat, "stay")
    shares = {
        "batch": (running.ln() / x.ln()).as_unit(""),
        "step_cost": (token.ln() / x.ln() * -1.0).as_unit(""),
        "stay": (stay.ln() / x.ln() * -1.0).as_unit(""),
    }
    words = {
        "batch": "more requests at once" if x.value > 1 else "fewer requests at once",
        "step_cost": "faster tokens" if x.value > 1 else "slower tokens",
        "stay": "shorter stays" if x.value > 1 else "longer stays",
    }
    key = "batch" if cause in ("batch", "headroom") else cause
    share = shares[key]
    between = _between_runs(base, treat, key)
    lo, hi = (share.lo, share.hi) if between is None else between
    numbers = [
        x.estimate("request throughput ratio"),
        running.estimate("running requests ratio", "L_decode of the treatment / of the baseline"),
        token.estimate("time per token ratio", "decode time / (output tokens - 1)"),
        length.estimate("output length ratio", "(output tokens - 1) of the treatment / baseline"),
        fill.estimate("requests in flight ratio", "L of the treatment / L of the baseline"),
        stay.estimate("stay ratio"),
    ]
    shown = share.estimate(f"share of {words[key]}", "its term / ln X ratio")
    if between is not None:
        shown = replace(
            shown, lo=min(lo, shown.lo), hi=max(hi, shown.hi), interval="95 % between runs (t)"
        )
    numbers.append(shown)
    text = (
        f"{percent(share.value, 0)} of the change in request throughput ({span(x)} x) is "
        f"{words[key]}: it is {span(running)} (requests past their first token) / {span(token)} "
        f"(time per token) / {span(length)} (output length)"
    )
    if hi < 0.5:
        verdict: Verdict = "refuted"
    elif lo > 0.5:
        verdict = "supported"
    else:
        verdict = "inconclusive"
    also = f"In requests in flight, waiting ones included, and stay: {span(fill)} / {span(stay)}."
    return verdict, (f"{text}.", also), tuple(numbers)


def _ratio(ev: Evidence, base: Cell, treat: Cell, name: str) -> Quantity:
    return (ev.account(treat, name) / ev.account(base, name)).as_unit("")


def _tokens(ev: Evidence, cell: Cell) -> Quantity:
    return ev.account(cell, "mean_output_tokens")


_LEAST_PAIRS = 3
"""Repeats of both arms from which a share gets an interval between runs."""


def _between_runs(base: Cell, treat: Cell, key: str) -> tuple[float, float] | None:
    """95 % t interval of a share over pairs of repeats; None below three of each arm."""
    shares = []
    for a, b in zip(base.ledgers, treat.ledgers, strict=False):
        found = _term(a, b, key)
        if found is None:
            return None
        shares.append(found)
    if len(shares) < _LEAST_PAIRS:
        return None
    mean, sd = float(np.mean(shares)), float(np.std(shares, ddof=1))
    half = float(sps.t.ppf(0.5 + CONFIDENCE / 2, len(shares) - 1)) * sd / math.sqrt(len(shares))
    return mean - half, mean + half


def _term(a: Ledger, b: Ledger, key: str) -> float | None:
    """One pair's share of a term in its log throughput ratio."""

    def log(name: str) -> float | None:
        before, after = getattr(a, name), getattr(b, name)
        if before is None or after is None or before.value <= 0 or after.value <= 0:
            return None
        return math.log(after.value / before.value)

    x = log("throughput")
    if not x:
        return None
    if key == "batch":
        top = log("l_decode")
        return None if top is None else top / x
    if key == "stay":
        top = log("stay")
        return None if top is None else -top / x
    decode = log("decode")
    out_a, out_b = a.mean_output_tokens, b.mean_output_tokens
    if decode is None or out_a is None or out_b is None or min(out_a.value, out_b.value) <= 1:
        return None
    return -(decode - math.log((out_b.value - 1) / (out_a.value - 1))) / x


def first_token(cause: Cause, base: Cell, treat: Cell, before: Quantity, after: Quantity) -> Result:
    """TTFT: a queue for slots, where one arm's slots are known and the other does not queue."""
    if cause not in ("queue", "headroom", "prefill"):
        raise BadClaim(f"gives cause {cause!r} for TTFT; expected queue, headroom or prefill")
    fall = before - after
    numbers = (fall.estimate("difference", "baseline - treatment"),)
    slower, faster = (base, treat) if fall.value > 0 else (treat, base)
    limited = _limit_below_load(slower)
    prefill = faster.account("ttft")
    calm = spare(faster) is True or not (queue_in_sight(faster) or _limit_below_load(faster))
    if limited is not None and calm and prefill is not None:
        verdict, reasons, extra = slot_queue(slower, limited, prefill, faster.arm.name)
        if cause == "prefill":
            verdict = "refuted" if verdict == "supported" else "inconclusive"
        return verdict, reasons, (*numbers, *extra)
    n = float(base.concurrency or 0)
    # One engine may get every request: the router's split is not in these files.
    rooms = {
        cell.arm.name: room.slots * (1 / cell.arm.spec.replicas)
        for cell in (base, treat)
        if (room := capacity(cell)).slots is not None and spare(cell) is True
    }
    if len(rooms) == 2 and all(room.lo >= SPARE * n for room in rooms.values()):
        text = ", ".join(
            f"{show(r.value)} KV slots an engine of {name}" for name, r in rooms.items()
        )
        nobody = f"No request waits for a slot in either arm ({text}, {n:g} requests in flight)"
        if cause == "headroom":
            return "refuted", (f"{nobody}, so headroom is none of the {span(fall)}.",), numbers
        several = max(base.arm.spec.replicas, treat.arm.spec.replicas)
        also = f", an uneven split over {several} engines" if several > 1 else ""
        return (
            "inconclusive",
            (
                f"{nobody}; what is left of the {span(fall)} is prefill, waiting for the prefill "
                f"of others or for the running step{also}, and means cannot part these.",
                "The server's queue and prefill times of each engine would.",
            ),
            numbers,
        )
    unknown = [c.arm.name for c in (base, treat) if capacity(c).kv_slots is None]
    if unknown:
        raise Missing(
            f"the start-up log of {', '.join(unknown)}",
            "without the KV cache's size neither a queue nor its absence follows from TTFT",
        )
    return (
        "inconclusive",
        (
            "Slots do not exceed the requests in flight by a margin in both arms, "
            "so queue and prefill cannot be told apart from means.",
        ),
        numbers,
    )


def _limit_below_load(cell: Cell) -> Quantity | None:
    """The cell's slots where they are known to be fewer than the requests allowed."""
    slots = capacity(cell).slots
    if slots is None or cell.concurrency is None or slots.hi >= cell.concurrency:
        return None
    return slots


def pool(ev: Evidence, base: Cell, treat: Cell) -> Result:
    """KV pooling can help only where KV limits the running batch of the separate arm."""
    numbers: list[Estimate] = []
    texts: list[str] = []
    rooms: list[tuple[Quantity, float]] = []
    for cell in (base, treat):
        found = capacity(cell)
        if found.kv_slots is None:
            raise Missing(
                f"the start-up log of {cell.arm.name} (KV tokens)",
                "KV slots = KV tokens / (prompt + output tokens)",
            )
        n = (cell.concurrency or 0) / cell.arm.spec.replicas
        each = found.kv_slots * (1 / cell.arm.spec.replicas)
        rooms.append((each, n))
        numbers.append(
            each.estimate(
                f"KV slots an engine, {cell.arm.name}", "KV tokens / (prompt + output tokens)"
            )
        )
        texts.append(f"{show(each.value)} KV slots for {n:g} requests an engine of {cell.arm.name}")
    words = " and ".join(texts)
    if all(each.lo >= SPARE * n for each, n in rooms):
        head = (
            f"KV limits neither arm: {words}. A larger pool changes nothing these runs could feel."
        )
        return "refuted", (head,), tuple(numbers)
    (own, n), (others, _) = rooms
    if own.hi < n and others.lo > own.hi:
        # The pool is larger where KV binds: what more requests at once are worth is its share.
        verdict, reasons, extra = throughput(ev, "batch", base, treat)
        return verdict, (*reasons, f"KV limits {base.arm.name}: {words}."), (*numbers, *extra)
    return (
        "inconclusive",
        (f"KV may limit the batch ({words}); the server's preemptions and KV use would tell.",),
        tuple(numbers),
    )
