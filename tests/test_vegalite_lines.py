"""Lines over a linear axis, and the bridge from one number to another."""

from __future__ import annotations

import json
from typing import Any

import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from analysis.chart_parts import MOST_POINTS, PLAIN, STRONG, Text
from analysis.vegalite_lines import Line, Move, bridge, lines
from tests.test_vegalite import HOSTILE, expressions

TEXT = Text("A title", "What is drawn.", "time, ms", "batch", unit="ms")


def points(*pairs: tuple[float, float]) -> tuple[tuple[float, float, float, float], ...]:
    return tuple((x, y, y, y) for x, y in pairs)


def drawn(name: str = "a") -> list[dict[str, Any]]:
    dots = Line(name, ((1, 2, 1, 3), (4, 4, 4, 5)), STRONG, dots=True)
    line = Line(f"{name} fitted", points((1, 2), (4, 5)), PLAIN, steps=True)
    text = Text(name, name, name, name, unit="ms")
    moves = [Move(name, 9, 9, 9, True), Move(name, -3, -4, -2), Move("c", 1, 0, 2),
             Move("b", 7, 7, 7, True)]  # fmt: skip
    return [lines([dots, line], text, marks=[3.0]), bridge(moves, text)]


@pytest.mark.parametrize("name", HOSTILE)
def test_texts_never_become_expressions(name: str) -> None:
    for mine, plain in zip(drawn(name), drawn(), strict=True):
        assert expressions(mine) == expressions(plain)
        json.loads(json.dumps(mine, allow_nan=False))


@pytest.mark.parametrize("which", [0, 1], ids=["lines", "bridge"])
def test_vega_draws_it(which: int) -> None:
    spec = drawn()[which]
    assert spec["description"].startswith("a")
    assert "<svg" in vl_convert.vegalite_to_svg(json.dumps(spec))


def test_dots_have_intervals_and_lines_have_none() -> None:
    spec = drawn()[0]
    marks = [layer["mark"]["type"] for layer in spec["layer"]]
    assert marks == ["rule", "rule", "point", "line"]
    assert (
        spec["layer"][1]["data"]["values"][0] | {"lo": 1.0, "hi": 3.0}
        == (spec["layer"][1]["data"]["values"][0])
    )
    assert spec["layer"][3]["mark"]["interpolate"] == "step-after"
    assert spec["usermeta"]["light"] == [STRONG[0], PLAIN[0]]


def test_an_axis_begins_at_zero_where_it_is_asked_to() -> None:
    line = Line("a", points((5, 100), (9, 101)), STRONG)
    near, far = lines([line], TEXT), lines([line], TEXT, zero=True)
    domains = [s["layer"][0]["encoding"]["y"]["scale"]["domain"] for s in (near, far)]
    assert domains[0][0] > 90
    assert domains[1][0] == 0
    assert far["layer"][0]["encoding"]["x"]["scale"]["domain"][0] == 0


def test_a_logarithmic_axis_needs_positive_values() -> None:
    good = lines([Line("a", points((1, 1), (2, 9)), STRONG)], TEXT, log=True)
    bad = lines([Line("a", points((1, 0), (2, 9)), STRONG)], TEXT, log=True)
    kinds = [s["layer"][0]["encoding"]["y"]["scale"].get("type") for s in (good, bad)]
    assert kinds == ["log", None]


def test_bars_of_a_bridge_lead_from_one_end_to_the_other() -> None:
    spec = drawn()[1]
    values = spec["layer"][0]["data"]["values"]
    assert [v["kind"] for v in values] == ["mean", "less", "more", "mean"]
    assert [(v["from"], v["to"]) for v in values[1:3]] == [(9, 6), (6, 7)]
    assert values[0]["to"] == 9 and values[3]["to"] == 7
    assert [row["shown"] for row in spec["data"]["values"]] == [
        "9 ms", "-3.00 ms", "+1.00 ms", "7 ms",
    ]  # fmt: skip
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert 0 <= low < 6 and high > 9


NUMBERS = st.floats(-1e12, 1e12, allow_nan=False)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=2 * MOST_POINTS))
def test_any_numbers_make_a_chart_of_bounded_size(pairs: list[tuple[float, float]]) -> None:
    spec = lines([Line("a", points(*sorted(pairs)), STRONG)], TEXT)
    assert len(spec["layer"][0]["data"]["values"]) <= MOST_POINTS
    json.dumps(spec, allow_nan=False)


@given(NUMBERS, st.lists(NUMBERS, max_size=5))
def test_any_bridge_is_finite(begin: float, changes: list[float]) -> None:
    moves = [Move("a", begin, begin, begin, True)]
    moves += [Move("b", c, c - 1, c + 1) for c in changes]
    end = begin + sum(changes)
    spec = bridge([*moves, Move("c", end, end, end, True)], TEXT)
    json.dumps(spec, allow_nan=False)
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low < high
