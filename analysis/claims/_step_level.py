"""What engine steps say of a named cause: two clocks, and the split into step cost and schedule.

Used where both arms' runs show their steps (level R and better); the sentence says so. A cause is
most of a difference where its whole interval lies above one half, and is not where it lies below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from analysis.cell_gap import CellGap, gap_between
from analysis.claims._causes import Cause
from analysis.clocks import Log
from analysis.dataset import Cell
from analysis.evidence import Evidence
from analysis.in_flight import Window, steady, whole
from analysis.model import Estimate, Source, Verdict
from analysis.oaxaca import Split, Term
from analysis.steps import Latency
from analysis.token_times import Refused
from analysis.wording import digits, percent, plural, show, signed_percent

HALF = 0.5
ALIKE = 0.05
"""Of the mean batch and its context: within it, a step of one arm holds what one of the other
does, and its time is its cost."""
_STEPS_IN = {"itl": "engine steps per gap", "duration": "engine steps of the run"}
_OF = {"itl": "ITL", "duration": "the time of the run"}
_DEFINITION = {
    "itl": "1 + steps that a running request stood by (preemption), a gap",
    "duration": "engine steps from the first request to the last token",
}


@dataclass(frozen=True, slots=True)
class StepLevel:
    """What the steps say of a cause."""

    verdict: Verdict
    reasons: tuple[str, ...]
    numbers: tuple[Estimate, ...]
    ramp: bool = False
    """Whether the runs are mostly ramp and drain, so that no figure of a whole run has shares."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the gap: its words, its share with interval, what the interval is."""

    words: str
    found: Log
    interval: str
    definition: str


def step_level(
    ev: Evidence, cause: Cause, base: Cell, treat: Cell, latency: Latency
) -> StepLevel | Refused:
    """The verdict on a cause of a token gap or of a run's duration; refused where steps are not."""
    if base.arm.study != treat.arm.study:
        return Refused(("The arms are of different studies.",))
    gap = gap_between(ev.in_study(base.arm.study), base, treat, latency)
    if isinstance(gap, Refused):
        return gap
    share = _share(gap, cause)
    if share is None:
        return Refused((f"Engine steps say nothing of the cause {cause!r}.",))
    numbers = (*_numbers(gap, base, treat), *_windows(gap, base, treat))
    clock = _clock_words(gap, base, treat)
    if gap.short:
        why = next((pair.refused[0] for pair in gap.pairs if pair.refused), "")
        head = f"No shares: {why[:1].lower()}{why[1:]}" if why else "No shares: the runs are short."
        reasons = (*_steady_words(numbers, gap), head, clock, *_notes(gap))
        return StepLevel("inconclusive", reasons, numbers, ramp=True)
    if isinstance(share, Refused):
        return StepLevel("inconclusive", (*share.reasons[:1], clock, *_notes(gap)), numbers)
    shown = _estimate(f"share of {share.words}", share.found, share.interval, share.definition, gap)
    verdict, head = _verdict(share)
    reasons = (f"{head} {clock}", *_split_words(gap), *_notes(gap))
    return StepLevel(verdict, reasons, (*numbers, *_bridge(gap, base, treat), shown))


def _verdict(share: Share) -> tuple[Verdict, str]:
    found = share.found
    scale = " (on the log scale)" if share.definition.startswith("ln(") else ""
    text = f"{_in_words(found)} of the difference{scale} comes from {share.words}"
    within = ""
    if not share.interval.startswith("95 % between"):
        within = " The interval is within these runs, too few for one between them."
    if found.lo > HALF:
        more = ": more than all, since the rest goes the other way" if found.value > 1.05 else ""
        return "supported", f"{text}{more}.{within}"
    if found.hi < HALF:
        return "refuted", f"{text}, which is less than half.{within}"
    return "inconclusive", f"{text}: its interval holds one half.{within}"


def _in_words(found: Log) -> str:
    """ "37 % [27 %, 46 %]", with a decimal where the interval deserves one."""
    places = 0 if found.hi - found.lo > 0.02 else 1
    lo, hi = percent(found.lo, places), percent(found.hi, places)
    return f"{percent(found.value, places)} [{lo}, {hi}]"


def _share(gap: CellGap, cause: Cause) -> Share | Refused | None:
    """The part of the gap that a cause names; None for causes that steps do not show."""
    steps = gap.step_share
    if cause in ("headroom", "queue") or (cause == "batch" and gap.latency == "duration"):
        if math.isnan(steps.value):
            return Refused(("Nothing has no shares: the interval of the difference holds zero.",))
        words = {
            "itl": "steps that a running request sat out, stalled by preemption",
            "duration": "fewer or more steps, each with more or fewer requests at once",
        }[gap.latency]
        definition = "ln(ratio of steps) / ln(ratio of the latency)"
        return Share(words, steps, gap.share_interval, definition)
    if cause == "step_cost":
        cost = gap.cost_share(lambda split: split.step_cost)
        if isinstance(cost, Log):
            words = "the cost of a step with equal content"
            return Share(words, cost, gap.share_interval, "Oaxaca-Blinder on engine steps")
        return _time_share(gap, steps, cost)
    if cause == "batch":
        content = gap.cost_share(lambda split: split.content)
        if isinstance(content, Log):
            words = "what was in a step (batch, context, prefill)"
            return Share(words, content, gap.share_interval, "Oaxaca-Blinder on engine steps")
        return content
    return None


