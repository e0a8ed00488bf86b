"""The model of continuous batching against hand arithmetic, conservation laws and the reader."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.accounting import ledger
from analysis.formats import vllm_bench
from analysis.model import Run
from analysis.simulate import (
    Arm,
    Closed,
    Delivery,
    Engine,
    Open,
    Simulated,
    StepCost,
    Workload,
    simulate,
)
from analysis.simulated_file import write

COST = StepCost(weights=8e-3, sequence=2e-5, context=4e-8, prefill=4e-5, noise=0.02)
AT_ONCE = Delivery(0.0, 0.0)


def workload(n: int, prompt: int = 100, output: int = 20) -> Workload:
    return Workload(np.full(n, prompt), np.full(n, output))


def mixed(n: int, seed: int = 0) -> Workload:
    rng = np.random.default_rng(seed)
    return Workload(rng.integers(1, 400, n), rng.integers(1, 120, n))


def test_one_request_by_hand():
    """One prefill step, then three decode steps over 100, 101 and 102 resident tokens."""
    cost = StepCost(10e-3, 1e-3, 1e-5, 1e-4)
    run = simulate(Arm(cost), workload(1, 100, 4), Closed(1), seed=0, delivery=AT_ONCE)
    assert run.ttft == pytest.approx([10e-3 + 100 * 1e-4])
    assert run.gaps == pytest.approx([11e-3 + k * 1e-5 for k in (100, 101, 102)])
    assert run.duration == pytest.approx(run.ttft[0] + run.gaps.sum())
    assert list(run.truth.prefilled) == [100, 0, 0, 0]
    assert list(run.truth.running) == [1, 1, 1, 1]


def test_a_prompt_beyond_the_budget_is_prefilled_in_chunks():
    arm = Arm(StepCost(1e-3), Engine(max_num_batched_tokens=40))
    run = simulate(arm, workload(1, 100, 2), Closed(1), seed=0, delivery=AT_ONCE)
    assert list(run.truth.prefilled) == [40, 40, 20, 0]
    assert list(run.truth.emitted) == [0, 0, 1, 1]
    assert run.ttft == pytest.approx([3e-3])


def test_max_num_seqs_makes_the_rest_wait_in_steps():
    """Two at a time over three steps each: the second pair waits for three steps."""
    arm = Arm(StepCost(1e-3), Engine(max_num_seqs=2))
    run = simulate(arm, workload(4, 10, 3), Closed(4), seed=0, delivery=AT_ONCE)
    assert run.truth.queued == pytest.approx([0, 0, 3e-3, 3e-3])
    assert run.truth.running.max() == 2
    assert len(run.truth.end) == 6


def test_too_few_blocks_preempt_the_youngest_which_is_computed_again():
    """Two requests of 16 + 20 tokens in 4 blocks of 16: at 33 resident tokens one must go."""
    arm = Arm(StepCost(1e-3, prefill=1e-4), Engine(kv_blocks=4))
    run = simulate(arm, workload(2, 16, 20), Closed(2), seed=0, delivery=AT_ONCE)
    assert run.truth.preemptions == 1
    first, second = (np.diff(run.received[a:b]) for a, b in ((0, 20), (20, 40)))
    assert first.max() == pytest.approx(1e-3)
    # It stands until the other is done, then recomputes 16 prompt and 17 made tokens.
    assert second.max() == pytest.approx(3 * 1e-3 + 1e-3 + 33 * 1e-4)
    assert sorted(run.truth.prefilled)[-2:] == [32, 33]


def test_a_request_that_never_fits_is_refused():
    with pytest.raises(ValueError, match="64 tokens of KV cache"):
        simulate(Arm(COST, Engine(kv_blocks=4)), workload(1, 60, 20), Closed(1), seed=0)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 40), st.integers(1, 12), st.integers(1, 12), st.integers(33, 80),
    st.sampled_from([16, 64, 8192]), st.integers(1, 3), st.integers(0, 99),
)  # fmt: skip
def test_conservation(n, cap, seqs, blocks, budget, replicas, seed):
    engine = Engine(seqs, blocks, 16, budget, replicas)
    run = simulate(Arm(COST, engine), mixed(n, seed), Closed(cap), seed=seed)
    truth, sizes = run.truth, run.workload.output
    assert len(run.received) == sizes.sum() == truth.emitted.sum()
    assert (run.ttft > 0).all()
    assert (run.gaps > 0).all()
    assert truth.running.max() <= min(seqs, cap)
    assert truth.prefilled.max() <= budget
    # Nothing is computed twice unless something was preempted.
    extra = truth.prefilled.sum() - run.workload.prompt.sum()
    assert extra >= 0
    assert (extra == 0) == (truth.preemptions == 0)
    for one in range(replicas):
        mine = truth.engine == one
        assert (np.diff(truth.end[mine]) >= truth.duration[mine][1:] - 1e-12).all()


def test_a_run_is_the_same_for_the_same_seed_and_not_for_another():
    one, again, other = (
        simulate(Arm(COST), mixed(30), Closed(5), seed=s, delivery=Delivery(jitter=1e-4))
        for s in (1, 1, 2)
    )
    assert (one.received == again.received).all()
    assert (one.received[: len(other.received)] != other.received).any()


def test_only_the_cost_moves_so_the_schedule_in_steps_stays():
    """The counterfactual of a cause: other prices, the same steps."""
    arm, faster = Arm(COST), Arm(StepCost(5e-3, 2e-5, 4e-8, 4e-5))
    one = simulate(arm.without_noise(), mixed(80), Closed(8), seed=1)
    two = simulate(arm.with_cost_of(faster), mixed(80), Closed(8), seed=1)
    assert len(one.truth.end) == pytest.approx(len(two.truth.end), rel=0.01)
    assert two.gaps.mean() < one.gaps.mean()


def test_noise_has_mean_one_and_the_stated_spread():
    arm = Arm(StepCost(1e-2, noise=0.05, persistence=0.6))
    run = simulate(arm, workload(1, 1, 20_000), Closed(1), seed=3)
    logs = np.log(run.truth.duration / 1e-2)
    assert run.truth.duration.mean() == pytest.approx(1e-2, rel=3e-3)
    assert logs.std() == pytest.approx(0.05, rel=0.05)
    assert np.corrcoef(logs[1:], logs[:-1])[0, 1] == pytest.approx(0.6, abs=0.03)


def test_an_open_loop_sends_by_its_own_clock():
    run = simulate(Arm(COST), mixed(2000), Open(5.0), seed=4)
    assert np.diff(run.start).mean() == pytest.approx(0.2, rel=0.1)
    assert np.diff(run.start).std() == pytest.approx(0.2, rel=0.1)


@pytest.mark.parametrize("routing", ["round robin", "least in flight", "random"])
def test_a_router_spreads_requests_over_replicas(routing):
    arm = Arm(COST, Engine(replicas=3, routing=routing))
    run = simulate(arm, mixed(300), Closed(12), seed=5)
    shares = np.bincount(run.truth.engine_of, minlength=3) / 300
    assert shares == pytest.approx([1 / 3] * 3, abs=0.01 if routing == "round robin" else 0.1)


def read_back(run: Simulated, folder: Path) -> Run:
    write(run, folder / "run.json")
    (record,) = vllm_bench.read(folder / "run.json", "run.json")
    assert isinstance(record, Run)
    return record


def test_its_file_is_read_as_a_benchmark_result_and_obeys_littles_law(tmp_path):
    run = simulate(Arm(COST), mixed(100), Closed(10), seed=6)
    record = read_back(run, tmp_path)
    assert record.requests is not None
    assert record.requests.gaps == pytest.approx(run.gaps)
    assert record.figures["mean_itl"].value == pytest.approx(run.gaps.mean())
    in_flight = ledger(record).in_flight
    assert in_flight is not None
    assert 8 < in_flight.value <= 10
    told = json.loads((tmp_path / "run.truth.json").read_text())
    assert told["iterations"] == len(run.truth.end)


def test_an_open_loop_writes_its_rate(tmp_path):
    record = read_back(simulate(Arm(COST), mixed(20), Open(2.0), seed=7), tmp_path)
    assert record.requested_rate == 2.0
    assert record.concurrency is None
