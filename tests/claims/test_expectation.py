"""analysis.claims.expectation: better, worse or no gain over all loads measured."""

from __future__ import annotations

import pytest

from analysis.evidence import BadClaim, Missing
from tests.builders import study
from tests.claims.helpers import arm, judge, measured, served

X = "output_throughput"
KEYS = {"baseline": "a", "treatment": "b", "metric": X}


def pair(a: float, b: float, load: int = 10) -> tuple[object, object]:
    return measured("a", X, a, load=load), measured("b", X, b, load=load)


def verdict_of(*cells: object, expects: str = "better", **keys: object) -> str:
    return judge(study(*cells), "expectation", **KEYS, expects=expects, **keys).verdict  # type: ignore[arg-type]


def test_better_at_every_load() -> None:
    cells = (*pair(100, 150, 1), *pair(100, 130))
    assert verdict_of(*cells) == "supported"
    assert verdict_of(*cells, expects="worse") == "refuted"


def test_better_at_one_load_and_worse_at_another_is_left_open() -> None:
    cells = (*pair(100, 150, 1), *pair(150, 100))
    found = judge(study(*cells), "expectation", **KEYS, expects="better")  # type: ignore[arg-type]
    assert found.verdict == "inconclusive"
    assert found.reasons[0] == (
        "b was expected to have better output throughput than a: so it is in 1 of 2 comparisons, "
        "not so in 1, open in 0."
    )
    assert verdict_of(*cells, concurrency=[1]) == "supported"


def test_within_what_runs_vary_it_is_open() -> None:
    assert verdict_of(*pair(100, 101)) == "inconclusive"


def test_for_a_latency_less_is_better() -> None:
    away = study(measured("a", "mean_itl", 0.02), measured("b", "mean_itl", 0.01))
    keys = {**KEYS, "metric": "mean_itl"}
    assert judge(away, "expectation", **keys, expects="better").verdict == "supported"
    assert judge(away, "expectation", **keys, expects="worse").verdict == "refuted"


@pytest.mark.parametrize("n", [2, 3, 5])
def test_repeats_use_their_spread(n: int) -> None:
    tight, wide = (100.0, 100.1, 99.9, 100.0, 100.0)[:n], (100.0, 140.0, 80.0, 120.0, 90.0)[:n]

    def cells(values: tuple[float, ...], factor: float) -> tuple[object, object]:
        return measured("a", X, *values), measured("b", X, *(factor * v for v in values))

    assert verdict_of(*cells(tight, 1.1)) == "supported"
    assert verdict_of(*cells(wide, 1.1)) == "inconclusive"
    # A spread so wide that a gain of 20 % may hide in it is no proof of no gain.
    assert verdict_of(*cells(wide, 1.0), expects="no_gain") == "inconclusive"
    assert verdict_of(*cells(tight, 1.0), expects="no_gain") == "supported"


# no gain: at most `margin` percent of improvement


@pytest.mark.parametrize(
    ("b", "verdict"),
    [(103.0, "supported"), (60.0, "supported"), (150.0, "refuted"), (101.0, "supported")],
)
def test_no_gain_in_throughput_is_at_most_five_percent_more(b: float, verdict: str) -> None:
    assert verdict_of(*pair(100, b), expects="no_gain") == verdict


@pytest.mark.parametrize(
    ("b", "verdict"),
    # The page shows the change of the latency: -4.8 % is within 5 %, -5.5 % is not.
    [(95.2, "supported"), (94.5, "refuted"), (120.0, "supported")],
)
def test_no_gain_in_latency_is_at_most_five_percent_less(b: float, verdict: str) -> None:
    away = study(measured("a", "mean_itl", 0.1), measured("b", "mean_itl", b / 1000))
    keys = {**KEYS, "metric": "mean_itl", "expects": "no_gain"}
    assert judge(away, "expectation", **keys).verdict == verdict


def test_one_clear_gain_refutes_no_gain_even_beside_a_loss() -> None:
    assert verdict_of(*pair(100, 60, 1), *pair(100, 150), expects="no_gain") == "refuted"


