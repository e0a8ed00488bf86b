"""analysis.claims.kv_accounting: bytes a token against the model's geometry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analysis.dataset import Arm
from analysis.evidence import BadClaim, Judgement, Missing
from tests.builders import printed, study
from tests.claims.helpers import GIB, ROUND, arm, judge, measured

TOKENS = 100_000.0
"""20,000 B a token (helpers.ROUND) make 2.0e9 B in all, 1.0e9 on each of two GPUs."""


def logged(name: str = "a", size: float = 1.0e9, tokens: float = TOKENS, **spec: Any) -> Arm:
    return arm(
        name, log={"kv_bytes": size, "kv_tokens": tokens}, shape=ROUND,
        **{"tensor_parallel": 2, "gpus": 2, **spec},
    )  # fmt: skip


def kv(*arms: Arm, **keys: Any) -> Judgement:
    return judge(study(*(measured(one, "mean_itl", 0.01) for one in arms)), "kv_accounting",
                 arm="a", **keys)  # fmt: skip


@pytest.mark.parametrize(
    ("size", "printed_as", "verdict"),
    [
        (1.0e9, "per_gpu", "supported"),
        (1.0e9, "total", "refuted"),
        (2.0e9, "total", "supported"),
        (2.0e9, "per_gpu", "refuted"),
        (1.5e9, "total", "inconclusive"),
        (1.5e9, "per_gpu", "inconclusive"),
        (1.019e9, "per_gpu", "supported"),  # within 2 % of 10,000 B a token
        (1.03e9, "per_gpu", "inconclusive"),
    ],
)
def test_what_the_printed_size_is_of(size: float, printed_as: str, verdict: str) -> None:
    assert kv(logged(size=size), printed_as=printed_as).verdict == verdict


def test_the_share_of_one_gpu_is_added_up_over_gpus_and_engines() -> None:
    found = kv(logged(), printed_as="total")
    assert f"so the arm holds {2.0e9 / GIB:.2f} GiB in all" in found.reasons[0]
    found = kv(logged(replicas=2, gpus=4), printed_as="total")
    assert f"so the arm holds {4.0e9 / GIB:.2f} GiB in all" in found.reasons[0]


@pytest.mark.parametrize("printed_as", ["total", "per_gpu"])
def test_on_one_gpu_both_readings_are_one(printed_as: str) -> None:
    found = kv(logged(size=2.0e9, tensor_parallel=1, gpus=1), printed_as=printed_as)
    assert found.verdict == "supported"
    assert "there is no difference" in found.reasons[0]


def test_pipeline_stages_share_the_layers() -> None:
    staged = logged(tensor_parallel=1, pipeline_parallel=2)
    assert kv(staged, printed_as="per_gpu").verdict == "supported"


@pytest.mark.parametrize(
    ("tokens", "has", "verdict"),
    [
        (50_000.0, "more", "supported"),
        (50_000.0, "less", "refuted"),
        (150_000.0, "more", "refuted"),
        (150_000.0, "less", "supported"),
        (100_000.0, "more", "refuted"),
        (100_000.0, "less", "refuted"),
    ],
)
def test_who_has_more_is_counted_in_tokens(tokens: float, has: str, verdict: str) -> None:
    # The other arm prints ten times the bytes, which says nothing.
    found = kv(logged(), logged("b", size=1.0e10, tokens=tokens), compared_with="b", has=has)
    assert found.verdict == verdict


def test_tokens_are_counted_over_all_engines() -> None:
    found = kv(logged(), logged("b", tokens=60_000.0, replicas=2), compared_with="b")
    assert found.verdict == "refuted"  # 100,000 against 120,000
    assert "b 120,000 tok" in found.reasons[0]


def test_tokens_that_may_be_equal_as_printed_leave_it_open() -> None:
    mine = arm("a", log={"kv_tokens": printed("kv_tokens", "2", 1e5, "tok", file="a.log")})
    other = arm("b", log={"kv_tokens": printed("kv_tokens", "1", 1e5, "tok", file="b.log")})
    assert kv(mine, other, compared_with="b").verdict == "inconclusive"


def test_both_halves_must_hold() -> None:
    other = logged("b", tokens=150_000.0)
    found = kv(logged(), other, printed_as="per_gpu", compared_with="b", has="more")
    assert (found.verdict, len(found.reasons)) == ("refuted", 2)


def test_an_override_of_the_blocks_makes_the_size_unknown() -> None:
    forced = logged()
    assert forced.startup is not None
    log = replace(forced.startup, config={"num_gpu_blocks_override": 512})
    with pytest.raises(Missing, match="size in use by a"):
        kv(replace(forced, startup=log), printed_as="total")


def test_without_a_log_it_is_untestable() -> None:
    with pytest.raises(Missing, match=r"start-up log of a \(kv bytes\)"):
        kv(arm("a", shape=ROUND), printed_as="total")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "neither `printed_as` nor `compared_with`"),
        ({"compared_with": "bb"}, "names arm 'bb'"),
    ],
)
def test_what_is_not_there_is_the_authors_mistake(keys: dict[str, str], message: str) -> None:
    with pytest.raises(BadClaim, match=message):
        kv(logged(), **keys)


def test_a_model_without_a_shape_is_the_authors_mistake() -> None:
    with pytest.raises(BadClaim, match=r"whose model is not in models\.toml"):
        kv(replace(logged(), own_model=None), printed_as="total")