def _time_share(gap: CellGap, steps: Log, cost: Refused) -> Share | Refused:
    """Time per step is the cost of a step only where steps hold the same in both arms."""
    if math.isnan(steps.value) or math.isnan(steps.lo) or not _same_content(gap):
        return cost
    share = Log(1 - steps.value, 1 - steps.hi, 1 - steps.lo)
    definition = "ln(ratio of time per step) / ln(ratio of the latency)"
    words = "time per step, and steps hold the same in both arms"
    return Share(words, share, gap.share_interval, definition)


def _same_content(gap: CellGap) -> bool:
    """Whether the steps that gaps are made of hold the same in both arms, on average.

    What a prefix cache spares is not seen by a client, so arms that differ in it are not the same.
    """
    for pair in gap.pairs:
        caching = [
            run.config.get("enable_prefix_caching") for run in (pair.baseline, pair.treatment)
        ]
        if caching[0] != caching[1]:
            return False
        tables = [one.table for one in pair.steps]
        for what in ("decoding", "context", "prefilled", "recomputed"):
            x, y = (
                float((t.decoding + t.stalled) @ getattr(t, what) / (t.decoding + t.stalled).sum())
                for t in tables
            )
            if abs(y - x) > ALIKE * max(x, y):
                return False
    return True


def _clock_words(gap: CellGap, base: Cell, treat: Cell) -> str:
    """Both clocks in a sentence, of the means over the pairs."""
    n = len(gap.pairs)
    a, b = [p.clocks.baseline for p in gap.pairs], [p.clocks.treatment for p in gap.pairs]
    before, after = (sum(c.latency for c in own) / n for own in (a, b))
    steps = [sum(c.steps for c in own) / n for own in (a, b)]
    cost = [sum(c.seconds_a_step for c in own) / n for own in (a, b)]
    change = signed_percent(math.exp(gap.log(lambda c: c.log_latency).value) - 1)
    runs = "" if n == 1 else f" (means of {n} pairs)"
    return (
        f"By engine steps, {_OF[gap.latency]} went from {show(before, 's')} to {show(after, 's')} "
        f"({change}){runs}: {_four(steps[0])} -> {_four(steps[1])} {_STEPS_IN[gap.latency]}, "
        f"{show(cost[0], 's')} -> {show(cost[1], 's')} for such a step."
    )


def _four(value: float) -> str:
    return digits(value) if value >= 1000 else f"{value:.3f}"


def _split_words(gap: CellGap) -> tuple[str, ...]:
    """The split of time into step cost and schedule, or why there is none."""
    told = []
    for words, part in _PARTS[:-1]:
        found = gap.cost_share(part)
        if isinstance(found, Refused):
            return (f"No further split: {found.reasons[0]}",) if found.reasons else ()
        told.append(f"{words} {_in_words(found)}")
    assumed = next((p.split.assumes for p in gap.pairs if p.split and p.split.assumes), "")
    note = f" ({assumed})" if assumed else ""
    return (f"In milliseconds, by what steps cost (Oaxaca-Blinder){note}: {'; '.join(told)}.",)


def _notes(gap: CellGap) -> tuple[str, ...]:
    warnings = dict.fromkeys(note for pair in gap.pairs for note in pair.clocks.warnings)
    left = tuple(f"Left out: {reason}" for reason in gap.skipped[:2])
    return (*(f"{note[:1].upper()}{note[1:]}." for note in warnings), *left)


def of_steps(number: Estimate) -> bool:
    """Whether a number is one of the clocks or windows of this module."""
    clocks = tuple(f"{name}, " for name in (*_STEPS_IN.values(), "time per step"))
    return number.name.startswith(clocks) or any(w in number.name for w in _WINDOWS)


_WINDOWS = (", whole run, ", ", steady window, ")
BY_STEPS = "by engine steps"
PART = "part of the difference"
"""What the numbers of a bridge are named by."""
_PARTS: tuple[tuple[str, Callable[[Split], Term]], ...] = (
    ("cost per step", lambda split: split.step_cost),
    ("number of steps", lambda split: split.count),
    ("what is in a step", lambda split: split.content),
    ("not explained", lambda split: split.misfit),
)