def test_a_margin_inside_the_rounding_is_left_open() -> None:
    # 21 / 20 = 1.05 [20.5 / 20.5, 21.5 / 19.5 = 1.10].
    away = study(measured("a", X, "20"), measured("b", X, "21"))
    assert judge(away, "expectation", **KEYS, expects="no_gain").verdict == "inconclusive"


# given: the baseline's slots hold the load


def held(name: str, kv_tokens: float | None, x: float, **spec: object) -> object:
    log = None if kv_tokens is None else {"kv_tokens": kv_tokens}
    return served(arm(name, log=log, **spec), x=x, itl=9.8 / 49 / x)


def test_a_load_is_counted_where_the_slots_hold_twice_of_it() -> None:
    # 150 tokens a request: 3,000 tokens are 20 slots, twice the 10 in flight.
    found = judge(
        study(held("a", 3000, 1.0), held("b", None, 1.5)),  # type: ignore[arg-type]
        "expectation", **KEYS, expects="better", given="slots_cover",
    )  # fmt: skip
    assert found.verdict == "supported"
    assert "where 20 slots are there" in found.reasons[1]


@pytest.mark.parametrize(
    ("kv_tokens", "spec", "known"),
    [(2999.0, {}, "20.0"), (None, {}, "unknown"), (None, {"max_num_seqs": 256}, "256")],
)
def test_a_load_is_left_out_where_the_slots_do_not_or_are_not_known(
    kv_tokens: float | None, spec: dict[str, int], known: str
) -> None:
    # A sequence limit of 256 does not say that memory holds 20 requests.
    with pytest.raises(Missing) as missing:
        judge(
            study(held("a", kv_tokens, 1.0, **spec), held("b", None, 1.5)),  # type: ignore[arg-type]
            "expectation", **KEYS, expects="better", given="slots_cover",
        )  # fmt: skip
    assert f"its slots ({known}) are not 200 % of the load" in missing.value.tried


# what is not there


def test_a_named_load_that_was_not_measured_bars_support() -> None:
    found = judge(
        study(*pair(100, 150)), "expectation", **KEYS, expects="better", concurrency=[10, 32],
    )  # type: ignore[arg-type]  # fmt: skip
    assert found.verdict == "inconclusive"
    assert found.reasons[1] == "Not measured at 32 in flight."


def test_no_equal_load_says_where_each_was_measured() -> None:
    away = study(measured("a", X, 1.0, load=1), measured("b", X, 1.0, load=None))
    with pytest.raises(Missing) as missing:
        judge(away, "expectation", **KEYS, expects="better", concurrency=[1])
    assert "at one equal load of 1" in missing.value.what
    assert missing.value.tried == "a was measured at 1; b was measured at no load"


def test_a_load_at_which_one_arm_lacks_the_metric_is_no_comparison() -> None:
    away = study(measured("a", X, 1.0), measured("b", "mean_itl", 1.0))
    with pytest.raises(Missing):
        judge(away, "expectation", **KEYS, expects="better")


def test_repeats_need_no_further_runs() -> None:
    away = study(measured("a", X, 100.0, 101.0), measured("b", X, 150.0, 151.0))
    assert judge(away, "expectation", **KEYS, expects="better").experiment is None


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"baseline": "aa"}, "names arm 'aa'"),
        ({"treatment": "bb"}, "names arm 'bb'"),
        ({"metric": "output_througput"}, "did you mean 'output_throughput'"),
        ({"metric": "duration"}, "neither more nor less is better"),
        ({"workload": "chatt"}, "did you mean 'chat'"),
    ],
)
def test_what_is_not_there_is_the_authors_mistake(keys: dict[str, str], message: str) -> None:
    with pytest.raises(BadClaim) as error:
        judge(study(*pair(1, 2)), "expectation", **{**KEYS, "expects": "better", **keys})  # type: ignore[arg-type]
    assert message in str(error.value)
