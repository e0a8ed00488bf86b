"""Slots by hand, and what binds: one situation for each answer."""

from __future__ import annotations

import math

import pytest

from analysis.capacity import (
    binds,
    capacity,
    forecast_ttft,
    kv_tokens,
    reference_prefill,
    running_slots,
)
from analysis.dataset import Arm, Cell
from analysis.model import Figure
from analysis.quantity import constant
from tests.builders import arm, cell, printed, run, startup


def at(
    in_flight: float,
    n: int | None = 10,
    *,
    of: Arm | None = None,
    ttft: float = 0.1,
    x: float = 1.0,
    rate: float = math.inf,
) -> Cell:
    """A cell with x requests a second and this many in flight; 150 tokens a request."""
    decode = in_flight / x - ttft
    figures = {
        "duration": 100 / x,
        "request_throughput": x,
        "output_throughput": 50 * x,
        "total_token_throughput": 150 * x,
        "mean_ttft": ttft,
        "mean_itl": decode / 49,
    }
    return cell(of or arm(), run(figures, concurrency=n, rate=rate))


# Slots


def test_slots_of_a_16_bit_model_by_hand():
    """75,824 tokens of KV over 432.4 tokens a request is 175; over 329.0 in the mean 230."""
    row: dict[str, float | Figure | None] = {
        "num_prompts": 2000,
        "duration": printed("duration", "1813"),
        "output_throughput": printed("output_throughput", "228.1"),
        "total_token_throughput": printed("total_token_throughput", "477.0"),
    }
    log = startup({"kv_tokens": 75_824, "reported_max_concurrency": 1.85})
    found = capacity(cell(arm(log=log), run(row, bare=True)))
    assert found.kv_slots.value == pytest.approx(75_824 / (477.0 * 1813 / 2000))
    assert round(found.kv_slots.value) == 175
    assert found.kv_slots_mean.value == pytest.approx(75_824 / ((477.0 - 228.1 / 2) * 0.9065))
    assert round(found.kv_slots_mean.value) == 230
    assert found.kv_slots.unit == found.kv_slots_mean.unit == ""
    assert found.slots is found.kv_slots
    assert found.sequence_limit is None
    assert found.reported.value == 1.85


def test_the_sequence_limit_is_smaller_than_the_memory_for_them():
    """203,264 / 432.4 = 470, but eight sequences at once."""
    log = startup({"kv_tokens": 203_264, "reported_max_concurrency": 198.5})
    row = run({"total_token_throughput": 432.4, "total_output_tokens": 20_680})
    found = capacity(cell(arm(log=log, max_num_seqs=8), row))
    assert found.kv_slots.value == pytest.approx(470.08, abs=0.01)
    assert found.slots.value == 8
    assert found.sequence_limit.value == 8
    (source,) = found.sequence_limit.sources
    assert str(source) == "study.toml: arm base, max_num_seqs"


def test_every_engine_of_an_arm_has_its_own_slots():
    log = startup({"kv_tokens": 67_696, "reported_max_concurrency": 1.65})
    pair = arm(log=log, replicas=2, max_num_seqs=8)
    found = capacity(at(9.9, of=pair))
    assert kv_tokens(pair).value == 135_392
    assert found.kv_slots.value == pytest.approx(135_392 / 150)
    assert found.sequence_limit.value == 16
    assert found.reported.value == pytest.approx(3.30)


def test_no_log_and_no_flag_leave_the_slots_unknown():
    found = capacity(at(9.9))
    assert (found.slots, found.kv_slots, found.kv_slots_mean) == (None, None, None)
    assert found.reported is None
    assert kv_tokens(arm()) is None
    assert kv_tokens(arm(log=startup({}))) is None


def test_a_flag_alone_gives_the_slots():
    found = capacity(at(9.9, of=arm(max_num_seqs=64)))
    assert found.slots.value == 64


def test_kv_without_lengths_gives_no_slots():
    bare = run({"mean_ttft": 0.1}, bare=True)
    found = capacity(cell(arm(log=startup({"kv_tokens": 1000})), bare))
    assert found.slots is None


