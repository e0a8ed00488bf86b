"""analysis.claims.gap_attribution: which cause the gap between two arms can have."""

from __future__ import annotations

import math
from typing import Any

import pytest

from analysis.claims._token_gaps import STEP_SHARE
from analysis.dataset import Cell
from analysis.evidence import Judgement, Missing
from analysis.study import BadInput
from tests.builders import printed, study
from tests.claims.helpers import arm, figure_of, judge, measured, served

L40S = {"gpu": "L40S"}  # 864 GB/s
AMPLE, SCARCE = {"kv_tokens": 100 * 150.0}, {"kv_tokens": 15 * 150.0}
"""Of 150 tokens a request: 100 slots, and 15 where 10 are in flight (twice 10 is asked)."""
HEAVY = 0.864e9 * 30
"""Bytes that an L40S reads in 30 ms."""


def attribute(
    base: Cell, treat: Cell, cause: str, metric: str = "mean_itl", **keys: Any
) -> Judgement:
    return judge(
        study(base, treat),
        "gap_attribution",
        **{
            "metric": metric, "baseline": base.arm.name, "treatment": treat.arm.name,
            "workload": "chat", "concurrency": 10, "cause": cause, **keys,
        },
    )  # fmt: skip


def slow(log: dict[str, float] | None = None, **more: Any) -> Cell:
    """40 ms a token, 2 s a stay (0.04 + 0.04 x 49), 5 requests a second: 10 in flight."""
    return served(arm("slow", log=log, **L40S), x=5.0, ttft=0.04, itl=0.04, **more)


def fast(log: dict[str, float] | None = None, **more: Any) -> Cell:
    """10 ms a token, 0.5 s a stay, 20 requests a second: 10 in flight."""
    return served(arm("fast", log=log, **L40S), x=20.0, ttft=0.01, itl=0.01, **more)


# token gaps


@pytest.mark.parametrize(
    ("cause", "verdict"),
    [("headroom", "refuted"), ("queue", "refuted"), ("step_cost", "supported")],
)
def test_with_slots_to_spare_a_gap_between_tokens_is_the_time_of_a_step(
    cause: str, verdict: str
) -> None:
    found = attribute(slow({**AMPLE, "model_bytes": HEAVY}), fast(), cause)
    assert found.verdict == verdict
    # (30 - 10) / (40 - 10) = 67 % of the fall is below the floor of the slower arm.
    assert figure_of(found, "smallest share of the fall due to cheaper steps") == pytest.approx(
        20 / 30
    )
    assert "Preemption is excluded too: 100 KV slots for 10 requests in flight." in found.reasons[0]
    assert "at least 67 % of the fall of 30" in found.reasons[1].lower()
    # Stay 2 s -> 0.5 s, TTFT 40 -> 10 ms: at most 40 / 1500, likely 30 / 1500.
    assert "is at most 2.7 %, and 2.0 % if" in found.reasons[2]


@pytest.mark.parametrize(("cause", "verdict"), [("queue", "refuted"), ("step_cost", "supported")])
def test_without_a_log_the_floor_may_still_carry_most_of_the_fall(cause: str, verdict: str) -> None:
    found = attribute(slow({"model_bytes": HEAVY}), fast(), cause)
    assert found.verdict == verdict
    assert found.reasons[0].startswith("Mostly step cost: at least 67 %")
    assert found.reasons[1] == "Preemption cannot be excluded from means for the rest."


@pytest.mark.parametrize("cause", ["headroom", "step_cost"])
def test_with_scarce_slots_and_a_low_floor_nothing_is_settled(cause: str) -> None:
    # 12 ms of floor: (12 - 10) / 30 = 7 %.
    found = attribute(slow({**SCARCE, "model_bytes": 0.864e9 * 12}), fast(), cause)
    assert found.verdict == "inconclusive"
    assert "15 KV slots for 10 in flight leave no margin" in found.reasons[0]
    assert found.reasons[1].startswith("At least 7 % of the fall")


