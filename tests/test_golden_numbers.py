"""The numbers that must come out of the general kinds on the shipped studies.

Each was computed by hand from the printed tables; the code knows none of the names used here.
"""

from __future__ import annotations

import math

import pytest

from analysis.capacity import capacity, forecast_ttft, running_slots
from analysis.dataset import Cell
from analysis.floor import kv_token_bytes, step_floor
from analysis.model import Estimate, Finding
from analysis.pipeline import Analysis
from analysis.stats import equivalence_tips_at
from tests.whole import shipped


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return shipped()


def cell(analysis: Analysis, arm: str, workload: str, load: int, study: str = "writeup") -> Cell:
    found = analysis.dataset.study(study)
    assert found is not None
    result = found.cell(arm, workload, load)
    assert result is not None
    return result


def finding(analysis: Analysis, claim: str, study: str = "writeup") -> Finding:
    report = next(r for r in analysis.studies if r.study.name == study)
    return next(f for f in report.findings if f.id == claim)


def number(found: Finding, name: str) -> Estimate:
    return next(n for n in found.numbers if n.name == name)


def account(c: Cell, name: str) -> float:
    q = c.account(name)
    assert q is not None
    return q.value


def test_sixteen_bit_arm_keeps_9_95_of_10_in_flight(analysis: Analysis) -> None:
    c = cell(analysis, "fp16", "sharegpt", 10)
    assert account(c, "throughput") == pytest.approx(2000 / 1813, abs=5e-4)
    assert account(c, "l_first") == pytest.approx(0.162, abs=5e-4)
    assert account(c, "l_decode") == pytest.approx(9.78, abs=5e-3)
    in_flight = c.account("in_flight")
    assert in_flight is not None
    assert (in_flight.lo, in_flight.hi) == pytest.approx((9.932, 9.959), abs=1e-3)
    assert account(c, "mean_tokens") == pytest.approx(432.4, abs=0.05)
    slots = capacity(c).kv_slots
    assert slots is not None
    assert slots.value == pytest.approx(175, abs=0.5)


def test_quantised_arm_delivers_3_017_a_second(analysis: Analysis) -> None:
    c = cell(analysis, "awq", "sharegpt", 10)
    x = c.account("throughput")
    assert x is not None
    assert (x.value, x.lo, x.hi) == pytest.approx((3.017, 3.014, 3.019), abs=5e-4)
    assert account(c, "mean_output_tokens") == pytest.approx(207.3, abs=0.05)
    assert account(c, "in_flight") == pytest.approx(9.93, abs=5e-3)
    assert account(c, "l_decode") == pytest.approx(9.71, abs=5e-3)
    slots = capacity(c).kv_slots
    assert slots is not None
    assert slots.value == pytest.approx(449, abs=0.5)


def test_the_queue_is_no_part_of_the_fall_in_itl(analysis: Analysis) -> None:
    found = finding(analysis, "itl-fell-as-the-queue-went")
    assert found.verdict == "refuted"
    assert number(found, "stay, fp16").value == pytest.approx(9.016, abs=5e-4)
    assert number(found, "stay, awq").value == pytest.approx(3.292, abs=5e-4)
    assert number(found, "floor of a step, fp16").value == pytest.approx(32.4e-3, abs=5e-5)
    assert number(found, "smallest share of the fall due to cheaper steps").value == pytest.approx(
        0.61, abs=5e-3
    )
    assert number(found, "KV slots, fp16").value / 10 == pytest.approx(17.5, abs=0.5)
    text = " ".join(found.reasons)
    assert "its wait is not in ITL" in text
    assert "at most 2.6 %, and 1.3 %" in text


def test_floor_of_the_quantised_arm(analysis: Analysis) -> None:
    floor = step_floor(cell(analysis, "awq", "sharegpt", 10))
    assert floor is not None
    assert floor.weights.value == pytest.approx(9.93e-3, abs=5e-6)


def test_no_larger_batch_behind_2_74x(analysis: Analysis) -> None:
    found = finding(analysis, "throughput-by-larger-batch")
    assert found.verdict == "refuted"
    assert number(found, "request throughput ratio").value == pytest.approx(2.735, abs=5e-4)
    assert number(found, "requests in flight ratio").value == pytest.approx(0.9986, abs=1e-4)
    assert 1 / number(found, "stay ratio").value == pytest.approx(2.738, abs=1e-3)


