"""Arithmetic on intervals: corners against sampling, shared figures, poles, units, many figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.quantity import Quantity, constant, maximum, minimum, quantity
from tests.builders import between, figure, printed

PRINTS = st.tuples(
    st.floats(0.5, 1e4, allow_nan=False), st.floats(0.0001, 0.4), st.floats(0.0001, 0.4)
)
"""A positive value and how far below and above it the interval goes, relative to the value."""


def leaf(name: str, value: float, lo: float, hi: float, unit: str = "") -> Quantity:
    return quantity(between(name, value, lo, hi, unit))


def made(name: str, print_: tuple[float, float, float]) -> Quantity:
    value, down, up = print_
    return leaf(name, value, value * (1 - down), value * (1 + up))


def test_an_exact_figure_has_no_interval():
    x = quantity(figure("duration", 1813.0))
    assert (x.value, x.lo, x.hi, x.unit) == (1813.0, 1813.0, 1813.0, "s")
    assert x.interval == "exact"


def test_a_printed_figure_keeps_the_interval_of_its_print():
    x = quantity(printed("mean_itl", "43.1", 1e-3))
    assert (x.value, x.lo, x.hi) == pytest.approx((0.0431, 0.04305, 0.04315))
    assert x.interval == "rounding"


def test_the_four_operations_at_the_ends_of_positive_intervals():
    a, b = leaf("a", 10, 9, 11), leaf("b", 4, 3, 5)
    for found, value, lo, hi in (
        (a + b, 14, 12, 16),
        (a - b, 6, 4, 8),
        (a * b, 40, 27, 55),
        (a / b, 2.5, 9 / 5, 11 / 3),
        (100 - a, 90, 89, 91),
        (2 * a, 20, 18, 22),
        (a + 1, 11, 10, 12),
        (a / 2, 5, 4.5, 5.5),
        (a.ln(), math.log(10), math.log(9), math.log(11)),
    ):
        assert (found.value, found.lo, found.hi) == pytest.approx((value, lo, hi))


def test_a_product_with_a_figure_of_either_sign():
    found = leaf("a", 1, -2, 3) * leaf("b", 2, -1, 5)
    assert (found.lo, found.hi) == (-10, 15)


def test_the_same_figure_twice_is_one_figure():
    x = leaf("x", 4, 3, 5)
    assert ((x / x).lo, (x / x).hi) == (1, 1)
    assert ((x - x).lo, (x - x).hi) == (0, 0)
    # x / (x + 1) runs from 3/4 to 5/6; plain interval arithmetic would say [1/2, 5/4].
    share = x / (x + 1)
    assert (share.lo, share.hi) == pytest.approx((3 / 4, 5 / 6))
    assert len(share.leaves) == 1


def test_equal_numbers_from_two_places_are_two_figures():
    here = quantity(between("x", 4, 3, 5, file="a.csv"))
    there = quantity(between("x", 4, 3, 5, file="b.csv"))
    assert ((here / there).lo, (here / there).hi) == pytest.approx((3 / 5, 5 / 3))
    assert [source.file for source in (here / there).sources] == ["a.csv", "b.csv"]


def test_a_ratio_of_throughputs_that_share_nothing_but_the_count_of_requests():
    # X = 2000 / T for T printed 1813 and 663: the count cancels, the rounding of T stays.
    n = quantity(figure("num_prompts", 2000))
    slow, fast = quantity(printed("duration", "1813")), quantity(printed("duration", "663"))
    ratio = (n / fast) / (n / slow)
    assert ratio.value == pytest.approx(1813 / 663)
    assert ratio.lo == pytest.approx(1812.5 / 663.5)
    assert ratio.hi == pytest.approx(1813.5 / 662.5)


@given(PRINTS, PRINTS, PRINTS)
def test_corners_hold_every_value_inside_the_box(a, b, c):
    """Brute force: 200 points of the box, never outside; the extremes are corners of it."""
    x, y, z = made("x", a), made("y", b), made("z", c)

    def plain(p, q, r):
        return p * (q + r) / (p + q)

    found = x * (y + z) / (x + y)
    boxes = [(q.lo, q.hi) for q in (x, y, z)]
    rng = np.random.default_rng(1)
    inside = plain(*(rng.uniform(*box, 200) for box in boxes))
    assert found.lo * (1 - 1e-12) <= inside.min()
    assert inside.max() <= found.hi * (1 + 1e-12)
    ends = [plain(p, q, r) for p in boxes[0] for q in boxes[1] for r in boxes[2]]
    assert (found.lo, found.hi) == pytest.approx((min(ends), max(ends)), rel=1e-12)
    assert found.value == pytest.approx(plain(x.value, y.value, z.value), rel=1e-12)


def test_an_account_of_a_printed_row_against_a_million_samples():
    """stay x throughput with the output tokens derived from the same duration."""
    itl = quantity(printed("mean_itl", "43.1", 1e-3))
    ttft = quantity(printed("mean_ttft", "146.9", 1e-3))
    tps = quantity(printed("output_throughput", "228.1"))
    duration, n = quantity(printed("duration", "1813")), 2000.0
    output = tps * duration / n
    in_flight = (ttft + itl * (output - 1)) / (duration / n)
    rng = np.random.default_rng(7)
    draws = [rng.uniform(q.lo, q.hi, 1_000_000) for q in (itl, ttft, tps, duration)]
    seen = (draws[1] + draws[0] * (draws[2] * draws[3] / n - 1)) * n / draws[3]
    assert in_flight.value == pytest.approx(9.946, abs=0.001)
    assert in_flight.lo == pytest.approx(9.932, abs=0.001)
    assert in_flight.hi == pytest.approx(9.959, abs=0.001)
    assert in_flight.lo <= seen.min() < in_flight.lo + 0.002
    assert in_flight.hi - 0.002 < seen.max() <= in_flight.hi


def test_a_divisor_of_either_sign_leaves_no_bound():
    """1 / [-1, 1] is everything beyond ±1, which the two corners -1 and 1 do not show."""
    found = constant(1.0) / leaf("x", 0.5, -1, 1)
    assert (found.value, found.lo, found.hi) == (2.0, -math.inf, math.inf)


def test_a_divisor_that_reaches_zero_is_bounded_on_one_side():
    found = constant(1.0) / leaf("x", 0.5, 0, 1)
    assert (found.lo, found.hi) == (1.0, math.inf)


def test_a_negative_divisor_is_no_pole():
    found = constant(6.0) / leaf("x", -2, -3, -1)
    assert (found.lo, found.hi) == (-6.0, -2.0)


def test_the_logarithm_of_what_may_be_negative_is_unbounded():
    found = leaf("x", 1, -1, 3).ln()
    assert (found.value, found.lo, found.hi) == (0.0, -math.inf, math.inf)


@pytest.mark.parametrize("bottom", [0.0])
def test_division_by_an_exact_zero_is_not_a_number_of_use(bottom):
    assert not (constant(1.0) / bottom).finite
    assert math.isnan((constant(0.0) / bottom).value)
    assert (constant(1.0) / 2).finite


def test_more_figures_than_corners_add_up_their_own_effects():
    """A sum is linear, so 20 figures give the exact range all the same."""
    leaves = [leaf(f"x{i}", 1 + i, 0.9 + i, 1.2 + i) for i in range(20)]
    total = leaves[0]
    for other in leaves[1:]:
        total = total + other
    assert total.value == pytest.approx(210)
    assert (total.lo, total.hi) == pytest.approx((208, 214))


def test_many_narrow_figures_are_close_to_the_corners():
    leaves = [leaf(f"x{i}", 10, 9.99, 10.01) for i in range(13)]
    found = leaves[0]
    for other in leaves[1:]:
        found = found * other
    # Exact range: 9.99**13 to 10.01**13; linear effects differ from it by second order only.
    assert found.lo == pytest.approx(9.99**13, rel=2e-4)
    assert found.hi == pytest.approx(10.01**13, rel=2e-4)


def test_a_falling_effect_of_many_figures_widens_both_ways():
    leaves = [leaf(f"x{i}", 1, 0.99, 1.02) for i in range(13)]
    found = constant(0.0)
    for other in leaves:
        found = found - other
    assert (found.lo, found.hi) == pytest.approx((-13 * 1.02, -13 * 0.99))


def test_a_pole_among_many_figures_leaves_no_bound():
    total = leaf("x0", 1, 0.9, 1.1)
    for i in range(1, 13):
        total = total + leaf(f"x{i}", 1, 0.9, 1.1)
    found = total / leaf("zero", 0.5, -1, 1)
    assert (found.lo, found.hi) == (-math.inf, math.inf)


def test_the_smaller_and_the_greater_corner_by_corner():
    a, b = leaf("a", 10, 9, 11), leaf("b", 10.5, 10, 12)
    low, high = minimum(a, b), maximum(a, b)
    assert (low.value, low.lo, low.hi) == (10, 9, 11)
    assert (high.value, high.lo, high.hi) == (10.5, 10, 12)
    slots = minimum(constant(8.0), leaf("kv", 470, 469, 471))
    assert (slots.lo, slots.hi) == (8, 8)


@pytest.mark.parametrize(
    ("left", "right", "product", "quotient"),
    [
        ("s", "s", "s", ""),
        ("tok", "", "tok", "tok"),
        ("", "tok", "tok", "1/tok"),
        ("tok", "s", "tok", "tok/s"),
        ("", "", "", ""),
    ],
)
def test_units_follow_the_arithmetic_as_far_as_it_knows(left, right, product, quotient):
    a, b = constant(6.0, left), constant(2.0, right)
    assert (a * b).unit == product
    assert (a / b).unit == quotient
    assert (a + b).unit == (a - b).unit == left
    assert (a * 2).unit == (2 * a).unit == (a / 2).unit == (1 - a).unit == left
    assert a.ln().unit == ""
    assert a.as_unit("ms").unit == "ms"
    assert a.as_unit("ms").value == 6.0


def test_a_rate_times_a_time_is_a_count():
    assert (constant(3.0, "1/s") * constant(2.0, "s")).unit == ""
    assert (constant(2.0, "s") * constant(3.0, "1/s")).unit == ""


def test_an_interval_says_what_it_is_made_of():
    rounded = quantity(between("a", 4, 3, 5))
    sheet = quantity(between("b", 4, 3, 5, basis="datasheet"))
    guess = quantity(between("c", 4, 3, 5, basis="assumed"))
    narrow = quantity(between("d", 4, 4, 4, basis="assumed"))
    assert (rounded * narrow).interval == "rounding"
    assert sheet.interval == "datasheet"
    assert (rounded * sheet).interval == "datasheet and printed"
    assert (guess + sheet).interval == "assumed and datasheet"
    assert narrow.interval == "exact"


def test_an_estimate_carries_the_number_and_every_source():
    top = quantity(between("a", 10, 9, 11, "tok", file="a.csv", key="row 1"))
    found = (top / quantity(figure("duration", 2, file="b.csv"))).estimate(
        "rate", "tokens / duration", ("short run",)
    )
    assert (found.name, found.value, found.lo, found.hi) == ("rate", 5, 4.5, 5.5)
    assert (found.unit, found.interval) == ("tok/s", "rounding")
    assert (found.definition, found.warnings) == ("tokens / duration", ("short run",))
    assert [str(source) for source in found.sources] == ["a.csv: row 1", "b.csv: duration"]