def _bridge(gap: CellGap, base: Cell, treat: Cell) -> tuple[Estimate, ...]:
    """Both means and the parts that lead from one to the other; nothing without a split."""
    parts = [(words, gap.seconds(part)) for words, part in _PARTS]
    told = [(words, found) for words, found in parts if isinstance(found, Log)]
    if len(told) < len(parts):
        return ()
    found = []
    for cell, clocks in (
        (base, [pair.clocks.baseline for pair in gap.pairs]),
        (treat, [pair.clocks.treatment for pair in gap.pairs]),
    ):
        mean = sum(clock.latency for clock in clocks) / len(clocks)
        words = "exact" if len(clocks) == 1 else f"mean of {plural(len(clocks), 'run')}"
        name = f"{_OF[gap.latency]} {BY_STEPS}, {cell.arm.name}"
        sources = _sources(gap, cell is base)
        found.append(Estimate(name, mean, mean, mean, "s", words, "of the paired runs", sources))
    for words, one in told:
        shown = _estimate(f"{PART}: {words}", one, gap.share_interval, "Oaxaca-Blinder", gap)
        found.append(replace(shown, unit="s"))
    return tuple(found)


def _numbers(gap: CellGap, base: Cell, treat: Cell) -> tuple[Estimate, ...]:
    """Both clocks of each arm, and the three ratios."""
    found = []
    for cell, clocks in (
        (base, [pair.clocks.baseline for pair in gap.pairs]),
        (treat, [pair.clocks.treatment for pair in gap.pairs]),
    ):
        n = len(clocks)
        steps = sum(clock.steps for clock in clocks) / n
        seconds = sum(clock.seconds_a_step for clock in clocks) / n
        name, of = _STEPS_IN[gap.latency], cell.arm.name
        words = "exact" if n == 1 else f"mean of {plural(n, 'run')}"
        for label, value, unit, definition in (
            (f"{name}, {of}", steps, "", _DEFINITION[gap.latency]),
            (f"time per step, {of}", seconds, "s", "mean over the steps that the latency counts"),
        ):
            sources = _sources(gap, cell is base)
            found.append(Estimate(label, value, value, value, unit, words, definition, sources))
    for label, log in (
        (f"ratio of {_OF[gap.latency]}", gap.log(lambda c: c.log_latency)),
        (f"ratio of {_STEPS_IN[gap.latency]}", gap.log(lambda c: c.log_steps)),
        ("ratio of time per step", gap.log(lambda c: c.log_seconds)),
    ):
        ratio = Log(*(math.exp(x) for x in (log.value, log.lo, log.hi)))
        found.append(_estimate(label, ratio, gap.interval, "treatment / baseline", gap))
    return tuple(found)


def _windows(gap: CellGap, base: Cell, treat: Cell) -> tuple[Estimate, ...]:
    """Steady windows beside whole runs, where runs are too short to be split."""
    if not gap.short:
        return ()
    found = []
    for cell, at in ((base, 0), (treat, 1)):
        cap = cell.concurrency
        shown: list[tuple[str, list[Window]]] = [
            ("whole run", [whole(pair.steps[at].found) for pair in gap.pairs])
        ]
        steadies = [steady(pair.steps[at].found, cap) for pair in gap.pairs] if cap else []
        if steadies and all(one is not None for one in steadies):
            shown.append(("steady window", [one for one in steadies if one is not None]))
        for words, windows in shown:
            n = len(windows)
            share = sum(w.share for w in windows) / n
            note = f"from the first to the last moment at the cap: {percent(share, 0)} of the run"
            definition = note if words == "steady window" else "from first sending to last token"
            for label, value, unit in (
                ("output throughput", sum(w.output_throughput for w in windows) / n, "tok/s"),
                ("ITL", sum(w.itl for w in windows) / n, "s"),
                ("in flight", sum(w.in_flight for w in windows) / n, ""),
            ):
                name, own = f"{label}, {words}, {cell.arm.name}", _sources(gap, at == 0)
                found.append(Estimate(name, value, value, value, unit, "exact", definition, own))
    return tuple(found)


def _steady_words(numbers: Sequence[Estimate], gap: CellGap) -> tuple[str, ...]:
    """What is compared, in the steady windows and over the whole runs; nothing without windows."""
    of = "ITL" if gap.latency == "itl" else "output throughput"
    steady_, whole_ = (
        [n for n in numbers if n.name.startswith(f"{of}, {window}")]
        for window in ("steady window", "whole run")
    )
    if len(steady_) != 2 or any(n.value <= 0 for n in (*steady_, *whole_)):
        return ()
    a, b = steady_
    changes = [signed_percent(y.value / x.value - 1) for x, y in (steady_, whole_)]
    return (
        f"In the steady window {of} is {show(a.value, a.unit)} and {show(b.value, b.unit)} "
        f"({changes[0]}); over the whole runs, mostly ramp and drain, it differs by {changes[1]}.",
    )


def _sources(gap: CellGap, baseline: bool) -> tuple[Source, ...]:
    runs = [pair.baseline if baseline else pair.treatment for pair in gap.pairs]
    keys = "start_times, ttfts, itls"
    return tuple(Source(run.source.file, keys) for run in runs)


def _estimate(label: str, found: Log, interval: str, definition: str, gap: CellGap) -> Estimate:
    given = not math.isnan(found.lo)
    lo, hi = (found.lo, found.hi) if given else (found.value, found.value)
    words = interval if given else "not given: the runs are too short"
    sources = tuple(dict.fromkeys((*_sources(gap, True), *_sources(gap, False))))
    return Estimate(label, found.value, lo, hi, "", words, definition, sources)
