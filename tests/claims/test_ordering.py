"""analysis.claims.ordering: best or worst at every load."""

from __future__ import annotations

import pytest

from analysis.evidence import BadClaim, Missing
from tests.builders import study
from tests.claims.helpers import arm, judge, measured

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
    assert found.reasons[0] == "a has the best output throughput in all 3 comparisons over 2 loads."
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
    assert "1 of 2 comparisons over 2 loads go the other way" in found.reasons[0]
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
    assert found.reasons[0] == "a has the best output throughput in the one comparison over 1 load."
