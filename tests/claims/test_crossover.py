"""analysis.claims.crossover: a change of sign inside the measured loads, models beyond."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats as sps

from analysis.evidence import BadClaim, Judgement, Missing
from analysis.model import Estimate
from tests.builders import study
from tests.claims.helpers import arm, figure_of, judge, measured, served

X = "output_throughput"


def curves(ratios: dict[int, float | tuple[float | str, float | str]], **spec: Any) -> Any:
    """Arms a and b over loads; a number is a's figure where b has 100."""
    pairs = {n: r if isinstance(r, tuple) else (100.0 * r, 100.0) for n, r in ratios.items()}
    return study(
        *(measured(arm("a"), X, a, load=n) for n, (a, _) in pairs.items()),
        *(measured(arm("b", **spec), X, b, load=n) for n, (_, b) in pairs.items()),
    )


def cross(away: Any, crosses: bool = True, **keys: Any) -> Judgement:
    return judge(
        away, "crossover",
        **{"first": "a", "second": "b", "metric": X, "workload": "chat", **keys},
        crosses=crosses,
    )  # fmt: skip


def test_a_change_of_sign_between_two_loads_is_a_crossing() -> None:
    # ln 2 at 4, -ln 2 at 16: zero at the geometric mean, 8.
    away = curves({4: 2.0, 16: 0.5})
    found = cross(away)
    assert found.verdict == "supported"
    assert figure_of(found, "crossing") == pytest.approx(8)
    assert cross(away, crosses=False).verdict == "refuted"


NOISE = 1.959964 * math.sqrt(2) * 0.013
"""What a log ratio of single runs may vary: 3.6 %."""


def interval(found: Judgement) -> Estimate:
    return next(number for number in found.numbers if number.name == "crossing")


def zeros(low: float, high: float) -> tuple[float, float]:
    """Zeros of lines from (ln 4, y) to (ln 16, -z), y and z in [low, high]: 4 x 4^(y / (y + z))."""
    return 4 * 4 ** (low / (low + high)), 4 * 4 ** (high / (low + high))


def test_rounding_and_noise_give_the_crossing_its_interval() -> None:
    # 20 / 10 [19.5 / 10.5, 20.5 / 9.5] at 4 and the reverse at 16.
    found = cross(curves({4: ("20", "10"), 16: ("10", "20")}))
    expected = zeros(math.log(19.5 / 10.5) - NOISE, math.log(20.5 / 9.5) + NOISE)
    crossing = interval(found)
    assert (crossing.lo, crossing.hi) == pytest.approx(expected)
    assert crossing.interval == "spread taken from elsewhere and rounding"


def test_single_runs_of_exact_figures_still_vary() -> None:
    crossing = interval(cross(curves({4: 2.0, 16: 0.5})))
    expected = zeros(math.log(2) - NOISE, math.log(2) + NOISE)
    assert (crossing.lo, crossing.hi) == pytest.approx(expected)


def test_repeats_give_the_crossing_their_own_interval() -> None:
    runs = (99.0, 101.0, 100.0, 100.5, 99.5)

    def cells(a4: float, a16: float) -> Any:
        return study(
            *(measured("a", X, *(f * v for v in runs), load=n) for n, f in ((4, a4), (16, a16))),
            *(measured("b", X, *runs[::-1], load=n) for n in (4, 16)),
        )

    crossing = interval(cross(cells(2.0, 0.5)))
    # Two equal spreads: df 8.
    half = sps.t.ppf(0.975, 8) * np.log(runs).std(ddof=1) * math.sqrt(2 / 5)
    assert (crossing.lo, crossing.hi) == pytest.approx(
        zeros(math.log(2) - half, math.log(2) + half)
    )
    assert crossing.interval == "95 % between runs"


@pytest.mark.parametrize(("n", "sd"), [(2, 0.013), (3, 0.013), (4, 0.001), (6, 0.001)])
def test_repeats_that_print_alike_have_an_interval_too(n: int, sd: float) -> None:
    # Two and three a side cannot reach 5 % by rearrangement: they may lie close by luck.
    away = study(
        *(measured("a", X, *[v] * n, load=load) for load, v in ((4, 200.0), (16, 50.0))),
        *(measured("b", X, *[100.0] * n, load=load) for load in (4, 16)),
    )
    crossing = interval(cross(away))
    half = 1.959964 * math.sqrt(2 / n) * sd
    assert (crossing.lo, crossing.hi) == pytest.approx(
        zeros(math.log(2) - half, math.log(2) + half)
    )
    assert crossing.lo < crossing.value < crossing.hi


def test_one_side_of_single_runs_takes_the_spread_from_elsewhere() -> None:
    away = study(
        measured("a", X, 200.0, 201.0, load=4), measured("a", X, 50.0, load=16),
        measured("b", X, 100.0, 100.5, load=4), measured("b", X, 100.0, load=16),
    )  # fmt: skip
    assert interval(cross(away)).interval == "spread taken from elsewhere and rounding"


