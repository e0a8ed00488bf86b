"""analysis.claims.expectation: better, worse or no gain over all loads measured."""

from __future__ import annotations

import math

import pytest

from analysis.evidence import BadClaim, Missing
from analysis.stats import compare
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
        "Output throughput of b is 50.0 % higher than that of a on chat at 1 in flight, but 33.3 % "
        "lower on chat at 10, where better was expected (1 of 2 comparisons for, 1 against, 0 "
        "open)."
    )
    assert verdict_of(*cells, concurrency=[1]) == "supported"


def test_within_what_runs_vary_it_is_open() -> None:
    found = judge(study(*pair(100, 101)), "expectation", **KEYS, expects="better")  # type: ignore[arg-type]
    assert found.verdict == "inconclusive"
    assert found.reasons[0].endswith(
        "which noise may turn, where better was expected (0 of 1 comparison for, 1 open)."
    )


def test_the_comparison_that_decides_is_said_first_with_its_size() -> None:
    cells = study(*pair(100, 150, 1), *pair(100, 130))  # type: ignore[arg-type]
    right = judge(cells, "expectation", **KEYS, expects="better")
    assert right.reasons[0] == (
        "Output throughput of b is 30.0 % higher than that of a on chat at 10 in flight (and "
        "higher in 2 of 2 comparisons), where better was expected."
    )
    wrong = judge(cells, "expectation", **KEYS, expects="worse")
    assert wrong.reasons[0] == (
        "Output throughput of b is 50.0 % higher than that of a on chat at 1 in flight (and higher "
        "in 2 of 2 comparisons), where worse was expected."
    )


def test_one_of_many_that_goes_against_it_must_be_the_clearer() -> None:
    # ln 1.04 / (1.96 √2) = 1.41 %, and 0.99 % as one of 10.
    level = [one for n in range(1, 10) for one in pair(100, 100.1, n)]
    assert verdict_of(*pair(104, 100)) == "refuted"
    assert verdict_of(*level, *pair(104, 100)) == "inconclusive"
    assert verdict_of(*level, *pair(106, 100)) == "refuted"
    # Those that agree must all hold and need no correction.
    good = [one for n in range(1, 11) for one in pair(100, 104, n)]
    assert verdict_of(*good) == "supported"


def test_the_p_of_going_against_it_is_multiplied_by_the_comparisons() -> None:
    runs = (100.0, 100.1, 99.9, 100.0, 100.05)
    lower = tuple(0.9 * value for value in runs)
    cells = [
        measured(name, X, *values, load=n)
        for n in (1, 2)
        for name, values in (("a", runs), ("b", lower))
    ]
    found = judge(study(*cells), "expectation", **KEYS, expects="better")
    one = compare(runs, lower).p_value
    assert one is not None
    assert (found.verdict, found.p_value) == ("refuted", pytest.approx(2 * one))
    # All must hold for it to be right: no correction.
    right = judge(study(*cells), "expectation", **KEYS, expects="worse")
    assert (right.verdict, right.p_value) == ("supported", pytest.approx(one))


def test_every_workload_is_in_the_suggestion() -> None:
    cells = [
        measured(name, X, value, workload=workload)
        for workload in ("chat", "code")
        for name, value in (("a", 1.0), ("b", 2.0))
    ]
    found = judge(study(*cells), "expectation", **KEYS, expects="better")
    assert found.experiment is not None
    assert found.experiment.workloads == ("chat", "code")
    with pytest.raises(Missing) as missing:
        judge(
            study(*cells), "expectation", **KEYS, expects="better", workload="code",
            concurrency=[99],
        )  # fmt: skip
    assert missing.value.experiment is not None
    assert missing.value.experiment.workloads == ("code",)


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
    # Against 5 %: ln(1.05 / 1.03) / (1.645 √2) = 0.83 % and ln(1.05 / 1.01) / 2.326 = 1.67 %; above
    # it ln(1.08 / 1.05) / (1.96 √2) = 1.02 % and ln(1.10 / 1.05) / 2.772 = 1.68 %; runs vary 1.3 %.
    [
        (103.0, "inconclusive"),
        (60.0, "supported"),
        (150.0, "refuted"),
        (101.0, "supported"),
        (108.0, "inconclusive"),
        (110.0, "refuted"),
    ],
)
def test_no_gain_in_throughput_is_at_most_five_percent_more(b: float, verdict: str) -> None:
    assert verdict_of(*pair(100, b), expects="no_gain") == verdict


