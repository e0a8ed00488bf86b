"""analysis.claims.ordering: best or worst at every load."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.evidence import BadClaim, Missing
from analysis.stats import compare
from tests.builders import study
from tests.claims.helpers import arm, judge, measured, served

X = "output_throughput"
CLEAR = study(
    measured("a", X, 200.0, load=1),
    measured("a", X, 300.0, load=10),
    measured("b", X, 100.0, load=1),
    measured("b", X, 150.0, load=10),
    measured(arm("c", version="2"), X, 90.0, load=10),
    measured("elsewhere", X, 1.0, load=7),
)
AMONG = ["a", "b", "c"]


def test_best_at_every_load_is_supported_and_names_the_closest() -> None:
    found = judge(CLEAR, "ordering", arm="a", among=AMONG, metric=X)
    assert found.verdict == "supported"
    # 200 / 100, 300 / 150 and 300 / 90.
    assert found.reasons[0] == (
        "a has the best output throughput in all 3 comparisons over 2 loads, by 100.0 % at the "
        "least (b, chat, 1 in flight)."
    )
    assert found.reasons[1].startswith("Closest: chat at")
    assert found.confounds == ("c: version: not stated against 2",)


def test_for_a_latency_the_lower_one_is_best() -> None:
    away = study(measured("a", "p99_ttft", 0.2), measured("b", "p99_ttft", 0.1))
    assert judge(away, "ordering", arm="b", among=["a"], metric="p99_ttft").verdict == "supported"
    assert judge(away, "ordering", arm="a", among=["b"], metric="p99_ttft").verdict == "refuted"
    assert (
        judge(away, "ordering", arm="a", among=["b"], metric="p99_ttft", sense="worst").verdict
        == "supported"
    )


def test_one_load_the_other_way_refutes() -> None:
    flipped = study(
        measured("a", X, 200.0, load=1),
        measured("b", X, 100.0, load=1),
        measured("a", X, 100.0, load=10),
        measured("b", X, 130.0, load=10),
    )
    found = judge(flipped, "ordering", arm="a", among=["b"], metric=X)
    assert found.verdict == "refuted"
    assert found.reasons[0] == (
        "a does not have the best output throughput: 100 tok/s against 130 tok/s of b on chat at "
        "10 in flight (-23.1 %); 1 of 2 comparisons goes the other way."
    )
    assert "chat at 10 in flight: 100 tok/s against 130 tok/s of b (-23.1 %" in found.reasons[1]
    only = judge(flipped, "ordering", arm="a", among=["b"], metric=X, concurrency=[1])
    assert only.verdict == "supported"


def test_single_runs_closer_than_runs_vary_leave_it_open() -> None:
    # ln 1.01 / 2.772 = 0.36 % < 1.3 %.
    close = study(measured("a", X, 101.0), measured("b", X, 100.0))
    found = judge(close, "ordering", arm="a", among=["b"], metric=X)
    assert found.verdict == "inconclusive"
    assert found.experiment is not None
    assert found.experiment.arms == ("a", "b")


def test_prints_that_may_be_equal_leave_it_open() -> None:
    close = study(measured("a", X, "2"), measured("b", X, "1"))  # [1.5, 2.5] and [0.5, 1.5]
    assert judge(close, "ordering", arm="a", among=["b"], metric=X).verdict == "inconclusive"


@pytest.mark.parametrize("n", [2, 3, 5])
def test_repeats_use_their_spread(n: int) -> None:
    tight, wide = (100.0, 100.1, 99.9, 100.0, 100.0)[:n], (100.0, 140.0, 80.0, 120.0, 90.0)[:n]

    def verdict(a: tuple[float, ...], b: tuple[float, ...]) -> str:
        away = study(measured("a", X, *a), measured("b", X, *b))
        found = judge(away, "ordering", arm="a", among=["b"], metric=X)
        assert found.experiment is None
        return found.verdict

    better = tuple(1.05 * value for value in tight)
    assert verdict(better, tight) == "supported"
    assert verdict(tight, better) == "refuted"
    assert verdict(tuple(1.05 * value for value in wide), wide) == "inconclusive"


def test_repeats_that_print_alike_do_not_outdo_their_print() -> None:
    # 2 and 1 as printed touch at 1.5; two repeats that print alike have no spread.
    away = study(measured("a", "mean_itl", "2", "2"), measured("b", "mean_itl", "1", "1"))
    found = judge(away, "ordering", arm="b", among=["a"], metric="mean_itl")
    assert found.verdict == "inconclusive"
    assert "equal within the rounding of the print" in found.reasons[1]


def test_an_arm_measured_elsewhere_only_is_left_out_by_name() -> None:
    found = judge(CLEAR, "ordering", arm="a", among=["b", "elsewhere"], metric=X)
    assert found.verdict == "supported"
    assert found.assumptions == (
        "elsewhere was not measured at a load equal to one of a's and is left out",
    )


def test_a_named_load_that_was_not_measured_bars_support() -> None:
    found = judge(CLEAR, "ordering", arm="a", among=["b"], metric=X, concurrency=[1, 32])
    assert found.verdict == "inconclusive"
    assert found.reasons[1] == "Not measured at 32 in flight."


def test_no_equal_load_is_untestable() -> None:
    with pytest.raises(Missing, match="same number of requests in flight"):
        judge(CLEAR, "ordering", arm="elsewhere", among=["a"], metric=X)


def test_a_metric_that_no_file_prints_is_not_called_a_missing_load() -> None:
    with pytest.raises(Missing) as missing:
        judge(CLEAR, "ordering", arm="a", among=["b"], metric="p99_ttft")
    assert missing.value.tried == "no two of these arms print p99 TTFT at an equal load"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"arm": "z"}, "names arm 'z', which is not there; known: a, b, c, elsewhere"),
        ({"among": ["a", "bb"]}, "names arm 'bb'"),
        ({"among": ["a"]}, "compares an arm with nobody"),
        ({"metric": "mean_itel"}, "did you mean 'mean_itl'?"),
        ({"metric": "completed"}, "neither more nor less is better"),
        ({"workload": "chatt"}, "did you mean 'chat'"),
    ],
)
def test_what_is_not_there_is_the_authors_mistake(keys: dict[str, object], message: str) -> None:
    with pytest.raises(BadClaim) as error:
        judge(CLEAR, "ordering", **{"arm": "a", "among": AMONG, "metric": X, **keys})
    assert message in str(error.value)


def test_one_comparison_is_counted_in_words() -> None:
    found = judge(CLEAR, "ordering", arm="a", among=["b"], metric=X, concurrency=[10])
    assert found.reasons[0] == (
        "a has the best output throughput in the one comparison over 1 load, by 100.0 % (b, chat, "
        "10 in flight)."
    )


def test_the_worst_counterexample_comes_first() -> None:
    worse = study(
        *(measured("a", X, value, load=n) for n, value in ((1, 90.0), (10, 50.0), (20, 80.0))),
        *(measured("b", X, 100.0, load=n) for n in (1, 10, 20)),
    )
    found = judge(worse, "ordering", arm="a", among=["b"], metric=X)
    assert "50 tok/s against 100 tok/s of b on chat at 10" in found.reasons[0]
    assert "3 of 3 comparisons go the other way" in found.reasons[0]
    assert [reason.split(" in flight")[0] for reason in found.reasons[1:]] == [
        "chat at 10", "chat at 20", "chat at 1",
    ]  # fmt: skip


def loads(last: float, k: int) -> Any:
    """k comparisons, of which the last one goes the other way by a factor."""
    return study(
        *(measured("a", X, 200.0, load=n) for n in range(1, k)),
        measured("a", X, 100.0, load=k),
        *(measured("b", X, 100.0, load=n) for n in range(1, k)),
        measured("b", X, 100.0 * last, load=k),
    )


def test_a_reversal_that_is_one_of_many_must_be_the_clearer() -> None:
    # ln 1.04 / (1.96 √2) = 1.41 % > 1.3 %; at 5 % / 10 the quantile is 2.81: 0.99 %.
    assert judge(loads(1.04, 1), "ordering", arm="a", among=["b"], metric=X).verdict == "refuted"
    found = judge(loads(1.04, 10), "ordering", arm="a", among=["b"], metric=X)
    assert found.verdict == "inconclusive"
    assert (
        "9 of 10 comparisons, and 1 is within noise, the closest b, chat, 10 in flight"
        in (found.reasons[0])
    )
    assert "0.99 %, and 1.3 % has to be reckoned with" in found.reasons[1]
    # ln 1.06 / (2.81 √2) = 1.47 %.
    assert judge(loads(1.06, 10), "ordering", arm="a", among=["b"], metric=X).verdict == "refuted"


def test_comparisons_that_agree_are_not_corrected() -> None:
    # All of them must hold, so none is picked: 1.41 % each.
    cells = [
        measured(name, X, value, load=n)
        for n in range(1, 11)
        for name, value in (("a", 104.0), ("b", 100.0))
    ]
    assert judge(study(*cells), "ordering", arm="a", among=["b"], metric=X).verdict == "supported"


def test_the_p_of_a_reversal_is_multiplied_by_the_comparisons() -> None:
    tight = (100.0, 100.1, 99.9, 100.0, 100.05)
    better = tuple(1.05 * value for value in tight)
    cells = [measured("a", X, *(tight if n == 3 else better), load=n) for n in (1, 2, 3)] + [
        measured("b", X, *(better if n == 3 else tight), load=n) for n in (1, 2, 3)
    ]
    found = judge(study(*cells), "ordering", arm="a", among=["b"], metric=X)
    assert found.verdict == "refuted"
    one = compare(better, tight).p_value
    assert one is not None
    assert found.p_value == pytest.approx(3 * one)


def test_replicas_at_fewer_requests_than_engines_are_compared_and_said() -> None:
    away = study(
        *(measured("a", X, 200.0, load=n) for n in (1, 8)),
        *(measured(arm("b", replicas=4), X, 100.0, load=n) for n in (1, 8)),
        measured("a", X, 200.0, load=2),
        measured(arm("b", replicas=4), X, 100.0, load=2),
    )
    found = judge(away, "ordering", arm="a", among=["b"], metric=X)
    assert found.verdict == "supported"
    assert "all 3 comparisons" in found.reasons[0]
    assert found.assumptions == (
        "at 1 request in flight only 1 of 4 replicas of b works",
        "at 2 requests in flight only 2 of 4 replicas of b work",
    )


def test_every_workload_is_in_the_suggestion() -> None:
    away = study(
        *(
            measured(name, X, value, workload=workload)
            for workload in ("chat", "code")
            for name, value in (("a", 2.0), ("b", 1.0))
        )
    )
    found = judge(away, "ordering", arm="a", among=["b"], metric=X)
    assert found.experiment is not None
    assert found.experiment.workloads == ("chat", "code")


def test_unequal_outputs_are_a_confound() -> None:
    away = study(served(arm("a"), x=2.0, out=50), served(arm("b"), x=1.0, out=60))
    found = judge(away, "ordering", arm="a", among=["b"], metric=X)
    assert found.confounds == ("b: mean output tokens: 50 against 60",)