def test_eight_sequences_explain_the_tenfold_ttft(analysis: Analysis) -> None:
    found = finding(analysis, "max-num-seqs-caused-the-wait")
    assert found.verdict == "supported"
    assert number(found, "running (S_hat)").value == pytest.approx(8.03, abs=5e-3)
    assert number(found, "forecast TTFT").value == pytest.approx(0.784, abs=1e-3)
    assert number(found, "requests in flight (L)").value == pytest.approx(9.82, abs=5e-3)
    assert any("look" in note and "high" in note for note in found.assumptions)
    tuned, plain = (cell(analysis, arm, "sharegpt", 10) for arm in ("awq-tuned", "awq"))
    prefill = plain.account("ttft")
    assert prefill is not None
    seen = running_slots(tuned, prefill)
    assert seen is not None
    assert seen.value == pytest.approx(7.84 + 2.573 * 0.0747, abs=5e-3)
    limit = capacity(tuned).sequence_limit
    assert limit is not None
    forecast = forecast_ttft(tuned, limit, prefill)
    assert forecast is not None
    assert forecast.value / 0.7721 - 1 == pytest.approx(0.015, abs=1e-3)


def test_the_token_mix_explains_2_37x(analysis: Analysis) -> None:
    found = finding(analysis, "prefix-2.37x-by-caching")
    assert found.verdict == "refuted"
    assert number(found, "output throughput ratio").value == pytest.approx(0.98, abs=5e-3)
    assert number(found, "token mix ratio").value == pytest.approx(2.42, abs=5e-3)
    fp16 = cell(analysis, "fp16", "sharegpt", 10)
    prefix = cell(analysis, "fp16", "prefix_repetition", 10)
    for c, expected in ((fp16, 2.09), (prefix, 5.06)):
        share = c.metric("output_share")
        assert share is not None
        assert 1 / share.value == pytest.approx(expected, abs=5e-3)


def test_198_50x_is_eight_slots(analysis: Analysis) -> None:
    found = finding(analysis, "198.50x-is-an-illusion")
    assert found.verdict == "supported"
    assert number(found, "slots").value == 8
    assert number(found, "KV slots").value == pytest.approx(470, abs=0.5)
    assert number(found, "maximum concurrency as reported").value == 198.5
    assert 203264 / 1024 == 198.5


def test_a_printed_gib_is_of_one_gpu(analysis: Analysis) -> None:
    found = finding(analysis, "tp-pools-14.38-gib")
    assert found.verdict == "refuted"
    assert number(found, "bytes a token as printed").value == pytest.approx(81_907, abs=1)
    single = analysis.dataset.study("writeup")
    assert single is not None
    whole = kv_token_bytes(single.arms["single"])
    assert whole is not None
    assert whole.value == 163_840


def test_kv_reads_are_two_percent_of_weight_reads(analysis: Analysis) -> None:
    floor = step_floor(cell(analysis, "fp16", "sharegpt", 10))
    assert floor is not None and floor.kv_bytes is not None
    assert (floor.kv_bytes / floor.weight_bytes).value == pytest.approx(0.02, abs=2e-3)


@pytest.mark.parametrize(
    ("arm", "workload", "delivered"),
    [
        ("fp16", "sharegpt", 1.10),
        ("awq", "sharegpt", 3.02),
        ("fp16", "prefix_repetition", 1.77),
        ("awq", "prefix_repetition", 4.44),
    ],
)
def test_the_cap_limits_not_the_rate(
    analysis: Analysis, arm: str, workload: str, delivered: float
) -> None:
    c = cell(analysis, arm, workload, 10)
    assert account(c, "throughput") == pytest.approx(delivered, abs=5e-3)
    assert account(c, "in_flight") == pytest.approx(9.93, abs=0.03)


def test_limited_rate_claims_are_refuted(analysis: Analysis) -> None:
    for claim in ("sharegpt-sent-at-limited-rate", "prefix-sent-at-limited-rate"):
        assert finding(analysis, claim).verdict == "refuted"


def test_four_of_a_hundred_requests_pass_1024_tokens(analysis: Analysis) -> None:
    found = finding(analysis, "context-1024-suffices")
    assert found.verdict == "refuted"
    assert number(found, "requests refused").value == 4
    assert "longest prompt is 817" in found.reasons[0]


