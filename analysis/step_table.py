"""One row an engine step: when it ended, how long it took, and what was computed in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.model import Floats, Ints
from analysis.token_times import Arrivals


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Shapes (steps,), engine after engine, each in the order of time."""

    end: Floats
    """s. The earliest arrival of the step's chunks: delivery can be late, and never early."""
    duration: Floats
    """s. From the end of the step before, or from the next request where the engine was idle."""
    engine: Ints
    decoding: Ints
    """Requests that got a token after their first."""
    firsts: Ints
    """Requests that got their first token."""
    stalled: Ints
    """Requests past their first token that got none and were not done: preempted."""
    waiting: Floats
    """Requests sent and without a token, as a mean over the step."""
    context: Floats
    """Resident tokens (prompt and made so far) of the requests that decode."""
    prefilled: Floats
    """Prompt tokens computed for first tokens."""
    recomputed: Floats
    """Prompt and made tokens of requests that go on after a preemption."""
    idle: float
    """s. Time without a request in flight, summed over engines."""

    @property
    def batch(self) -> Ints:
        """Tokens that the step emitted."""
        return self.decoding + self.firsts


def tabulate(found: Arrivals, step: Ints, engine_of: Ints, token_budget: int | None) -> Table:
    """Rows from the step of each chunk.

    Args:
        found: arrivals of one run.
        step: shape (m,); steps of different engines do not share numbers, and each engine's are
            in a row.
        engine_of: shape (n,).
        token_budget: tokens that a step can compute; None lays a prompt into one step.
    """
    count = int(step.max()) + 1
    first, ordinal = found.offsets[:-1], found.ordinal
    is_first = ordinal == 0
    resident = found.input_tokens[found.request] + ordinal
    engine = np.zeros(count, np.int64)
    engine[step] = engine_of[found.request]
    end = np.full(count, np.inf)
    np.minimum.at(end, step, found.time)
    for label in np.unique(engine):
        end[engine == label] = _in_order(end[engine == label])
    begin, idle = _begins(found, end, engine, engine_of)

    def per_step(where: np.ndarray[tuple[int], np.dtype[np.bool_]], what: Ints) -> Floats:
        return np.bincount(step[where], what[where], minlength=count).astype(np.float64)

    inner = np.flatnonzero(~is_first)
    between = step[inner] - step[inner - 1] - 1
    lost = np.maximum(found.output_tokens - np.diff(found.offsets), 0)[found.request[inner]]
    preempted = np.zeros(len(step), np.bool_)
    preempted[inner] = between > lost
    ones = np.ones(len(step), np.int64)
    decoding = per_step(~is_first, ones).astype(np.int64)
    stalled = _spans(step[inner - 1][between > 0] + 1, step[inner][between > 0], count)
    # A token that came with its neighbour was made in a step of its own: no stall.
    merged = between > 0
    merged[merged] = (between <= lost)[merged]
    decoded = _spans(step[inner - 1][merged] + 1, step[inner][merged], count)
    duration = np.maximum(end - begin, 0.0)
    begun = _begun(found, end, engine, engine_of, step[first])
    stood = np.flatnonzero(preempted)
    prefilled, recomputed = _laid(
        np.concatenate([step[first], step[stood]]),
        np.minimum(
            np.concatenate([begun + 1, step[stood - 1] + 1]),
            np.concatenate([step[first], step[stood]]),
        ),
        np.concatenate([found.input_tokens, resident[preempted]]),
        np.arange(len(first) + int(preempted.sum())) >= len(first),
        decoding - np.bincount(step[preempted], minlength=count),
        token_budget,
    )
    return Table(
        end, duration, engine, decoding + decoded, per_step(is_first, ones).astype(np.int64),
        stalled - decoded, _waiting(found, end, duration, begun, step[first]),
        per_step(~is_first & ~preempted, resident), prefilled, recomputed, idle,
    )  # fmt: skip


def _in_order(end: Floats) -> Floats:
    """Ends of one engine's steps. A lattice may pass over a step that no chunk shows: it ended
    between its neighbours. The late chunk of a lone request must not end a step after the next."""
    seen = np.isfinite(end)
    where = np.arange(len(end))
    whole = np.interp(where, where[seen], end[seen])
    return np.minimum.accumulate(whole[::-1])[::-1]


