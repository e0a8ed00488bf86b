"""analysis.claims._bounds: the side of a bound, once rounding and noise are reckoned with."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as sps

from analysis.claims._bounds import ONE_SIDED, any_p, picked, side_of
from analysis.quantity import Quantity, quantity
from analysis.stats import Comparison, compare
from tests.builders import between

SINGLE = compare([1.0], [1.0])
"""Of single runs only the absence of a spread matters here."""


def ratio(value: float, half: float = 0.0) -> Quantity:
    return quantity(between("ratio", value, value - half, value + half, ""))


def repeats(factor: float, *runs: float) -> tuple[Quantity, Comparison]:
    found = compare(runs, [factor * run for run in runs[::-1]])
    return ratio(found.ratio), found


@given(st.floats(0.2, 5), st.floats(0.2, 5), st.sampled_from(["mean_itl", "mean_ttft", "p99_itl"]))
def test_single_runs_clear_a_bound_by_the_spread_of_their_metric(
    value: float, bound: float, metric: str
) -> None:
    sd = {"mean_itl": 0.013, "mean_ttft": 0.03, "p99_itl": 0.10}[metric]
    side, why = side_of(ratio(value), SINGLE, metric, bound)
    distance = math.log(value / bound) / (1.959964 * math.sqrt(2))
    if abs(abs(distance) - sd) < 1e-6:
        return
    assert side == ("open" if abs(distance) < sd else "above" if distance > 0 else "below")
    assert why


def test_the_confidence_of_either_side_is_its_own() -> None:
    # ln(1.042) / (1.96 √2) = 1.48 %, / (1.645 √2) = 1.77 %, / (2.81 √2) = 1.04 %.
    assert side_of(ratio(1.042), SINGLE, "mean_itl", 1, above=picked(10))[0] == "open"
    assert side_of(ratio(1.042), SINGLE, "mean_itl", 1, below=picked(10))[0] == "above"
    assert side_of(ratio(1 / 1.042), SINGLE, "mean_itl", 1, below=picked(10))[0] == "open"
    # ln(1.032) / 2.772 = 1.14 % and / 2.326 = 1.35 %.
    assert side_of(ratio(1.032), SINGLE, "mean_itl", 1)[0] == "open"
    assert side_of(ratio(1.032), SINGLE, "mean_itl", 1, above=ONE_SIDED)[0] == "above"


def test_a_family_divides_the_error() -> None:
    assert (picked(1), picked(10), ONE_SIDED) == pytest.approx((0.95, 0.995, 0.90))


def test_a_bound_inside_the_rounding_is_open_however_many_runs() -> None:
    wide = ratio(1.2, 0.3)
    assert side_of(wide, SINGLE, "mean_itl", 1) == (
        "open",
        "the bound lies within the rounding of the print",
    )
    _, found = repeats(1.2, 100.0, 100.1, 99.9, 100.0, 100.0)
    assert side_of(wide, found, "mean_itl", 1)[0] == "open"


def test_repeats_clear_a_bound_by_their_interval() -> None:
    runs = (99.0, 101.0, 100.0, 100.5, 99.5)
    value, found = repeats(1.1, *runs)
    assert side_of(value, found, "mean_itl", found.lo * 0.999)[0] == "above"
    assert side_of(value, found, "mean_itl", found.lo * 1.001)[0] == "open"
    assert side_of(value, found, "mean_itl", found.hi * 1.001)[0] == "below"
    assert side_of(value, found, "mean_itl", found.hi * 0.999)[0] == "open"
    inner = found.interval(0.9)[1] * 1.0005
    assert inner < found.hi
    assert side_of(value, found, "mean_itl", inner, below=ONE_SIDED)[0] == "below"


def test_so_few_runs_may_lie_close_by_chance() -> None:
    # Two alike each: no spread at all, and 1 % from the bound.
    value, found = repeats(1.01, 100.0, 100.0)
    side, why = side_of(value, found, "mean_itl", 1)
    assert side == "open"
    assert why.endswith("so few runs may lie this close by chance")
    # Two single runs' worth: ln 1.03 / 2.772 x √2 = 1.51 % > 1.3 %.
    assert side_of(*repeats(1.03, 100.0, 100.0), "mean_itl", 1)[0] == "above"
    assert side_of(*repeats(1.01, *[100.0] * 5), "mean_itl", 1)[0] == "above"


def test_a_ratio_on_the_bound_is_on_neither_side() -> None:
    assert side_of(ratio(1.05), SINGLE, "mean_itl", 1.05)[0] == "open"
    assert side_of(*repeats(1.0, *[100.0] * 5), "mean_itl", 1)[0] == "open"


@pytest.mark.parametrize(("bound", "side"), [(0, "above"), (-3, "above"), (math.inf, "below")])
def test_bounds_beyond_every_ratio(bound: float, side: str) -> None:
    assert side_of(ratio(1e-6), SINGLE, "mean_itl", bound)[0] == side


def test_one_of_a_family_multiplies_the_least_p() -> None:
    runs = (100.0, 100.5, 99.5, 100.2, 99.8)
    few = compare(runs, [1.004 * run for run in runs])
    clear = compare(runs, [1.1 * run for run in runs])
    assert few.p_value is not None and clear.p_value is not None
    assert clear.p_value < few.p_value
    t, df = math.log(1.004) / few.se, few.df
    assert few.p_value == pytest.approx(2 * sps.t.sf(t, df))
    assert any_p([few], 7) == pytest.approx(min(1.0, 7 * few.p_value))
    assert any_p([few, clear], 7) == pytest.approx(7 * clear.p_value)
    assert any_p([few, few], 50) == pytest.approx(min(1.0, 50 * few.p_value))
    assert any_p([few, SINGLE], 7) is None
