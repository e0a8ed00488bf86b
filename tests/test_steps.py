"""Engine steps from client timestamps: the simulator's truth, hand-made streams, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.model import Requests
from analysis.simulate import Delivery, Engine, Open
from analysis.step_rules import by_lattice, by_pauses
from analysis.steps import LATENCIES, Steps, periods, reconstruct
from analysis.token_times import Arrivals, Refused, arrivals
from tests.builders import requests
from tests.simulated import requests_of, simulated, steps_of

ENGINES = [
    Engine(),
    Engine(max_num_seqs=4),
    Engine(kv_blocks=120),
    Engine(max_num_batched_tokens=128),
    Engine(replicas=2),
]


def found_in(data: Requests) -> Arrivals:
    found = arrivals(data)
    assert isinstance(found, Arrivals)
    return found


def refusal(data: Requests, **told: int) -> str:
    found = reconstruct(data, **told)  # type: ignore[arg-type]
    assert isinstance(found, Refused)
    return " ".join(found.reasons)


# Against the truth of a simulated run


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_every_step_that_emits_a_token_is_found_with_what_was_in_it(engine):
    run = simulated(engine=engine)
    steps, truth = steps_of(run), run.truth
    shown = np.flatnonzero(truth.emitted > 0)
    order = shown[np.lexsort((truth.end[shown], truth.engine[shown]))]
    table = steps.table
    assert len(table.end) == len(order)
    assert (table.batch == truth.emitted[order]).all()
    # But for steps without a token, whose time belongs to the next.
    usual = np.abs(table.duration - truth.duration[order]) < 1e-3
    assert usual.mean() > 0.95
    computed = table.prefilled + table.recomputed
    assert np.isclose(computed, truth.prefilled[order]).mean() > 0.95


def test_skips_are_preemptions():
    run = simulated(engine=Engine(kv_blocks=120))
    steps = steps_of(run, counted=True)
    assert run.truth.preemptions > 10
    assert steps.quality.skip_events == run.truth.preemptions
    assert steps.quality.rule == "pauses"
    assert steps.table.stalled.sum() == steps.quality.skipped_steps
    assert periods(steps, "itl").steps == pytest.approx(
        1 + steps.quality.skipped_steps / steps.gaps
    )


@pytest.mark.parametrize("engine", ENGINES, ids=str)
@pytest.mark.parametrize("load", [1, 8, Open(1.5)], ids=str)
def test_latencies_are_sums_over_steps(engine, load):
    """Each mean equals steps a period x time a step, but for delivery and idle time."""
    if load == 1 and engine.replicas > 1:
        load = 2
    run = simulated(60, load, engine=engine)
    steps = steps_of(run)
    stay = run.received[run.offsets[1:] - 1] - run.start
    means = {"itl": run.gaps.mean(), "ttft": run.ttft.mean(), "stay": stay.mean(),
             "duration": run.duration}  # fmt: skip
    for latency in LATENCIES:
        p = periods(steps, latency)
        total = float(p.weight @ steps.table.duration) / p.count + p.beside
        assert total == pytest.approx(means[latency], rel=1e-9)
    assert abs(periods(steps, "itl").beside) < 1e-5
    assert abs(periods(steps, "ttft").beside) < 2e-3


def test_with_several_engines_told_apart_and_without():
    run = simulated(engine=Engine(replicas=2))
    assert "several engines" in refusal(requests_of(run))
    assert steps_of(run).quality.skip_events == 0


def test_preemptions_of_requests_without_a_token_are_not_seen():
    """Prompts in parts, few blocks: part of the preemptions hit requests that have no gap yet."""
    run = simulated(engine=Engine(kv_blocks=120, max_num_batched_tokens=128))
    hidden = steps_of(run, counted=True).quality.hidden_preemptions
    assert hidden is not None
    assert hidden > 5
    assert steps_of(run).quality.hidden_preemptions is None


def test_steps_without_a_token_are_told_as_possible():
    run = simulated(3, 1, engine=Engine(max_num_batched_tokens=64))
    steps = steps_of(run)
    assert len(run.truth.end) > steps.quality.steps
    assert steps.quality.prefill_only == 3


# The two rules


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 99))
def test_both_rules_agree_with_the_truth_without_preemption(n, load, seed):
    run = simulated(n, load, seed)
    data = found_in(requests_of(run))
    truth = run.truth.step_of - run.truth.step_of.min()
    assert (by_pauses(data).step == truth).all()
    if n > 1:
        assert by_lattice(data).count == pytest.approx(truth.max() + 1, abs=2)


def by_pauses_plainly(found: Arrivals) -> list[int]:
    """The rule as it is told, one chunk after the other."""
    order = np.lexsort((found.ordinal, found.time))
    inner = np.flatnonzero(found.request[1:] == found.request[:-1])
    gaps = found.time[inner + 1] - found.time[inner]
    pause = np.median(gaps) / 2 if len(gaps) else -1.0
    step, number, seen, last = [0] * len(order), -1, set(), -np.inf
    for at in order:
        new = number < 0 or found.request[at] in seen or found.time[at] - last > pause
        if new:
            number, seen = number + 1, set()
        seen.add(found.request[at])
        step[at], last = number, found.time[at]
    return step


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 5), st.lists(st.floats(0, 2), max_size=8)), min_size=1, max_size=6
    )
)
def test_the_rule_by_pauses_is_what_a_plain_loop_finds(streams):
    data = found_in(
        requests([1.0] * len(streams), [g for _, g in streams], start=[s for s, _ in streams])
    )
    if len(data.time) == len(data.start):  # one chunk a request: each is a step of its own
        assert by_pauses(data).count == len(data.time)
    else:
        assert by_pauses(data).step.tolist() == by_pauses_plainly(data)


def test_jitter_as_long_as_a_step_needs_the_lattice():
    run = simulated(100, 4, delivery=Delivery(5e-4, 3e-4, jitter=1.5e-3))
    steps = steps_of(run)
    assert steps.quality.rule == "lattice"
    assert steps.quality.steps == pytest.approx(len(run.truth.end), rel=0.01)


def test_a_count_that_the_server_contradicts_is_refused():
    data = requests_of(simulated())
    found = reconstruct(data)
    assert isinstance(found, Steps)
    right = found.quality.steps
    assert isinstance(reconstruct(data, server_steps=right), Steps)
    assert f"the server counted {right + 200:,}" in refusal(data, server_steps=right + 200)


def test_preemption_that_the_server_counts_rules_the_lattice_out():
    run = simulated(100, 4, delivery=Delivery(5e-4, 3e-4, jitter=1.5e-3))
    assert "cannot bear" in refusal(requests_of(run), preemptions=1)


# Streams by hand


def test_three_requests_by_hand():
    """Steps end at 1, 2, 3, 4 s; the second request stands in step 3, the third comes at 2.5."""
    data = requests(
        [1.0, 1.0, 0.5],
        [[1.0, 1.0, 1.0], [1.0, 2.0], [1.0]],
        input_tokens=[10, 20, 30],
        start=[0.0, 0.0, 2.5],
    )
    # Arrivals: 1 2 3 4; 1 2 4; 3 4.
    found = reconstruct(data, preemptions=1)
    assert isinstance(found, Steps)
    table = found.table
    assert table.end == pytest.approx([1, 2, 3, 4])
    assert table.duration == pytest.approx([1, 1, 1, 1])
    assert table.firsts.tolist() == [2, 0, 1, 0]
    assert table.decoding.tolist() == [0, 2, 1, 3]
    assert table.stalled.tolist() == [0, 0, 1, 0]
    assert table.prefilled.tolist() == [30, 0, 30, 0]
    assert table.recomputed.tolist() == [0, 0, 0, 22]
    assert table.context.tolist() == [0, 11 + 21, 12, 13 + 31]
    assert table.waiting == pytest.approx([2, 0, 0.5, 0])
    itl, ttft = periods(found, "itl"), periods(found, "ttft")
    assert itl.steps == pytest.approx(7 / 6)
    assert ttft.steps == pytest.approx(2.5 / 3)
    assert ttft.beside == pytest.approx(0)


def test_idle_time_is_in_no_step():
    data = requests([1.0, 1.0], [[1.0], [1.0]], start=[0.0, 10.0])
    found = reconstruct(data)
    assert isinstance(found, Steps)
    assert found.table.duration == pytest.approx([1, 1, 1, 1])
    assert found.table.idle == pytest.approx(8)
    assert periods(found, "duration").beside == pytest.approx(8)


def test_one_request_only():
    found = reconstruct(requests([0.5], [[0.1] * 20], start=[3.0]))
    assert isinstance(found, Steps)
    assert found.quality.steps == 21
    assert periods(found, "ttft").steps == pytest.approx(1)


def test_outputs_of_one_token_have_no_gaps():
    found = reconstruct(requests([0.5, 0.7, 0.9], [[], [], []], start=[0.0, 0.0, 0.0]))
    assert isinstance(found, Steps)
    assert found.gaps == 0
    assert periods(found, "itl").steps == 0


def test_chunks_read_together_are_no_skip():
    """One of 12 streams has 30 chunks for 31 tokens: one arrival short, and nobody stood."""
    whole = requests(
        [1.0] * 12,
        [[1.0] * 30] * 11 + [[1.0] * 10 + [2.0] + [1.0] * 18],
        output_tokens=[31] * 12,
        start=[0.0] * 12,
    )
    found = reconstruct(whole)
    assert isinstance(found, Steps)
    assert (found.quality.merged_chunks, found.quality.skip_events) == (1, 0)
    assert found.table.stalled.sum() == 0
    assert set(found.table.decoding[1:].tolist()) == {12}
    assert periods(found, "itl").steps == pytest.approx(1)


# Refusals and warnings


def test_several_tokens_a_chunk_are_refused():
    data = requests([1.0], [[1.0] * 9], output_tokens=[30], start=[0.0])
    assert "10 chunks carried 30 tokens" in refusal(data)


def test_without_start_times_there_are_no_steps():
    assert "no start times" in refusal(requests([1.0], [[1.0] * 9]))


def test_failed_requests_are_left_out_and_said():
    data = requests(
        [1.0, 0.0, 1.0], [[1.0] * 9, [], [1.0] * 9], output_tokens=[10, 0, 10],
        failed=[False, True, False], start=[0.0, 0.0, 0.0],
    )  # fmt: skip
    found = reconstruct(data)
    assert isinstance(found, Steps)
    assert found.requests == 2
    assert found.found.index.tolist() == [0, 2]
    assert "1 request of 3 (33.3 %) failed" in found.warnings[0]


def test_nothing_completed():
    data = requests([0.0], [[]], output_tokens=[0], failed=[True], start=[0.0])
    assert refusal(data) == "No request was completed."


def test_a_clock_that_was_set_shows_as_one_long_step():
    gaps = [[0.01] * 50 + [3600.0] + [0.01] * 50]
    found = reconstruct(requests([0.1], gaps, start=[0.0]))
    assert isinstance(found, Steps)
    assert "one step took 3.6e+03 s" in found.warnings[0]


def test_a_long_run_takes_seconds_at_most():
    """400,000 chunks; what grows as m log m takes well under this on any machine."""
    rng = np.random.default_rng(0)
    n, m = 2000, 200
    start = np.sort(rng.uniform(0, 1000, n))
    data = Requests(
        np.full(n, 0.01), np.full(n * (m - 1), 0.01), np.arange(n + 1) * (m - 1),
        np.full(n, 10), np.full(n, m), np.zeros(n, np.bool_), np.round(start, 2),
    )  # fmt: skip
    assert by_pauses(found_in(data)).count > 1000
