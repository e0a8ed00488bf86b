"""Contrasts of log means over runs of arms that differ in factors."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st

from analysis.factorial import Factorial, Observation, main_effect

FOUR = (("bf16", "ample"), ("bf16", "binding"), ("awq", "ample"), ("awq", "binding"))


def runs(
    weights: float, kv: float, both: float, seeds: int = 3, noise: float = 0.0
) -> list[Observation]:
    rng = np.random.default_rng(1)
    found = []
    for w, k in FOUR:
        awq, binding = w == "awq", k == "binding"
        mean = weights * awq + kv * binding + both * (awq and binding)
        for seed in range(seeds):
            # Prompts of a seed cost what they cost in every arm.
            value = mean + 0.2 * seed + noise * float(rng.normal())
            found.append(Observation((w, k), seed, value))
    return found


def interaction() -> dict[tuple[str, ...], float]:
    weights = dict.fromkeys(FOUR, 0.0)
    for k, sign in (("ample", -1.0), ("binding", 1.0)):
        weights["awq", k] += sign
        weights["bf16", k] -= sign
    return weights


def test_effects_are_those_that_were_put_in() -> None:
    fitted = Factorial(runs(-0.3, 0.2, 0.1))
    assert math.log(fitted.effect(interaction()).ratio) == pytest.approx(0.1)
    main = fitted.effect(main_effect(0, "bf16", "awq", fitted.cells))
    assert math.log(main.ratio) == pytest.approx(-0.3 + 0.1 / 2)
    simple = fitted.effect({("bf16", "ample"): -1.0, ("awq", "ample"): 1.0})
    assert math.log(simple.ratio) == pytest.approx(-0.3)


def test_what_a_seed_costs_is_taken_out() -> None:
    fitted = Factorial(runs(-0.3, 0.2, 0.0, noise=0.001))
    assert fitted.shared == 3
    assert fitted.df == 12 - 4 - 2
    main = fitted.effect(main_effect(0, "bf16", "awq", fitted.cells))
    assert main.hi / main.lo < 1.01


def test_intervals_are_those_of_a_formula() -> None:
    """A second implementation: the same model by statsmodels' formulas."""
    observed = runs(-0.3, 0.2, 0.1, seeds=4, noise=0.02)
    data = pd.DataFrame({
        "y": [run.value for run in observed], "w": [run.levels[0] for run in observed],
        "k": [run.levels[1] for run in observed], "s": [run.block for run in observed],
    })  # fmt: skip
    fit = smf.ols("y ~ C(w, Treatment('bf16')) * C(k) + C(s)", data).fit()
    name = "C(w, Treatment('bf16'))[T.awq]:C(k)[T.binding]"
    lo, hi = fit.conf_int()[0][name], fit.conf_int()[1][name]
    found = Factorial(observed).effect(interaction())
    assert math.log(found.ratio) == pytest.approx(fit.params[name])
    assert (math.log(found.lo), math.log(found.hi)) == pytest.approx((lo, hi))
    assert found.p == pytest.approx(fit.pvalues[name])


def test_without_repeats_there_is_no_interval() -> None:
    fitted = Factorial(runs(-0.3, 0.2, 0.1, seeds=1))
    found = fitted.effect(interaction())
    assert not found.tested
    assert (found.lo, found.hi) == (0, math.inf)
    assert found.scale == pytest.approx(2)  # four runs, each with weight 1


def test_a_seed_of_one_arm_alone_changes_nothing() -> None:
    observed = runs(-0.3, 0.2, 0.1, noise=0.001)
    more = Factorial([*observed, Observation(FOUR[0], "own", 9.0)])
    assert more.shared == 3
    assert more.effect(interaction()).ratio == pytest.approx(
        Factorial(observed).effect(interaction()).ratio
    )


def test_arms_that_share_no_seed_are_not_compared() -> None:
    """Other prompts in each: what the seeds cost is not told from what the factor does."""
    apart = [
        Observation(run.levels, (run.levels[0], run.block), run.value)
        for run in runs(-0.3, 0.2, 0.0)
    ]
    fitted = Factorial(apart)
    assert fitted.effect(main_effect(0, "bf16", "awq", fitted.cells)) is None
    assert fitted.effect(main_effect(1, "ample", "binding", fitted.cells)) is not None


def test_no_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="needs runs"):
        Factorial([])


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 1))
def test_an_interaction_is_a_difference_of_simple_effects(w: float, k: float, b: float) -> None:
    fitted = Factorial(runs(w, k, b, noise=0.01))
    at = {
        level: fitted.effect({("bf16", level): -1.0, ("awq", level): 1.0}).ratio
        for level in ("ample", "binding")
    }
    assert fitted.effect(interaction()).ratio == pytest.approx(at["binding"] / at["ample"])
