"""Independent sources agree on how long requests wait for a slot.

Up to four of them (`analysis.queue_sources`): the server's queue times, the engine's own waiting
count, Little's law on the client's file, and the TTFT over that of `reference`, an arm that does
not queue. Each is compared with the first that there is, run by run. The claim holds where every
mean ratio lies within `margin` and the standard deviation between runs does too; it is refuted
where one lies beyond it with its whole 95 % interval between runs, or in the only run there is.
"""

from __future__ import annotations

import math

from analysis.claims import ClaimBase
from analysis.claims._common import all_of
from analysis.dataset import Cell
from analysis.evidence import Evidence, Judgement, Missing, again
from analysis.model import Estimate, Source, Verdict
from analysis.queue_sources import Wait, waits
from analysis.run_steps import preemptions
from analysis.stats import Comparison, compare
from analysis.wording import listing, plural, show

MARGIN = 10.0
"""Per cent. TTFT and Little's law count from sending, the server from arrival in its engine."""

LEAST_WAIT = 0.001
"""Below a millisecond there is no wait to agree on."""


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a claim that sources agree."""

    arm: str
    workload: str
    concurrency: int
    reference: str = ""
    """An arm that does not queue."""
    margin: float = MARGIN
    """Per cent either way that counts as agreement."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Compare what each source says, run by run."""
    cell = ev.cell(claim.arm, claim.workload, claim.concurrency)
    other = ev.cell(claim.reference, claim.workload, claim.concurrency) if claim.reference else None
    limit = cell.arm.spec.max_num_seqs
    slots = None if limit is None else float(limit * cell.arm.spec.replicas)
    prefill = None if other is None else ev.account(other, "ttft").value
    told = [{wait.by: wait for wait in waits(account, slots, prefill)} for account in cell.ledgers]
    names = [name for name in told[0] if all(name in run for run in told)]
    if len(names) < 2:
        raise Missing(
            f"two sources of the wait of {cell.name}",
            "a run that `collect` made has the server's queue times (requests-*.jsonl) and its "
            "waiting counts (steps-*.jsonl)",
            again(cell),
        )
    cells = (cell,) if other is None else (cell, other)
    numbers = [_estimate(name, [run[name] for run in told]) for name in names]
    shown = listing(f"{number.name} {show(number.value, 's')}" for number in numbers)
    if any(run[name].seconds < LEAST_WAIT for run in told for name in names):
        low = [n.name for n in numbers if n.value < LEAST_WAIT]
        verdict: Verdict = "refuted" if low and len(low) < len(names) else "inconclusive"
        return Judgement(
            verdict,
            (f"There is no wait by {listing(low) or 'some source in some run'}: {shown}.",),
            tuple(numbers),
            cells=cells,
        )
    verdicts: list[Verdict] = []
    ratios = []
    for name in names[1:]:
        found = compare(
            [run[names[0]].seconds for run in told],
            [run[name].seconds for run in told],
            paired=len(told) > 1,
        )
        verdicts.append(_verdict(found, claim.margin / 100))
        sources = tuple(run[by].source for by in (names[0], name) for run in told)
        ratios.append(_ratio(name, names[0], found, sources))
    verdict = all_of(verdicts)
    head = {
        "supported": f"{plural(len(names), 'source')} agree within {claim.margin:g} %",
        "refuted": f"{plural(len(names), 'source')} do not agree within {claim.margin:g} %",
    }.get(verdict, f"Whether {plural(len(names), 'source')} agree is not settled")
    return Judgement(
        verdict,
        (
            f"{head} on the mean wait for a slot: {shown}.",
            "Ratios to the first, run by run: "
            + listing(f"{r.name.partition(' / ')[0]} {r.value:.3f}" for r in ratios)
            + ".",
        ),
        (*numbers, *ratios),
        assumptions=(*_assumed(names, slots, other), *_preempted(cell)),
        cells=cells,
        flips=f"a source that differs from the others by more than {claim.margin:g} %",
        experiment=again(*cells),
    )


def _verdict(found: Comparison, margin: float) -> Verdict:
    low, high = 1 - margin, 1 + margin
    lo, hi = _interval(found)
    if hi < low or lo > high:
        return "refuted"
    # Runs that are far off on either side agree in the mean only.
    apart = found.se * math.sqrt(found.n_treatment) if found.repeated else 0.0
    within = low <= found.ratio <= high and apart <= math.log(high)
    return "supported" if within else "inconclusive"


def _interval(found: Comparison) -> tuple[float, float]:
    """95 % between runs; of one run, whose sources tell of the same requests, its ratio."""
    return (found.lo, found.hi) if found.repeated else (found.ratio, found.ratio)


def _estimate(name: str, told: list[Wait]) -> Estimate:
    values = [wait.seconds for wait in told]
    mean = sum(values) / len(values)
    return Estimate(
        name,
        mean,
        min(values),
        max(values),
        "s",
        f"least and most of {plural(len(values), 'run')}",
        "mean wait of a request for a slot",
        tuple(wait.source for wait in told),
    )


def _ratio(name: str, first: str, found: Comparison, sources: tuple[Source, ...]) -> Estimate:
    lo, hi = _interval(found)
    interval = found.method if found.repeated and math.isfinite(hi) else "exact for this run"
    words = "ratio of mean waits, run by run"
    return Estimate(f"{name} / {first}", found.ratio, lo, hi, "", interval, words, sources)


def _preempted(cell: Cell) -> tuple[str, ...]:
    """What a waiting count holds beside first waits, where requests were preempted."""
    count = sum(preemptions(run) or 0 for run in cell.runs)
    if not count:
        return ()
    return (
        f"{plural(count, 'preemption')}: a preempted request waits again, which a waiting count "
        "holds and the server's queue time does not",
    )


def _assumed(names: list[str], slots: float | None, other: Cell | None) -> tuple[str, ...]:
    found = []
    if slots is not None:
        found.append(f"{show(slots)} requests run whenever one waits (max_num_seqs)")
    if other is not None:
        found.append(f"prefill takes as long as the whole TTFT of {other.arm.name}")
    return tuple(found)
