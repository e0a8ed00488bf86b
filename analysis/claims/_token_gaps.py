"""Why pauses between tokens differ between two arms: cheaper steps, or skipped ones."""

from __future__ import annotations

from analysis.capacity import capacity
from analysis.claims._causes import Cause, Result
from analysis.claims._common import moved
from analysis.claims._waiting import room_word, spare
from analysis.dataset import Cell
from analysis.evidence import BadClaim
from analysis.floor import least_step_cost_share, step_floor
from analysis.model import Estimate, Verdict
from analysis.quantity import Quantity
from analysis.wording import percent, plural, show, span

STEP_SHARE = "smallest share of the fall due to cheaper steps"
"""What follows from a floor, whatever else happened."""


def token_gaps(
    cause: Cause, base: Cell, treat: Cell, before: Quantity, after: Quantity, name: str = "ITL"
) -> Result:
    """ITL or TPOT: step cost against skipped steps."""
    if cause not in ("headroom", "queue", "step_cost", "batch", "idle"):
        raise BadClaim(
            f"gives cause {cause!r} for a token gap; expected headroom, queue, step_cost, batch "
            "or idle"
        )
    fall = before - after
    numbers: list[Estimate] = [fall.estimate("difference", "baseline - treatment")]
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
                f"{room_word(slower)}, {slower.arm.name}",
                "KV tokens / (prompt + output tokens), or a stated max_num_seqs below",
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
        if share.hi > 0:
            # A bound of nothing says nothing.
            numbers.append(share.estimate(STEP_SHARE, "(floor of the baseline - treatment) / fall"))
    numbers.extend(_stay_numbers(base, treat))
    step_text = ""
    if share is not None and floor is not None and share.lo > 0.01:
        step_text = (
            f"at least {percent(share.lo, 0)} of the fall of {span(fall)} must be cheaper "
            f"steps: reading the weights alone takes {show(floor.weights.value, 's')} a "
            f"step in {base.arm.name}, and {treat.arm.name} is at "
            f"{show(after.value, 's')}"
        )
    waiting = f"A waiting request has produced no tokens, so its wait is not in {name}"
    if cause == "idle":
        return (*_idle(share, step_text), tuple(numbers))
    most = _most_waiting(base, treat)
    if excluded and slots is not None:
        room = f"{show(slots.value)} {room_word(slower)} for {n:g} requests in flight"
        nothing = f"{waiting}. Preemption is excluded too: {room}."
        if cause == "batch":
            verdict: Verdict
            verdict, words = _smaller_batch(base, treat)
            reasons.append(
                f"The difference of {span(fall)} is the time of a step (preemption is excluded: "
                f"{room}); {words}."
            )
        elif cause == "step_cost":
            verdict = "supported"
            reasons.append(f"The difference of {span(fall)} is the time of a step. {nothing}")
        else:
            verdict = "refuted"
            reasons.append(nothing)
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
            else f"{show(slots.value)} {room_word(slower)} for {n:g} in flight leave no margin"
        )
        reasons.append(f"Not settled: preemption cannot be excluded ({why}). {waiting}.")
        reasons.extend([f"{step_text[:1].upper()}{step_text[1:]}."] if step_text else [])
    if most:
        reasons.append(most)
    return verdict, tuple(reasons), tuple(numbers)


def _idle(share: Quantity | None, step_text: str) -> tuple[Verdict, tuple[str, ...]]:
    """Time in which the GPU has nothing to do: no more than what the floor leaves of the fall."""
    if share is None:
        return "inconclusive", (
            "Without GPU, model size and a fall in the latency no floor bounds the idle time; a "
            "profiler trace would show it.",
        )
    most = 1 - share.value
    if share.lo > 0.5:
        head = f"Idle time can be at most {percent(most, 0)} of the fall: {step_text}."
        return "refuted", (head,)
    return "inconclusive", (
        f"Idle time can be up to {percent(most, 0)} of the fall; a profiler trace would show it.",
    )


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
    """How much of the fall in stay could be waiting before the first token."""
    stay_b, stay_t = base.account("stay"), treat.account("stay")
    first_b, first_t = base.account("ttft"), treat.account("ttft")
    if stay_b is None or stay_t is None or first_b is None or first_t is None:
        return ""
    fall = stay_b - stay_t
    if fall.lo <= 0:
        return ""
    most, likely = (first_b / fall).value, ((first_b - first_t) / fall).value
    return (
        f"Of the fall in the stay ({span(stay_b)} to {span(stay_t)}) waiting before the first "
        f"token is at most {percent(most)}, and {percent(max(0.0, likely))} if the prefill of "
        f"{treat.arm.name} is not slower."
    )
