"""The causes that `gap_attribution` can bound from means, one function a metric.

Each returns a verdict, its reasons and the numbers behind them; the kind's own page (the docstring
of `gap_attribution`) states the identities.
"""

from __future__ import annotations

from typing import Literal

from analysis.capacity import capacity
from analysis.claims._common import moved
from analysis.dataset import Cell
from analysis.evidence import BadClaim, Evidence, Missing
from analysis.floor import least_step_cost_share, step_floor
from analysis.model import Estimate, Verdict
from analysis.quantity import Quantity
from analysis.wording import listing, percent, plural, show, span

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
    return True if found.kv_slots is not None and found.slots.lo >= SPARE * n else None


def unstated_limits(*cells: Cell) -> tuple[str, ...]:
    """The assumption behind slots to spare where no max_num_seqs is stated."""
    names = [c.arm.name for c in dict.fromkeys(cells) if capacity(c).sequence_limit is None]
    if not names:
        return ()
    return (
        f"max_num_seqs of {listing(dict.fromkeys(names))} is not stated; vLLM's default of "
        f"{DEFAULT_SEQUENCES} or more is taken",
    )


Cause = Literal["headroom", "queue", "step_cost", "batch", "stay", "kv_pool", "prefill"]

Result = tuple[Verdict, tuple[str, ...], tuple[Estimate, ...]]


def token_gaps(cause: Cause, base: Cell, treat: Cell, before: Quantity, after: Quantity) -> Result:
    """ITL or TPOT: step cost against skipped steps."""
    if cause not in ("headroom", "queue", "step_cost", "batch"):
        raise BadClaim(
            f"gives cause {cause!r} for a token gap; expected headroom, queue, step_cost or batch"
        )
    fall = before - after
    numbers: list[Estimate] = [fall.estimate("gap", "baseline - treatment")]
    reasons: list[str] = []
    # Preemption lengthens the gaps of the slower arm; in the other it would only hide some.
    slower = treat if fall.hi < 0 else base
    room_there = capacity(slower)
    slots = room_there.slots if room_there.kv_slots is not None else None
    n = float(base.concurrency or 0)
    excluded = spare(slower) is True
    if slots is not None:
        numbers.append(
            slots.estimate(
                f"slots, {slower.arm.name}",
                "min(max_num_seqs, KV tokens / (prompt + output tokens))",
            )
        )
    share = None
    floor = step_floor(base)
    if floor is not None and fall.lo > 0:
        share = least_step_cost_share(floor, before, after)
        numbers.append(
            floor.weights.estimate(
                "floor of a step, " + base.arm.name, "weights read / memory bandwidth"
            )
        )
        numbers.append(
            share.estimate("least step-cost share", "(floor of the baseline - treatment) / gap")
        )
    numbers.extend(_stay_numbers(base, treat))
    step_text = ""
    if share is not None and floor is not None and share.lo > 0.01:
        step_text = (
            f"at least {percent(share.lo, 0)} of the fall of {span(fall)} must be cheaper "
            f"steps: reading the weights alone takes {show(floor.weights.value, 's')} a "
            f"step in {base.arm.name}, and {treat.arm.name} is at "
            f"{show(after.value, 's')}"
        )
    waiting = (
        "a request waiting for its first token has no gap between tokens, so waiting is "
        "0 % of the gap"
    )
    most = _most_waiting(base, treat)
    if excluded and slots is not None:
        room = (
            f"preemption is out: {show(slots.value)} slots for {n:g} requests in flight, "
            f"{slots.value / n:.0f} times as many"
        )
        if cause == "batch":
            verdict: Verdict
            verdict, words = _smaller_batch(base, treat)
            reasons.append(f"The gap of {span(fall)} is the time of a step ({room}); {words}.")
        elif cause == "step_cost":
            verdict = "supported"
            reasons.append(f"The gap of {span(fall)} is the time of a step: {waiting}, and {room}.")
        else:
            verdict = "refuted"
            reasons.append(f"Not {cause}: {waiting}, and {room}.")
        reasons.extend([f"{step_text[:1].upper()}{step_text[1:]}."] if step_text else [])
    elif cause != "batch" and share is not None and share.lo > 0.5:
        verdict = "supported" if cause == "step_cost" else "refuted"
        reasons.append(f"Mostly step cost: {step_text}.")
        reasons.append("Preemption cannot be excluded from means for the rest.")
    else:
        verdict = "inconclusive"
        why = (
            "no start-up log gives the KV cache"
            if slots is None
            else f"{show(slots.value)} slots for {n:g} in flight leave no margin"
        )
        reasons.append(f"Not settled: {waiting}, but preemption cannot be excluded ({why}).")
        reasons.extend([f"{step_text[:1].upper()}{step_text[1:]}."] if step_text else [])
    if most:
        reasons.append(most)
    return verdict, tuple(reasons), tuple(numbers)


def _smaller_batch(base: Cell, treat: Cell) -> tuple[Verdict, str]:
    """Whether the treatment runs fewer requests at once, and whether anything else moved."""
    before, after = base.account("l_decode"), treat.account("l_decode")
    if before is None or after is None:
        return "inconclusive", "how many requests ran at once does not follow from these files"
    text = (
        f"{span(before)} requests ran at once in {base.arm.name}, {span(after)} in {treat.arm.name}"
    )
    if after.lo >= before.hi:
        return "refuted", f"the batch did not get smaller: {text}"
    if after.hi >= before.lo:
        return "inconclusive", f"the batch is equal within rounding: {text}"
    others = moved(base.arm, treat.arm, besides=("max_num_seqs",))
    if others:
        return "inconclusive", f"{text}, but {plural(len(others), 'other field')} moved as well"
    return "supported", text


