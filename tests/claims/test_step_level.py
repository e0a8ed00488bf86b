"""Causes told from engine steps, over folders of simulated runs whose causes are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from analysis.model import Finding
from analysis.pipeline import analyse
from analysis.simulate import Engine, StepCost
from analysis.simulated_file import result
from tests.simulated import COST, simulated
from tests.whole import findings

FASTER = replace(COST, weights=COST.weights * 0.7)
NEARLY = replace(COST, weights=COST.weights * 1.0002)
FLAT = replace(COST, sequence=0.0, context=0.0, prefill=0.0)
"""A step takes as long whatever is in it: a smaller batch gains nothing."""
TIGHT = Engine(kv_blocks=100)
CLAIM = """
[[claim]]
id = "{id}"
kind = "gap_attribution"
says = "A sentence."
source = "a text"
metric = "{metric}"
baseline = "base"
treatment = "treat"
workload = "chat"
concurrency = {load}
cause = "{id}"
"""


@dataclass
class Arm:
    """How an arm's runs are made."""

    cost: StepCost = COST
    engine: Engine = field(default_factory=Engine)
    seeds: Sequence[int] = (1,)
    loads: Sequence[int] = (8, 4, 2)
    requests: int = 160
    config: dict[str, Any] = field(default_factory=dict)


def judged(
    root: Path, base: Arm, treat: Arm, *causes: str, load: int = 8, metric: str = "mean_itl"
) -> dict[str, Finding]:
    """The finding on each cause, by its name."""
    study = root / "s"
    study.mkdir()
    rules, arms = "", ""
    for name, arm in (("base", base), ("treat", treat)):
        keys = "".join(f"{key} = {json.dumps(value)}\n" for key, value in arm.config.items())
        arms += f'[[arm]]\nname = "{name}"\n{keys}'
        for n in arm.loads:
            for seed in arm.seeds:
                one = simulated(arm.requests, n, seed, cost=arm.cost, engine=arm.engine)
                text = json.dumps({**result(one), "arm_is": name, "workload_is": "chat"})
                (study / f"{name}-c{n}-s{seed}.json").write_text(text, "utf-8")
                rules += (
                    f'[[assign]]\nwhere = {{ file = "s/{name}-c{n}-s{seed}.json" }}\n'
                    f'arm = "{name}"\nworkload = "chat"\nseed = {seed}\n'
                )
    (study / "study.toml").write_text(f'name = "s"\n{arms}{rules}', "utf-8")
    claims = "".join(CLAIM.format(id=cause, load=load, metric=metric) for cause in causes)
    (study / "claims.toml").write_text(claims, "utf-8")
    found = findings(analyse(root))
    return {cause: found["s", cause] for cause in causes}


def number(found: Finding, name: str) -> float:
    (value,) = (n.value for n in found.numbers if n.name == name)
    return value


def test_faster_steps_are_no_headroom(tmp_path: Path) -> None:
    found = judged(tmp_path, Arm(), Arm(FASTER), "headroom", "step_cost", "batch")
    assert [f.verdict for f in found.values()] == ["refuted", "supported", "refuted"]
    assert found["headroom"].level == "R"
    assert number(found["headroom"], "engine steps per gap, base") == pytest.approx(1, abs=1e-3)
    share = number(found["step_cost"], "share of the cost of a step with equal content")
    assert share == pytest.approx(1, abs=0.05)


def test_preemption_is_headroom_and_no_step_cost(tmp_path: Path) -> None:
    found = judged(tmp_path, Arm(FLAT, TIGHT), Arm(FLAT), "headroom", "step_cost")
    assert [f.verdict for f in found.values()] == ["supported", "refuted"]
    assert number(found["headroom"], "engine steps per gap, base") > 1.05


def test_three_pairs_have_an_interval_between_them(tmp_path: Path) -> None:
    seeds = (1, 2, 3)
    found = judged(tmp_path, Arm(seeds=seeds), Arm(FASTER, seeds=seeds), "headroom")["headroom"]
    assert found.verdict == "refuted"
    intervals = {n.name: n.interval for n in found.numbers}
    assert intervals["ratio of ITL"] == "95 % between 3 pairs of runs (t)"
    assert "(means of 3 pairs)" in found.reasons[0]


def test_no_difference_has_no_cause(tmp_path: Path) -> None:
    found = judged(tmp_path, Arm(), Arm(NEARLY), "headroom", "step_cost")
    assert {f.verdict for f in found.values()} == {"inconclusive"}


def test_runs_of_few_stays_have_no_shares_but_a_steady_window(tmp_path: Path) -> None:
    short = {"loads": (32,), "requests": 100}
    found = judged(tmp_path, Arm(**short), Arm(FASTER, **short), "step_cost", load=32)["step_cost"]
    assert found.verdict == "inconclusive"
    assert "In the steady window ITL is" in found.reasons[0]
    assert "No shares" in found.reasons[1]
    names = {n.name for n in found.numbers}
    assert {"ITL, whole run, base", "ITL, steady window, treat"} <= names


def test_throughput_of_few_stays_is_ramp_and_drain(tmp_path: Path) -> None:
    short = {"loads": (32,), "requests": 100}
    found = judged(
        tmp_path, Arm(**short), Arm(FASTER, **short), "batch", "step_cost",
        load=32, metric="output_throughput",
    )  # fmt: skip
    assert {f.verdict for f in found.values()} == {"inconclusive"}
    assert "ramp and drain" in found["batch"].reasons[1]


def test_throughput_shows_the_steps_of_the_run(tmp_path: Path) -> None:
    found = judged(tmp_path, Arm(), Arm(FASTER), "step_cost", metric="output_throughput")
    assert found["step_cost"].verdict == "supported"
    assert any("steps of the run" in reason for reason in found["step_cost"].reasons)


def test_engines_that_no_file_tells_apart_leave_the_means(tmp_path: Path) -> None:
    two = Arm(FASTER, Engine(replicas=2), config={"replicas": 2, "router": "round robin"})
    found = judged(tmp_path, Arm(), two, "step_cost")["step_cost"]
    assert found.verdict == "inconclusive"
    assert "no file says which request went to which" in found.reasons[-1]