def test_a_sequence_limit_does_not_exclude_preemption() -> None:
    base = served(arm("slow", max_num_seqs=256, **L40S), x=5.0, ttft=0.04, itl=0.04)
    found = attribute(base, fast(), "headroom")
    assert found.verdict == "inconclusive"
    assert "no start-up log gives the KV cache" in found.reasons[0]


def test_where_the_treatment_is_the_slower_one_its_own_slots_count() -> None:
    # The baseline has slots to spare, the slower treatment has not: it may be preempted.
    found = attribute(fast(AMPLE), slow(SCARCE), "headroom")
    assert found.verdict == "inconclusive"
    assert "15 KV slots for 10 in flight" in found.reasons[0]
    assert attribute(fast(SCARCE), slow(AMPLE), "headroom").verdict == "refuted"


def test_no_gap_has_no_cause() -> None:
    same = served(arm("fast", log=AMPLE, **L40S), x=5.0, ttft=0.04, itl=0.0401)
    found = attribute(slow(AMPLE), same, "step_cost")
    assert found.verdict == "inconclusive"
    assert found.reasons[0].startswith("There may be no difference to explain: mean ITL of fast")


def test_tpot_is_a_token_gap_too() -> None:
    found = attribute(
        slow(AMPLE, mean_tpot=0.04), fast(mean_tpot=0.01), "step_cost", metric="mean_tpot"
    )
    assert found.verdict == "supported"


# a smaller batch


def batch(n: float, **spec: Any) -> Cell:
    """`n` requests decoding on average: X = 1, n seconds of decode; TTFT fills up to 10."""
    return served(
        arm("small", **L40S, **spec), x=1.0, ttft=10.0 - n, itl=n / 49,
    )  # fmt: skip


def wide(**spec: Any) -> Cell:
    return served(arm("wide", log=AMPLE, **L40S, **spec), x=1.0, ttft=0.2, itl=9.8 / 49)


def test_a_smaller_batch_with_nothing_else_moved_is_the_cause() -> None:
    found = attribute(wide(), batch(5, max_num_seqs=8), "batch")
    assert found.verdict == "supported"
    assert "9.80 requests ran at once in wide, 5 in small" in found.reasons[0]


def test_a_batch_that_did_not_shrink_is_not() -> None:
    treat = served(arm("small", **L40S), x=1.5, ttft=0.1, itl=0.15, out=70)
    # Decoding: 1.5 x 0.15 x 69 = 15.5 > 9.8.
    assert attribute(wide(), treat, "batch").verdict == "refuted"


def test_a_smaller_batch_beside_other_changes_is_left_open() -> None:
    found = attribute(wide(), batch(5, max_num_seqs=8, block_size=32), "batch")
    assert found.verdict == "inconclusive"
    assert "1 other field moved as well" in found.reasons[0]


def test_a_batch_that_is_equal_in_print_or_not_known_is_left_open() -> None:
    treat = served(
        arm("small", **L40S), x=1.0, ttft=0.1,
        mean_itl=printed("mean_itl", "0.1", file="other.json"),
    )  # fmt: skip
    # 49 x [0.05, 0.15] = [2.5, 7.4] against 49 x [0.05, 0.25] = [2.5, 12.3].
    base = served(
        arm("wide", log=AMPLE, **L40S), x=1.0, ttft=0.1,
        mean_itl=printed("mean_itl", "0.2", file="base.json"),
    )  # fmt: skip
    found = attribute(base, treat, "batch")
    assert found.verdict == "inconclusive"
    assert "equal within rounding" in found.reasons[0]
    unknown = measured("small", "mean_itl", 0.1)
    found = attribute(wide(), unknown, "batch")
    assert found.verdict == "inconclusive"
    assert "does not follow from these files" in found.reasons[0]


def test_a_smaller_batch_proves_nothing_while_preemption_is_open() -> None:
    base = served(arm("wide", **L40S), x=1.0, ttft=0.2, itl=9.8 / 49)
    assert attribute(base, batch(5), "batch").verdict == "inconclusive"