def _stay_numbers(base: Cell, treat: Cell) -> list[Estimate]:
    numbers = []
    for cell in (base, treat):
        for name, label in (("stay", "stay"), ("in_flight", "requests in flight")):
            found = cell.account(name)
            if found is not None:
                numbers.append(found.estimate(f"{label}, {cell.arm.name}"))
    return numbers


def _most_waiting(base: Cell, treat: Cell) -> str:
    """How much of the gap in stay could be waiting before the first token."""
    stay_b, stay_t = base.account("stay"), treat.account("stay")
    first_b, first_t = base.account("ttft"), treat.account("ttft")
    if stay_b is None or stay_t is None or first_b is None or first_t is None:
        return ""
    gap = stay_b - stay_t
    if gap.lo <= 0:
        return ""
    most, likely = (first_b / gap).value, ((first_b - first_t) / gap).value
    return (
        f"Of the fall in the stay ({span(stay_b)} to {span(stay_t)}) waiting before the first "
        f"token is at most {percent(most)}, and {percent(max(0.0, likely))} if the prefill of "
        f"{treat.arm.name} is not slower."
    )


def throughput(ev: Evidence, cause: Cause, base: Cell, treat: Cell) -> Result:
    """ln X ratio = ln L ratio - ln stay ratio."""
    if cause not in ("batch", "headroom", "stay", "step_cost"):
        raise BadClaim(
            f"gives cause {cause!r} for a throughput; expected batch, headroom, "
            "stay, step_cost or kv_pool"
        )
    x = (ev.account(treat, "throughput") / ev.account(base, "throughput")).as_unit("")
    fill = (ev.account(treat, "in_flight") / ev.account(base, "in_flight")).as_unit("")
    stay = (ev.account(treat, "stay") / ev.account(base, "stay")).as_unit("")
    share = (fill.ln() / x.ln()).as_unit("")
    numbers = (
        x.estimate("request throughput ratio"),
        fill.estimate("requests in flight ratio", "L of the treatment / L of the baseline"),
        stay.estimate("stay ratio"),
        share.estimate("share of more requests in flight", "ln L ratio / ln X ratio"),
    )
    text = (
        f"{span(x)} = {span(fill)} (requests in flight) / {span(stay)} (stay): "
        f"{percent(share.value, 1)} of the log ratio is more requests in flight, "
        f"{percent(1 - share.value, 1)} is each request finishing sooner"
    )
    batch = cause in ("batch", "headroom")
    if share.hi < 0.5:
        verdict: Verdict = "refuted" if batch else "supported"
    elif share.lo > 0.5:
        verdict = "supported" if batch else "refuted"
    else:
        verdict = "inconclusive"
    return verdict, (f"The request throughput ratio {text}.",), numbers


def first_token(cause: Cause, base: Cell, treat: Cell, before: Quantity, after: Quantity) -> Result:
    """TTFT: a queue for slots can be excluded from means; its split from prefill cannot."""
    if cause not in ("queue", "headroom", "prefill"):
        raise BadClaim(f"gives cause {cause!r} for TTFT; expected queue, headroom or prefill")
    fall = before - after
    numbers = (fall.estimate("gap", "baseline - treatment"),)
    n = float(base.concurrency or 0)
    # One engine may get every request: the router's split is not in these files.
    rooms = {
        cell.arm.name: None
        if (room := capacity(cell)).slots is None or room.kv_slots is None
        else room.slots * (1 / cell.arm.spec.replicas)
        for cell in (base, treat)
    }
    if all(room is not None and room.lo >= SPARE * n for room in rooms.values()):
        text = ", ".join(
            f"{show(r.value)} slots an engine of {name}" for name, r in rooms.items() if r
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
    unknown = [name for name, room in rooms.items() if room is None]
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


def pool(base: Cell, treat: Cell) -> Result:
    """KV pooling can help only where KV limits the running batch of the separate arm."""
    numbers, texts, spare = [], [], True
    for cell in (base, treat):
        found = capacity(cell)
        if found.kv_slots is None:
            raise Missing(
                f"the start-up log of {cell.arm.name} (KV tokens)",
                "KV slots = KV tokens / (prompt + output tokens)",
            )
        engines = cell.arm.spec.replicas
        n = (cell.concurrency or 0) / engines
        each = found.kv_slots * (1 / engines)
        numbers.append(
            each.estimate(
                f"KV slots an engine, {cell.arm.name}", "KV tokens / (prompt + output tokens)"
            )
        )
        texts.append(f"{show(each.value)} slots for {n:g} requests an engine of {cell.arm.name}")
        spare = spare and each.lo >= SPARE * n
    words = " and ".join(texts)
    if spare:
        return (
            "refuted",
            (
                f"KV limits neither arm: {words}. A larger pool changes nothing that "
                "these runs could feel.",
            ),
            tuple(numbers),
        )
    return (
        "inconclusive",
        (f"KV may limit the batch ({words}); the server's preemptions and KV use would tell.",),
        tuple(numbers),
    )