def _begins(found: Arrivals, end: Floats, engine: Ints, engine_of: Ints) -> tuple[Floats, float]:
    begin, idle = np.empty(len(end)), 0.0
    for label in np.unique(engine):
        rows = np.flatnonzero(engine == label)
        mine = engine_of == label
        starts, lasts = np.sort(found.start[mine]), np.sort(found.last[mine])
        before = end[rows][:-1]
        # In flight just after a step: sent by then, and not complete with it.
        sent = np.searchsorted(starts, before, side="right")
        done = np.searchsorted(lasts, end[rows][1:], side="left")
        quiet = sent <= done
        following = starts[np.minimum(sent, len(starts) - 1)]
        begin[rows[0]] = starts[0]
        begin[rows[1:]] = np.where(quiet, np.clip(following, before, end[rows][1:]), before)
        idle += float((begin[rows[1:]] - before).sum())
    return begin, idle


def _spans(low: Ints, high: Ints, count: int) -> Ints:
    """How many of the half-open spans [low, high) hold each of `count` steps."""
    change = np.bincount(low, minlength=count + 1) - np.bincount(high, minlength=count + 1)
    return np.cumsum(change)[:count].astype(np.int64)


def _begun(found: Arrivals, end: Floats, engine: Ints, engine_of: Ints, first: Ints) -> Ints:
    """Shape (n,). The step that was under way when each request was sent."""
    begun = np.empty(len(first), np.int64)
    for label in np.unique(engine):
        rows = np.flatnonzero(engine == label)
        mine = engine_of == label
        begun[mine] = rows[0] + np.searchsorted(end[rows], found.start[mine], side="right")
    return np.minimum(begun, first)


def _waiting(found: Arrivals, end: Floats, duration: Floats, begun: Ints, first: Ints) -> Floats:
    """Requests between sending and first token, by the fraction of each step they were there."""
    whole = _spans(begun + 1, first + 1, len(end)).astype(float)
    # A division only where a step has a length; a step of none holds nobody for any time.
    part = np.ones(len(first))
    long = duration[begun] > 0
    part[long] = ((end[begun] - found.start)[long]) / duration[begun][long]
    return whole + np.bincount(begun, weights=part.clip(0.0, 1.0), minlength=len(end))


def _laid(
    ends: Ints,
    earliest: Ints,
    tokens: Ints,
    again: np.ndarray[tuple[int], np.dtype[np.bool_]],
    decoding: Ints,
    token_budget: int | None,
) -> tuple[Floats, Floats]:
    """Prompts, and what is computed `again` after a preemption, by step.

    With a budget they fill the steps before the token that they end in. The engine gives decoding
    requests their token, then the oldest of these what is left, and lets nothing lie idle. So one
    began in the first step from which what was left did not suffice before its end.

    Args:
        ends: shape (k,); the step in which each ends.
        earliest: shape (k,); the first step that can hold some of it.
        tokens: shape (k,); how many tokens each computes.
        again: shape (k,).
        decoding: shape (steps,).
        token_budget: tokens that a step can compute; None lays each into its last step.
    """
    if token_budget is None or not (tokens > token_budget / 2).any():
        first, later = (
            np.bincount(ends[which], tokens[which], len(decoding)).astype(np.float64)
            for which in (~again, again)
        )
        return first, later
    laid = np.zeros((2, len(decoding)))
    left = np.maximum(token_budget - decoding, 0).astype(float)
    for one in np.argsort(ends, kind="stable"):
        at, need, row = int(ends[one]), float(tokens[one]), int(again[one])
        low, before = at, 0.0
        while low > earliest[one] and before + left[low - 1] < need:
            low -= 1
            before += left[low]
        for step in range(low, at + 1):
            # What does not fit anywhere is left in the step that shows it.
            taken = min(need, left[step]) if step < at else need
            laid[row, step] += taken
            left[step] -= min(taken, left[step])
            need -= taken
    return laid[0], laid[1]
