"""Engine steps from client timestamps: how long each took, what was in it, and who stood still.

A running request gets one token a step, so the arrivals of all requests of one engine, laid on one
clock, show its steps. `reconstruct` tries the rule by pauses, checks itself, falls back on the
lattice, and refuses in words where neither can be trusted:

- rule A may find skipped steps only as preemption makes them: few and long. Many short ones mean
  that the rule cut steps in two (jitter near the step time, several engines behind a router);
- rule B must keep arrivals within a step of its lattice;
- where the server's own count of iterations is known, it must be met, but for steps that are lost
  when the client reads chunks together, and for those that emit no token.

The latencies of a run are then sums over steps: mean = sum_s w_s d_s / n, with d_s the duration of
a step and w_s how many of the latency's periods it was part of (`Steps.periods`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.model import Ints, Requests
from analysis.step_rules import Assigned, by_lattice, by_pauses
from analysis.step_table import Table, tabulate
from analysis.token_times import Arrivals, Refused, arrivals
from analysis.wording import percent

Rule = Literal["pauses", "lattice"]

SHORT_SKIP = 2
"""Steps. A preempted request waits for blocks and is computed again, which takes more."""
MOST_SHORT_SKIPS = 0.002
"""Short skips for each gap between tokens. At most 0.005 % where rule A met the server's count
(28 GPU runs), at least 0.5 % on the CPU runs where it did not."""
MOST_OFF = 0.03
"""Share of chunks more than a step off the lattice. At most 0.3 % where rule B was right unaided;
runs at 5 to 22 % were right or wrong alike, so they need the server's count."""
SLACK = 0.005
"""Of the server's count of iterations: how far a count may be off beyond merged chunks."""
LONGEST = 0.05
"""Share of a run's time in one step above which a warning says so."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How far a reconstruction can be trusted."""

    rule: Rule
    steps: int
    skip_events: int
    """Gaps that span more than one step, beyond what merged chunks explain."""
    skipped_steps: int
    """Steps, summed over those gaps."""
    short_skips: float
    """Of rule A: skips of one or two steps, for each gap between tokens."""
    off_lattice: float
    """Of rule B: share of chunks more than a step from their place."""
    merged_chunks: int
    plateau: tuple[int, int]
    """Steps that rule A finds with pauses of 0.35 and 0.7 of the median gap."""
    prefill_only: int
    """Steps with no decoding request; each may hide steps of a chunked prefill."""
    server_steps: int | None = None
    hidden_preemptions: int | None = 0
    """Preemptions that no gap shows: of requests still without a token, whose prompts are computed
    again unseen. None where there may be some and the server's count is not known."""


@dataclass(frozen=True, eq=False, slots=True)
class Steps:
    """The steps of a run, and of each request the steps it saw."""

    table: Table
    quality: Quality
    found: Arrivals
    engine_of: Ints
    """Shape (n,)."""
    warnings: tuple[str, ...] = ()

    @property
    def requests(self) -> int:
        """Completed requests."""
        return len(self.found.start)

    @property
    def gaps(self) -> int:
        """Tokens after the first, of all requests: what ITL is a mean over."""
        return int((self.found.output_tokens - 1).sum())


def reconstruct(
    requests: Requests,
    *,
    engine_of: Ints | None = None,
    token_budget: int | None = None,
    server_steps: int | None = None,
    preemptions: int | None = None,
) -> Steps | Refused:
    """The engine steps of a run.

    Args:
        requests: per-request arrays of one run.
        engine_of: shape (requests,); which engine served each, where there are several.
        token_budget: max_num_batched_tokens, to lay long prompts over the steps they took.
        server_steps: the server's own count (`vllm:iteration_tokens_total_count`), if known.
        preemptions: the server's own count, if known.
    """
    found = arrivals(requests)
    if isinstance(found, Refused):
        return found
    engine = np.zeros(len(found.start), np.int64)
    if engine_of is not None:
        engine = np.asarray(engine_of, np.int64)[found.index]
    labels = np.unique(engine)
    rules: list[tuple[Assigned, Rule]] = []
    for label in labels:
        chosen = _choose(found.only(engine == label), len(labels), server_steps, preemptions)
        if isinstance(chosen, Refused):
            return chosen
        rules.append(chosen)
    step, shift = np.empty(len(found.time), np.int64), 0
    off = np.zeros(len(found.time))
    for label, (assigned, _) in zip(labels, rules, strict=True):
        mine = (engine == label)[found.request]
        step[mine], off[mine] = assigned.step + shift, assigned.off
        shift += assigned.count
    table = tabulate(found, step, engine, token_budget)
    kinds = {rule for _, rule in rules}
    rule: Rule = "lattice" if "lattice" in kinds else "pauses"
    skipped = _skips(found, step)
    events = int((skipped > 0).sum())
    hidden: int | None = 0
    if preemptions is not None:
        hidden = max(preemptions - events, 0)
    elif events and token_budget and (found.input_tokens > token_budget / 2).any():
        hidden = None
    quality = Quality(
        rule, len(table.end), events, int(skipped.clip(0).sum()),
        _short(skipped), float((np.abs(off) > 1).mean()), found.merged,
        _plateau(found) if len(labels) == 1 else (len(table.end), len(table.end)),
        int(((table.decoding == 0) & (table.prefilled > 0)).sum()), server_steps, hidden,
    )  # fmt: skip
    return Steps(table, quality, found, engine, (*found.warnings, *_warnings(table, quality)))


