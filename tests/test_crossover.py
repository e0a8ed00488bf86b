"""Where two load curves cross: interpolation by hand, brute force over the rounding, forecasts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as sps
from scipy.optimize import brentq

from analysis.accounting import Borrowed
from analysis.crossover import Point, crossings, forecasts, points
from analysis.dataset import Cell
from analysis.model import Figure
from analysis.quantity import constant, quantity
from tests.builders import arm, between, cell, figure, printed, run


def at(n: int, ratio: float, half: float = 0.0) -> Point:
    return Point(n, quantity(between(f"ratio {n}", ratio, ratio - half, ratio + half, "")))


def curve(name: str, metric: str, rows: dict[int | None, float]) -> tuple[Cell, ...]:
    """Cells of one arm with one metric at each load."""
    of = arm(name)
    return tuple(
        cell(of, run({metric: value}, bare=True, arm=name, concurrency=n, file=f"{name}{n}"))
        for n, value in rows.items()
    )


# Common loads


def test_arms_are_compared_at_equal_requests_in_flight_only():
    first = curve("a", "total_token_throughput", {1: 99.5, 10: 642.6, 32: 1356.5, 64: 1500.0})
    second = curve("b", "total_token_throughput", {1: 57.4, 10: 487.8, 32: 1191.9, 48: 1300.0})
    found = points(first, second, "total_token_throughput")
    assert [p.n for p in found] == [1, 10, 32]
    assert [round(p.ratio.value, 3) for p in found] == [1.733, 1.317, 1.138]
    assert all(p.ratio.unit == "" for p in found)


def test_cells_without_a_cap_or_without_the_metric_are_left_out():
    first = curve("a", "mean_itl", {None: 0.02, 1: 0.03, 2: 0.0, 4: 0.05})
    second = curve("b", "mean_itl", {None: 0.02, 1: 0.03, 2: 0.02, 4: 0.0})
    assert [p.n for p in points(first, second, "mean_itl")] == [1]
    assert points(first, second, "mean_ttft") == ()
    assert points(first, curve("c", "mean_ttft", {1: 0.1}), "mean_itl") == ()


# Crossings inside the measured loads


def test_a_crossing_by_hand():
    """ln 2 at 1 and -ln 2 at 16 in flight: zero half way in log load, at 4."""
    (found,) = crossings([at(1, 2.0), at(16, 0.5)])
    assert (found.below, found.above) == (1, 16)
    assert found.at == pytest.approx(4.0)
    assert (found.lo, found.hi) == pytest.approx((4.0, 4.0))


def test_the_measured_loads_of_two_gpus_have_no_crossing():
    assert crossings([at(1, 1.733), at(10, 1.317), at(32, 1.138)]) == ()


@pytest.mark.parametrize("found", [[], [at(1, 2.0)], [at(1, 1.0), at(2, 1.0)]])
def test_too_little_to_cross(found):
    assert crossings(found) == ()


def test_curves_that_cross_twice():
    found = crossings([at(1, 2.0), at(4, 0.5), at(16, 0.6), at(64, 1.5)])
    assert [(c.below, c.above) for c in found] == [(1, 4), (16, 64)]


def test_a_tie_between_two_signs_is_the_crossing():
    (found,) = crossings([at(1, 1.5), at(8, 1.0), at(32, 0.9)])
    assert (found.below, found.above, found.at) == (1, 32, 8.0)
    assert (found.lo, found.hi) == (8.0, 8.0)


def test_a_tie_that_only_touches_is_no_crossing():
    assert crossings([at(1, 1.5), at(8, 1.0), at(32, 1.1)]) == ()
    assert crossings([at(1, 1.0), at(8, 1.2)]) == ()
    assert crossings([at(1, 1.2), at(8, 1.0)]) == ()


def test_two_ties_in_a_row_are_the_interval():
    (found,) = crossings([at(1, 1.5), at(8, 1.0), at(16, 1.0), at(32, 0.9)])
    assert found.at == 8.0
    assert (found.lo, found.hi) == (8.0, 16.0)


def test_a_printed_tie_can_lie_either_way():
    """1.00 ± .02 at 8: the crossing may lie some way to the left or to the right of it."""
    (found,) = crossings([at(1, 1.5), at(8, 1.0, 0.02), at(32, 0.9)])

    def zero(n1, r1, n2, r2):
        x1, x2, y1, y2 = math.log(n1), math.log(n2), math.log(r1), math.log(r2)
        return math.exp(brentq(lambda x: y1 + (y2 - y1) * (x - x1) / (x2 - x1), x1, x2))

    assert found.lo == pytest.approx(zero(1, 1.5, 8, 0.98))
    assert found.hi == pytest.approx(zero(8, 1.02, 32, 0.9))


def test_rounding_that_reaches_equality_at_a_load_puts_the_crossing_there_too():
    (found,) = crossings([at(10, 1.01, 0.02), at(40, 0.8, 0.01)])
    assert found.lo == 10.0
    assert found.hi < 40
    (found,) = crossings([at(10, 1.3, 0.01), at(40, 0.99, 0.02)])
    assert found.lo > 10
    assert found.hi == 40.0


def test_noise_adds_to_the_rounding_of_a_ratio() -> None:
    """2 [1.9, 2.1] and 1 / 2 [0.45, 0.55] with 5 and 10 % of noise, by hand."""
    low, high = at(4, 2.0, 0.1), at(16, 0.5, 0.05)
    (found,) = crossings([replace(low, noise=0.05), replace(high, noise=0.1)])
    up, down = math.log(1.9) - 0.05, -math.log(0.45) + 0.1
    assert found.lo == pytest.approx(4 * 4 ** (up / (up + down)))
    up, down = math.log(2.1) + 0.05, -math.log(0.55) - 0.1
    assert found.hi == pytest.approx(4 * 4 ** (up / (up + down)))
    assert found.cut == ()


def test_an_end_at_which_noise_reaches_equality_is_cut() -> None:
    (found,) = crossings([at(4, 1.02), replace(at(16, 0.5), noise=0.01)])
    assert found.cut == ()
    (found,) = crossings([replace(at(4, 1.02), noise=0.03), at(16, 0.5)])
    assert (found.lo, found.cut) == (4, (4,))
    (found,) = crossings([at(4, 2.0), replace(at(16, 0.98), noise=0.03)])
    assert (found.hi, found.cut) == (16, (16,))


@pytest.mark.parametrize("noise", [1e6, math.inf])
def test_a_print_as_coarse_as_its_value_and_boundless_noise_leave_the_whole_range(
    noise: float,
) -> None:
    (found,) = crossings([at(4, 2.0, 2.0), replace(at(16, 0.5), noise=noise)])
    assert (found.lo, found.hi, found.cut) == (4, 16, (4, 16))


def test_a_crossing_at_loads_beyond_a_thousand():
    (found,) = crossings([at(1024, 2.0), at(4096, 0.5)])
    assert found.at == pytest.approx(2048)


def test_a_ratio_one_rounding_error_below_one():
    """The zero of the line is the upper load to within floating point: nothing breaks."""
    (found,) = crossings([at(10, 1.5), at(32, 1 - 2**-53)])
    assert found.at == pytest.approx(32)
    assert found.at <= 32


@given(st.floats(1.02, 3), st.floats(0.3, 0.98), st.floats(0, 0.2), st.floats(0, 0.2))
def test_the_interval_of_a_crossing_against_sampling(above, below, half1, half2):
    low, high = at(10, above, half1), at(32, below, half2)
    (found,) = crossings([low, high])
    rng = np.random.default_rng(5)
    y1 = np.log(rng.uniform(low.ratio.lo, low.ratio.hi, 4000))
    y2 = np.log(rng.uniform(high.ratio.lo, high.ratio.hi, 4000))
    crosses = y1 * y2 < 0
    x = math.log(10) - y1[crosses] * math.log(3.2) / (y2[crosses] - y1[crosses])
    seen = np.exp(x)
    assert found.lo - 1e-9 <= seen.min()
    assert seen.max() <= found.hi + 1e-9
    assert 10 <= found.lo <= found.at <= found.hi <= 32
    # And it is not much wider than what is seen (extremes of 4,000 draws miss the corners a bit).
    assert found.hi - found.lo <= (seen.max() - seen.min()) * 1.25 + 0.3


# Beyond the measured loads


def two_gpus() -> tuple[tuple[Cell, ...], tuple[Cell, ...], tuple[Cell, ...]]:
    """Two ranks, two replicas and one instance on two small GPUs, as a write-up prints them."""
    lent = Borrowed(constant(206.8, "tok"), constant(432.4, "tok"), "elsewhere")
    rows: dict[str, list[tuple[int, str, str | None, str | None]]] = {
        "ranks": [
            (1, "99.5", None, None), (10, "642.6", "160.8", "29.5"),
            (32, "1356.5", "175.7", "41.6"),
        ],
        "copies": [
            (1, "57.4", None, None), (10, "487.8", "213.4", "38.2"),
            (32, "1191.9", "228.1", "45.3"),
        ],
        "single": [
            (1, "57.0", None, None), (10, "437.5", "235.0", "42.9"),
            (32, "808.6", "514.7", "68.9"),
        ],
    }  # fmt: skip
    found = []
    for name, table in rows.items():
        cells = []
        for n, tps, ttft, itl in table:
            file = f"{name} {n}"
            figures: dict[str, float | Figure | None] = {
                "total_token_throughput": printed("total_token_throughput", tps, file=file)
            }
            if ttft and itl:
                figures["mean_ttft"] = printed("mean_ttft", ttft, 1e-3, file=file)
                figures["mean_itl"] = printed("mean_itl", itl, 1e-3, file=file)
            one = run(figures, bare=True, arm=name, concurrency=n, file=file)
            cells.append(cell(arm(name), one, borrowed=lent))
        found.append(tuple(cells))
    return found[0], found[1], found[2]


def test_seven_models_of_two_gpus_disagree():
    first, second, single = two_gpus()
    found = {f.model: f.at for f in forecasts(first, second, "total_token_throughput", single, 2)}
    assert found["log ratio, last two loads"] == pytest.approx(89.5, abs=0.05)
    assert found["log ratio, all loads"] == pytest.approx(94.8, abs=0.05)
    assert found["ratio linear in load"] == pytest.approx(49, abs=0.5)
    assert found["log ratio of stays"] == pytest.approx(58.9, abs=0.1)
    assert found["log ratio of ITL"] == pytest.approx(56.7, abs=0.05)
    assert found["step time affine in load"] == pytest.approx(48.3, abs=0.05)
    # At 64 in flight each of two copies sees 32, where one instance takes 68.9 ms and the ranks'
    # line 59.2 ms: no crossing as far as the instance was measured.
    assert found["2 x one instance as measured"] is None
    assert len(found) == 7


def test_a_line_through_all_loads_is_ordinary_least_squares():
    rows = {1: 1.8, 4: 1.5, 16: 1.25, 40: 1.1}
    first = curve("a", "output_throughput", rows)
    second = curve("b", "output_throughput", dict.fromkeys(rows, 1.0))
    found = {f.model: f.at for f in forecasts(first, second, "output_throughput")}
    fit = sps.linregress(np.log(list(rows)), np.log(list(rows.values())))
    assert found["log ratio, all loads"] == pytest.approx(math.exp(-fit.intercept / fit.slope))


def test_two_loads_have_no_line_through_all():
    first = curve("a", "output_throughput", {1: 2.0, 4: 1.5})
    second = curve("b", "output_throughput", {1: 1.0, 4: 1.0})
    found = {f.model: f.at for f in forecasts(first, second, "output_throughput")}
    assert list(found) == ["log ratio, last two loads", "ratio linear in load"]
    # Linear: 2 at 1, 1.5 at 4, so 1 at 7. Log: ln 2 to ln 1.5 over ln 4, so 4**(ln 2 / ln (4/3)).
    assert found["ratio linear in load"] == pytest.approx(7)
    assert found["log ratio, last two loads"] == pytest.approx(4 ** (math.log(2) / math.log(4 / 3)))


@pytest.mark.parametrize("second", [{1: 1.0}, {2: 1.0, 4: 1.0}])
def test_fewer_than_two_common_loads_forecast_nothing(second):
    first = curve("a", "output_throughput", {1: 2.0, 3: 1.5})
    assert forecasts(first, curve("b", "output_throughput", second), "output_throughput") == ()


@pytest.mark.parametrize(
    "first",
    [
        {1: 2.0, 4: 2.0, 16: 2.0},  # parallel
        {1: 1.0, 4: 1.0, 16: 1.0},  # the same
        {1: 1.2, 4: 1.5, 16: 2.0},  # apart: the lines cross below the measured loads
        {1: 1.5000001, 4: 1.5, 16: 1.4999999},  # meet beyond any load that counts
    ],
)
def test_curves_that_do_not_approach_each_other_do_not_cross(first):
    a = curve("a", "output_throughput", first)
    b = curve("b", "output_throughput", dict.fromkeys(first, 1.0))
    found = forecasts(a, b, "output_throughput")
    assert len(found) == 3
    assert all(f.at is None for f in found)


def test_step_times_by_hand():
    """20 + n against 30 + n / 2 ms meet at 20; the log ratio of ITL is a model of its own."""
    first = curve("a", "mean_itl", {2: 0.022, 8: 0.028})
    second = curve("b", "mean_itl", {2: 0.031, 8: 0.034})
    found = {f.model: f.at for f in forecasts(first, second, "mean_itl")}
    assert found["step time affine in load"] == pytest.approx(20)
    assert found["log ratio of ITL"] == found["log ratio, last two loads"]


def test_parallel_step_times_do_not_meet():
    first = curve("a", "mean_itl", {2: 0.022, 8: 0.028})
    second = curve("b", "mean_itl", {2: 0.032, 8: 0.038})
    found = {f.model: f.at for f in forecasts(first, second, "mean_itl")}
    assert found["step time affine in load"] is None


def test_one_instance_measured_far_enough_shows_the_crossing():
    """First arm 20 + n ms; two instances at n each see n / 2: 26 + 0.5 n ms, equal at 12."""
    first = curve("a", "mean_itl", {2: 0.022, 8: 0.028})
    second = curve("b", "mean_itl", {2: 0.027, 8: 0.030})
    single = curve("c", "mean_itl", {1: 0.027, 4: 0.030, 16: 0.042})
    found = {f.model: f.at for f in forecasts(first, second, "mean_itl", single, 2)}
    assert found["2 x one instance as measured"] == 13  # the first whole load beyond 12


@pytest.mark.parametrize(("single", "k"), [({1: 0.027}, 2), ({1: 0.027, 4: 0.03}, 1), ({}, 2)])
def test_one_instance_that_reaches_no_farther_is_no_model(single, k):
    first = curve("a", "mean_itl", {2: 0.022, 8: 0.028})
    second = curve("b", "mean_itl", {2: 0.027, 8: 0.030})
    found = forecasts(first, second, "mean_itl", curve("c", "mean_itl", single), k)
    assert not [f for f in found if "instance" in f.model]


def test_an_instance_without_a_load_has_no_curve():
    first = curve("a", "mean_itl", {2: 0.022, 8: 0.028})
    second = curve("b", "mean_itl", {2: 0.027, 8: 0.030})
    single = curve("c", "mean_ttft", {1: 0.1, 4: 0.1})
    found = forecasts(first, second, "mean_itl", single, 2)
    assert not [f for f in found if "instance" in f.model]


def test_an_arm_with_one_step_time_has_no_line():
    first = curve("a", "mean_itl", {2: 0.022, 8: 0.028})
    of = arm("b")
    second = tuple(
        cell(of, run(figures, bare=True, arm="b", concurrency=n, file=f"b{n}"))
        for n, figures in (
            (2, {"output_throughput": figure("output_throughput", 9), "mean_itl": 0.03}),
            (8, {"output_throughput": figure("output_throughput", 9)}),
        )
    )
    both = tuple(
        cell(arm("a"), run({"output_throughput": 10 - n / 10, "mean_itl": 0.02}, bare=True,
                           arm="a", concurrency=n, file=f"a{n}"))
        for n in (2, 8)
    )  # fmt: skip
    found = forecasts(both, second, "output_throughput")
    assert [f.model for f in found] == ["log ratio, last two loads", "ratio linear in load"]
    assert forecasts(first, second, "output_throughput") == ()


def test_cells_without_a_cap_are_on_no_line():
    first = curve("a", "mean_itl", {2: 0.022, 8: 0.028, None: 0.1})
    second = curve("b", "mean_itl", {2: 0.031, 8: 0.034})
    found = [f.model for f in forecasts(first, second, "mean_itl")]
    assert "step time affine in load" not in found
