"""analysis.queue_sources: each source of a wait by hand, and by an engine whose queue is known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.accounting import ledger
from analysis.model import MetricSamples, Run, ServerSide, ServerTimes, Source, Steps
from analysis.queue_sources import (
    LITTLE,
    SAMPLES,
    STEPS,
    TIMES,
    TTFT,
    mean_over_time,
    mean_waiting,
    request_seconds,
    server_wait,
    waits,
)
from analysis.scan import scan
from analysis.simulate import Engine
from tests.builders import requests, run
from tests.simulated import simulated
from tests.simulated_metrics import write

HERE = Source("r/steps-0.jsonl", "")


def steps(clock: list[float], waiting: list[int], engine: str = "0") -> Steps:
    none = np.zeros(len(clock), np.int64)
    return Steps(
        HERE, engine, np.array(clock, float), none + 4, np.array(waiting, np.int64), none, none,
        none, none.astype(float),
    )  # fmt: skip


def times(*queue: float, prefix: str = "a") -> ServerTimes:
    seconds = np.array(queue, float)
    names = tuple(f"{prefix}-{n}" for n in range(len(queue)))
    return ServerTimes(Source("r/requests-0.jsonl", ""), names, seconds, seconds, seconds)


def watched(*, failed: list[bool] | None = None, **server: object) -> Run:
    """Two requests from 100 to 104 s: one that takes 4 s, one that takes 2 s."""
    arrays = requests([1.0, 1.0], [[3.0], [1.0]], start=[100.0, 101.0], failed=failed)
    figures = {"completed": 2, "num_prompts": 2, "duration": 4.0, "mean_ttft": 1.0}
    return replace(run(figures, requests=arrays), server=ServerSide(**server))  # type: ignore[arg-type]


# ---- the waiting count over time


def test_a_count_holds_while_its_step_runs() -> None:
    # 3 wait from 0 to 1, 1 from 1 to 3, none from 3 to 4: (3 + 2) / 4.
    found = steps([1, 3, 4], [3, 1, 0])
    assert mean_over_time(found, 0, 4) == 1.25
    assert mean_over_time(found, 1, 3) == 1.0
    assert mean_over_time(found, 0.5, 1.5) == 2.0


def test_steps_outside_of_the_window_count_for_nothing() -> None:
    found = steps([1, 2, 3, 10, 11], [50, 2, 2, 50, 50])
    assert mean_over_time(found, 1, 3) == 2.0


def test_before_the_first_step_and_after_the_last_nobody_waits() -> None:
    assert mean_over_time(steps([1], [4]), 0, 4) == 1.0
    # The first of an engine that idled until then lasts as long as others.
    assert mean_over_time(steps([8, 9, 10], [5, 0, 0]), 0, 20) == 5 / 20


def test_no_steps_and_no_time() -> None:
    assert mean_over_time(steps([], []), 0, 1) == 0.0
    assert mean_over_time(steps([1], [1]), 2, 2) == 0.0
    assert mean_over_time(steps([1], [1]), 3, 2) == 0.0


@given(
    st.lists(st.tuples(st.floats(0, 100), st.integers(0, 1000)), min_size=1),
    st.floats(0, 100),
    st.floats(0, 100),
)
def test_a_mean_lies_between_nothing_and_the_most(
    rows: list[tuple[float, int]], begin: float, end: float
) -> None:
    clock = sorted(at for at, _ in rows)
    waiting = [count for _, count in rows]
    found = mean_over_time(steps(clock, waiting), begin, end)
    assert 0 <= found <= max(waiting) * (1 + 1e-9)


def test_engines_add_up_over_the_window_of_the_run() -> None:
    both = (steps([100, 104], [9, 1], "0"), steps([100, 102, 104], [9, 3, 0], "1"))
    # 1 over 4 s, and 3 over 2 of 4 s.
    assert mean_waiting(watched(steps=both)) == 2.5


def test_a_failed_request_sets_no_window() -> None:
    """A client may leave its start at 0."""
    one = watched(steps=(steps([100, 104], [9, 1]),), failed=[False, True])
    assert one.requests is not None
    assert one.requests.start is not None
    start = np.array([100.0, 0.0])
    assert mean_waiting(replace(one, requests=replace(one.requests, start=start))) == 1.0
    none = replace(one.requests, failed=np.array([True, True]))
    assert mean_waiting(replace(one, requests=none)) is None


# ---- the server's own times


def test_queue_times_are_averaged_over_the_requests_that_have_one() -> None:
    found = server_wait(watched(times=(times(1.0, math.nan, 3.0), times(5.0, prefix="b"))))
    assert found is not None
    assert found.seconds == 3.0
    assert found.source == Source("r/requests-0.jsonl", "queue, mean of 3 requests")


def test_a_request_that_is_told_of_twice_counts_once() -> None:
    found = server_wait(watched(times=(times(1.0, math.nan), times(1.5, 3.0))))
    assert found is not None
    assert found.seconds == 2.0


@pytest.mark.parametrize("side", [{}, {"times": (times(math.nan),)}])
def test_a_server_that_says_nothing(side: dict[str, object]) -> None:
    assert server_wait(watched(**side)) is None
    assert mean_waiting(watched(**side)) is None


def test_a_run_without_a_server_or_without_starts_has_neither() -> None:
    assert server_wait(run()) is None
    assert mean_waiting(run()) is None
    one = watched(steps=(steps([100, 104], [9, 1]),))
    assert one.requests is not None
    assert mean_waiting(replace(one, requests=replace(one.requests, start=None))) is None


# ---- counters and samples


def sampled(*waiting: float, period: float = 1.0) -> MetricSamples:
    count = np.array(waiting, float)
    none = np.full(len(count), math.nan)
    clock = 50.0 + period * np.arange(len(count))
    return MetricSamples(
        Source("r.metrics.txt", ""), "server", clock, none, count, none, none, none, none, none
    )


def test_request_seconds_are_the_area_under_the_count() -> None:
    even = sampled(*[3.0] * 11)
    assert request_seconds(even) == 30.0
    assert request_seconds(sampled(*range(11), period=2.0)) == 100.0
    gap = sampled(*[3.0] * 5, math.nan, *[3.0] * 6)
    assert request_seconds(gap) == 33.0
    assert math.isnan(request_seconds(sampled(*[3.0] * 9)))


def test_a_sampled_count_stands_in_for_steps_only() -> None:
    one = watched(samples=(sampled(*[3.0] * 11), sampled(*[1.0] * 11)))
    found = {wait.by: wait for wait in waits(ledger(one), None, None)}
    # 40 request-seconds of two requests.
    assert found[SAMPLES].seconds == 20.0
    assert found[SAMPLES].source.file == "r.metrics.txt"
    both = watched(samples=(sampled(*[3.0] * 11),), steps=(steps([100, 104], [9, 1]),))
    assert {wait.by for wait in waits(ledger(both), None, None)} == {STEPS}


def test_a_count_that_one_engine_does_not_tell_is_none_of_the_run() -> None:
    one = watched(samples=(sampled(*[3.0] * 11), sampled(*[math.nan] * 11)))
    assert waits(ledger(one), None, None) == ()


def test_where_no_request_is_told_of_the_counters_are_asked(tmp_path: Path) -> None:
    sim = simulated(n=60, engine=Engine(max_num_seqs=2))
    write(tmp_path / "a", sim)
    (one,) = [one for one in scan(tmp_path) if isinstance(one, Run)]
    found = server_wait(one)
    assert found is not None
    assert found.seconds == pytest.approx(sim.truth.queued.mean())
    assert found.source.file == "a.after.txt.gz"
    assert one.server is not None
    told = replace(one.server, times=(times(7.0),))
    better = server_wait(replace(one, server=told))
    assert better is not None
    assert better.seconds == 7.0


# ---- all of them


def test_all_sources_of_one_run_by_hand() -> None:
    one = watched(steps=(steps([100, 104], [9, 1]),), times=(times(0.5, 1.5),))
    found = {wait.by: wait for wait in waits(ledger(one), slots=1.0, prefill=0.25)}
    assert list(found) == [TIMES, STEPS, LITTLE, TTFT]
    assert found[TIMES].seconds == 1.0
    # X = 2 / 4 s; one waits on average: 1 / 0.5.
    assert found[STEPS].seconds == 2.0
    # L = X x (1 + 2) = 1.5 in flight, one of them runs: 0.5 / 0.5.
    assert found[LITTLE].seconds == pytest.approx(1.0)
    assert found[TTFT].seconds == 0.75
    assert found[STEPS].source.file == "r/steps-0.jsonl"
    assert found[LITTLE].source == one.source


def test_sources_that_a_run_has_not_are_left_out() -> None:
    assert waits(ledger(run()), None, None) == ()
    assert [wait.by for wait in waits(ledger(run()), 4.0, None)] == [LITTLE]
    assert [wait.by for wait in waits(ledger(run()), None, 0.05)] == [TTFT]