# Slots seen from outside, and the wait they predict


def tuned() -> Cell:
    """X = 2.573/s, TTFT 772.1 ms, decode 14.8 ms x 205.77: L = 9.82 of 10."""
    figures = {
        "duration": 100 / 2.573,
        "total_output_tokens": 20_677,
        "mean_ttft": 0.7721,
        "mean_itl": 0.0148,
    }
    return cell(arm(max_num_seqs=8), run(figures))


def test_running_requests_seen_from_outside():
    """7.84 past their first token and 2.573 x 74.7 ms in prefill: 8.03."""
    assert running_slots(tuned(), constant(0.0747, "s")).value == pytest.approx(8.03, abs=0.005)


def test_the_wait_that_eight_slots_predict():
    """(9.82 - 8) / 2.573 + 74.7 ms = 784 ms; 772 were seen."""
    found = forecast_ttft(tuned(), constant(8.0), constant(0.0747, "s"))
    assert found.value == pytest.approx(0.784, abs=0.002)
    assert found.unit == "s"


def test_the_wait_is_exact_where_littles_law_is_closed():
    """With the slots seen from outside the forecast is the TTFT itself: an identity."""
    prefill = constant(0.0747, "s")
    found = forecast_ttft(tuned(), running_slots(tuned(), prefill), prefill)
    assert found.value == pytest.approx(0.7721)


def test_nothing_is_seen_where_figures_are_missing():
    bare = cell(arm(), run({"mean_ttft": 0.1}, bare=True))
    assert running_slots(bare, constant(0.1, "s")) is None
    assert forecast_ttft(bare, constant(8.0), constant(0.1, "s")) is None


# What binds


def test_the_client_cap_binds_where_it_is_full():
    found = binds(at(9.9))
    assert found.limit == "client cap"
    assert found.reason == "9.90 of 10 allowed are in flight"


def test_the_client_cap_binds_with_room_to_spare_on_the_server():
    found = binds(at(9.9, of=arm(log=startup({"kv_tokens": 75_000}))))
    assert found.limit == "client cap"
    assert found.reason == "9.90 of 10 allowed are in flight; the server has room for 500"


def test_a_client_without_a_rate_fills_its_cap_but_for_ramp_and_drain():
    assert binds(at(8.1)).limit == "client cap"
    found = binds(at(7.9))
    assert found.limit == "not identified"
    assert found.reason.startswith("only 7.90 of 10 are in flight")


def test_with_a_rate_a_cap_that_is_not_full_does_not_bind():
    found = binds(at(8.1, x=1.0, rate=2.0))
    assert found.limit == "not identified"


def test_a_cap_can_bind_below_the_rate_that_was_asked():
    """10/s asked, 1.103 delivered, 9.95 of 10 in flight."""
    assert binds(at(9.95, x=1.103, rate=10)).limit == "client cap"


def test_the_rate_binds_where_it_is_delivered_and_nothing_fills():
    found = binds(at(4.1, x=1.25, rate=1.26))
    assert found.limit == "request rate"
    assert found.reason == (
        "1.25 1/s of 1.26 1/s asked are delivered with 4.10 in flight, so nothing fills"
    )


def test_a_rate_without_a_cap():
    assert binds(at(4.0, None, x=1.0, rate=1.0)).limit == "request rate"


def test_a_delivered_rate_does_not_bind_where_the_cap_is_full():
    assert binds(at(9.9, x=1.0, rate=1.0)).limit == "client cap"


def test_the_sequence_limit_binds_where_more_are_in_flight():
    found = binds(at(9.8, of=arm(max_num_seqs=8)))
    assert found.limit == "max_num_seqs"
    assert "allows 8 at once where 10 are in flight" in found.reason


def test_the_kv_cache_binds_without_a_cap():
    of = arm(log=startup({"kv_tokens": 750}), max_num_seqs=256)
    found = binds(at(9.0, None, of=of))
    assert found.limit == "KV cache"
    assert "KV cache" in found.reason
    assert "allows 5 at once where the client sends without a cap" in found.reason


