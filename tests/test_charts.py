"""Which charts a claim, a study's cells and its loads get."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import charts
from analysis.chart_parts import LIGHT, SOFT, STRONG, WAITING
from analysis.model import Estimate, Finding
from tests.builders import arm, cell, printed, run, startup, study
from tests.reports import estimate
from tests.reports import finding as found

GIB = 2.0**30


def of(kind: str, *numbers: Estimate, **more: Any) -> Finding:
    return found(kind=kind, numbers=numbers, **more)


def n(name: str, value: float, unit: str = "", **more: Any) -> Estimate:
    return estimate(value, name=name, unit=unit, **more)


def types(spec: dict[str, Any]) -> list[str]:
    return [layer["mark"]["type"] for layer in spec["layer"]]


def rows(spec: dict[str, Any]) -> dict[str, float]:
    return {datum["row"].replace("\n", " "): datum["value"] for datum in spec["data"]["values"]}


def line_values(spec: dict[str, Any], style: str) -> list[float]:
    return [
        layer["data"]["values"][0]["at"]
        for layer in spec["layer"]
        if layer["mark"].get("style") == style and "data" in layer
    ]


def band(spec: dict[str, Any]) -> tuple[float, float]:
    [layer] = [layer for layer in spec["layer"] if layer["mark"].get("style") == "band"]
    [datum] = layer["data"]["values"]
    return datum["lo"], datum["hi"]


# --- nothing to compare --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        of("composite"),
        of("interface", n("flags found", 15)),
        of("fit", n("GPU memory", 48e9, "B")),
        of("magnitude", n("value", 5, "tok")),
        of("magnitude", n("value", math.nan, "s"), n("other", math.inf, "s")),
        of("crossover", n("throughput, a / b, 10 in flight", 1.2)),
    ],
)
def test_a_single_number_has_no_chart(one: Finding) -> None:
    assert charts.for_finding(one, ["a"]) == []


# --- kinds ---------------------------------------------------------------------------------------


def test_ratios_share_their_words_in_the_title() -> None:
    one = of(
        "rule",
        n("throughput, a / b, w, 1 in flight, s", 1.7),
        n("throughput, a / b, w, 32 in flight, s", 0.9, lo=0.8, hi=1.1),
        study="s",
    )
    [spec] = charts.for_finding(one, ["a", "b"])
    assert spec["title"]["text"] == "Throughput, a / b, w"
    assert rows(spec) == {"1 in flight": 1.7, "32 in flight": 0.9}
    assert line_values(spec, "reference") == [1]
    assert spec["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"


def test_a_title_keeps_the_first_letter_of_an_arm() -> None:
    one = of("rule", n("ttft, a / b", 1.7), n("itl, a / b", 0.9))
    [spec] = charts.for_finding(one, ["a", "b"])
    assert spec["title"]["text"] == "Ratios of a / b"


def test_a_margin_is_a_band_around_one() -> None:
    one = of("equivalence", n("ratio", 1.006, lo=1.005, hi=1.007, definition="x / y"))
    [spec] = charts.for_finding(one, [], {"margin": 0.6})
    assert band(spec) == (0.994, 1.006)
    assert spec["title"]["text"] == "Ratio: x / y"
    [plain] = charts.for_finding(one, [])
    assert "rect" not in types(plain)
    assert "rect" not in types(charts.for_finding(one, [], {"margin": "wide"})[0])


def test_the_number_found_stands_above_the_stated_one() -> None:
    one = of("magnitude", n("ratio", 2.7371, lo=2.7367, hi=2.7375, definition="x; against y"))
    [spec] = charts.for_finding(one, [], {"stated": "2.74", "measure": "ratio"})
    assert rows(spec) == {"found": 2.7371, "stated": 2.74}
    assert [datum["shown"] for datum in spec["data"]["values"]] == ["2.737", "2.74"]
    assert band(spec) == (2.735, 2.745)


def test_a_percentage_is_shown_in_percent_of_either_base() -> None:
    one = of(
        "magnitude",
        n("change, base: the other figure", -0.638),
        n("change, base: this figure", -1.763),
    )
    [spec] = charts.for_finding(one, [], {"stated": "-64", "measure": "percent"})
    assert rows(spec) == {
        "found, base: the other figure": -63.8,
        "found, base: this figure": -176.3,
        "stated": -64,
    }
    assert spec["layer"][0]["encoding"]["x"]["title"] == "%"


def test_a_latency_is_stated_in_milliseconds() -> None:
    one = of("magnitude", n("value", 0.0431, "s", lo=0.04305, hi=0.04315))
    [spec] = charts.for_finding(one, [], {"stated": "43", "unit": "ms"})
    assert rows(spec) == {"found": 43.1, "stated": 43}
    assert spec["layer"][0]["encoding"]["x"]["title"] == "ms"


@pytest.mark.parametrize(
    ("relation", "label"),
    [("at_least", "stated: at least"), ("at_most", "stated: at most"), ("about", "stated: about")],
)
def test_a_bound_is_a_line_and_about_a_band(relation: str, label: str) -> None:
    table = {"stated": "2", "measure": "ratio", "relation": relation}
    [spec] = charts.for_finding(of("magnitude", n("ratio", 2.5)), [], table)
    assert label in rows(spec)
    if relation == "about":
        assert band(spec) == (1.9, 2.1)
    else:
        assert line_values(spec, "reference") == [2]


@pytest.mark.parametrize("stated", ["two", "5 to 7", 3])
def test_a_stated_text_that_is_no_number_is_not_drawn(stated: object) -> None:
    one = of("magnitude", n("value", 2.5, "s"), n("value", 2.6, "s"))
    [spec] = charts.for_finding(one, [], {"stated": stated})
    assert "bar" in types(spec)


def test_a_number_in_another_unit_than_the_stated_is_not_set_against_it() -> None:
    assert charts.for_finding(of("magnitude", n("value", 2.5, "s")), [], {"stated": "2"}) == []


def test_a_latency_gap_shows_both_arms_and_the_floor() -> None:
    one = of(
        "gap_attribution",
        n("mean ITL, a", 0.0431, "s"),
        n("mean ITL, b", 0.0156, "s"),
        n("difference", 0.0275, "s"),
        n("slots, a", 175),
        n("floor of a step, a", 0.0324, "s", definition="weights / bandwidth"),
        n("smallest share of the fall due to cheaper steps", 0.61, lo=0.609, hi=0.613),
        n("stay, a", 9.0, "s"),
        n("stay, b", 3.3, "s"),
    )
    pair, share = charts.for_finding(one, ["z", "a", "b"])
    assert rows(pair) == {"a": 43.1, "b": 15.6}
    assert pair["data"]["values"][0]["marker"] == 32.4
    assert "marker" not in pair["data"]["values"][1]
    assert "32.4 ms (weights / bandwidth)" in pair["title"]["subtitle"]
    assert pair["usermeta"]["light"] == [LIGHT[1], LIGHT[2]]
    assert rows(share) == {"smallest share of the fall due to cheaper steps": 61}
    assert line_values(share, "stated") == [50]
    assert share["layer"][0]["encoding"]["x"]["scale"]["domain"][1] > 100


def test_a_throughput_gap_shows_the_split_and_the_share() -> None:
    one = of(
        "gap_attribution",
        n("throughput, a", 400, "tok/s"),
        n("throughput, b", 1200, "tok/s"),
        n("request throughput ratio", 3),
        n("running requests ratio", 1),
        n("time per token ratio", 0.34),
        n("share of more requests at once", -0.02),
    )
    split, share = charts.for_finding(one, ["a", "b"])
    assert len(rows(split)) == 3
    assert rows(share) == {"share of more requests at once": -2}
    assert share["layer"][0]["encoding"]["x"]["scale"]["domain"][0] < -2


def test_a_gap_without_arms_or_shares_falls_back_to_bars() -> None:
    one = of(
        "gap_attribution", n("mean TTFT, a", 1, "s"), n("difference", 0.5, "s"), n("b", 2, "s")
    )
    [spec] = charts.for_finding(one, ["a"])
    assert len(rows(spec)) == 2
    domain = spec["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert domain[0] == "a"


def test_a_queue_shows_who_waits_and_what_that_forecasts() -> None:
    one = of(
        "queue_wait",
        n("requests in flight (L)", 9.8, lo=9.7, hi=9.9),
        n("waiting or in prefill", 2),
        n("past the first token", 7.8),
        n("mean TTFT", 0.772, "s"),
        n("running (S_hat)", 8),
        n("waiting", 1.8),
        n("forecast TTFT", 0.783, "s", lo=0.77, hi=0.79),
        n("prefill service", 0.0747, "s"),
    )
    who, ttft = charts.for_finding(one, ["a"], {"concurrency": 10})
    pieces = who["layer"][0]["data"]["values"]
    assert [(p["part"], p["from"], p["to"]) for p in pieces] == [
        ("waiting for a slot", 0, 1.8), ("running", 1.8, 9.8),
    ]  # fmt: skip
    assert who["usermeta"]["light"] == [WAITING[0], SOFT[0]]
    assert line_values(who, "stated") == [10]
    assert rows(ttft) == {"mean TTFT": 772, "forecast TTFT": 783, "prefill service": 74.7}


def test_without_a_prefill_time_the_two_stages_stand_for_it() -> None:
    one = of("queue_wait", n("waiting or in prefill", 0.2), n("past the first token", 9.8))
    [who] = charts.for_finding(one, ["a"])
    parts = [p["part"] for p in who["layer"][0]["data"]["values"]]
    assert parts == ["waiting or in prefill", "past the first token"]
    assert line_values(who, "stated") == []


def test_a_forecast_without_a_prefill_time_is_drawn_too() -> None:
    one = of("gap_attribution", n("mean TTFT, a", 0.7, "s"), n("forecast TTFT", 0.8, "s"))
    [spec] = charts.for_finding(one, ["a"])
    assert rows(spec) == {"mean TTFT, a": 700, "forecast TTFT": 800}


def test_memory_needed_is_stacked_against_the_room() -> None:
    one = of(
        "fit",
        n("weights of m", 10 * GIB, "B"),
        n("KV of m", 2 * GIB, "B"),
        n("room", 8 * GIB, "B", definition="0.92 x memory"),
    )
    [spec] = charts.for_finding(one, [])
    assert rows(spec) == {"needed": 12}
    assert line_values(spec, "stated") == [8]
    assert spec["usermeta"]["light"] == [STRONG[0], WAITING[0]]
    assert "8 GiB (0.92 x memory)" in spec["title"]["subtitle"]


def test_slots_are_set_against_the_requests_allowed() -> None:
    one = of("capacity", n("slots", 175), n("KV slots", 175))
    [spec] = charts.for_finding(one, [], {"concurrency": 10})
    assert line_values(spec, "stated") == [10]
    assert spec["layer"][0]["encoding"]["x"]["title"] == "requests"
    [single] = charts.for_finding(of("capacity", n("slots", 5)), [], {"concurrency": 10})
    assert rows(single) == {"slots": 5}


def test_a_projection_stands_beside_the_figure() -> None:
    one = of(
        "scaling", n("quoted figure", 9816, "tok/s"), n("one instance", 2454.6, "tok/s"),
        n("multiple", 3.999),
    )  # fmt: skip
    [spec] = charts.for_finding(one, [], {"k": 4})
    assert rows(spec)["4 x one instance"] == 9818.4
    assert "4 x one instance" not in rows(charts.for_finding(one, [])[0])


def test_two_units_are_two_charts() -> None:
    one = of(
        "load",
        n("delivered, a", 1.1, "1/s"),
        n("requests in flight, a", 9.9),
        n("delivered, b", 3, "1/s"),
        n("requests in flight, b", 9.8),
    )
    first, second = charts.for_finding(one, ["a", "b"], {"concurrency": 10})
    assert first["title"]["text"] == "Delivered"
    assert rows(first) == {"a": 1.1, "b": 3}
    assert first["layer"][0]["encoding"]["x"]["title"] == "requests a second"
    assert line_values(second, "stated") == [10]


def test_a_crossing_is_marked_where_it_was_measured() -> None:
    one = of(
        "crossover",
        n("throughput, a / b, 1 in flight", 1.7),
        n("throughput, a / b, 1,000 in flight", 0.9, lo=0.85, hi=0.95),
        n("throughput, a / b, 10 in flight", 1.3),
        n("crossing", 300, lo=200, hi=400),
        n("crossing by model: line", 290),
    )
    [spec] = charts.for_finding(one, ["a", "b"])
    assert [datum["n"] for datum in spec["data"]["values"]] == [1, 10, 1000]
    assert line_values(spec, "stated") == [300]
    assert line_values(spec, "reference") == [1]
    assert band(spec) == (200, 400)
    assert "1 model crosses beyond" in spec["title"]["subtitle"]


def test_without_a_crossing_there_are_the_ratios_alone() -> None:
    one = of("crossover", n("t, a / b, 1 in flight", 1.7), n("t, a / b, 9 in flight", 1.2))
    [spec] = charts.for_finding(one, ["a", "b"])
    assert spec["title"]["subtitle"] == "At 1 the arms are equal."
    assert "rect" not in types(spec)


def test_a_claim_takes_the_table_of_the_one_it_repeats() -> None:
    one = study(cell("a"), claims=[{"id": "x", "stated": "2"}, {"id": "y", "repeats": "x"}])
    assert charts.table_of(one, found(id="y", repeats="x"))["stated"] == "2"
    assert charts.table_of(one, found(id="x"))["stated"] == "2"
    assert charts.table_of(one, found(id="z")) == {}


floats = st.floats(allow_subnormal=False)
names = st.sampled_from(
    ["value", "ratio", "x / y, a", "share of it", "mean ITL, a", "mean ITL, b", "floor, a", "room",
     "running (S_hat)", "waiting", "forecast TTFT", "crossing", "crossing by model: z",
     "difference", "t, a / b, 0 in flight", "t, a / b, 1 in flight",
     "t, a / b, 9 in flight", "one instance"]
)  # fmt: skip


@settings(deadline=None)
@given(
    st.sampled_from(["magnitude", "gap_attribution", "crossover", "fit", "scaling", "capacity"]),
    st.lists(st.tuples(names, floats, floats, floats, st.sampled_from(["", "s", "B"])), max_size=8),
    st.sampled_from([{}, {"stated": "2.7", "measure": "ratio"}, {"concurrency": 3, "k": 2}]),
)
def test_odd_numbers_never_break_a_page(
    kind: str, numbers: list[tuple[str, float, float, float, str]], table: dict[str, object]
) -> None:
    one = of(kind, *(n(name, v, unit, lo=a, hi=b) for name, v, a, b, unit in numbers))
    specs = charts.for_finding(one, ["a", "b"], table)
    assert len(specs) <= 2
    for spec in specs:
        json.dumps(spec, allow_nan=False)


# --- cells and loads -----------------------------------------------------------------------------


def test_the_time_of_a_request_is_split_at_its_floor() -> None:
    log = startup({"model_bytes": 10 * GIB, "kv_tokens": 50_000}, arm="known")
    known = arm("known", log, gpu="L40S")
    one = study(cell(known), cell("unknown"))
    times, flight = charts.for_cells(one)
    assert rows(times) == {"known, 10 in flight": 9900, "unknown, 10 in flight": 9900}
    pieces = times["layer"][0]["data"]["values"]
    of_known = {p["part"]: p["to"] - p["from"] for p in pieces if p["row"].startswith("known")}
    assert of_known["before the first token"] == 100
    assert 0 < of_known["decoding, least possible"] < of_known["decoding, above the least"]
    of_other = {p["part"]: p["to"] - p["from"] for p in pieces if p["row"].startswith("unknown")}
    assert of_other["decoding, floor unknown"] == pytest.approx(9800)
    assert rows(flight)["known, 10 in flight"] == pytest.approx(9.9)
    assert flight["data"]["values"][0]["marker"] == 10


def test_an_arm_has_all_its_workloads_in_one_chart() -> None:
    one = study(
        cell("a", workload="chat"),
        cell("a", workload="code", concurrency=None),
        cell("b", workload="chat"),
    )
    times, flight = charts.for_cells(one, "a")
    assert list(rows(times)) == ["chat, 10 in flight", "code, no cap"]
    assert "floor unknown" in json.dumps(times)
    assert "subtitle" not in times["title"]
    assert "marker" not in flight["data"]["values"][1]
    assert len(charts.for_cells(one)) == 4


def test_numbers_that_no_axis_holds_are_left_out() -> None:
    huge = run({"mean_ttft": 1e250, "mean_itl": 1e250})
    assert charts.for_cells(study(cell("a", huge), cell("b", huge))) == []
    loads = [cell("a", run({"mean_ttft": 1e250}, arm="a", concurrency=k)) for k in (1, 2)]
    titles = [spec["title"]["text"] for spec in charts.for_loads(study(*loads), "chat")]
    assert not any(title.startswith("Mean TTFT") for title in titles)


def test_cells_without_accounts_have_no_chart() -> None:
    bare = run({"request_throughput": 1}, bare=True)
    assert charts.for_cells(study(cell("a", bare))) == []


def test_load_curves_need_two_loads_of_an_arm() -> None:
    at = [
        cell("a", run({"mean_itl": printed("mean_itl", "43.1", 1e-3)}, arm="a", concurrency=1)),
        cell("a", run({"mean_itl": 0.06}, arm="a", concurrency=32)),
        cell("b", run(arm="b", concurrency=32)),
    ]
    found_charts = charts.for_loads(study(*at), "chat")
    assert [spec["title"]["text"].partition(" against")[0] for spec in found_charts] == [
        "Total throughput", "Total throughput for each request in flight, chat", "Mean ITL",
        "Mean TTFT",
    ]  # fmt: skip
    whole, each = (spec["data"]["values"][-1] for spec in found_charts[:2])
    assert each["value"] == pytest.approx(whole["value"] / 32)
    itl = found_charts[2]
    assert {datum["arm"] for datum in itl["data"]["values"]} == {"a"}
    first = itl["data"]["values"][0]
    assert (first["n"], first["lo"], first["hi"]) == (1, 43.05, 43.15)
    assert charts.for_loads(study(*at[1:]), "chat") == []
    assert charts.for_loads(study(*at), "elsewhere") == []


def test_repeats_bring_the_interval_between_runs() -> None:
    def runs(n: int) -> Any:
        return cell(
            "a",
            run({"mean_ttft": 0.1}, arm="a", concurrency=n, file="x"),
            run({"mean_ttft": 0.12}, arm="a", concurrency=n, file="y"),
        )

    ttft = charts.for_loads(study(runs(1), runs(2)), "chat")[3]
    assert ttft["data"]["values"][0]["lo"] < 100


def test_the_next_metric_of_a_group_stands_in() -> None:
    cells = [
        cell("a", run({"mean_itl": None, "mean_tpot": 0.05}, arm="a", concurrency=k))
        for k in (1, 2)
    ]
    titles = [spec["title"]["text"] for spec in charts.for_loads(study(*cells), "chat")]
    assert any(title.startswith("Mean TPOT") for title in titles)


def test_each_extrapolation_has_a_row_of_its_own() -> None:
    ratios = [n(f"x, a / b, {load} in flight", 2 / load) for load in (1, 10, 32)]
    models = [n("crossing by model: line", 48.3), n("crossing by model: stays", 48.9)]
    none = n("no crossing by model: 2 x one instance", 64)
    curve, each = charts.for_finding(of("crossover", *ratios, *models, none), ["a"])
    assert len(curve["data"]["values"]) == 3
    assert rows(each) == {"line": 48.3, "stays": 48.9}
    assert line_values(each, "reference") == [32]
    assert "2 x one instance: none up to 64." in each["title"]["subtitle"]
