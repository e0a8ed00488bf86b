"""analysis.claims.token_mix: total throughput counts prompt tokens in full."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.evidence import BadClaim, Judgement, Missing
from tests.builders import cell, printed, run, study
from tests.claims.helpers import arm, figure_of, judge

OWNER = arm("a")


def on(workload: str, total: float | str, output: float) -> Any:
    file = f"{workload}.json"
    whole = printed("total_token_throughput", total, file=file) if isinstance(total, str) else total
    figures = {"total_token_throughput": whole, "output_throughput": output}
    return cell(OWNER, run(figures, arm="a", workload=workload, bare=True))


def mix(mine: Any, other: Any, cause: str = "prefix_cache", **keys: Any) -> Judgement:
    table = {"arm": "a", "workload": "long", "against": "short", "concurrency": 10, **keys}
    return judge(study(mine, other), "token_mix", **table, cause=cause)


@pytest.mark.parametrize(("cause", "verdict"), [("prefix_cache", "refuted"), ("mix", "supported")])
def test_more_prompt_to_each_output_token_at_equal_output(cause: str, verdict: str) -> None:
    # Total 1131 / 477 = 2.371 x, output 223.7 / 228.1 = 0.981 x, mix 2.418 x.
    found = mix(on("long", 1131, 223.7), on("short", 477, 228.1), cause)
    assert found.verdict == verdict
    assert figure_of(found, "token mix ratio") == pytest.approx(1131 / 477 / (223.7 / 228.1))
    assert "102 % of the log ratio" in found.reasons[0]


@pytest.mark.parametrize(
    ("cause", "verdict"), [("prefix_cache", "inconclusive"), ("mix", "refuted")]
)
def test_more_output_at_an_equal_mix(cause: str, verdict: str) -> None:
    found = mix(on("long", 200, 100), on("short", 100, 50), cause)
    assert found.verdict == verdict
    assert ("prefix-hit counters" in found.reasons[-1]) is (cause == "prefix_cache")


@pytest.mark.parametrize("cause", ["prefix_cache", "mix"])
def test_rounding_that_straddles_half_of_it_is_left_open(cause: str) -> None:
    # Total 4 [3.5, 4.5] x, output 2 x: the mix is 2 [1.75, 2.25], half of it on the nose.
    assert mix(on("long", "4", 2), on("short", 1, 1), cause).verdict == "inconclusive"


@pytest.mark.parametrize("cause", ["prefix_cache", "mix"])
@pytest.mark.parametrize("total", [100.0, "100"])
def test_where_totals_are_equal_there_is_nothing_to_explain(cause: str, total: float | str) -> None:
    found = mix(on("long", total, 40), on("short", 100, 80), cause)
    assert found.verdict == "inconclusive"
    assert len(found.reasons) == 1
    assert "there is no difference to explain" in found.reasons[0]


def test_a_run_without_output_throughput_is_untestable() -> None:
    bare = cell(OWNER, run({"total_token_throughput": 1}, arm="a", workload="long", bare=True))
    with pytest.raises(Missing, match="output throughput of a on long"):
        mix(bare, on("short", 100, 80))


def test_a_workload_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(BadClaim, match="did you mean 'short'"):
        mix(on("long", 1, 1), on("short", 1, 1), against="shor")
