"""The split of a gap: identities, statsmodels' Oaxaca-Blinder, least squares, hand-made steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.stats.oaxaca import OaxacaBlinder

from analysis.model import Floats
from analysis.oaxaca import Gap, means
from analysis.simulate import Engine, StepCost
from analysis.step_cost import CONTEXT, Fit, coefficients, design, fit
from analysis.steps import LATENCIES, Steps, periods
from tests.simulated import COST, simulated, steps_of

DEARER = replace(COST, weights=COST.weights * 1.3, prefill=COST.prefill * 1.5)


@pytest.fixture(scope="module")
def arms() -> tuple[list[Steps], list[Steps]]:
    """Baseline with few KV blocks, treatment with ample ones and dearer steps; three loads each."""
    return tuple(
        [steps_of(simulated(40 + 10 * load, load, cost=cost, engine=engine), counted=True)
         for load in (8, 4, 2)]
        for cost, engine in ((COST, Engine(kv_blocks=120)), (DEARER, Engine()))
    )  # type: ignore[return-value]  # fmt: skip


def gap_of(arms: tuple[list[Steps], list[Steps]], latency: str) -> tuple[Fit, Gap]:
    f = fit(design(arms[0]), design(arms[1]), (CONTEXT,))
    return f, Gap(f, *means(f, arms[0][0], arms[1][0], latency), seed=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("latency", LATENCIES)
def test_terms_add_up_to_the_gap_and_shares_to_one(arms, latency):
    _, gap = gap_of(arms, latency)
    for owner in ("baseline", "treatment"):
        split = gap.split(owner)
        parts = (split.step_cost, split.scheduling, split.misfit)
        assert sum(p.value for p in parts) == pytest.approx(gap.whole.value)
        assert sum(p.share for p in parts) == pytest.approx(1)
        assert split.count.value + split.content.value == pytest.approx(split.scheduling.value)
        for part in (*parts, split.count, split.content):
            assert part.share_lo - 1e-9 <= part.share <= part.share_hi + 1e-9


def test_the_gap_is_that_of_the_periods(arms):
    for latency in LATENCIES:
        _, gap = gap_of(arms, latency)
        a, b = (periods(runs[0], latency) for runs in arms)
        for p, runs in ((a, arms[0]), (b, arms[1])):
            assert p.steps * p.count == pytest.approx(p.weight.sum())
            assert len(p.weight) == len(runs[0].table.end)
        mean_a, mean_b = (
            float(p.weight @ runs[0].table.duration) / p.count + p.beside
            for p, runs in ((a, arms[0]), (b, arms[1]))
        )
        assert gap.whole.value == pytest.approx(mean_b - mean_a)


def plain_columns(run: Steps) -> Floats:
    t = run.table
    return np.column_stack([t.decoding, t.context / 1000, t.prefilled / 1000, t.firsts])


def test_statsmodels_finds_the_same_split_of_time_a_step():
    """One run an arm, duration: the weights are 1, the misfit 0, and the two-fold split agrees."""
    runs = [steps_of(simulated(cost=c, engine=e))
            for c, e in ((COST, Engine()), (DEARER, Engine(max_num_seqs=5)))]  # fmt: skip
    a, b = (design([run]) for run in runs)
    f = fit(a, b)
    mean_a, mean_b = means(f, runs[0], runs[1], "duration")
    assert f.a @ mean_a.content == pytest.approx(mean_a.seconds)
    kept = np.flatnonzero(a.x.any(axis=0) & b.x.any(axis=0))
    x = np.concatenate([a.x, b.x])[:, kept]
    group = np.repeat([0.0, 1.0], [len(a.y), len(b.y)])
    other = OaxacaBlinder(
        np.concatenate([a.y, b.y]), np.column_stack([x, group]), x.shape[1], hasconst=True,
        swap=False,
    )  # fmt: skip
    endowments, costs, interaction, total = other.three_fold().params
    diff = mean_a.content - mean_b.content
    assert total == pytest.approx(mean_a.seconds - mean_b.seconds)
    assert endowments == pytest.approx(diff @ f.b)
    assert costs == pytest.approx(mean_b.content @ (f.a - f.b))
    assert interaction == pytest.approx(diff @ (f.a - f.b))


def test_statsmodels_finds_the_same_costs_and_cluster_errors():
    """Least squares against statsmodels, and its errors clustered by block up to the leverage."""
    run = steps_of(simulated(300))
    d = design([run])
    kept = d.x.any(axis=0)
    other = sm.OLS(d.y, d.x[:, kept]).fit(
        cov_type="cluster", cov_kwds={"groups": d.block, "use_correction": False}
    )
    f = fit(d, design([steps_of(simulated(300, seed=2))]))
    assert f.a[kept] == pytest.approx(other.params, rel=1e-6)
    errors = np.sqrt((f.influence_a[:, kept] ** 2).sum(axis=0))
    assert errors == pytest.approx(other.bse, rel=0.15)


def test_shared_columns_have_one_coefficient(arms):
    f, _ = gap_of(arms, "itl")
    at = f.names.index(CONTEXT)
    assert f.a[at] == f.b[at]
    own = fit(design(arms[0]), design(arms[1]))
    assert own.a[at] != own.b[at]


def test_costs_are_recovered_over_loads():
    """Constant, batch, context and prefill within their intervals, from three loads."""
    cost = StepCost(8e-3, 2e-4, 4e-6, 4e-5, noise=0.01)
    runs = [steps_of(simulated(40 + 15 * load, load, seed=load, cost=cost)) for load in (2, 8, 16)]
    found = {c.name: c for c in coefficients(runs)}
    for name, true in (("constant", 8e-3), ("batch", 2e-4), ("context", 4e-3), ("prefill", 4e-2)):
        c = found[name]
        half = (c.hi - c.lo) / 2
        assert abs(c.value - true) < 2 * half, name
    assert found["constant"].refused == ""
    assert found["prefill"].refused == ""
    assert found["sequence"].refused == ""
    assert found["recomputed"].refused == "No step had any."


def test_one_closed_loop_tells_no_slope_and_says_why():
    found = {c.name: c for c in coefficients([steps_of(simulated(200, 8))])}
    for name in ("batch", "context", "sequence"):
        assert "The batch hardly varies: 7 to 8 sequences" in found[name].refused


def test_an_arm_never_preempted_gets_a_price_by_assumption(arms):
    _, gap = gap_of(arms, "itl")
    # Baseline was preempted: its schedule needs the treatment's price of recomputing.
    assert "never preempted" in gap.split("baseline").assumes
    assert gap.split("treatment").assumes == ""
