"""What a run's files tell of its engine steps: engines, the servers' counts, and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analysis.model import Counters, Run, ServerSide, Source
from analysis.run_steps import preemptions, server_steps, steps_of
from analysis.steps import Steps
from analysis.token_times import Refused
from tests.builders import arm, run
from tests.simulated import Engine, requests_of, simulated

SERIES = 'vllm:iteration_tokens_total_count{engine="0"}'


def counted(*moments: tuple[str, float, float]) -> Run:
    """A run whose engines went from one count of steps to another."""
    counters = tuple(
        Counters(Source(f"metrics-{engine}.{when}.txt", ""), engine, when, {SERIES: value})
        for engine, before, after in moments
        for when, value in (("before", before), ("after", after))
    )
    return replace(run(), server=ServerSide(counters=counters))


def test_counts_add_up_over_engines() -> None:
    assert server_steps(counted(("a", 5, 12), ("b", 0, 30))) == 37


def test_a_counter_that_went_back_or_is_not_there_says_nothing() -> None:
    assert server_steps(counted(("a", 12, 5))) is None
    assert preemptions(counted(("a", 5, 12))) is None
    assert server_steps(run()) is None


def test_steps_are_found_once_and_only_with_requests() -> None:
    own = replace(run(), requests=requests_of(simulated()))
    found = steps_of(own, arm("a"))
    assert isinstance(found, Steps)
    assert steps_of(own, arm("a")) is found
    without = steps_of(run(), arm("a"))
    assert isinstance(without, Refused) and "per-request" in without.reasons[0]


def test_engines_are_told_apart_by_their_clients_or_not_at_all() -> None:
    one = simulated(engine=Engine(replicas=2))
    arrays = requests_of(one)
    unknown = steps_of(replace(run(), requests=arrays), arm("a", replicas=2))
    assert isinstance(unknown, Refused) and "which request went to which" in unknown.reasons[0]
    direct = replace(arrays, client=np.asarray(one.truth.engine_of))
    found = steps_of(replace(run(), requests=direct), arm("a", replicas=2))
    assert isinstance(found, Steps)
    assert found.quality.steps == len(one.truth.end)
    routed = replace(run(), requests=direct)
    assert isinstance(steps_of(routed, arm("a", replicas=2, router="round robin")), Refused)
