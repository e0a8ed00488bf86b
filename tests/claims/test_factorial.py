"""analysis.claims.factorial: main effects and interactions of arms that differ in factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from analysis.dataset import Cell
from analysis.evidence import Judgement
from analysis.experiment import randomised
from analysis.model import Level
from analysis.study import BadInput
from tests.builders import cell, run, study
from tests.claims.helpers import arm, figure_of, judge

LEVELS: Mapping[str, list[str]] = {
    "a": ["bf16", "ample"], "b": ["bf16", "binding"],
    "c": ["awq", "ample"], "d": ["awq", "binding"],
}  # fmt: skip
NOISE = (1.0, 1.004, 0.996)
"""Of three repeats."""


def cells(itl: Mapping[str, float], repeats: Sequence[float] = NOISE, **more: Any) -> list[Cell]:
    """Arms with these mean ITL, s, a run for each repeat; seeds are shared."""
    found = []
    for place, (name, value) in enumerate(itl.items()):
        runs = []
        for seed, factor in enumerate(repeats):
            jitter = 1 + 0.002 * ((place * 7 + seed * 3) % 5 - 2)
            runs.append(
                run(
                    {"mean_itl": value * factor * jitter}, id=f"{name}{seed}", arm=name,
                    config={"seed": seed, "order": seed * len(itl) + place, "order_seed": 1},
                )
            )  # fmt: skip
        runs = [replace(one, **more) for one in runs]
        found.append(cell(arm(name), *runs, concurrency=10))
    return found


def effect(found: Sequence[Cell], of: str, expect: str, **keys: Any) -> Judgement:
    return judge(
        study(*found),
        "factorial",
        **{
            "metric": "mean_itl", "workload": "chat", "concurrency": 10,
            "factors": ["weights", "kv"], "levels": dict(LEVELS), "effect": of, "expect": expect,
            **keys,
        },
    )  # fmt: skip


ALONE = {"a": 0.010, "b": 0.012, "c": 0.007, "d": 0.0084}
"""AWQ 0.7 x, binding KV 1.2 x, whatever the other is."""
TOGETHER = {"a": 0.010, "b": 0.012, "c": 0.007, "d": 0.0100}
"""Binding KV costs AWQ more."""


def test_a_main_effect_is_a_ratio_averaged_over_the_other_factor() -> None:
    found = effect(cells(ALONE), "weights", "lower")
    assert found.verdict == "supported"
    assert figure_of(found, "mean ITL ratio, bf16 -> awq, on average") == pytest.approx(
        0.7, rel=0.01
    )
    assert figure_of(found, "mean ITL ratio, bf16 -> awq, at binding") == pytest.approx(
        0.7, rel=0.01
    )
    assert effect(cells(ALONE), "weights", "higher").verdict == "refuted"
    assert found.p_value is not None and found.p_value < 0.05


def test_factors_that_act_alone_have_no_interaction_and_others_have() -> None:
    assert effect(cells(ALONE), "weights x kv", "none").verdict == "supported"
    found = effect(cells(TOGETHER), "weights x kv", "none")
    assert found.verdict == "refuted"
    assert "binding / ample" in found.reasons[0]
    assert effect(cells(TOGETHER), "weights x kv", "higher").verdict == "supported"


def test_a_wide_interval_leaves_it_open() -> None:
    noisy = cells(ALONE, repeats=(1.0, 1.0))
    wild = [replace(c, ledgers=c.ledgers[:1]) if c.arm.name == "d" else c for c in noisy]
    found = effect(wild, "weights x kv", "none", margin=0.1)
    assert found.verdict == "inconclusive"


def test_without_repeats_the_spread_seen_elsewhere_is_reckoned_with() -> None:
    found = effect(cells(ALONE, repeats=(1.0,)), "weights", "lower")
    assert found.verdict == "supported"
    assert "no repeats: reckoned with a run-to-run sd of 1.3 %" in found.reasons[0]
    near = {**ALONE, "c": 0.0099, "d": 0.0119}
    assert effect(cells(near, repeats=(1.0,)), "weights", "lower").verdict == "inconclusive"


def test_one_factor_of_three_levels_is_compared_where_it_is_said() -> None:
    three = {"a": 0.010, "b": 0.011, "c": 0.015}
    levels = {"a": ["ample"], "b": ["scarce"], "c": ["binding"]}
    ends = effect(cells(three), "kv", "higher", factors=["kv"], levels=levels)
    assert figure_of(ends, "mean ITL ratio, ample -> binding") == pytest.approx(1.5, rel=0.01)
    near = effect(
        cells(three), "kv", "higher", factors=["kv"], levels=levels, between=["ample", "scarce"]
    )
    assert figure_of(near, "mean ITL ratio, ample -> scarce") == pytest.approx(1.1, rel=0.01)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"effect": "wieghts"}, "did you mean 'weights'?"),
        ({"between": ["bf16", "fp8"]}, "names the level 'fp8'"),
        ({"between": ["bf16"]}, "other than two levels"),
        ({"levels": {"a": ["bf16"], "b": ["awq"]}}, "gives arm 'a' 1 levels for 2 factors"),
        ({"levels": {**LEVELS, "d": ["bf16", "ample"]}}, "gives two arms the same levels"),
        ({"effect": "weights x kv x weights"}, "more than two factors"),
        ({"factors": ["weights", "weights"]}, "names no factor, or one twice"),
        (
            {"levels": {"a": ["bf16", "ample"], "d": ["awq", "binding"]}},
            "differ in 'weights' alone",
        ),
    ],
)
def test_mistakes_are_one_line(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said.replace("?", r"\?")):
        effect(cells(ALONE), **{"of": keys.pop("effect", "weights"), "expect": "lower", **keys})


def test_what_moves_with_no_factor_is_a_confound() -> None:
    found = cells(ALONE)
    odd = replace(found[3], arm=arm("d", max_num_seqs=8))
    told = effect([*found[:3], odd], "weights", "lower").confounds
    assert told and all("max_num_seqs" in text for text in told)
    assert effect(found, "weights", "lower").confounds == ()


def test_interleaved_repeats_with_evidence_are_an_experiment() -> None:
    good = cells(ALONE, level=Level.ENGINE)
    assert randomised(good)
    assert effect(good, "weights", "lower").randomised
    assert not randomised(cells(ALONE))  # summaries
    assert not randomised(cells(ALONE, repeats=(1.0, 1.0), level=Level.ENGINE))
    in_a_row = [
        replace(
            one,
            ledgers=tuple(
                replace(own, run=replace(own.run, config={**own.run.config, "order": 3 * k + n}))
                for n, own in enumerate(one.ledgers)
            ),
        )
        for k, one in enumerate(good)
    ]
    assert not randomised(in_a_row)