@pytest.mark.parametrize("rate", [math.inf, 5.0])
def test_a_limit_that_is_not_reached_does_not_bind(rate):
    """Eight sequences allowed, three in flight: whatever limits, it is not the eight."""
    found = binds(at(3.1, of=arm(max_num_seqs=8), rate=rate))
    assert found.limit == "not identified"
    assert found.reason.startswith("only 3.10 of 10 are in flight")


def test_without_a_rate_ramp_and_drain_are_allowed_for_the_servers_limits_too():
    assert binds(at(6.5, of=arm(max_num_seqs=8))).limit == "max_num_seqs"
    assert binds(at(6.5, of=arm(max_num_seqs=8), rate=5.0)).limit == "not identified"


def test_slots_of_an_unknown_kind():
    """10 in flight, TTFT 2 s of a 10 s stay, prefill 0.1 s elsewhere: 8.1 run."""
    found = binds(at(10.0, ttft=2.0), constant(0.1, "s"))
    assert found.limit == "slots of an unknown kind"
    assert found.reason.startswith("8.10 requests run")


def test_a_prefill_from_elsewhere_and_no_queue():
    assert binds(at(9.9, ttft=0.5), constant(0.1, "s")).limit == "client cap"


def test_a_prefill_from_elsewhere_and_no_cap():
    found = binds(at(9.9, None), constant(0.1, "s"))
    assert found.limit == "not identified"
    assert found.reason == "no client cap; 9.90 in flight"


def test_a_long_first_token_is_a_slow_prefill_or_a_queue():
    found = binds(at(10.0, ttft=3.0))
    assert found.limit == "not identified"
    assert "30 % of a stay is before the first token" in found.reason


def test_a_long_first_token_with_known_slots_is_no_queue():
    assert binds(at(10.0, ttft=3.0, of=arm(max_num_seqs=64))).limit == "client cap"


# Where Little's law cannot count


def uncounted(n: int | None, of: Arm | None = None, rate: float = math.inf) -> Cell:
    return cell(of or arm(), run({"mean_ttft": None}, concurrency=n, rate=rate))


def test_a_smaller_limit_is_assumed_to_fill():
    found = binds(uncounted(10, arm(max_num_seqs=8)))
    assert found.limit == "max_num_seqs"
    assert "allows 8 at once where the client allows 10" in found.reason
    assert "assumed" in found.reason


def test_a_client_without_a_rate_is_assumed_to_fill_its_cap():
    found = binds(uncounted(10, arm(max_num_seqs=64)))
    assert found.limit == "client cap"
    assert found.reason.startswith("10 allowed in flight, and the server has room for 64")


@pytest.mark.parametrize(
    "of_cell",
    [
        uncounted(10, arm(max_num_seqs=64), rate=5.0),
        uncounted(10),
        uncounted(None, arm(max_num_seqs=64)),
    ],
)
def test_without_latencies_nothing_is_identified(of_cell):
    found = binds(of_cell)
    assert found.limit == "not identified"
    assert found.reason.startswith("TTFT, ITL or token counts are missing")


# A prefill from the same arm at a lower load


def test_the_prefill_is_the_least_ttft_at_half_the_load_or_less():
    base = arm()
    loads = [at(0.9, 1, of=base, ttft=0.06), at(4.9, 5, of=base, ttft=0.05)]
    full = at(9.9, 10, of=base, ttft=0.5)
    assert reference_prefill(full, (*loads, full)).value == pytest.approx(0.05)
    assert reference_prefill(loads[1], (*loads, full)).value == pytest.approx(0.06)


def test_no_prefill_from_another_arm_workload_or_a_load_as_high():
    base, other = arm(), arm("other")
    full = at(9.9, 10, of=base)
    elsewhere = cell(base, run(workload="long", concurrency=1))
    open_loop = at(1.0, None, of=base)
    silent = cell(base, run({"mean_ttft": None}, concurrency=1))
    near = at(5.9, 6, of=base)
    others = (at(0.9, 1, of=other), elsewhere, open_loop, silent, near, full)
    assert reference_prefill(full, others) is None
    assert reference_prefill(open_loop, (at(0.9, 1, of=base),)) is None