@pytest.mark.parametrize(
    ("b", "verdict"),
    # The page shows the change of the latency. Against -5 %: ln(98.5 / 95) / 2.326 = 1.56 %,
    # ln(97 / 95) / 2.326 = 0.90 %, ln(95 / 93) / 2.772 = 0.77 % and ln(95 / 91) / 2.772 = 1.55 %.
    [
        (98.5, "supported"),
        (97.0, "inconclusive"),
        (93.0, "inconclusive"),
        (91.0, "refuted"),
        (120.0, "supported"),
    ],
)
def test_no_gain_in_latency_is_at_most_five_percent_less(b: float, verdict: str) -> None:
    away = study(measured("a", "mean_itl", 0.1), measured("b", "mean_itl", b / 1000))
    keys = {**KEYS, "metric": "mean_itl", "expects": "no_gain"}
    assert judge(away, "expectation", **keys).verdict == verdict


def test_one_clear_gain_refutes_no_gain_even_beside_a_loss() -> None:
    assert verdict_of(*pair(100, 60, 1), *pair(100, 150), expects="no_gain") == "refuted"


def test_the_tipping_spread_against_the_margin_is_said() -> None:
    found = judge(study(*pair(100, 103)), "expectation", **KEYS, expects="no_gain")  # type: ignore[arg-type]
    tips = math.log(1.05 / 1.03) / (1.644854 * math.sqrt(2))
    assert (
        f"against the margin of 5 %, single runs: stands while the run-to-run sd is below "
        f"{100 * tips:.2f} %, and 1.3 % has to be reckoned with"
    ) in found.reasons[1]
    assert found.reasons[0] == (
        "Output throughput of b is 3.0 % higher than that of a on chat at 10 in flight, which "
        "noise may turn, where no more than 5 % better was expected (0 of 1 comparison for, 1 "
        "open)."
    )


def test_a_gain_that_is_one_of_many_must_be_the_clearer() -> None:
    # ln(1.10 / 1.05) / (z √2): 1.68 % alone, 1.17 % as one of 10 (z = 2.81).
    others = [one for n in range(1, 10) for one in pair(100, 90, n)]
    assert verdict_of(*pair(100, 110), expects="no_gain") == "refuted"
    assert verdict_of(*others, *pair(100, 110), expects="no_gain") == "inconclusive"
    assert verdict_of(*others, *pair(100, 115), expects="no_gain") == "refuted"


@pytest.mark.parametrize(
    ("gain", "verdict"), [(1.0, "supported"), (1.045, "inconclusive"), (1.08, "refuted")]
)
def test_the_gain_of_repeats_against_the_margin(gain: float, verdict: str) -> None:
    # Runs 1 % apart: se = 0.8 % x sqrt(2 / 5), t of one side 1.86 and of two 2.31 at df 8.
    runs = (99.0, 101.0, 100.0, 100.5, 99.5)
    cells = measured("a", X, *runs), measured("b", X, *(gain * v for v in runs[::-1]))
    assert verdict_of(*cells, expects="no_gain") == verdict


def test_no_gain_names_its_best_comparison() -> None:
    found = judge(
        study(*pair(100, 101, 1), *pair(100, 60)), "expectation", **KEYS, expects="no_gain",
    )  # type: ignore[arg-type]  # fmt: skip
    assert found.reasons[0] == (
        "Output throughput of b is 1.0 % higher than that of a on chat at 1 in flight (the best "
        "of 2 comparisons), where no more than 5 % better was expected."
    )
    assert found.p_value is None
    away = study(
        measured("a", "mean_itl", 0.1), measured("b", "mean_itl", 0.12),
    )  # fmt: skip
    found = judge(away, "expectation", **{**KEYS, "metric": "mean_itl"}, expects="no_gain")
    assert found.reasons[0] == (
        "Mean ITL of b is 20.0 % higher than that of a on chat at 10 in flight, where no more than "
        "5 % better was expected."
    )


@pytest.mark.parametrize("margin", [-1, 100, float("nan")])
def test_a_margin_is_a_share_of_the_whole(margin: float) -> None:
    with pytest.raises(BadClaim, match="give percent from 0 to below 100"):
        verdict_of(*pair(1, 2), expects="no_gain", margin=margin)


def test_a_margin_inside_the_rounding_is_left_open() -> None:
    # 21 / 20 = 1.05 [20.5 / 20.5, 21.5 / 19.5 = 1.10].
    away = study(measured("a", X, "20"), measured("b", X, "21"))
    found = judge(away, "expectation", **KEYS, expects="no_gain")
    assert found.verdict == "inconclusive"
    assert "the bound lies within the rounding of the print" in found.reasons[1]


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
