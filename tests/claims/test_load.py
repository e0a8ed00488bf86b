"""analysis.claims.load: a rate that is asked for is not a rate that is delivered."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.dataset import Cell
from analysis.evidence import BadClaim, Judgement, Missing
from tests.builders import printed, study
from tests.claims.helpers import arm, judge, measured, served


def limited(*cells: Cell, by: str = "cap", **keys: Any) -> Judgement:
    arms = [cell.arm.name for cell in cells]
    return judge(
        study(*cells), "load",
        **{"arms": arms, "workload": "chat", "concurrency": 10, "limited_by": by, **keys},
    )  # fmt: skip


def at(stay: float, rate: float, name: str = "a", x: float = 1.0) -> Cell:
    """`x` requests a second delivered, `x` times the stay in flight."""
    return served(arm(name), x=x, ttft=0.1, itl=(stay - 0.1) / 49, rate=rate)


@pytest.mark.parametrize(
    ("stay", "rate", "limit"),
    [
        (9.9, 5.0, "cap"),  # 1 of 5 a second, 9.9 of 10 in flight
        (3.0, 1.0, "rate"),  # 1 of 1 a second, 3 of 10
        (9.9, 1.0, "neither"),  # both at once
        (3.0, 5.0, "neither"),  # neither is reached: the client
        (9.0, 5.0, "neither"),  # 90 % of the cap is not full where a rate was asked
        (9.0, float("inf"), "cap"),  # without a rate nothing else can limit, but for ramp and drain
        (7.0, float("inf"), "neither"),
    ],
)
def test_what_limited_the_load(stay: float, rate: float, limit: str) -> None:
    for by in ("cap", "rate"):
        expected = (
            "supported" if limit == by else "inconclusive" if limit == "neither" else "refuted"
        )
        assert limited(at(stay, rate), by=by).verdict == expected


def test_the_delivered_share_is_said() -> None:
    found = limited(at(9.9, 5.0), by="rate")
    assert found.verdict == "refuted"
    (words,) = found.reasons
    assert "of 5 1/s asked are delivered (20.0 %)" in words
    assert words.endswith("of 10 allowed in flight: the cap limits.")


def test_all_arms_must_agree() -> None:
    one, other = at(9.9, 5.0), at(3.0, 1.0, "b")
    assert limited(one, other).verdict == "refuted"
    assert limited(one, at(3.0, 5.0, "b")).verdict == "inconclusive"


def test_rounding_that_straddles_the_fill_leaves_it_open() -> None:
    def with_itl(text: str) -> Cell:
        return served(
            arm("a"), x=1.0, ttft=0.1, rate=5.0, mean_itl=printed("mean_itl", text, file="a.json")
        )

    # 0.1 + 49 x 0.195 = 9.66 is 96.6 %; 49 x [0.15, 0.25] is anything.
    assert limited(with_itl("0.195")).verdict == "supported"
    assert limited(with_itl("0.2")).verdict == "inconclusive"


def test_no_arms_are_the_authors_mistake() -> None:
    with pytest.raises(BadClaim, match="names no arms"):
        limited()


def test_a_run_without_times_is_untestable() -> None:
    with pytest.raises(Missing, match="mean TTFT, mean ITL or token counts"):
        limited(measured("a", "mean_itl", 0.1))
