"""analysis.claims.length: prompt and output together against the context length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.evidence import BadClaim, Judgement, Missing
from analysis.model import Lengths, Source
from analysis.study import WorkloadSpec
from tests.builders import study
from tests.claims.helpers import arm, figure_of, judge, measured

SAMPLE = Lengths(Source("s/lengths.csv", ""), np.array([10, 50, 80]), np.array([10, 50, 30]))
"""Prompt + output: 20, 100 and 110 tokens."""


def length(limit: int | None, fits: bool = True, **keys: Any) -> Judgement:
    away = study(
        measured(arm("log", log={"max_model_len": 100}), "mean_itl", 0.01),
        measured(arm("flag", max_model_len=110), "mean_itl", 0.01),
        measured(arm("silent"), "mean_itl", 0.01),
        workloads=(WorkloadSpec(name="chat", lengths="lengths.csv"), WorkloadSpec(name="other")),
        lengths={"lengths.csv": SAMPLE},
    )
    found = {} if limit is None else {"limit": limit}
    return judge(away, "length", **{"workload": "chat", "fits": fits, **found, **keys})


@pytest.mark.parametrize(
    ("limit", "refused"), [(110, 0), (109, 1), (100, 1), (99, 2), (79, 2), (19, 3)]
)
def test_a_request_is_refused_when_prompt_and_output_pass_the_limit(
    limit: int, refused: int
) -> None:
    found = length(limit)
    assert figure_of(found, "requests refused") == refused
    assert found.verdict == ("supported" if refused == 0 else "refuted")
    assert length(limit, fits=False).verdict == ("refuted" if refused == 0 else "supported")


def test_the_longest_prompt_alone_does_not_say_it() -> None:
    found = length(100)
    assert found.reasons[0].startswith("1 of 3 requests pass 100 tokens with their output (33.3 %)")
    assert "although the longest prompt is 80 and 0 prompts alone pass it" in found.reasons[0]


def test_where_all_fit_the_longest_request_is_named() -> None:
    assert "the longest prompt with its output is 110" in length(200).reasons[0]


def test_the_limit_may_be_an_arms_own_by_its_log_or_by_study_toml() -> None:
    assert length(None, arm="log").verdict == "refuted"
    assert length(None, arm="flag").verdict == "supported"
    with pytest.raises(Missing, match=r"start-up log of silent \(max model len\)"):
        length(None, arm="silent")


def test_a_workload_without_a_sample_is_untestable() -> None:
    with pytest.raises(Missing, match="length sample of other"):
        length(100, workload="other")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "neither `limit` nor `arm`"),
        ({"arm": "lg"}, "did you mean 'log'"),
        ({"arm": "log", "workload": "chatt"}, "study.toml does not describe; did you mean 'chat'"),
    ],
)
def test_what_is_not_there_is_the_authors_mistake(keys: dict[str, str], message: str) -> None:
    with pytest.raises(BadClaim, match=message):
        length(None, **keys)