def test_an_interval_that_leaves_the_two_loads_is_cut_and_that_is_said() -> None:
    # +2 % at 4 may be nothing: the crossing may lie below 4.
    found = cross(curves({1: 1.5, 4: 1.02, 16: 0.5}))
    crossing = interval(found)
    assert crossing.lo == 4
    assert crossing.hi < 16
    assert "The interval is cut at 4: the arms may be equal there, and the crossing beyond." in (
        found.reasons
    )
    both = cross(curves({1: 1.5, 4: 1.02, 16: 0.99, 64: 0.5}))
    assert (interval(both).lo, interval(both).hi) == (4, 16)
    assert any("is cut at 4 and 16" in reason for reason in both.reasons)
    clear = cross(curves({4: 2.0, 16: 0.5}))
    assert not any("cut" in reason for reason in clear.reasons)


def test_unequal_outputs_are_a_confound() -> None:
    cells = [
        served(arm(name), x=x, out=out, load=load)
        for load in (4, 16)
        for name, x, out in (("a", 2.0, 50), ("b", 1.0, 60))
    ]
    found = cross(study(*cells), crosses=False)
    assert found.confounds == ("mean output tokens: 50 against 60",)


def test_an_equal_figure_between_two_signs_is_the_crossing() -> None:
    found = cross(curves({4: 1.5, 8: 1.0, 16: 0.5}))
    assert found.verdict == "supported"
    assert figure_of(found, "crossing") == 8


def test_no_change_of_sign_at_clearly_different_loads() -> None:
    away = curves({1: 1.7, 10: 1.3, 32: 1.1})
    found = cross(away, crosses=False, within=[1, 32])
    assert found.verdict == "supported"
    assert found.reasons[0] == (
        "No crossing in [1, 32]: output throughput of a over b is 1.70 at 1, 1.30 at 10, "
        "1.10 at 32."
    )
    sd = 100 * math.log(1.1) / (1.959964 * math.sqrt(2))
    assert found.reasons[1].startswith("Single runs: which arm leads at each load stands while")
    assert f"below {sd:.2f} %" in found.reasons[1]
    assert found.flips == "repeats at 1, 10 or 32 in flight that turn the sign"
    assert cross(away, within=[1, 32]).verdict == "refuted"


@pytest.mark.parametrize("crosses", [True, False])
def test_a_sentence_without_a_limit_is_open_where_models_cross_beyond(crosses: bool) -> None:
    found = cross(curves({1: 1.7, 10: 1.3, 32: 1.1}), crosses=crosses)
    assert found.verdict == "inconclusive"
    assert found.reasons[0].startswith("Not measured beyond 32. 3 of 3 extrapolations cross at ")
    assert found.reasons[1].startswith("No crossing in [1, 32]: output throughput")
    assert found.flips == "runs beyond 32 in flight that show the crossing, or that there is none"


def test_a_sentence_without_a_limit_where_no_model_crosses() -> None:
    away = curves({1: 1.1, 10: 1.3, 32: 1.7})
    assert cross(away, crosses=False).verdict == "supported"
    assert cross(away).verdict == "inconclusive"


def test_loads_that_may_be_equal_leave_no_crossing_open() -> None:
    away = curves({1: 1.7, 32: 1.005})
    assert cross(away, crosses=False).verdict == "inconclusive"
    found = cross(away, within=[1, 32])
    assert found.verdict == "inconclusive"
    assert found.reasons[1].startswith("At 32 in flight the arms are within rounding")


@pytest.mark.parametrize("crosses", [True, False])
def test_a_sign_that_noise_can_turn_is_no_crossing(crosses: bool) -> None:
    # +0.5 % and -0.5 %, single runs: runs vary by more.
    found = cross(curves({1: 1.005, 32: 0.995}), crosses=crosses)
    assert found.verdict == "inconclusive"
    assert found.reasons[1].startswith("The interval is cut at 1 and 32")
    assert found.reasons[2].startswith("On one side of it every load is within rounding")
    # Clear on both outer sides, the neighbours of the crossing need not be.
    clear = cross(curves({1: 1.5, 8: 1.005, 16: 0.995, 32: 0.5}), crosses=crosses)
    assert clear.verdict == ("supported" if crosses else "refuted")


@pytest.mark.parametrize("n", [2, 3, 5])
def test_repeats_use_their_spread(n: int) -> None:
    def away(spread: float) -> Any:
        values = [100 * (1 + spread * k) for k in (-1, 1, 0, 0.5, -0.5)[:n]]
        return study(
            measured("a", X, *(1.1 * v for v in values), load=4),
            measured("a", X, *(0.9 * v for v in values), load=16),
            measured("b", X, *values, load=4),
            measured("b", X, *values[::-1], load=16),
        )

    assert cross(away(0.001)).verdict == "supported"
    assert cross(away(0.3)).verdict == "inconclusive"


