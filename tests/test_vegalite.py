"""Specs of charts: what is drawn, that texts stay texts, and that Vega-Lite takes every form."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import charts
from analysis.chart_parts import DARK, LIGHT, MOST_POINTS, MOST_ROWS, Curve, Row, Text
from analysis.vegalite import bars, curves, intervals, stacked
from tests import whole

HOSTILE = (
    "</script><script>alert(1)</script>",
    "'); alert(1); ('",
    "datum['x'] = \"y\" \\ ${z} {{ z }}",
    "a\nb\x00\u2028\u202ec",
    "🙂 한국어, with, commas, " + "w" * 300,
)
TEXT = Text("A title", "What the marks mean.", "time, ms", "load")


def walk(node: Any) -> Iterator[Any]:
    yield node
    if isinstance(node, dict):
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def expressions(spec: dict[str, Any]) -> set[str]:
    """Every string that Vega evaluates: label expressions, tests and filters."""
    return {
        node[key]
        for node in walk({key: value for key, value in spec.items() if key != "usermeta"})
        if isinstance(node, dict)
        for key in ("labelExpr", "test", "filter", "calculate", "expr", "signal")
        if isinstance(node.get(key), str)
    }


def one_of_each(name: str = "a") -> list[dict[str, Any]]:
    rows = [Row(name, 2, 1, 3, name, marker=1.5), Row(name, 4, 4, 4)]
    parts = ((name, ("#000000", "#ffffff")), ("rest", ("#000000", "#ffffff")))
    pieces = [Row(name, 3, 2, 4, marker=5, parts=(1, 2))]
    text = Text(name, name, name, name)
    curve = Curve(name, ((1, 2, 1, 3), (10, 4, 4, 4)))
    return [
        intervals(rows, text, [name], log=True, reference=1, band=(0.9, 1.1)),
        bars(rows, text, [name], lines=[3], most=10),
        stacked(pieces, parts, text, lines=[2]),
        curves([curve], text, [name], reference=1, lines=[(3, 2, 4)], ticks=[20, 30]),
    ]


def test_every_chart_says_what_it_is() -> None:
    for spec in one_of_each():
        assert spec["width"] == "container"
        assert spec["height"] > 0
        assert spec["title"]["text"]
        told = r"a (2\.00 \[1\.00, 3\.00\]|3\.00 \[2\.00, 4\.00\]|at 1 2\.00)"
        assert re.search(told, spec["description"])
        titles = {node["title"] for node in walk(spec["layer"]) if isinstance(node, dict)
                  and isinstance(node.get("title"), str)}  # fmt: skip
        assert "a" in titles


def test_a_number_beside_a_row_has_its_unit_and_the_digits_of_its_interval() -> None:
    spec = bars([Row("a", 61.09, 60.89, 61.3), Row("b", 3, 3, 3)], Text("t", unit="%"))
    assert [datum["shown"] for datum in spec["data"]["values"]] == ["61.1 %", "3 %"]


def test_an_interval_too_narrow_to_be_seen_is_not_drawn() -> None:
    [speck, wide] = bars([Row("a", 100, 99.9, 100.1), Row("b", 50, 40, 60)], TEXT)["data"]["values"]
    assert (speck["lo"], speck["hi"]) == (100, 100)
    assert (wide["lo"], wide["hi"]) == (40, 60)
    assert "[99.9, 100.1]" in speck["tip"]


def test_the_second_value_of_a_row_says_what_it_is() -> None:
    row = Row("a", 2, 2, 2, marker=1)
    spec = bars([row], Text("t", mark="floor"))
    assert {"value": "floor"} in [layer["encoding"].get("text") for layer in spec["layer"]]
    assert [layer["mark"]["type"] for layer in bars([row], TEXT)["layer"]].count("text") == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_texts_never_become_expressions(name: str) -> None:
    for mine, plain in zip(one_of_each(name), one_of_each(), strict=True):
        assert expressions(mine) == expressions(plain)
        json.loads(json.dumps(mine, allow_nan=False))


def test_a_dot_has_its_interval_and_a_reference() -> None:
    spec = intervals([Row("a", 2.5, 2, 3)], TEXT, log=True, reference=1, band=(0.9, 1.1))
    assert [layer["mark"]["type"] for layer in spec["layer"]] == [
        "rect", "rule", "rule", "point", "text",
    ]  # fmt: skip
    [datum] = spec["data"]["values"]
    assert (datum["lo"], datum["value"], datum["hi"], datum["shown"]) == (2, 2.5, 3, "2.50")
    scale = spec["layer"][0]["encoding"]["x"]["scale"]
    assert scale["type"] == "log"
    assert scale["domain"][0] < 0.9
    assert scale["domain"][1] > 3


def test_an_axis_may_have_no_title() -> None:
    spec = bars([Row("a", 1, 1, 1)], Text("A title"))
    assert spec["description"] == "A title: a 1."
    assert spec["layer"][0]["encoding"]["x"]["title"] is None


def test_no_logarithm_of_a_negative_value() -> None:
    spec = intervals([Row("a", -2, -3, -1), Row("b", 2, 1, 3)], TEXT, log=True)
    assert "type" not in spec["layer"][0]["encoding"]["x"]["scale"]


def test_an_interval_without_end_reaches_the_edge() -> None:
    spec = intervals([Row("a", 2, -math.inf, math.inf), Row("b", 3, 2, 4)], TEXT)
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert (spec["data"]["values"][0]["lo"], spec["data"]["values"][0]["hi"]) == (low, high)


def test_equal_labels_stay_two_rows() -> None:
    labels = ["a (3)", "a", "b", "a", "a"]
    spec = bars([Row(label, 1, 1, 1) for label in labels], TEXT)
    keys = [datum["row"] for datum in spec["data"]["values"]]
    assert keys == ["a (3)", "a", "b", "a (2)", "a (4)"]
    assert spec["layer"][0]["encoding"]["y"]["scale"]["domain"] == keys


def test_an_arm_keeps_its_colour_whatever_else_is_drawn() -> None:
    arms = ["a", "b", "c"]
    both = bars([Row("x", 1, 1, 1, "b"), Row("y", 1, 1, 1, "c")], TEXT, arms)
    alone = bars([Row("y", 1, 1, 1, "c"), Row("z", 1, 1, 1)], TEXT, arms)
    assert both["usermeta"]["light"] == [LIGHT[1], LIGHT[2]]
    assert alone["usermeta"]["dark"][0] == DARK[2]
    domain = alone["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert len(domain) == len(alone["usermeta"]["light"]) == 2


def test_parts_stand_one_after_the_other() -> None:
    spec = stacked(
        [Row("a", 3, 3, 3, parts=(1, 2))],
        (("x", ("#000000", "#ffffff")), ("y", ("#111111", "#eeeeee"))),
        TEXT,
    )
    pieces = spec["layer"][0]["data"]["values"]
    assert [(p["part"], p["from"], p["to"]) for p in pieces] == [("x", 0, 1), ("y", 1, 3)]
    assert spec["usermeta"]["light"] == ["#000000", "#111111"]


def test_a_curve_is_ordered_coloured_and_bounded() -> None:
    many = Curve("b", tuple((n + 1.0, n + 1.0, n + 0.5, n + 2.0) for n in range(1000)))
    spec = curves([many, Curve("a", ((1, 1, 1, 1), (2, 2, 2, 2)))], TEXT, ["a", "b"])
    assert len(spec["data"]["values"]) <= MOST_POINTS
    assert spec["data"]["values"][0]["n"] == 1
    assert spec["usermeta"]["light"] == [LIGHT[1], LIGHT[0]]
    ticks = spec["layer"][0]["encoding"]["x"]["axis"]["values"]
    assert len(ticks) <= 8


def test_an_upright_axis_has_room_for_more_ticks() -> None:
    spec = curves([Curve("", ((10, 130, 130, 130), (32, 470, 470, 470)))], TEXT)
    assert spec["layer"][0]["encoding"]["y"]["axis"]["values"] == [200, 300, 400, 500]


def test_measured_loads_are_named_on_the_axis() -> None:
    spec = curves([Curve("", ((3, 1, 1, 1), (7, 2, 2, 2)))], TEXT, reference=1, ticks=[40])
    ticks = spec["layer"][0]["encoding"]["y"]["axis"]["values"]
    assert ticks
    across = spec["layer"][1]["encoding"]["x"]["axis"]["values"]
    assert across[:2] == [3, 7]
    assert all(n > 9 for n in across[2:])


def test_rows_are_bounded_and_keep_the_ends() -> None:
    rows = [Row(f"r{n}", n, n, n) for n in range(500)]
    for spec in (intervals(rows, TEXT), bars(rows, TEXT)):
        names = [datum["row"] for datum in spec["data"]["values"]]
        assert (names[0], names[-1], len(names)) == ("r0", "r499", MOST_ROWS)
    assert "492 more" not in bars(rows, TEXT)["description"]
    assert "more in the table" in bars(rows, TEXT)["description"]


def test_many_parts_are_bounded_too() -> None:
    parts = [(f"p{n}", ("#000000", "#ffffff")) for n in range(300)]
    rows = [Row(f"r{n}", 300, 300, 300, parts=(1.0,) * 300) for n in range(3)]
    assert len(stacked(rows, parts, TEXT)["data"]["values"]) == 1


numbers = st.floats(-1e100, 1e100, allow_nan=False, allow_subnormal=False)
ends = st.floats(allow_subnormal=False)


@settings(deadline=None)
@given(st.lists(st.tuples(numbers, ends, ends), min_size=1, max_size=6), st.booleans())
def test_any_numbers_make_a_finite_spec(found: list[tuple[float, float, float]], log: bool) -> None:
    rows = [Row("a", value, lo, hi) for value, lo, hi in found]
    for spec in (intervals(rows, TEXT, log=log, reference=1.0), bars(rows, TEXT, lines=[5.0])):
        json.dumps(spec, allow_nan=False)
        low, high = (
            spec["layer"][-1 if log else 0]["encoding"]
            .get("x", {})
            .get("scale", {})
            .get("domain", (0, 1))
        )
        assert low < high


# --- the shipped results -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for report in whole.shipped().studies:
        study = report.study
        for finding in report.findings:
            table = charts.table_of(study, finding)
            found += charts.for_finding(finding, list(study.arms), table)
        found += charts.for_cells(study)
        for arm in study.arms:
            found += charts.for_cells(study, arm)
        for workload in study.workloads:
            found += charts.for_loads(study, workload)
    return found


def form(node: Any) -> Any:
    """A spec without its numbers and texts."""
    if isinstance(node, dict):
        return {key: form(node[key]) for key in sorted(node) if key not in ("tip", "usermeta")}
    if isinstance(node, list):
        return [form(node[0])] if node else []
    return node if node in ("log", "rule", "rect", "bar", "point", "line", "tick") else "-"


def test_the_shipped_charts_are_small(shipped: list[dict[str, Any]]) -> None:
    assert len(shipped) > 200
    assert max(len(json.dumps(spec)) for spec in shipped) < 20_000


def test_vega_lite_draws_every_form_of_the_shipped_charts(shipped: list[dict[str, Any]]) -> None:
    vl = pytest.importorskip("vl_convert")
    forms = {json.dumps(form(spec)): spec for spec in [*one_of_each(), *shipped]}
    assert len(forms) > 4
    for spec in forms.values():
        svg = vl.vegalite_to_svg({**spec, "width": 360}, vl_version="6.4")
        assert svg.startswith("<svg")
        assert "mark-rule" in svg or "mark-line" in svg or "mark-rect" in svg