def _choose(
    found: Arrivals, engines: int, server_steps: int | None, preemptions: int | None
) -> tuple[Assigned, Rule] | Refused:
    """The rule that passes its checks, A before B."""
    counted = server_steps if engines == 1 else None
    pauses = by_pauses(found)
    skipped = _skips(found, pauses.step)
    events, short = int((skipped > 0).sum()), _short(skipped)
    told = engines == 1 and preemptions is not None and 0 < events <= preemptions
    reasons = []
    if short > MOST_SHORT_SKIPS and not told:
        reasons.append(
            f"By pauses, {percent(short, 2)} of the gaps skip one or two steps (preemption makes "
            f"few and long ones; {percent(MOST_SHORT_SKIPS)} is taken): chunks of one step do not "
            "arrive together, or several engines answer."
        )
    elif (trouble := _against(counted, pauses.count, found)) is not None:
        reasons.append(f"By pauses {trouble}")
    else:
        return pauses, "pauses"
    if preemptions:
        return Refused((*reasons, "A lattice cannot bear the preemptions that the server counts."))
    lattice = by_lattice(found)
    off = float((np.abs(lattice.off) > 1).mean())
    if (trouble := _against(counted, lattice.count, found)) is not None:
        reasons.append(f"By a lattice {trouble}")
    elif counted is None and off > MOST_OFF:
        reasons.append(
            f"On a lattice, {percent(off)} of the chunks lie more than a step from their place "
            f"({percent(MOST_OFF)} is taken): preemption, several engines, or a client that lags; "
            "the server's count of iterations would settle it."
        )
    else:
        return lattice, "lattice"
    return Refused(tuple(reasons))


def _against(counted: int | None, steps: int, found: Arrivals) -> str | None:
    """What is wrong with a count beside the server's; None where it is met or unknown."""
    if counted is None:
        return None
    short = found.merged + SLACK * counted
    if counted - short <= steps <= counted + SLACK * counted:
        return None
    return (
        f"{steps:,} steps are found where the server counted {counted:,} "
        f"({found.merged:,} chunks were read together; steps that emit no token, and requests "
        "sent before the client's clock began, are in the server's count only)."
    )


def _skips(found: Arrivals, step: Ints) -> Ints:
    """Shape (m - n,). Steps without a token inside each gap, less what merged chunks explain."""
    inner = np.flatnonzero(found.request[1:] == found.request[:-1])
    lost = np.maximum(found.output_tokens - np.diff(found.offsets), 0)
    skipped = np.diff(step)[inner] - 1
    return np.where(skipped <= lost[found.request[inner]], 0, skipped).astype(np.int64)


def _short(skipped: Ints) -> float:
    return float(((skipped > 0) & (skipped <= SHORT_SKIP)).mean()) if len(skipped) else 0.0


def _plateau(found: Arrivals) -> tuple[int, int]:
    return by_pauses(found, 0.35).count, by_pauses(found, 0.7).count


def _warnings(table: Table, quality: Quality) -> tuple[str, ...]:
    said = []
    longest = int(np.argmax(table.duration))
    share = float(table.duration[longest] / table.duration.sum())
    if share > LONGEST and len(table.end) > 2 / LONGEST:
        said.append(
            f"one step took {table.duration[longest]:.3g} s, {percent(share)} of all: a stall, or "
            "a clock that was set; means follow it"
        )
    low, high = sorted(quality.plateau)
    if quality.rule == "pauses" and high - low > SLACK * quality.steps:
        said.append(f"the count of steps depends on the pause: {low:,} to {high:,}")
    return tuple(said)


Latency = Literal["itl", "ttft", "stay", "duration"]
LATENCIES: tuple[Latency, ...] = ("itl", "ttft", "stay", "duration")


@dataclass(frozen=True, eq=False, slots=True)
class Periods:
    """A latency as a sum over steps: mean = (weight * duration).sum() / count + beside."""

    latency: Latency
    weight: NDArray[np.float64]
    """Shape (steps,). How many of the latency's periods each step was part of; a wait that begins
    within a step takes the fraction."""
    count: int
    """Gaps, requests or engines that the mean is over."""
    beside: float
    """s. What lies outside the steps: idle engines, delivery."""

    @property
    def steps(self) -> float:
        """Steps in a period, on average."""
        return float(self.weight.sum()) / self.count


def periods(steps: Steps, latency: Latency) -> Periods:
    """How a mean latency of the run is made of its steps."""
    table, found = steps.table, steps.found
    decode = (table.decoding + table.stalled).astype(float)
    ttft = float((found.time[found.offsets[:-1]] - found.start).mean())
    if latency == "duration":
        weight, count = np.ones(len(table.end)), len(np.unique(steps.engine_of))
        mean = float(found.last.max() - found.start.min())
    elif latency == "itl":
        weight, count = decode, steps.gaps
        mean = float((found.last - found.time[found.offsets[:-1]]).sum()) / max(count, 1)
    elif latency == "ttft":
        weight, count, mean = table.waiting, steps.requests, ttft
    else:
        weight, count = table.waiting + decode, steps.requests
        mean = float((found.last - found.start).mean())
    count = max(count, 1)
    return Periods(latency, weight, count, mean - float(weight @ table.duration) / count)
