"""Little's law by hand: whole runs, printed rows, rows that lack figures, per-request arrays."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.accounting import (
    Assumption,
    Borrowed,
    delivered,
    in_words,
    least_delivered,
    ledger,
    metric,
    tokens_a_chunk,
)
from analysis.model import Level, Run, Source
from analysis.quantity import constant
from tests.builders import figure, printed, requests, run

BORROWED = Borrowed(constant(200.0, "tok"), constant(400.0, "tok"), "base on chat at 10 in flight")


def slow_row() -> Run:
    """A 16-bit model at 10 in flight, as printed."""
    file = "slow.csv"
    return run(
        {
            "num_prompts": figure("num_prompts", 2000, file=file),
            "duration": printed("duration", "1813", file=file),
            "output_throughput": printed("output_throughput", "228.1", file=file),
            "total_token_throughput": printed("total_token_throughput", "477.0", file=file),
            "mean_ttft": printed("mean_ttft", "146.9", 1e-3, file=file),
            "mean_itl": printed("mean_itl", "43.1", 1e-3, file=file),
        },
        bare=True,
        level=Level.PUBLISHED,
        id="slow",
        file=file,
    )


def fast_row() -> Run:
    """The same model with 4-bit weights."""
    file = "fast.csv"
    return run(
        {
            "num_prompts": figure("num_prompts", 2000, file=file),
            "duration": printed("duration", "663", file=file),
            "output_throughput": printed("output_throughput", "625.2", file=file),
            "total_token_throughput": printed("total_token_throughput", "1305.6", file=file),
            "mean_ttft": printed("mean_ttft", "74.7", 1e-3, file=file),
            "mean_itl": printed("mean_itl", "15.6", 1e-3, file=file),
        },
        bare=True,
        level=Level.PUBLISHED,
        id="fast",
        file=file,
    )


def test_the_account_of_a_run_by_hand():
    """X = 100 / 100 = 1/s; stay = 0.1 + 0.2 x 49 = 9.9 s; so 9.9 are in flight."""
    account = ledger(run())
    assert account.throughput.value == 1.0
    assert account.throughput.unit == "1/s"
    assert account.mean_output_tokens.value == 50
    assert account.mean_tokens.value == 150
    assert account.ttft.value == 0.1
    assert account.decode.value == pytest.approx(9.8)
    assert account.stay.value == pytest.approx(9.9)
    assert account.l_first.value == pytest.approx(0.1)
    assert account.l_decode.value == pytest.approx(9.8)
    assert account.in_flight.value == pytest.approx(9.9)
    assert account.first_token_share.value == pytest.approx(0.1 / 9.9)
    assert account.resident_tokens.value == 125
    assert (account.stay.unit, account.in_flight.unit) == ("s", "")
    assert account.mean_tokens.unit == "tok"
    assert account.assumptions == ()
    assert not account.borrows


def test_a_printed_row_by_hand():
    account = ledger(slow_row())
    output = 228.1 * 1813 / 2000
    assert account.mean_output_tokens.value == pytest.approx(output)
    assert account.throughput.value == pytest.approx(2000 / 1813)
    assert account.l_first.value == pytest.approx(0.162, abs=0.0005)
    assert account.l_decode.value == pytest.approx(9.784, abs=0.0005)
    assert (account.l_decode.lo, account.l_decode.hi) == pytest.approx((9.77, 9.80), abs=0.005)
    assert account.in_flight.value == pytest.approx(9.946, abs=0.0005)
    assert (account.in_flight.lo, account.in_flight.hi) == pytest.approx((9.932, 9.959), abs=1e-3)
    assert account.mean_tokens.value == pytest.approx(432.4, abs=0.05)


def test_a_faster_row_keeps_as_many_in_flight():
    account = ledger(fast_row())
    assert (account.throughput.lo, account.throughput.hi) == pytest.approx(
        (2000 / 663.5, 2000 / 662.5)
    )
    assert account.mean_output_tokens.value == pytest.approx(207.25, abs=0.005)
    assert account.in_flight.value == pytest.approx(9.93, abs=0.005)
    assert (account.in_flight.lo, account.in_flight.hi) == pytest.approx((9.90, 9.96), abs=0.005)
    assert account.l_decode.value == pytest.approx(9.706, abs=0.0005)
    assert account.stay.value == pytest.approx(3.292, abs=0.0005)


def test_throughput_splits_into_requests_in_flight_and_stay():
    """ln X ratio = ln L ratio - ln stay ratio, exactly: 2.7345 = 0.9986 x 2.7384."""
    slow, fast = ledger(slow_row()), ledger(fast_row())
    x = fast.throughput / slow.throughput
    level = fast.in_flight / slow.in_flight
    stay = slow.stay / fast.stay
    assert x.value == pytest.approx(1813 / 663)
    assert level.value == pytest.approx(0.9986, abs=5e-5)
    assert stay.value == pytest.approx(2.7384, abs=1e-4)
    identity = (x.ln() - level.ln()) - stay.ln()
    assert identity.value == pytest.approx(0, abs=1e-12)
    assert (identity.lo, identity.hi) == pytest.approx((0, 0), abs=1e-12)


@given(
    st.integers(1, 10_000),
    st.floats(1, 10_000),
    st.floats(0.001, 10),
    st.floats(0.001, 1),
    st.integers(2, 2_000),
)
def test_littles_law_holds_whatever_the_numbers(n, duration, ttft, itl, out):
    account = ledger(
        run(
            {
                "completed": n,
                "duration": duration,
                "total_output_tokens": n * out,
                "total_input_tokens": n,
                "mean_ttft": ttft,
                "mean_itl": itl,
            },
            bare=True,
        )
    )
    stay = ttft + itl * (out - 1)
    assert account.in_flight.value == pytest.approx(n / duration * stay, rel=1e-9)
    assert account.in_flight.value == pytest.approx(
        account.l_first.value + account.l_decode.value, rel=1e-9
    )
    assert account.throughput.value == pytest.approx(
        account.in_flight.value / account.stay.value, rel=1e-9
    )


# What stands in for a figure that is not printed


def test_all_sent_are_taken_as_completed_where_only_the_sent_are_printed():
    account = ledger(slow_row())
    (note,) = account.assumptions
    assert note.what == "completed requests"
    assert note.run == "slow"
    assert note.sources == {Source("slow.csv", "num_prompts")}
    assert not account.borrows


def test_failed_requests_are_taken_off_the_sent():
    account = ledger(run({"completed": None, "num_prompts": 100, "failed": 20}))
    assert account.throughput.value == pytest.approx(0.8)
    assert account.mean_output_tokens.value == pytest.approx(5000 / 80)
    assert account.assumptions == ()


def test_throughput_from_the_printed_rate_where_there_is_no_duration():
    account = ledger(run({"duration": None, "request_throughput": 1.25}))
    assert account.throughput.value == 1.25


def test_throughput_from_output_tokens_a_second():
    account = ledger(run({"duration": None, "request_throughput": None, "output_throughput": 75}))
    assert account.throughput.value == pytest.approx(75 / 50)


def test_throughput_from_all_tokens_a_second():
    dropped = {"duration": None, "request_throughput": None, "output_throughput": None}
    account = ledger(run(dropped))
    assert account.throughput.value == pytest.approx(150 / 150)


def test_no_throughput_where_nothing_gives_it():
    account = ledger(run({"mean_ttft": 0.1, "mean_itl": 0.2}, bare=True))
    for missing in (
        account.throughput,
        account.mean_output_tokens,
        account.mean_tokens,
        account.decode,
        account.stay,
        account.in_flight,
        account.l_first,
        account.l_decode,
        account.first_token_share,
        account.resident_tokens,
    ):
        assert missing is None


def test_tokens_from_throughputs_where_no_totals_are_printed():
    """50 tok/s x 100 s / 100 requests, and 150."""
    account = ledger(run({"total_output_tokens": None, "total_input_tokens": None}))
    assert account.mean_output_tokens.value == 50
    assert account.mean_tokens.value == 150


def test_tokens_from_two_rates_where_neither_counts_nor_duration_are_printed():
    """60 tok/s at 1.5 requests a second is 40 tokens a request."""
    account = ledger(
        run(
            {"request_throughput": 1.5, "output_throughput": 60, "total_token_throughput": 180},
            bare=True,
        ),
        BORROWED,
    )
    assert account.mean_output_tokens.value == 40
    assert account.mean_tokens.value == 120
    assert account.mean_tokens.unit == "tok"
    assert not account.borrows


def test_totals_without_a_count_of_requests_give_no_mean():
    dropped = dict.fromkeys(("completed", "num_prompts", "request_throughput"))
    account = ledger(run(dropped))
    assert account.mean_output_tokens is None
    assert account.mean_tokens is None


def test_tokens_from_totals_where_no_throughput_is_printed():
    account = ledger(run({"output_throughput": None, "total_token_throughput": None}))
    assert account.mean_output_tokens.value == 50
    assert account.mean_tokens.value == 150


def test_neither_totals_nor_throughputs_give_no_tokens():
    dropped: dict[str, None] = {
        "total_output_tokens": None,
        "total_input_tokens": None,
        "output_throughput": None,
        "total_token_throughput": None,
    }
    account = ledger(run(dropped))
    assert account.mean_output_tokens is None
    assert account.mean_tokens is None


def test_a_row_without_lengths_borrows_them_and_says_so():
    """600 tok/s / 400 tokens = 1.5/s; stay = 0.2 + 0.04 x 199 = 8.16 s; L = 12.24."""
    row = run(
        {"total_token_throughput": 600, "mean_ttft": 0.2, "mean_itl": 0.04}, bare=True, id="r"
    )
    account = ledger(row, BORROWED)
    assert account.throughput.value == pytest.approx(1.5)
    assert account.in_flight.value == pytest.approx(12.24)
    assert account.borrows
    assert [note.what for note in account.assumptions] == [
        "mean output tokens",
        "mean prompt + output tokens",
    ]
    assert account.assumptions[0].instead == "those of base on chat at 10 in flight are assumed"


def test_a_row_with_its_own_lengths_borrows_nothing():
    account = ledger(run(), BORROWED)
    assert account.mean_output_tokens.value == 50
    assert account.assumptions == ()


def test_a_reference_without_lengths_lends_none():
    row = run({"total_token_throughput": 600}, bare=True)
    account = ledger(row, Borrowed(None, None, "base"))
    assert account.mean_tokens is None
    assert account.assumptions == ()
    assert not account.borrows


def test_a_tuned_row_with_borrowed_output_tokens():
    """X = 532.1 / 206.77 = 2.573/s, stay = .7721 + .0148 x 205.77, so 9.82 are in flight."""
    lent = ledger(slow_row())
    row = run(
        {
            "output_throughput": printed("output_throughput", "532.1", file="tuned.csv"),
            "mean_ttft": printed("mean_ttft", "772.1", 1e-3, file="tuned.csv"),
            "mean_itl": printed("mean_itl", "14.8", 1e-3, file="tuned.csv"),
        },
        bare=True,
    )
    account = ledger(row, Borrowed(lent.mean_output_tokens, lent.mean_tokens, "slow"))
    assert account.throughput.value == pytest.approx(2.573, abs=0.001)
    assert account.in_flight.value == pytest.approx(9.82, abs=0.005)
    assert account.l_decode.value == pytest.approx(7.84, abs=0.005)


# Where the time after the first token comes from


def test_a_printed_end_to_end_latency_is_the_stay():
    account = ledger(run({"mean_e2el": 8.6}))
    assert account.decode.value == pytest.approx(8.5)
    assert account.stay.value == pytest.approx(8.6)


def test_an_end_to_end_latency_without_ttft_does_not_split():
    account = ledger(run({"mean_ttft": None, "mean_e2el": 8.6}))
    assert account.stay is None
    assert account.l_first is None
    assert account.decode.value == pytest.approx(9.8)


def test_token_times_of_each_request_are_used_where_they_are_known():
    """Gaps sum to 3, 0.5 and (failed) 99 s: the mean over the answered ones is 1.75 s."""
    arrays = requests([0.1, 0.2, 0.0], [[1, 2], [0.5], [99.0]], failed=[False, False, True])
    account = ledger(run(requests=arrays, level=Level.REQUESTS, key="record 1"))
    assert account.decode.value == pytest.approx(1.75)
    assert account.decode.lo == account.decode.hi
    assert account.decode.sources == (Source("runs/a.json", "record 1 itls"),)


def test_the_exact_mean_agrees_with_itl_times_output_tokens_less_one():
    """The pooled ITL weighs each gap alike, so ITL x (mean output - 1) is the mean sum of gaps."""
    gaps = [[0.1] * 9, [0.3] * 49, [0.2] * 19]
    pooled = [gap for row in gaps for gap in row]
    itl, out = sum(pooled) / len(pooled), (10 + 50 + 20) / 3
    arrays = requests([0.1] * 3, gaps)
    account = ledger(run(requests=arrays, level=Level.REQUESTS))
    assert account.decode.value == pytest.approx(itl * (out - 1))


def test_requests_that_all_failed_leave_the_summary():
    arrays = requests([0.1], [[1, 2]], failed=[True])
    assert ledger(run(requests=arrays, level=Level.REQUESTS)).decode.value == pytest.approx(9.8)


def test_a_published_table_has_no_token_times():
    arrays = requests([0.1], [[1, 2]])
    account = ledger(run(requests=arrays, level=Level.PUBLISHED))
    assert account.decode.value == pytest.approx(9.8)


def test_requests_of_one_token_have_no_time_after_it():
    arrays = requests([0.1, 0.3], [[], []])
    account = ledger(run(requests=arrays, level=Level.REQUESTS))
    assert account.decode.value == 0
    assert account.first_token_share.value == 1


# Chunks that carry several tokens


def test_itl_of_several_tokens_a_chunk_is_no_time_per_token():
    """25 ms from chunk to chunk, 10 ms a token, 50 tokens: 0.49 s to the last one, not 1.225 s."""
    one = run({"mean_itl": 0.025, "mean_tpot": 0.010})
    account = ledger(one)
    assert tokens_a_chunk(one) == pytest.approx(2.5)
    assert account.decode.value == pytest.approx(0.010 * 49)
    assert account.stay.value == pytest.approx(0.59)
    assert account.in_flight.value == pytest.approx(0.59)
    assert {source.key for source in account.decode.sources} == {
        "mean_tpot", "total_output_tokens", "completed",
    }  # fmt: skip


@pytest.mark.parametrize(("ratio", "itl_counts"), [(1.04, True), (1.06, False), (0.5, True)])
def test_the_line_between_tokens_and_chunks_is_at_5_percent(ratio, itl_counts):
    """Below 1 it is ITL whatever the ratio: few long requests with short gaps."""
    one = run({"mean_itl": 0.2, "mean_tpot": 0.2 / ratio})
    assert (tokens_a_chunk(one) is None) == itl_counts
    assert ledger(one).decode.value == pytest.approx((0.2 if itl_counts else 0.2 / ratio) * 49)


def test_a_ratio_that_the_rounding_of_the_print_allows_is_none():
    """11 ms [10.5, 11.5] over 10 ms [9.5, 10.5] may be 1; 13 ms may not be below 1.19."""
    tpot = printed("mean_tpot", "10", 1e-3)
    assert tokens_a_chunk(
        run({"mean_itl": printed("mean_itl", "11", 1e-3), "mean_tpot": tpot})
    ) is (None)
    several = tokens_a_chunk(run({"mean_itl": printed("mean_itl", "13", 1e-3), "mean_tpot": tpot}))
    assert several == pytest.approx(1.3)


@pytest.mark.parametrize(
    "figures", [{"mean_itl": None, "mean_tpot": 0.01}, {"mean_itl": 0.2}, {"mean_tpot": 0.0}]
)
def test_tokens_a_chunk_need_both_latencies(figures):
    assert tokens_a_chunk(run(figures)) is None


def test_exact_latencies_come_before_tpot():
    chunky = {"mean_itl": 0.025, "mean_tpot": 0.010}
    assert ledger(run({**chunky, "mean_e2el": 0.7})).decode.value == pytest.approx(0.6)
    arrays = requests([0.1], [[0.3, 0.3]])
    one = run(chunky, requests=arrays, level=Level.REQUESTS)
    assert ledger(one).decode.value == pytest.approx(0.6)


def test_chunks_without_token_counts_give_no_decode_time():
    one = run({"mean_ttft": 0.1, "mean_itl": 0.025, "mean_tpot": 0.010}, bare=True)
    assert ledger(one).decode is None


# Requests completed, and the rate that was asked for


def test_completed_requests_are_counted_or_follow_from_the_rate():
    assert ledger(run()).completed.value == 100
    assert ledger(slow_row()).completed.value == 2000
    counted = {"completed": None, "failed": None, "num_prompts": None, "request_throughput": 1.5}
    account = ledger(run(counted))
    assert (account.completed.value, account.completed.unit) == (150, "")
    assert ledger(run({**counted, "duration": None})).completed is None


def at_rate(share: float, n: int = 100, stay: float = 4.0, **more) -> bool | None:
    """n requests at 1/s with 1 / share asked; a stay of `stay`, so as many in flight."""
    figures = {
        "completed": n, "num_prompts": n, "duration": n, "mean_ttft": stay / 2,
        "mean_itl": stay / 2 / 49, "total_output_tokens": 50 * n, **more,
    }  # fmt: skip
    return delivered(ledger(run(figures, rate=1 / share)))


def test_a_rate_is_delivered_within_slack_noise_and_drain():
    """100 requests, 4 in flight: 1 - 0.02 - 2 / 10 - 4 / 100 = 0.74."""
    assert least_delivered(ledger(run({"mean_ttft": 2.0, "mean_itl": 2.0 / 49}))) == pytest.approx(
        0.74
    )
    assert at_rate(0.741) is True
    assert at_rate(0.739) is False
    assert at_rate(1.3) is True


def test_many_requests_leave_little_to_noise():
    """10,000 requests, 4 in flight: 1 - 0.02 - 0.02 - 0.0004 = 0.9596."""
    assert at_rate(0.9597, 10_000) is True
    assert at_rate(0.9595, 10_000) is False


def test_the_drain_is_a_stay_of_the_duration():
    """A stay of 30 s in 100 s: 0.02 + 0.2 + 0.3 are allowed for."""
    assert at_rate(0.49, stay=30.0) is True
    assert at_rate(0.47, stay=30.0) is False


def test_the_cap_bounds_a_drain_that_is_not_known():
    """10 allowed in flight: 1 - 0.02 - 0.2 - 0.1 = 0.68; without a cap nothing bounds it."""
    figures = {"mean_ttft": None, "mean_itl": None}
    capped = {share: ledger(run(figures, rate=1 / share)) for share in (0.69, 0.67)}
    assert [delivered(account) for account in capped.values()] == [True, False]
    free = ledger(run(figures, rate=1 / 0.69, concurrency=None))
    assert delivered(free) is None
    assert delivered(ledger(run(figures, rate=1 / 0.99, concurrency=None))) is True


def test_without_a_count_of_requests_only_a_rate_met_in_full_is_known():
    known = {"request_throughput": 1.0, "mean_ttft": 0.1}
    assert delivered(ledger(run(known, rate=1 / 0.981, bare=True))) is True
    assert delivered(ledger(run(known, rate=1 / 0.979, bare=True))) is None


@pytest.mark.parametrize("n", [0, 4])
def test_of_so_few_requests_nothing_is_known(n):
    """Of 4, 2 / sqrt(4) = 1 is noise."""
    account = ledger(run({"completed": n}, rate=10.0))
    assert least_delivered(account) is None
    assert delivered(account) is None


@pytest.mark.parametrize("rate", [float("inf"), float("nan"), 0.0, -1.0])
def test_no_rate_was_asked_for(rate):
    assert delivered(ledger(run(rate=rate))) is None


def test_a_throughput_that_is_no_number_delivers_nothing_known():
    assert delivered(ledger(run({"duration": 0}, rate=1.0))) is None
    assert delivered(ledger(run({"mean_ttft": 0.1}, rate=1.0, bare=True))) is None


@given(st.integers(1, 100_000), st.floats(0.01, 1000), st.floats(0.01, 2))
def test_what_is_delivered_at_a_rate_is_delivered_at_any_lower_one(n, stay, share):
    """And what is not is not at any higher one."""
    found, less, more = (at_rate(s, n, stay) for s in (share, share * 1.1, share / 1.1))
    assert not (found is True and less is not True)
    assert not (found is False and more is not False)


# Metrics by name


def test_a_printed_metric_comes_before_a_derived_one():
    one = run({"request_throughput": 1.01})
    found = metric(one, "request_throughput", ledger(one))
    assert found.value == 1.01


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("request_throughput", 1.0),
        ("stay", 9.9),
        ("in_flight", 9.9),
        ("first_token_share", 0.1 / 9.9),
        ("mean_output_tokens", 50),
        ("mean_tokens", 150),
        ("mean_input_tokens", 100),
        ("output_share", 1 / 3),
        ("mean_itl", 0.2),
    ],
)
def test_a_metric_that_no_file_prints_is_derived(name, value):
    one = run({"request_throughput": None})
    assert metric(one, name, ledger(one)).value == pytest.approx(value)


def test_a_metric_that_cannot_be_derived():
    one = run({"mean_ttft": 0.1}, bare=True)
    account = ledger(one)
    for name in ("mean_input_tokens", "output_share", "stay", "p99_ttft", "nonsense"):
        assert metric(one, name, account) is None


def test_the_mix_of_counted_tokens_explains_a_ratio_of_throughputs():
    """Total / output throughput is 1,131.2 / 223.7 = 5.06 and 477.0 / 228.1 = 2.09: 2.42 x."""
    shares = []
    for total, output in (("477.0", "228.1"), ("1131.2", "223.7")):
        one = run(
            {
                "total_token_throughput": printed("total_token_throughput", total, file=total),
                "output_throughput": printed("output_throughput", output, file=total),
            },
            bare=True,
        )
        shares.append(metric(one, "output_share", ledger(one)))
    assert (shares[0] / shares[1]).value == pytest.approx(2.418, abs=0.0005)


# Assumptions in words


def note(what: str, of: str, *keys: str) -> Assumption:
    return Assumption(what, "x is assumed", of, frozenset(Source("f", key) for key in keys))


def test_an_assumption_is_named_once_for_all_runs_that_share_it():
    notes = [note("lengths", name, "a") for name in ("r1", "r2", "r1", "r3", "r4")]
    assert in_words(notes, {Source("f", "a")}) == (
        "lengths: not printed for r1, r2, r3 and 1 more; x is assumed",
    )


def test_an_assumption_that_a_number_does_not_rest_on_is_left_out():
    notes = [note("lengths", "r1", "a"), note("completed requests", "r1", "b", "c")]
    assert in_words(notes, {Source("f", "c"), Source("g", "a")}) == (
        "completed requests: not printed for r1; x is assumed",
    )
    assert in_words(notes, ()) == ()


def test_an_infinite_value_is_not_taken_for_a_number():
    account = ledger(run({"duration": 0}))
    assert math.isinf(account.throughput.value)
    assert not account.throughput.finite
