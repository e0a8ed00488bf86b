"""analysis.claims.queue_wait: who runs, who waits, and what a server of S slots would show."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.accounting import Borrowed
from analysis.dataset import Cell, Study
from analysis.evidence import BadClaim, Judgement, Missing
from analysis.quantity import constant
from tests.builders import cell, printed, run, study
from tests.claims.helpers import arm, figure_of, judge, served


def slotted(ttft: float = 2.1, **spec: Any) -> Cell:
    """X = 1/s and 7.9 s of decode: 7.9 past their first token, 2.1 before it, 10 in all.

    With a prefill of 0.1 s: S_hat = 7.9 + 0.1 = 8, forecast (10 - 8) / 1 + 0.1 = 2.1 s.
    """
    return served(arm("slotted", max_num_seqs=8, **spec), x=1.0, ttft=ttft, itl=7.9 / 49)


def free(ttft: float = 0.1, **more: Any) -> Cell:
    """The reference: a prefill of 0.1 s and room for 100."""
    return served(arm("free", log={"kv_tokens": 15_000}, **more), x=1.0, ttft=ttft, itl=9.9 / 49)


KEYS = {"arm": "slotted", "workload": "chat", "concurrency": 10}


def wait(*cells: Cell, **keys: Any) -> Judgement:
    return judge(study(*cells), "queue_wait", **{**KEYS, **keys})


def test_counting_and_forecast_agree_on_eight_slots() -> None:
    found = wait(slotted(), free(), limit="max_num_seqs", reference="free")
    assert found.verdict == "supported"
    assert figure_of(found, "running (S_hat)") == pytest.approx(8.0)
    assert figure_of(found, "waiting") == pytest.approx(2.0)
    assert figure_of(found, "forecast TTFT") == pytest.approx(2.1)
    assert found.reasons[0].startswith("Waiting for one of 8 slots is 95 % of the TTFT")
    assert figure_of(found, "waiting's share of the TTFT") == pytest.approx(2.0 / 2.1)
    # What a reader may check: how near is near enough.
    assert (
        "8.00 requests run where 8 slots are said to limit (within 0.5 of them)"
        in (found.reasons[0])
    )
    assert found.reasons[1].endswith("within the allowed 10 %).")
    assert found.flips.endswith("a running count more than 0.5 away from 8")
    assert found.assumptions == (
        "prefill service is the mean TTFT of free, which has slots to spare",
    )


def test_other_fields_that_moved_are_counted() -> None:
    found = wait(slotted(block_size=32), free(), limit="max_num_seqs", reference="free")
    assert found.verdict == "supported"
    assert found.confounds == ("block_size: not stated against 32",)
    assert found.reasons[-1] == (
        "1 other setting changed, but the slot count alone identifies the wait."
    )


def test_slots_of_an_unnamed_kind_are_counted_the_same() -> None:
    found = wait(slotted(), free(), slots=8, reference="free")
    assert found.verdict == "supported"
    assert wait(slotted(), free(), slots=6, reference="free").verdict == "refuted"  # 8 run
    assert wait(slotted(), free(), slots=9, reference="free").verdict == "inconclusive"


def test_a_server_of_two_engines_has_twice_the_slots() -> None:
    pair = served(
        arm("slotted", max_num_seqs=4, replicas=2), x=1.0, ttft=2.1, itl=7.9 / 49
    )  # fmt: skip
    assert wait(pair, free(), limit="max_num_seqs", reference="free").verdict == "supported"


def test_where_nobody_waits_there_is_no_queue() -> None:
    # 9.9 decode, TTFT 0.1 s as in the reference: S_hat = 10, nobody waits.
    busy = served(arm("slotted", max_num_seqs=8), x=1.0, ttft=0.1, itl=9.9 / 49)
    found = wait(busy, free(), limit="max_num_seqs", reference="free")
    assert found.verdict == "refuted"
    assert found.reasons[0].startswith("No queue for 8 slots: 10 requests run")


def test_ramp_and_drain_are_not_a_queue() -> None:
    # 8 in flight of 10 allowed, and the TTFT is the prefill: nobody waited for a slot, although
    # S_hat is 8 and the forecast (8 - 8) / X + prefill meets the TTFT exactly.
    idle = served(arm("slotted", max_num_seqs=8), x=1.0, ttft=0.1, itl=7.9 / 49)
    found = wait(idle, free(), limit="max_num_seqs", reference="free")
    assert found.verdict == "refuted"
    assert found.reasons[0].startswith("No queue for 8 slots: 8.00 requests run")


def test_a_forecast_that_misses_leaves_it_open() -> None:
    # L_decode 7.9 and TTFT 3 s: L = 10.9, forecast 3 s; with 7 s of decode S_hat is 7.1.
    half = served(arm("slotted", max_num_seqs=8), x=1.0, ttft=2.1, itl=7.0 / 49)
    assert wait(half, free(), limit="max_num_seqs", reference="free").verdict == "inconclusive"


def test_rounding_that_straddles_half_a_slot_leaves_it_open() -> None:
    # 49 x [0.155, 0.165] = [7.6, 8.1] is within half a slot of 8, 49 x [0.15, 0.17] is not.
    def with_itl(text: str) -> Cell:
        return served(
            arm("slotted", max_num_seqs=8), x=1.0, ttft=2.1,
            mean_itl=printed("mean_itl", text, file="slotted.json"),
        )  # fmt: skip

    for text, verdict in (("0.161", "supported"), ("0.2", "inconclusive")):
        found = wait(with_itl(text), free(), limit="max_num_seqs", reference="free")
        assert found.verdict == verdict


def test_a_reference_that_queues_itself_gives_no_prefill_time() -> None:
    tight = served(arm("free", max_num_seqs=8), x=1.0, ttft=0.1, itl=9.9 / 49)
    found = wait(slotted(), tight, limit="max_num_seqs", reference="free")
    assert found.verdict == "inconclusive"
    assert found.reasons[0].startswith("free has 8 slots for 10 in flight itself")
    assert found.assumptions[0].endswith("which has none to spare")


def test_a_reference_of_unknown_room_is_taken_at_its_word() -> None:
    found = wait(
        slotted(), served(arm("free"), x=1.0, ttft=0.1, itl=9.9 / 49),
        limit="max_num_seqs", reference="free",
    )  # fmt: skip
    assert found.verdict == "supported"
    assert found.assumptions[0].endswith("which is taken to have slots to spare")


# without a reference


def test_more_decode_than_are_said_to_run() -> None:
    found = wait(slotted(), slots=2)
    assert found.verdict == "refuted"
    assert "7.9" in found.reasons[0]
    assert "more than the 2 that are said to run" in found.reasons[0]


def test_fewer_than_one_before_its_first_token_is_no_queue() -> None:
    busy = served(arm("slotted", max_num_seqs=10), x=1.0, ttft=0.1, itl=9.9 / 49)
    found = wait(busy)
    assert found.verdict == "refuted"
    assert found.reasons[0].startswith("On average 0.1")


def test_two_before_their_first_token_may_wait_or_be_in_prefill() -> None:
    found = wait(slotted())
    assert found.verdict == "inconclusive"
    assert "means alone do not part the two" in found.reasons[0]
    unlimited = served(arm("slotted"), x=1.0, ttft=2.1, itl=7.9 / 49)
    assert wait(unlimited).verdict == "inconclusive"


# borrowed lengths


def borrowing(mean_out: float, *, throughput: float | None = 49.5) -> Study:
    """A run without token counts of its own, beside one whose lengths are known.

    TTFT 2.1 s, ITL 0.2 s, 49.5 tokens a second, 10 in flight: L = X (2.1 - 0.2) + 0.2 x 49.5, so
    X = (9.9 - 9.9) / 1.9. The neighbour fills 9.9 of 10.
    """
    lent = Borrowed(constant(mean_out, "tok"), constant(mean_out + 100, "tok"), "free")
    own = run(
        {"completed": 100, "duration": 100, "mean_ttft": 2.1, "mean_itl": 7.9 / 49,
         "output_throughput": throughput},
        arm="slotted", bare=True,
    )  # fmt: skip
    # Without completed requests the throughput comes from the borrowed lengths.
    figures = {name: f for name, f in own.figures.items() if name not in ("completed", "duration")}
    own = run(figures, arm="slotted", bare=True)
    other = served(arm("free"), x=1.0, ttft=0.1, itl=9.9 / 49)
    return study(cell(arm("slotted"), own, borrowed=lent), other)


def test_lengths_that_little_law_contradicts_are_warned_about() -> None:
    # Fill 10: X = (10 - 0.16122 x 49.5) / (2.1 - 0.16122) = 1.0417, so 47.5 tokens, not 50.
    x = (10 - 7.9 / 49 * 49.5) / (2.1 - 7.9 / 49)
    assert 50 * x / 49.5 - 1 == pytest.approx(0.052, abs=0.001)
    found = judge(borrowing(50), "queue_wait", **KEYS)
    assert "the assumed 50 output tokens look 5 % high here" in found.assumptions[0]
    found = judge(borrowing(45), "queue_wait", **KEYS)
    assert "look 5 % low here" in found.assumptions[0]
    assert judge(borrowing(49.5 / x), "queue_wait", **KEYS).assumptions == ()


def test_counts_are_given_at_the_corrected_length_too() -> None:
    x = (10 - 7.9 / 49 * 49.5) / (2.1 - 7.9 / 49)
    keys = {**KEYS, "slots": 8, "reference": "free"}
    found = judge(borrowing(50), "queue_wait", **keys)
    assert figure_of(found, "waiting, output length corrected") == pytest.approx(x * 2.0)
    run = 7.9 / 49 * 49.5 + x * (0.1 - 7.9 / 49)
    assert figure_of(found, "running, output length corrected") == pytest.approx(run)
    assert found.reasons[1].startswith("These intervals are rounding only: with the output length")


def test_without_a_full_neighbour_lengths_cannot_be_checked() -> None:
    lonely = borrowing(50)
    found = judge(study(*lonely.cells[:1]), "queue_wait", **KEYS)
    assert found.assumptions == ()


def test_figures_that_give_no_throughput_are_not_warned_about() -> None:
    # ITL x tokens alone would exceed the fill: no X > 0 solves it.
    found = judge(borrowing(50, throughput=70.0), "queue_wait", **KEYS)
    assert found.assumptions == ()


# what is not there


def test_max_num_seqs_must_be_stated_to_be_blamed() -> None:
    with pytest.raises(BadClaim, match=r"study\.toml does not give for free"):
        wait(free(), arm="free", limit="max_num_seqs")


def test_a_forecast_needs_a_number_of_slots() -> None:
    unlimited = served(arm("slotted"), x=1.0, ttft=2.1, itl=7.9 / 49)
    with pytest.raises(BadClaim, match="say how many run"):
        wait(unlimited, free(), reference="free")


@pytest.mark.parametrize(
    ("keys", "name"), [({"arm": "slot"}, "slotted"), ({"reference": "fre"}, "free")]
)
def test_an_arm_that_is_not_there_names_the_nearest(keys: dict[str, str], name: str) -> None:
    with pytest.raises(BadClaim, match=f"did you mean '{name}'"):
        wait(slotted(), free(), **keys)


def test_a_run_without_times_is_untestable() -> None:
    bare = cell("slotted", run({"completed": 100, "duration": 100}, arm="slotted", bare=True))
    with pytest.raises(Missing, match="mean TTFT, mean ITL or token counts"):
        wait(bare)