def test_tp_against_replicas(analysis: Analysis) -> None:
    ratios = {}
    for n in (1, 10, 32):
        a = cell(analysis, "tp2", "sharegpt", n).metric("total_token_throughput")
        b = cell(analysis, "replica2_rr", "sharegpt", n).metric("total_token_throughput")
        assert a is not None and b is not None
        ratios[n] = (a / b).value
    assert [ratios[n] for n in (1, 10, 32)] == pytest.approx([1.73, 1.32, 1.14], abs=5e-3)
    tp, rr = cell(analysis, "tp2", "sharegpt", 32), cell(analysis, "replica2_rr", "sharegpt", 32)
    assert account(tp, "in_flight") / 32 == pytest.approx(0.857, abs=1e-3)
    assert account(rr, "in_flight") / 32 == pytest.approx(0.823, abs=1e-3)
    fill = math.log(account(tp, "in_flight") / account(rr, "in_flight"))
    stay = -math.log(account(tp, "stay") / account(rr, "stay"))
    assert (fill, stay) == pytest.approx((0.041, 0.089), abs=1e-3)


def test_no_crossing_in_the_measured_range_and_none_identified_beyond(
    analysis: Analysis,
) -> None:
    found = finding(analysis, "no-crossing")
    assert found.verdict == "supported"
    text = " ".join(found.reasons)
    assert "No crossing in [1, 32]" in text
    assert "Not measured beyond 32" in text
    assert "48, 64 and 96" in text
    models = [n.value for n in found.numbers if n.name.startswith("crossing by model")]
    assert min(models) == pytest.approx(48.3, abs=0.1)
    assert max(models) == pytest.approx(94.8, abs=0.1)
    assert "one instance as measured" in text and "does not" in text
    assert "At 1 in flight only 1 of 2 replicas works" in text


def test_the_base_of_fourteen_percent(analysis: Analysis) -> None:
    loss = finding(analysis, "replicas-cost-14-percent")
    assert loss.verdict == "refuted"
    assert loss.numbers[0].value == pytest.approx(-0.121, abs=5e-4)
    ahead = finding(analysis, "tp-14-percent-ahead")
    assert ahead.verdict == "supported"
    assert ahead.numbers[0].value == pytest.approx(0.138, abs=5e-4)
    for n, expected in ((10, 0.241), (1, 0.423)):
        a = cell(analysis, "tp2", "sharegpt", n).metric("total_token_throughput")
        b = cell(analysis, "replica2_rr", "sharegpt", n).metric("total_token_throughput")
        assert a is not None and b is not None
        assert 1 - (b / a).value == pytest.approx(expected, abs=5e-4)


def test_direct_replicas_at_one_each_are_two_in_flight(analysis: Analysis) -> None:
    study = analysis.dataset.study("writeup")
    assert study is not None
    assert study.cell("replica2_direct", "sharegpt", 1) is None
    assert study.cell("replica2_direct", "sharegpt", 2) is not None


def test_router_cost_is_not_settled_by_single_runs(analysis: Analysis) -> None:
    for claim, tips in (
        ("router-under-1-percent-at-10", "0.195 %"),
        ("router-under-1-percent-at-32", "0.213 %"),
    ):
        found = finding(analysis, claim)
        assert found.verdict == "inconclusive"
        assert tips in found.reasons[0]
    assert equivalence_tips_at(487.8 / 490.5, 0.01) == pytest.approx(0.00195, abs=5e-6)
    assert equivalence_tips_at(1191.9 / 1198.0, 0.01) == pytest.approx(0.00213, abs=5e-6)


def test_one_instance_times_four(analysis: Analysis) -> None:
    found = finding(analysis, "four-instances-measured", "book-ch09")
    assert found.verdict == "refuted"
    assert number(found, "multiple").value == pytest.approx(4, abs=2e-3)
    assert "80 in flight" in " ".join(found.reasons)


def test_claims_of_both_studies_all_have_a_verdict_and_a_reason(analysis: Analysis) -> None:
    counts = {}
    for report in analysis.studies:
        own = [f for f in report.findings if not f.repeats]
        assert len(report.findings) == len(report.study.claims)
        assert all(f.reasons and f.reasons[0].strip() for f in report.findings)
        untestable = [f for f in own if f.verdict == "untestable"]
        assert len(untestable) <= len(own) / 4
        assert all("Missing:" in f.reasons[0] and "Tried:" in f.reasons[1] for f in untestable)
        counts[report.study.name] = len(own)
    assert counts["writeup"] >= 60
    assert counts["book-ch09"] >= 12
    assert analysis.skipped == ()


def test_no_claim_carries_a_verdict_or_a_reason(analysis: Analysis) -> None:
    for report in analysis.studies:
        for claim in report.study.claims:
            assert not {"verdict", "reason", "reasons", "why", "expected"} & set(claim)


def test_twenty_three_distinct_records_four_of_them_in_both_files(analysis: Analysis) -> None:
    study = analysis.dataset.study("book-ch09")
    assert study is not None
    assert len(study.runs) == 23
    assert sum(1 for run in study.runs if run.also_in) == 4
