"""Ticks, domains, labels and colours of charts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import chart_parts
from analysis.chart_parts import (
    DARK,
    LIGHT,
    MOST_LINES,
    Row,
    clean,
    domain_of,
    kept,
    lines_of,
    palette,
    round10,
    scaled,
    short,
    ticks_of,
)

WHITE, SLATE = "#ffffff", "#1e2129"
"""Backgrounds of the theme's two schemes."""

VISIONS = {
    # Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
    "normal": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritan": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def linear(colour: str) -> np.ndarray:
    c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(linear(c) @ np.array([0.2126, 0.7152, 0.0722])) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


def oklab(rgb: np.ndarray) -> np.ndarray:
    to_lms = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    to_lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.cbrt(np.clip(rgb, 0, 1) @ to_lms.T) @ to_lab.T


@pytest.mark.parametrize(("colours", "ground", "least"), [(LIGHT, WHITE, 3), (DARK, SLATE, 4.4)])
def test_every_colour_stands_out_from_its_background(
    colours: tuple[str, ...], ground: str, least: float
) -> None:
    assert min(contrast(colour, ground) for colour in colours) >= least


@pytest.mark.parametrize("name", ["ACCENT", "WAITING", "STRONG", "SOFT", "PLAIN"])
def test_colours_of_parts_stand_out_in_both_schemes(name: str) -> None:
    light, dark = getattr(chart_parts, name)
    assert contrast(light, WHITE) >= 3
    assert contrast(dark, SLATE) >= 4.5


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_no_two_colours_look_alike_to_anybody(colours: tuple[str, ...], vision: str) -> None:
    lab = oklab(np.array([linear(c) for c in colours]) @ VISIONS[vision].T)
    apart = np.linalg.norm(lab[:, None] - lab[None], axis=-1)[np.triu_indices(len(colours), 1)]
    assert apart.min() > 0.07


def test_an_arm_has_the_same_hue_in_both_schemes() -> None:
    for light, dark in zip(LIGHT, DARK, strict=True):
        (_, a1, b1), (_, a2, b2) = (oklab(linear(colour)) for colour in (light, dark))
        apart = math.degrees(abs(math.atan2(b1, a1) - math.atan2(b2, a2))) % 360
        assert min(apart, 360 - apart) < 13.5, (light, dark)


def test_an_arm_has_one_index_by_its_place_and_the_eleventh_starts_again() -> None:
    assert palette(["a", "b", "a"]) == {"a": 0, "b": 1}
    many = palette([str(n) for n in range(12)])
    assert (many["9"], many["10"], many["11"]) == (9, 0, 1)


@settings(deadline=None)
@given(
    st.floats(-1e200, 1e200, allow_nan=False),
    st.floats(-1e200, 1e200, allow_nan=False),
    st.booleans(),
)
def test_ticks_are_few_and_inside(a: float, b: float, log: bool) -> None:
    lo, hi = domain_of([Row("", a, a, a), Row("", b, b, b)], [], log=log and min(a, b) > 0)
    assert lo < hi
    ticks = ticks_of(lo, hi, log=log)
    slack = 1e-8 * max(abs(lo), abs(hi))
    assert 1 <= len(ticks) <= 7
    assert all(lo - slack <= tick <= hi + slack for tick in ticks)


@pytest.mark.parametrize(
    ("lo", "hi", "log", "ticks"),
    [
        (0, 43.1, False, [0, 20, 40]),
        (0, 9016, False, [0, 2500, 5000, 7500]),
        (0.9, 1.1, True, [0.9, 0.95, 1, 1.05, 1.1]),
        (0.8, 45, True, [1, 2, 5, 10, 20]),
        (1, 3000, True, [1, 10, 100, 1000]),
        (1e-9, 1e9, True, [1e-9, 1e-5, 1e-1, 1e3, 1e7]),
        (2, 2, False, [2]),
        (21, 99, True, [40, 60, 80]),
    ],
)
def test_ticks_are_round(lo: float, hi: float, log: bool, ticks: list[float]) -> None:
    found = ticks_of(lo, hi, log=log)
    assert found == ticks


def test_a_domain_leaves_out_intervals_without_end() -> None:
    lo, hi = domain_of([Row("", 2, -math.inf, math.inf), Row("", 3, 2.5, 3.5)], [])
    assert lo > 1
    assert hi < 4
    lo, hi = domain_of([Row("", 2, 0, 1e9)], [1.0], log=True)
    assert 0.9 < lo < hi < 2.2


def test_a_domain_of_bars_starts_at_zero_or_below() -> None:
    assert domain_of([Row("", 5, 5, 5)], [0], zero=True) == (0, 5.3)
    assert domain_of([Row("", -5, -5, -5)], [0], zero=True)[1] == 0
    assert domain_of([Row("", 0, 0, 0)], [0], zero=True) == (0, 1)
    assert domain_of([Row("", 5e-324, 0, 5e-324)], [0], zero=True) == (0, 1)


def test_labels_break_after_commas_and_never_run_over() -> None:
    assert lines_of("replica pair, 10 in flight") == ["replica pair,", "10 in flight"]
    assert lines_of("one, two, three") == ["one, two, three"]
    long = lines_of("x" * 400)
    assert len(long) <= MOST_LINES
    assert lines_of("") == [""]
    many = lines_of(", ".join(f"part number {n}" for n in range(20)))
    assert len(many) == MOST_LINES
    assert many[-1].endswith("…")


def test_texts_are_one_printable_bounded_line() -> None:
    assert clean("a\nb\x00\u202ec\u2028d") == "a b c d"
    assert clean("") == "?"
    assert len(clean("word " * 1000)) <= 120


@pytest.mark.parametrize(
    ("value", "text"),
    [(9816.4, "9,816"), (43.1, "43.1"), (0.99852, "0.9985"), (0, "0"), (-63.805, "-63.8")],
)
def test_values_are_short(value: float, text: str) -> None:
    assert short(value) == text


def test_a_tiny_value_is_no_power_of_ten() -> None:
    assert "e" not in short(1.5e-7)


def test_downsampling_keeps_the_ends() -> None:
    found = kept(range(1000), 200)
    assert (found[0], found[-1], len(found)) == (0, 999, 200)
    assert kept([1, 2, 3], 5) == [1, 2, 3]
    assert kept([1, 2, 3], 1) == [1]


def test_a_row_changes_its_unit_as_a_whole() -> None:
    row = scaled(Row("a", 1, 0.5, 2, marker=3, parts=(1, 2)), 1000)
    assert (row.value, row.lo, row.hi, row.marker, row.parts) == (
        1000,
        500,
        2000,
        3000,
        (1000, 2000),
    )
    assert scaled(Row("a", 1, 1, 1), 2).marker is None


def test_numbers_keep_ten_digits() -> None:
    assert round10(1 / 3) == 0.3333333333
