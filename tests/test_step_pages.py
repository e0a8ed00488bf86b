"""The section of engine steps on an arm's page, over shipped runs."""

from __future__ import annotations

from functools import cache

import pytest

from analysis.dataset import Study
from analysis.report import pages
from analysis.step_cost import Coefficient
from analysis.step_pages import Section, cost, sections, step_rows
from tests.whole import shipped


@cache
def study(name: str) -> Study:
    return next(one.study for one in shipped().studies if one.study.name == name)


@cache
def section(of: str, arm: str) -> Section:
    return sections(study(of), study(of).arms[arm])[0]


def test_an_arm_of_published_means_has_no_steps() -> None:
    published = study("writeup")
    assert all(sections(published, arm) == () for arm in published.arms.values())


def test_each_load_has_its_budget_down_to_the_floor() -> None:
    found = section("h200-parallelism", "tp2")
    assert found.workload == "sharegpt"
    loads = list(dict.fromkeys(load for load, *_ in found.parts))
    assert loads == ["1 in flight", "10 in flight", "32 in flight", "128 in flight"]
    names = [number.name for load, number, _ in found.parts if load == "10 in flight"]
    assert names[:3] == ["all of it: ITL", "reading weights", "reading KV"]
    for one in found.budgets:
        assert sum(part.value for part in one.parts) == pytest.approx(one.itl)


def test_the_whole_run_stands_beside_its_steady_window() -> None:
    rows = section("h200-parallelism", "single").windows
    assert [row[:2] for row in rows[:2]] == [
        ("1 in flight", "whole run"), ("1 in flight", "steady window"),
    ]  # fmt: skip
    assert {row[2] for row in rows if row[1] == "whole run"} == {"100 %"}


def test_runs_whose_steps_are_not_known_say_why_and_keep_their_spread() -> None:
    found = section("h200-parallelism", "pp2")
    assert {load for load, _ in found.refused} == {"10 in flight", "32 in flight", "128 in flight"}
    assert all(reason for _, reason in found.refused)
    assert not found.budgets
    assert len(found.percentiles) == 6


def test_a_queue_is_seen_where_it_is() -> None:
    names = [
        layer["data"]["values"][0]["line"]
        for spec in section("cpu-smoke", "seqs4").over_time
        for layer in spec["layer"]
        if "line" in layer.get("data", {}).get("values", [{}])[0]
    ]
    assert {"in flight", "running (server)", "waiting (server)"} <= set(names)


def test_steps_found_stand_beside_steps_counted() -> None:
    rows = {run.id: row for run, *row in step_rows(study("cpu-smoke"))}
    assert len(rows) == 4
    assert rows["cpu-smoke/seqs4/random-c8-r1/bench.json.gz"][:2] == ["1,587", "1,587"]
    assert any(row[0] == "not known" and "gaps skip" in row[4] for row in rows.values())


def test_a_cost_is_printed_with_its_interval_or_with_the_reason() -> None:
    known = Coefficient("batch", 3e-5, 2e-5, 4e-5, "s a sequence")
    assert cost(known) == ("0.0300 ms a sequence", "[0.0200, 0.0400]")
    unknown = Coefficient("batch", 0.0, 0.0, 0.0, "s a sequence", "No step had any.")
    assert cost(unknown) == ("not given", "No step had any.")


def test_the_page_has_the_tables_and_the_charts_their_ids() -> None:
    page = pages(shipped())["h200-parallelism/arms/tp2.md"]
    for head in ("Where a token's time goes", "What a step costs", "Over the run",
                 "How the latencies spread"):  # fmt: skip
        assert f"### {head}" in page
    ids = [line.split('id="')[1].split('"')[0] for line in page.splitlines() if "<figure" in line]
    assert len(ids) == len(set(ids))
    assert len(page.encode()) < 500_000
