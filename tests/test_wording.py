"""How numbers read: units, digits, intervals, lists."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model import Estimate
from analysis.quantity import constant, quantity
from analysis.wording import (
    count_of,
    digits,
    listing,
    percent,
    plural,
    show,
    shown_unit,
    signed_percent,
    span,
)
from tests.builders import between, printed


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0431, "s", "43.1 ms"),
        (0.0000021, "s", "0.00210 ms"),
        (9.016, "s", "9,016 ms"),
        (9.99, "s", "9,990 ms"),
        (10.5, "s", "10.5 s"),
        (-12, "s", "-12 s"),
        (1813, "s", "1,813 s"),
        (27.52 * 2**30, "B", "27.5 GiB"),
        (163_840, "B", "163,840 B"),
        (0, "B", "0 GiB"),
        (864e9, "B/s", "864 GB/s"),
        (362e12, "FLOP/s", "362 TFLOP/s"),
        (1.1031, "1/s", "1.10 1/s"),
        (75_824, "tok", "75,824 tok"),
        (2.737, "", "2.74"),
    ],
)
def test_a_number_with_its_unit(value, unit, text):
    assert show(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (5, "5"),
        (-3, "-3"),
        (0.5, "0.500"),
        (0.0123456, "0.0123"),
        (1.23456, "1.23"),
        (12.3456, "12.3"),
        (123.456, "123"),
        (1234.56, "1,235"),
        (1e15, "1,000,000,000,000,000"),
        (-1.23456, "-1.23"),
        (math.nan, "not defined"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
    ],
)
def test_three_digits_where_nothing_says_more(value, text):
    assert digits(value) == text


@pytest.mark.parametrize(
    ("value", "lo", "hi", "text"),
    [
        (43.1, 43.05, 43.15, "43.10"),  # half-width 0.05: the second decimal is the last
        (2.7346, 2.7336, 2.7356, "2.735"),  # half-width 0.001
        (2.737, 2.7, 2.8, "2.74"),  # never fewer than three digits
        (1813, 1812.5, 1813.5, "1,813.0"),
        (1305.62, 1305.57, 1305.67, "1,305.62"),
        (0.5, 0.0, 1.0, "0.500"),
        (0.123456789, 0.1234567, 0.1234568, "0.123457"),  # six decimals at most
        (5.0, -math.inf, math.inf, "5.00"),
        (5.0, 5.0, 5.0, "5"),
        (2.5, 2.5, 2.5, "2.50"),
    ],
)
def test_more_digits_where_the_interval_is_narrow(value, lo, hi, text):
    assert digits(value, lo, hi) == text


@given(st.floats(0.01, 999), st.floats(1e-5, 0.05))
def test_an_interval_never_prints_as_a_single_number(value, share):
    """The two ends differ in print wherever the interval is at least 1e-5 wide."""
    lo, hi = value * (1 - share), value * (1 + share)
    if hi - lo > 1e-5:
        assert digits(lo, lo, hi) != digits(hi, lo, hi)


def test_a_span_shows_value_and_interval_in_one_unit():
    assert span(quantity(printed("mean_itl", "43.1", 1e-3))) == "43.10 ms [43.05, 43.15]"
    ratio = quantity(between("ratio", 2.7368, 2.7358, 2.7378, ""))
    assert span(ratio) == "2.737 [2.736, 2.738]"


def test_a_span_of_an_exact_number_has_no_brackets():
    assert span(constant(8.0)) == "8"
    assert span(constant(0.0747, "s")) == "74.7 ms"


def test_a_span_keeps_the_unit_of_its_value_at_both_ends():
    assert span(quantity(between("t", 10.5, 9.5, 11.5, "s"))).startswith("10.5 s [9.5")


def test_a_span_that_nothing_bounds():
    open_ended = Estimate("ratio", 2.0, 0.0, math.inf, "", "95 %")
    assert span(open_ended) == "2.00 [0, ∞]"


def test_a_span_with_as_many_decimals_as_its_neighbour():
    assert span(constant(2.0), places=2) == "2.00"
    assert span(constant(2.345), places=1) == "2.35"
    assert span(constant(math.inf), places=2) == "∞"


def test_a_span_of_an_estimate_is_that_of_its_quantity():
    x = quantity(printed("mean_ttft", "146.9", 1e-3))
    assert span(x.estimate("TTFT")) == span(x) == "146.90 ms [146.85, 146.95]"


def test_units_that_readers_know():
    assert shown_unit("s", 9.9) == ("ms", 1e3)
    assert shown_unit("s", -10) == ("s", 1.0)
    assert shown_unit("B", 999_999) == ("B", 1.0)
    assert shown_unit("B", 1_000_000) == ("GiB", 2.0**-30)
    assert shown_unit("tok/s") == ("tok/s", 1.0)


def test_percentages():
    assert percent(0.138) == "13.8 %"
    assert percent(0.00195, 3) == "0.195 %"
    assert percent(1.737, 0) == "174 %"
    assert signed_percent(0.138) == "+13.8 %"
    assert signed_percent(-0.006, 2) == "-0.60 %"


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        ([1, 10, 32], "1, 10 and 32"),
    ],
)
def test_a_list_in_words(items, text):
    assert listing(items) == text


def test_a_list_of_alternatives():
    assert listing(iter(["a", "b", "c"]), "or") == "a, b or c"


def test_counts_of_things():
    assert plural(1, "run") == "1 run"
    assert plural(0, "run") == "0 runs"
    assert plural(2000, "request") == "2,000 requests"


def test_a_long_list_is_cut_short():
    assert count_of(["a", "b", "c"], 3) == "a, b and c"
    assert count_of(["a", "b", "c", "d"], 3) == "a, b, c and 1 more"
    assert count_of(list("abcdefg")) == "a, b, c, d, e and 2 more"


@pytest.mark.parametrize(
    ("share", "shown"), [(math.nan, "not defined"), (math.inf, "∞ %"), (-math.inf, "-∞ %")]
)
def test_a_percentage_that_is_no_number(share: float, shown: str) -> None:
    assert percent(share) == signed_percent(share) == shown