# throughput: ln X = ln L - ln stay


@pytest.mark.parametrize(
    ("cause", "verdict"),
    [
        ("batch", "refuted"),
        ("headroom", "refuted"),
        ("stay", "supported"),
        ("step_cost", "supported"),
    ],
)
def test_four_times_the_throughput_at_equal_load_is_a_shorter_stay(
    cause: str, verdict: str
) -> None:
    found = attribute(slow(), fast(), cause, metric="request_throughput")
    assert found.verdict == verdict
    assert figure_of(found, "request throughput ratio") == pytest.approx(4)
    assert figure_of(found, "requests in flight ratio") == pytest.approx(1)
    words = {"stay": "shorter stays", "step_cost": "faster tokens"}
    share = 1 if verdict == "supported" else 0
    assert figure_of(
        found, f"share of {words.get(cause, 'more requests at once')}"
    ) == pytest.approx(share, abs=0.05)


def test_more_in_flight_at_an_equal_stay_is_a_fuller_batch() -> None:
    # 5 of 10 in flight before, 10 after, 2 s each: ln 2 of ln 2.
    half = served(arm("slow", **L40S), x=2.5, ttft=0.04, itl=0.04)
    full = served(arm("fast", **L40S), x=5.0, ttft=0.04, itl=0.04)
    assert attribute(half, full, "batch", metric="total_token_throughput").verdict == "supported"
    assert attribute(half, full, "stay", metric="total_token_throughput").verdict == "refuted"


def test_a_share_of_a_half_within_rounding_is_left_open() -> None:
    # X doubles; the stay falls by 2^0.5 if ITL is 28.3 ms, printed as 28 and 40.
    def cell(name: str, x: float, text: str) -> Cell:
        return served(
            arm(name, **L40S), x=x, ttft=0.0,
            mean_itl=printed("mean_itl", text, 1e-3, file=f"{name}.json"),
        )  # fmt: skip

    found = attribute(
        cell("slow", 2.5, "40"), cell("fast", 5.0, "28"), "batch", "request_throughput"
    )
    low, high = (
        math.log(2 * 27.5 / 40.5) / math.log(2),
        math.log(2 * 28.5 / 39.5) / math.log(2),
    )
    assert low < 0.5 < high
    assert found.verdict == "inconclusive"


def test_equal_throughputs_have_no_cause() -> None:
    # 0.4 % more in flight and X 0.1 % up: "400 % of the log ratio" explains nothing.
    a = served(arm("slow", **L40S), x=5.0, ttft=0.04, itl=0.04)
    b = served(arm("fast", **L40S), x=5.005, ttft=0.04, itl=0.0401)
    for cause in ("batch", "stay"):
        assert attribute(a, b, cause, metric="request_throughput").verdict == "inconclusive"


# time to first token


def test_with_slots_to_spare_in_both_arms_headroom_is_none_of_the_ttft() -> None:
    found = attribute(slow(AMPLE), fast(AMPLE), "headroom", metric="mean_ttft")
    assert found.verdict == "refuted"
    assert "100 KV slots an engine of slow, 100 KV slots an engine of fast" in found.reasons[0]


@pytest.mark.parametrize("cause", ["queue", "prefill"])
def test_what_is_left_of_the_ttft_means_do_not_part(cause: str) -> None:
    found = attribute(slow(AMPLE), fast(AMPLE), cause, metric="mean_ttft")
    assert found.verdict == "inconclusive"
    assert "uneven split" not in found.reasons[0]


def test_an_engine_may_get_every_request() -> None:
    # 30 slots over two engines: 15 of one, less than twice the 10 in flight.
    pair = served(
        arm("slow", log={"kv_tokens": 15 * 150.0}, replicas=2, **L40S), x=5.0, ttft=0.04, itl=0.04
    )
    found = attribute(pair, fast(AMPLE), "headroom", metric="mean_ttft")
    assert found.verdict == "inconclusive"
    roomy = served(arm("slow", log=AMPLE, replicas=2, **L40S), x=5.0, ttft=0.04, itl=0.04)
    found = attribute(roomy, fast(AMPLE), "queue", metric="mean_ttft")
    assert "an uneven split over 2 engines" in found.reasons[0]