def test_the_range_that_the_sentence_names() -> None:
    away = curves({4: 2.0, 16: 0.5, 64: 0.25})  # crosses at 8
    assert cross(away, within=[4, 16]).verdict == "supported"
    assert cross(away, within=[10, 64]).verdict == "refuted"
    assert cross(away, crosses=False, within=[10, 64]).verdict == "supported"


@pytest.mark.parametrize("crosses", [True, False])
def test_a_crossing_that_rounding_may_move_out_of_the_range_is_left_open(crosses: bool) -> None:
    # About 8 [7.2, 8.9].
    away = curves({4: ("20", "10"), 16: ("10", "20")})
    found = cross(away, crosses=crosses, within=[4, 8])
    assert found.verdict == "inconclusive"
    assert found.reasons[1] == (
        "Rounding and run-to-run noise leave open whether that is within [4, 8]."
    )


@pytest.mark.parametrize("crosses", [True, False])
def test_a_range_beyond_the_measured_loads_is_left_open(crosses: bool) -> None:
    found = cross(curves({1: 1.7, 32: 1.2}), crosses=crosses, within=[64, 128])
    assert found.verdict == "inconclusive"
    assert found.reasons[0].startswith("Nothing was measured within [64, 128]: output throughput")


def test_models_beyond_are_listed_with_the_loads_that_would_settle_it() -> None:
    # ln ratio: ln 2 at 8, ln 1.25 at 16; linear in load: 1 + (16 - 8) / 0.75 x 0.25 = 18.7.
    found = cross(curves({8: 2.0, 16: 1.25}))
    at = 16 * 2 ** (math.log(1.25) / math.log(2 / 1.25))
    assert figure_of(found, "crossing by model: log ratio, last two loads") == pytest.approx(at)
    linear = 16 + 0.25 * 8 / 0.75
    assert figure_of(found, "crossing by model: ratio linear in load") == pytest.approx(linear)
    assert found.reasons[0].startswith(
        "Not measured beyond 16. 2 of 2 extrapolations cross at 19 to 22."
    )
    assert found.experiment is not None
    assert found.experiment.concurrency == (24, 32, 48)


def test_curves_that_part_cross_in_no_model() -> None:
    found = cross(curves({8: 1.5, 16: 2.0}), crosses=False)
    assert found.reasons[1] == (
        "Single runs: which arm leads at each load stands while the run-to-run sd is below 14.63 %."
    )
    assert found.reasons[-1].startswith("Not measured beyond 16; none of 2 extrapolations crosses")


def test_models_that_do_not_cross_are_named() -> None:
    # ITL: a steeper than b; log ratio crosses, and one instance doubled never does.
    def itl(name: str, n: int, value: float, **spec: Any) -> Any:
        return measured(arm(name, **spec), "mean_itl", value, load=n)

    away = study(
        itl("a", 8, 0.010), itl("a", 16, 0.015),
        itl("b", 8, 0.020, replicas=2), itl("b", 16, 0.021, replicas=2),
        itl("one", 8, 0.021), itl("one", 16, 0.9),
    )  # fmt: skip
    found = cross(away, metric="mean_itl", instance="one")
    assert "2 x one instance as measured) does not" in found.reasons[0]
    # It was followed up to twice 16 in flight.
    assert figure_of(found, "no crossing by model: 2 x one instance as measured") == 32


def test_replicas_at_fewer_requests_than_engines_are_noted() -> None:
    found = cross(curves({1: 2.0, 8: 1.5}, replicas=2), crosses=False)
    assert found.reasons[-1] == "At 1 in flight only 1 of 2 replicas works."
    assert found.confounds == ("replicas: 1 against 2",)


def test_one_equal_load_is_no_curve() -> None:
    with pytest.raises(Missing, match="at two equal loads or more"):
        cross(curves({1: 2.0}))


def test_a_stay_can_be_followed_too() -> None:
    cells = [
        served(arm(name), x=n / stay, ttft=0.0, itl=stay / 49, load=n)
        for name, rows in (("a", {4: 1.0, 16: 4.0}), ("b", {4: 2.0, 16: 2.0}))
        for n, stay in rows.items()
    ]
    assert cross(study(*cells), metric="stay").verdict == "supported"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"first": "aa"}, "names arm 'aa'"),
        ({"second": "bb"}, "names arm 'bb'"),
        ({"instance": "cc"}, "names arm 'cc'"),
        ({"workload": "chatt"}, "did you mean 'chat'"),
        ({"metric": "output_througput"}, "did you mean 'output_throughput'"),
        ({"within": [16, 4]}, "give the lower one first"),
    ],
)
def test_what_is_not_there_is_the_authors_mistake(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(BadClaim, match=message):
        cross(curves({4: 2.0, 16: 0.5}), **keys)
