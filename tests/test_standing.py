"""The standing questions: valid, what binds, how many slots, where time goes, who differs."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.dataset import Arm, Cell
from analysis.model import Finding
from analysis.models import Model
from analysis.report import pages
from analysis.serialise import dumps
from analysis.standing import COMPARED, of_cell, of_pairs
from tests import reports
from tests.builders import arm, between, cell, dataset, figure, run, startup, study


def answers(one: Cell, *others: Cell) -> dict[str, Finding]:
    """The answers on the first cell by question."""
    found = of_cell(study(one, *others), one)
    assert {f.verdict for f in found} == {"answered"}
    assert {f.said_in for f in found} == {"standing question"}
    return {f.kind.removeprefix("standing."): f for f in found}


def on_l40s(model_bytes: float) -> Arm:
    """An arm on a GPU of 864 GB/s; 2 x 10 layers x 4 heads x 125 x 2 B are 20,000 B of KV a token.

    The model has no embedding table of its own, so every weight is read.
    """
    shape = Model(
        name="round", layers=10, heads=8, kv_heads=4, head_dim=125, hidden=1000,
        intermediate=4000, vocab=10_000, tie_word_embeddings=True,
    )  # fmt: skip
    return replace(arm("base", startup({"model_bytes": model_bytes}), gpu="L40S"), own_model=shape)


def numbers(finding: Finding) -> dict[str, float]:
    return {number.name: number.value for number in finding.numbers}


# ---- valid


def test_a_valid_run() -> None:
    found = answers(cell())["valid"]
    assert found.reasons == ("1 run of base on chat, 10 in flight: 1 VALID.",)
    assert found.checks == ()


def test_runs_are_counted_by_their_worst_status_and_the_reasons_given() -> None:
    repeats = cell(
        "base",
        run(id="a"),
        run({"failed": 1}, id="b"),
        run({"failed": 90}, id="c"),
        run({"failed": 1, "mean_ttft": 0.0}, id="d"),
    )
    found = answers(repeats)["valid"]
    assert found.reasons[0] == (
        "4 runs of base on chat, 10 in flight: 1 VALID, 1 SUSPECT, 2 INVALID."
    )
    assert "SA103 failures, c: INVALID: 90 of 190 requests failed (47.4 %)." in found.reasons
    assert "SA104 zeros, d: INVALID: mean_ttft is 0." in found.reasons
    assert {(o.run, o.status) for o in found.checks} == {
        ("b", "SUSPECT"), ("c", "INVALID"), ("d", "INVALID"), ("d", "SUSPECT"),
    }  # fmt: skip


# ---- binds


def test_what_binds_is_said_as_a_sentence() -> None:
    found = answers(cell())["binds"]
    assert found.reasons == ("Binding: client cap. 9.90 of 10 allowed are in flight.",)


def test_a_sequence_limit_below_the_clients_cap_binds() -> None:
    found = answers(cell(arm(max_num_seqs=4)))["binds"]
    assert found.reasons[0].startswith("Binding: max_num_seqs. ")
    assert "allows 4 at once where 10 are in flight" in found.reasons[0]


# ---- slots


def test_slots_between_decoding_and_in_flight_without_a_lighter_run() -> None:
    # X = 1/s, decode 9.8 s, stay 9.9 s.
    found = answers(cell())["slots"]
    (number,) = found.numbers
    assert (number.name, number.interval) == ("effective slots", "bounds")
    assert (number.lo, number.hi) == (pytest.approx(9.8), pytest.approx(9.9))
    assert number.sources
    assert found.reasons[-1] == (
        "Room is unknown: no max_num_seqs and no start-up log (KV tokens)."
    )


def test_slots_with_the_prefill_of_a_lighter_run() -> None:
    # Heavy: X = 1/s, TTFT 4 s, decode 5.9 s. Light: TTFT 0.1 s. Running: 5.9 + 1 x 0.1.
    heavy = cell("base", run({"mean_ttft": 4.0, "mean_itl": 5.9 / 49}))
    light = cell("base", run(concurrency=5), concurrency=5)
    found = answers(heavy, light)["slots"]
    assert numbers(found) == {"running (S_hat)": pytest.approx(6.0)}
    assert re.match(r"6(\.00)? requests run on average", found.reasons[0])


def test_room_from_flags_and_log() -> None:
    # 3,000 KV tokens over 150 tokens a request are 20 slots; the log's own figure is 3.
    log = startup({"kv_tokens": 3000, "reported_max_concurrency": 3})
    found = answers(cell(arm("base", log, max_num_seqs=16)))["slots"]
    assert numbers(found) == {
        "effective slots": pytest.approx(9.8),
        "sequence limit (max_num_seqs)": 16,
        "KV slots": pytest.approx(20),
        "maximum concurrency as reported": 3,
    }
    assert "Sequence limit (max_num_seqs): 16." in found.reasons
    assert any(re.fullmatch(r"KV slots: 20(\.0)?\.", reason) for reason in found.reasons)
    assert not any("unknown" in reason for reason in found.reasons)


def test_slots_of_a_run_without_latencies_are_not_identified() -> None:
    found = answers(cell("base", run({"mean_ttft": None})))["slots"]
    assert found.numbers == ()
    assert found.reasons[0].startswith("Effective slots are not identified")


# ---- time


def test_where_the_time_goes() -> None:
    found = answers(cell())["time"]
    assert numbers(found) == {
        "stay": pytest.approx(9.9),
        "before the first token": pytest.approx(0.1),
        "decode": pytest.approx(9.8),
        "share before the first token": pytest.approx(0.1 / 9.9),
    }
    assert found.reasons == (
        "A stay of 9,900 ms: 100 ms before the first token (1.0 %), 9,800 ms decoding.",
    )


def test_the_floor_of_a_step_where_gpu_and_model_are_known() -> None:
    # Weights of 86.4 GB on an L40S (864 GB/s) are 100 ms; 9.8 requests of 100 + 25 tokens at
    # 20,000 B a token are 24.5 MB, 0.028 ms.
    served = on_l40s(86.4e9)
    found = answers(cell(served))["time"]
    floor = (86.4e9 + 9.8 * 125 * 20_000) / 864e9
    assert numbers(found)["floor of a step"] == pytest.approx(floor, rel=1e-6)
    assert numbers(found)["share of ITL explained by the floor"] == pytest.approx(floor / 0.2)
    assert "(50.0 %)" in found.reasons[1]


def test_a_step_below_its_floor_is_pointed_at() -> None:
    served = on_l40s(864e9)
    found = answers(cell(served))["time"]
    assert "below its floor: a wrong model, GPU or unit" in found.reasons[1]


def test_time_without_gaps_is_not_identified() -> None:
    found = answers(cell("base", run({"mean_itl": None})))["time"]
    assert found.reasons == (
        "Not identified: TTFT, ITL or token counts are missing, or contradict each other.",
    )


def test_a_latency_given_end_to_end_needs_no_gaps_for_the_stay() -> None:
    served = on_l40s(86.4e9)
    found = answers(cell(served, run({"mean_itl": None, "mean_e2el": 5.0})))["time"]
    assert numbers(found)["stay"] == pytest.approx(5.0)
    assert len(found.reasons) == 1


# ---- what every answer says


def test_an_answer_is_named_after_question_arm_workload_and_load() -> None:
    capped = cell("a b", run(arm="a b"))
    free = cell("a b", run(arm="a b", concurrency=None), concurrency=None)
    assert answers(capped)["time"].id == "time-a-b-chat-10"
    assert answers(free)["time"].id == "time-a-b-chat-nocap"


def test_an_assumption_is_said_only_where_a_number_rests_on_it() -> None:
    # Requests sent stand in for requests completed, which the stay does not need.
    one = cell("base", run({"completed": None, "failed": None}))
    found = answers(one)
    assert found["slots"].assumptions == (
        "completed requests: not printed for runs/a.json#base-chat-10; "
        "all requests sent are taken as completed",
    )
    assert found["binds"].assumptions == ()


# ---- pairs


def pair(left: Cell, right: Cell) -> Finding:
    (found,) = of_pairs(study(left, right))
    return found


def other(*runs: dict[str, object], **more: object) -> Cell:
    found = [
        run(figures, arm="other", id=f"o{n}", file=f"o{n}.json", **more)  # type: ignore[arg-type]
        for n, figures in enumerate(runs)
    ]
    return cell("other", *found)


def test_arms_are_compared_at_equal_workload_and_load_only() -> None:
    cells = [
        cell(name, run(arm=name, workload=workload, concurrency=load, id=f"{name}{workload}{load}"))
        for name in ("a", "b")
        for workload, load in (("w", 1), ("w", 2), ("v", 1), ("w", None))
    ]
    found = [f.id for f in of_pairs(study(*cells))]
    assert found == ["differ-a-b-w-1", "differ-a-b-w-2", "differ-a-b-v-1"]


def test_a_difference_of_single_runs_with_its_tipping_spread() -> None:
    found = pair(cell(), other({"mean_ttft": 0.2}))
    assert found.says == "Do base and other differ on chat at 10 in flight?"
    assert numbers(found)["mean TTFT ratio"] == pytest.approx(2.0)
    # ln 2 / (1.96 x sqrt 2) = 25.01 %
    assert math.log(2) / (1.959964 * math.sqrt(2)) == pytest.approx(0.2501, abs=1e-4)
    (reason,) = [r for r in found.reasons if r.startswith("mean TTFT")]
    assert reason == (
        "mean TTFT: 100 ms -> 200 ms, +100.0 %, higher (single runs: stands while the "
        "run-to-run sd is below 25.01 %)."
    )
    assert found.next_experiment.startswith("collect ")
    assert "--arm base --arm other --workload chat --concurrency 10" in found.next_experiment


def test_equal_figures_are_not_told_apart() -> None:
    found = pair(cell(), other({}))
    assert all("not told apart" in reason for reason in found.reasons)


def test_the_lower_arm_is_called_lower() -> None:
    found = pair(cell(), other({"output_throughput": 25}))
    (reason,) = [r for r in found.reasons if r.startswith("output throughput")]
    assert ", -50.0 %, lower (single runs" in reason


def test_repeats_of_both_arms_need_no_further_experiment() -> None:
    left = cell("base", run(id="1"), run({"mean_ttft": 0.11}, id="2", file="2.json"))
    found = pair(left, other({"mean_ttft": 0.3}, {"mean_ttft": 0.33}))
    assert found.next_experiment == ""
    (reason,) = [r for r in found.reasons if r.startswith("mean TTFT")]
    assert "Welch's t on log ratios, n = 2 and 2" in reason


def test_a_figure_of_zero_in_one_repeat_has_no_ratio() -> None:
    left = cell("base", run(id="1"), run({"mean_ttft": 0.0}, id="2"))
    found = pair(left, other({}, {}))
    assert "mean TTFT ratio" not in numbers(found)
    assert "mean ITL ratio" in numbers(found)


def test_arms_without_a_common_metric() -> None:
    left = cell("base", run({"mean_ttft": 0.1}, bare=True))
    right = other({"mean_itl": 0.1}, bare=True)
    found = pair(left, right)
    assert found.reasons == ("No metric is common to both.",)
    assert found.numbers == ()


def test_what_else_differs_and_what_did_not_pass_is_said() -> None:
    left = cell(arm("base", max_num_seqs=8))
    right = cell(arm("other", max_num_seqs=16), run({"failed": 1}, arm="other", id="o"))
    found = pair(left, right)
    assert found.confounds == ("max_num_seqs: 8 against 16",)
    assert [(o.run, o.code) for o in found.checks] == [("o", "SA103")]


def test_metrics_that_the_comparison_names_exist() -> None:
    one = cell("base", run({"mean_tpot": 0.2}))
    assert all(one.metric(name) is not None for name in COMPARED)


# ---- whatever a file holds

VALUES = st.one_of(
    st.sampled_from([0.0, 1.0, 1e-12, 1e12]),
    st.floats(0, 1e6, allow_subnormal=False),
)
NAMES = (
    "completed", "failed", "num_prompts", "duration", "total_input_tokens", "total_output_tokens",
    "request_throughput", "output_throughput", "total_token_throughput", "mean_ttft", "mean_itl",
    "median_itl", "mean_tpot", "mean_e2el", "p50_ttft", "p99_ttft", "p99.9_itl",
)  # fmt: skip


@st.composite
def odd_runs(draw: st.DrawFn, name: str) -> list[object]:
    count = draw(st.integers(1, 3))
    found = []
    for number in range(count):
        values = draw(st.dictionaries(st.sampled_from(NAMES), VALUES))
        wide = draw(st.sampled_from([0.0, 0.5]))
        figures = {
            key: between(key, value, value - wide, value + wide, file=f"{name}{number}")
            for key, value in values.items()
        }
        rate = draw(st.sampled_from([math.inf, 1.0, 1e-9]))
        found.append(
            run(figures, bare=True, id=f"{name}{number}", arm=name, rate=rate, concurrency=4)
        )
    return found


@settings(deadline=None, max_examples=40)
@given(left=odd_runs("a"), right=odd_runs("b"), kv=VALUES, seqs=st.sampled_from([None, 1, 8]))
def test_no_figures_of_a_file_stop_the_analysis(
    left: list[object], right: list[object], kv: float, seqs: int | None
) -> None:
    log = startup({"kv_tokens": figure("kv_tokens", kv, "tok"), "model_bytes": kv}, arm="a")
    cells = (
        cell(arm("a", log, gpu="L40S", max_num_seqs=seqs), *left),  # type: ignore[arg-type]
        cell("b", *right),  # type: ignore[arg-type]
    )
    known = study(*cells)
    analysis = reports.analysis(reports.report(known, dataset=dataset(known)))
    dumps(analysis)
    pages(analysis)


def test_an_end_to_end_latency_below_ttft_gives_no_time_below_zero() -> None:
    found = answers(cell("base", run({"mean_itl": None, "mean_e2el": 0.05})))
    assert found["time"].reasons[0].startswith("Not identified: ")
    assert found["slots"].reasons[0].startswith("Effective slots are not identified: ")
    assert not any(number.value < 0 for answer in found.values() for number in answer.numbers)