def test_scarce_slots_leave_the_ttft_open() -> None:
    found = attribute(slow(SCARCE), fast(AMPLE), "queue", metric="mean_ttft")
    assert found.verdict == "inconclusive"
    assert "do not exceed the requests in flight" in found.reasons[0]


@pytest.mark.parametrize("spec", [{}, {"max_num_seqs": 256}])
def test_without_a_log_a_queue_for_slots_is_untestable(spec: dict[str, int]) -> None:
    base = served(arm("slow", **L40S, **spec), x=5.0, ttft=0.04, itl=0.04)
    with pytest.raises(Missing, match="start-up log of slow"):
        attribute(base, fast(AMPLE), "queue", metric="mean_ttft")


# one pool of KV


def test_a_pool_of_kv_changes_nothing_where_neither_arm_is_limited_by_it() -> None:
    found = attribute(slow(AMPLE), fast(AMPLE), "kv_pool", metric="request_throughput")
    assert found.verdict == "refuted"
    assert figure_of(found, "KV slots an engine, slow") == pytest.approx(100)


def test_a_pool_of_kv_may_matter_where_one_arm_is_near_its_limit() -> None:
    found = attribute(slow(SCARCE), fast(AMPLE), "kv_pool", metric="request_throughput")
    assert found.verdict == "inconclusive"


def test_replicas_share_the_load_and_the_cache() -> None:
    # Two engines of 15 slots, 5 requests each.
    pair = served(arm("slow", log=SCARCE, replicas=2, **L40S), x=5.0, ttft=0.04, itl=0.04)
    found = attribute(pair, fast(AMPLE), "kv_pool", metric="request_throughput")
    assert found.verdict == "refuted"
    assert "15 KV slots for 5 requests an engine of slow" in found.reasons[0]


def test_a_pool_of_unknown_size_is_untestable() -> None:
    with pytest.raises(Missing, match="start-up log of slow"):
        attribute(slow(), fast(AMPLE), "kv_pool", metric="request_throughput")


# what is not there


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"metric": "mean_itl", "cause": "stay"}, "for a token gap; expected headroom"),
        ({"metric": "request_throughput", "cause": "prefill"}, "for a throughput; expected batch"),
        ({"metric": "mean_ttft", "cause": "stay"}, "for TTFT; expected queue"),
        ({"metric": "mean_e2el", "cause": "stay"}, "attributes mean_e2el; a cause can be tested"),
        ({"metric": "in_flight", "cause": "stay"}, "attributes in_flight"),
        ({"metric": "mean_itll"}, "did you mean 'mean_itl'?"),
        ({"baseline": "sloww"}, "did you mean 'slow'?"),
        ({"workload": "chatt"}, "did you mean 'chat'?"),
        ({"cause": "magic"}, "cause is 'magic'; one of headroom, queue, step_cost, batch"),
    ],
)
def test_what_does_not_fit_is_the_authors_mistake(keys: dict[str, Any], message: str) -> None:
    base, treat = slow(mean_e2el=2.0), fast(mean_e2el=0.5)
    with pytest.raises(BadInput) as error:
        attribute(base, treat, **{"cause": "step_cost", **keys})
    assert message in str(error.value)


def test_a_load_that_was_not_measured_is_untestable() -> None:
    with pytest.raises(Missing, match="slow on chat at 64 in flight"):
        attribute(slow(), fast(), "stay", concurrency=64)


def test_a_bound_of_nothing_is_no_number() -> None:
    # 8 ms of floor, and the faster arm is at 10 ms: no share follows.
    found = attribute(slow({**AMPLE, "model_bytes": 0.864e9 * 8}), fast(), "step_cost")
    assert found.verdict == "supported"
    assert STEP_SHARE not in {number.name for number in found.numbers}
