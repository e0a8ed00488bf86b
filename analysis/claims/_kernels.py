"""What profiler traces of two arms say of a part of a decode step: unchanged, faster, or not told.

Kept apart from the kind `kernel_time`, which falls back on a bound where this gives a reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from analysis.claims._common import moved
from analysis.dataset import Arm
from analysis.evidence import Evidence, Experiment, Judgement
from analysis.kernel_classes import KINDS
from analysis.kernel_steps import FEW, FEWEST, IDLE, PARTS, Decoding, best, near
from analysis.model import Estimate, Level, Verdict
from analysis.wording import listing, percent, show, span

SAME_BATCH = 0.10
"""Batches of two traces that differ by more are not compared."""
CLAIMED_BATCH = 0.20
"""How far a batch may be from the requests in flight: some of those are in prefill."""
OVERHEAD = 0.10
"""Steps of a trace that are longer than the ITL of runs by more show the profiler's own cost."""
_SHORT = {
    "gemm": "GEMM",
    "attention": "attention",
    "communication": "communication",
    "elementwise": "elementwise work",
    "kv_write": "KV cache writes",
    "sampling": "sampling",
    "memory": "copies and sets",
    "other": "other kernels",
    IDLE: "idle",
}


def compared(
    ev: Evidence,
    baseline: str,
    treatment: str,
    part: str,
    change: str,
    margin: float,
    workload: str,
    load: int,
) -> Judgement | str:
    """The judgement, or in one line what is missing for it.

    Args:
        ev: the claim's evidence.
        baseline: name of an arm.
        treatment: name of an arm.
        part: one of `PARTS`.
        change: "unchanged" or "faster".
        margin: share either way that counts as unchanged.
        workload: whose runs the steps' length is held against.
        load: requests in flight that the sentence names.
    """
    arms = ev.arm(baseline), ev.arm(treatment)
    chosen = _chosen(arms, load)
    if isinstance(chosen, str):
        return chosen
    before, after = chosen
    strange = next(
        (
            told
            for arm, steps in zip(arms, chosen, strict=True)
            if (told := _strange(ev, arm, steps, workload, load))
        ),
        "",
    )
    if strange:
        return strange
    numbers = [
        steps.estimate(part, f"{_SHORT[part]} a step, {arm.name}")
        for arm, steps in zip(arms, chosen, strict=True)
    ]
    a, b = numbers
    if not (a.value > 0 and b.value > 0):
        lacking = [arm.name for arm, n in zip(arms, numbers, strict=True) if not n.value > 0]
        return f"a trace of {' and '.join(lacking)} with {PARTS[part]}: there are none in a step"
    ratio = Estimate(
        f"ratio of {_SHORT[part]} times",
        b.value / a.value,
        b.lo / a.hi,
        b.hi / a.lo if a.lo > 0 else float("inf"),
        "",
        "middle 95 % of the steps of both",
        "treatment / baseline, mean seconds a decode step",
        (*a.sources, *b.sources),
    )
    slow = [
        _overhead(ev, arm, steps, workload, load) for arm, steps in zip(arms, chosen, strict=True)
    ]
    verdict = _verdict(ratio, change, margin)
    reasons = [
        f"A decode step spends {span(a)} in {PARTS[part]} in {baseline} and {span(b)} in "
        f"{treatment}: {_times(ratio)}.",
        f"{_rest(baseline, before)} {_rest(treatment, after)}",
        _accounts(before, after, part),
    ]
    if part == IDLE:
        reasons[0] = (
            f"No kernel runs for {span(a)} of a decode step in {baseline} and for {span(b)} in "
            f"{treatment}: {_times(ratio)}."
        )
        if any(slow):
            verdict = "inconclusive"
            reasons.insert(0, "The profiler slowed the host, so idle time is its own in part.")
    numbers += [ratio]
    for arm, steps in zip(arms, chosen, strict=True):
        numbers.append(steps.whole(f"step, {arm.name}"))
        numbers.append(steps.busy_estimate(f"busy share of the GPU, {arm.name}"))
    return Judgement(
        verdict,
        tuple(reason for reason in reasons if reason),
        tuple(numbers),
        assumptions=tuple(note for note in (*slow, *_notes(arms, chosen, part, load)) if note),
        confounds=moved(*arms),
        flips=f"traces whose ratio lies on the other side of the margin ({percent(margin, 0)})",
        experiment=Experiment(
            (baseline, treatment), (workload,), (load,), repeats=1, note="--profile"
        ),
        level=Level.ENGINE,
    )


def _times(ratio: Estimate) -> str:
    value, _, interval = span(ratio).partition(" ")
    return f"{value}x {interval}".rstrip()


def _chosen(arms: Sequence[Arm], load: int) -> tuple[Decoding, Decoding] | str:
    """Decode steps of both arms at like batches, the nearest to the load; or what is missing."""
    wanted = f"a profiler trace of {arms[0].name} and {arms[1].name}"
    bare = [arm.name for arm in arms if not arm.traces]
    if bare:
        return wanted if len(bare) == 2 else f"{wanted}; {bare[0]} has none"
    found = [best(arm.traces, load) for arm in arms]
    for arm, steps in zip(arms, found, strict=True):
        if not steps:
            told = arm.traces[0].told_by or "no decode step in it"
            return f"{wanted} that marks decode steps; that of {arm.name} does not: {told}"
    enough = [[steps for steps in own if steps.count >= FEWEST] for own in found]
    for arm, own, all_ in zip(arms, enough, found, strict=True):
        if not own:
            return (
                f"{wanted} with at least {FEWEST} decode steps at one batch; that of {arm.name} "
                f"has {all_[0].count}"
            )
    pairs = [(a, b) for a in enough[0] for b in enough[1] if near(a.batch, b.batch, SAME_BATCH)]
    if not pairs:
        sizes = [_sizes(own) for own in enough]
        return (
            f"{wanted} at one batch; there are {sizes[0]} sequences a step in {arms[0].name} and "
            f"{sizes[1]} in {arms[1].name}"
        )
    fitting = [pair for pair in pairs if all(near(s.batch, load, CLAIMED_BATCH) for s in pair)]
    if not fitting:
        return f"{wanted} at a batch near {load}; there are {_sizes([a for a, _ in pairs])}"
    return fitting[0]


def _sizes(found: Sequence[Decoding]) -> str:
    return listing(sorted({steps.batch for steps in found if steps.batch is not None}))


def _verdict(ratio: Estimate, change: str, margin: float) -> Verdict:
    below, above = 1 - margin, 1 + margin
    if change == "faster":
        if ratio.hi < below:
            return "supported"
        return "refuted" if ratio.lo > below else "inconclusive"
    if ratio.lo >= below and ratio.hi <= above:
        return "supported"
    return "refuted" if ratio.hi < below or ratio.lo > above else "inconclusive"


def _rest(name: str, steps: Decoding) -> str:
    """What a step consists of, in words."""
    whole = float(steps.seconds.mean())
    parts = {part: float(steps.part(part).mean()) / whole for part in KINDS}
    words = [
        f"{_SHORT[part]} {percent(share, 0)}"
        for part, share in sorted(parts.items(), key=lambda item: -item[1])
        if share >= 0.005
    ]
    return (
        f"A step of {show(whole, 's')} in {name} is {listing(words)}; the GPU is busy for "
        f"{percent(steps.busy_share)} of it."
    )


def _accounts(before: Decoding, after: Decoding, part: str) -> str:
    """How much of the whole step's change the part makes up."""
    whole = float(after.seconds.mean() - before.seconds.mean())
    own = float(after.part(part).mean() - before.part(part).mean())
    if abs(whole) < 0.02 * float(before.seconds.mean()):
        return ""
    word = "shorter" if whole < 0 else "longer"
    return (
        f"The whole step is {show(abs(whole), 's')} {word}; {_SHORT[part]} is "
        f"{show(abs(own), 's')} {'shorter' if own < 0 else 'longer'}."
    )


def _itl(ev: Evidence, arm: Arm, workload: str, load: int) -> float:
    """Mean time between tokens of the arm's runs at this load, s; infinite where there are none."""
    cell = ev.study.cell(arm.name, workload, load)
    itl = cell.metric("mean_itl") if cell is not None else None
    return itl.value if itl is not None and itl.value > 0 else math.inf


def _strange(ev: Evidence, arm: Arm, steps: Decoding, workload: str, load: int) -> str:
    """Why a trace cannot be of runs like the arm's: a profiler does not slow kernels."""
    itl, busy = _itl(ev, arm, workload, load), float(np.median(steps.busy))
    if busy <= itl * (1 + OVERHEAD):
        return ""
    return (
        f"a profiler trace of {arm.name} as its runs are: in the one there is, kernels take "
        f"{show(busy, 's')} a step, and its runs {show(itl, 's')} a token"
    )


def _overhead(ev: Evidence, arm: Arm, steps: Decoding, workload: str, load: int) -> str:
    """A warning where the steps of a trace are longer than the runs' time a token."""
    itl = _itl(ev, arm, workload, load)
    if math.isinf(itl):
        return (
            f"no run of {arm.name} at {load} in flight tells what the profiler cost its host; "
            "kernel times are the GPU's own, idle time is not"
        )
    if steps.median <= itl * (1 + OVERHEAD):
        return ""
    return (
        f"the profiler slowed the host: steps of the trace of {arm.name} take "
        f"{show(steps.median, 's')}, its runs {show(itl, 's')} a token; kernel times are the "
        "GPU's own, idle time is not"
    )


def _notes(arms: Sequence[Arm], chosen: Sequence[Decoding], part: str, load: int) -> list[str]:
    notes = ["one capture of each arm; the spread is that of its steps, not between server starts"]
    if part == "attention":
        notes.append(
            "contexts are as long in both traces, which do not tell it: attention grows with them"
        )
    for arm, steps in zip(arms, chosen, strict=True):
        if steps.batch is None:
            notes.append(f"the trace of {arm.name} does not tell how many sequences a step had")
        elif steps.batch != load:
            notes.append(f"the trace of {arm.name} is of {steps.batch} sequences a step")
        if steps.count < FEW:
            notes.append(f"only {steps.count} decode steps of {arm.name} were captured")
        notes += [f"{arm.name}: {warning}" for warning in steps.trace.warnings]
    return notes
