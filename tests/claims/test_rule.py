"""analysis.claims.rule: cases for and against advice, over all studies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analysis.dataset import Cell, Study
from analysis.evidence import BadClaim, Judgement, Missing
from analysis.study import BadInput
from tests.builders import study
from tests.claims.helpers import arm, judge, measured, served

X = "output_throughput"
TP = {"tensor_parallel": 2, "gpus": 2, "gpu": "L4", "model": "m"}
PP = {"pipeline_parallel": 2, "gpus": 2, "gpu": "L4", "model": "m"}
KEYS = {
    "choose": {"tensor_parallel": 2},
    "over": {"pipeline_parallel": 2},
    "metrics": [X],
}


def case(ratio: float, load: int | None = 10, workload: str = "chat", **spec: Any) -> list[Cell]:
    """One arm of each, the advised one `ratio` times the other."""
    return [
        measured(arm("tp", **{**TP, **spec}), X, 100 * ratio, load=load, workload=workload),
        measured(arm("pp", **{**PP, **spec}), X, 100.0, load=load, workload=workload),
    ]


def rule(*cells: Cell, others: tuple[Study, ...] = (), **keys: Any) -> Judgement:
    return judge(study(*cells), "rule", *others, **{**KEYS, **keys})


GOOD, BAD, OPEN = 1.5, 0.7, 1.005


@pytest.mark.parametrize(
    ("ratios", "always", "mostly", "sometimes"),
    [
        ((GOOD, GOOD), "supported", "supported", "supported"),
        ((GOOD, OPEN), "inconclusive", "inconclusive", "supported"),
        ((GOOD, GOOD, OPEN), "inconclusive", "supported", "supported"),
        ((GOOD, BAD), "refuted", "refuted", "supported"),
        ((GOOD, GOOD, BAD), "refuted", "supported", "supported"),
        ((OPEN,), "inconclusive", "inconclusive", "inconclusive"),
        ((BAD, OPEN), "refuted", "refuted", "inconclusive"),
        ((BAD, BAD), "refuted", "refuted", "refuted"),
        ((GOOD, BAD, OPEN), "refuted", "inconclusive", "supported"),
    ],
)
def test_cases_are_weighed_by_how_often_the_advice_is_said_to_hold(
    ratios: tuple[float, ...], always: str, mostly: str, sometimes: str
) -> None:
    cells = [cell for n, ratio in enumerate(ratios, 1) for cell in case(ratio, n)]
    for holds, verdict in (("always", always), ("mostly", mostly), ("sometimes", sometimes)):
        assert rule(*cells, holds=holds).verdict == verdict


def test_cases_are_counted_and_named_those_against_first() -> None:
    found = rule(*case(GOOD, 1), *case(BAD, 10))
    assert found.reasons == (
        "tp loses to pp on chat at 10 in flight (s): output throughput -30.0 %.",
        "Of 2 situations, 1 is for the advice, 1 is against it and 0 are within noise.",
        "For: tp beats pp on chat at 1 in flight (s): output throughput +50.0 %.",
    )
    assert found.experiment is not None
    assert (found.experiment.arms, found.experiment.concurrency) == (("tp", "pp"), (10,))
    assert set(found.confounds) == {
        "tp against pp (s): tensor_parallel: 1 against 2",
        "tp against pp (s): pipeline_parallel: 2 against 1",
    }


def rivals(*ratios: float, load: int = 10, **spec: Any) -> list[Cell]:
    """The advised arm and several others, it being `ratio` times each."""
    chosen = measured(arm("tp", **TP), X, 100.0, load=load)
    return [
        chosen,
        *(
            measured(arm(f"pp{n}", **{**PP, **spec}), X, 100 / ratio, load=load)
            for n, ratio in enumerate(ratios, 1)
        ),
    ]


def test_alternatives_to_one_cell_are_one_situation() -> None:
    found = rule(*rivals(1.5, 1.3, 1.4))
    assert found.verdict == "supported"
    assert found.reasons == (
        "tp beats pp1, pp2 and pp3 on chat at 10 in flight (s): output throughput +30.0 to "
        "+50.0 %.",
        "Of 1 situation, 1 is for the advice, 0 are against it and 0 are within noise.",
    )
    assert len(found.numbers) == 3
    assert found.experiment is not None
    assert found.experiment.arms == ("tp", "pp1", "pp2", "pp3")


def test_one_alternative_that_is_better_makes_it_a_case_against() -> None:
    found = rule(*rivals(1.5, 0.7, 0.8))
    assert found.verdict == "refuted"
    assert found.reasons[0] == (
        "tp loses to pp2 and pp3 on chat at 10 in flight (s): output throughput -30.0 to -20.0 % "
        "(also set against pp1)."
    )
    assert rule(*rivals(1.5, 0.7, 0.8), holds="mostly").verdict == "refuted"


def test_one_alternative_within_noise_leaves_the_situation_open() -> None:
    found = rule(*rivals(1.5, OPEN))
    assert found.verdict == "inconclusive"
    assert "does not clearly beat pp2 on chat" in found.reasons[0]


def test_a_loss_that_is_one_of_many_must_be_the_clearer() -> None:
    # ln 1.04 / (1.96 √2) = 1.41 % alone; as one of 10 (z = 2.81) 0.99 %, less than the 1.3 %.
    wins = [cell for n in range(1, 10) for cell in case(GOOD, n)]
    assert rule(*case(1 / 1.04)).verdict == "refuted"
    assert rule(*wins, *case(1 / 1.04)).verdict == "inconclusive"
    assert rule(*wins, *case(1 / 1.06)).verdict == "refuted"
    # Ten alternatives in one situation are ten comparisons as well.
    assert rule(*rivals(*[GOOD] * 9, 1 / 1.04)).verdict == "inconclusive"
    # What agrees is not picked: all must hold.
    assert rule(*(cell for n in range(1, 11) for cell in case(1.04, n))).verdict == "supported"


def test_a_win_that_is_one_of_many_must_be_the_clearer_where_one_is_enough() -> None:
    level = [cell for n in range(1, 10) for cell in case(1.0, n)]
    assert rule(*case(1.04), holds="sometimes").verdict == "supported"
    assert rule(*level, *case(1.04), holds="sometimes").verdict == "inconclusive"
    assert rule(*level, *case(1.06), holds="sometimes").verdict == "supported"


def test_the_strongest_case_comes_first() -> None:
    found = rule(*case(1.2, 1), *case(1.5, 10), *case(1.3, 20))
    assert [reason.split(" in flight")[0] for reason in found.reasons] == [
        "tp beats pp on chat at 10",
        "Of 3 situations, 3 are for the advice, 0 are against it and 0 are within noise.",
        "For: tp beats pp on chat at 20",
        "For: tp beats pp on chat at 1",
    ]


def test_every_workload_and_load_that_decides_is_in_the_suggestion() -> None:
    away = study(*case(BAD, 10, workload="chat"), name="other")
    cells = [*case(BAD, 1, workload="chat"), *case(0.6, 20, workload="code"), *case(GOOD, 30)]
    found = rule(*cells, others=(away,))
    assert found.experiment is not None
    assert found.experiment.workloads == ("code", "chat")
    assert found.experiment.concurrency == (20, 1)


def test_fewer_requests_in_flight_than_replicas_are_no_case() -> None:
    def pair(load: int) -> list[Cell]:
        replicas = {"gpu": "L4", "gpus": 4, "replicas": 3, "model": "m", "router": "round_robin"}
        return [
            measured(
                arm("tp", gpu="L4", gpus=4, tensor_parallel=2, model="m"), X, 150.0, load=load
            ),
            measured(arm("copies", **replicas), X, 100.0, load=load),
        ]

    keys = {"over": {"replicas": 3}}
    found = rule(*pair(1), *pair(2), *pair(3), **keys)
    assert found.reasons[1].startswith("Of 1 situation,")
    assert found.assumptions == (
        "tp on chat, 1 in flight against copies (s) is left out: only 1 of 3 replicas works",
        "tp on chat, 2 in flight against copies (s) is left out: only 2 of 3 replicas work",
    )
    with pytest.raises(Missing) as missing:
        rule(*pair(1), *pair(2), **keys)
    assert missing.value.tried == (
        "searched in s; tp on chat, 1 in flight against copies (s) is left out: only 1 of 3 "
        "replicas works (and 1 pair more)"
    )
    with pytest.raises(Missing) as missing:
        rule(*pair(1), **keys)
    assert missing.value.tried.endswith("only 1 of 3 replicas works")


def test_unequal_outputs_are_a_confound() -> None:
    found = rule(served(arm("tp", **TP), x=2.0, out=50), served(arm("pp", **PP), out=60))
    assert "tp against pp (s): mean output tokens: 60 against 50" in found.confounds


def test_a_metric_that_is_not_printed_is_said() -> None:
    found = rule(*case(GOOD), metrics=[X, "mean_ttft", "mean_itl"])
    assert found.reasons[0].endswith("+50.0 % (mean TTFT and mean ITL not printed).")


def test_other_studies_bring_cases_too() -> None:
    other = study(*case(BAD), name="other")
    found = rule(*case(GOOD), others=(other,))
    assert found.verdict == "refuted"
    assert "(other): output throughput -30.0 %" in found.reasons[0]
    # The command is for the study in which the deciding case is.
    assert found.cells[0].arm is other.arms["tp"]


@pytest.mark.parametrize("n", [2, 3, 5])
def test_repeats_use_their_spread(n: int) -> None:
    def cells(spread: float) -> list[Cell]:
        values = [100 * (1 + spread * k) for k in (-1, 1, 0, 0.5, -0.5)[:n]]
        return [
            measured(arm("tp", **TP), X, *(1.1 * v for v in values)),
            measured(arm("pp", **PP), X, *values[::-1]),
        ]

    assert rule(*cells(0.001)).verdict == "supported"
    found = rule(*cells(0.3))
    assert found.verdict == "inconclusive"
    assert "tp does not clearly beat pp" in found.reasons[0]
    assert "(within noise)" in found.reasons[0]


def test_the_chosen_arm_must_be_better_on_every_metric() -> None:
    def cells(ttft: float) -> list[Cell]:
        return [
            served(arm("tp", **TP), x=2.0, ttft=ttft, itl=0.1),
            served(arm("pp", **PP), x=1.0, ttft=0.1, itl=0.2),
        ]

    metrics = [X, "mean_ttft"]
    assert rule(*cells(0.05), metrics=metrics).verdict == "supported"
    assert rule(*cells(0.2), metrics=metrics).verdict == "refuted"
    assert rule(*cells(0.1), metrics=metrics).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("spec", "comparable"),
    [
        ({}, True),
        ({"gpu": "L40S"}, False),
        ({"gpus": 4}, False),
        ({"model": "m2"}, False),
        ({"block_size": 32}, False),
        ({"host": "elsewhere"}, True),
    ],
)
def test_only_arms_alike_in_all_else_are_cases(spec: dict[str, Any], comparable: bool) -> None:
    cells = [
        measured(arm("tp", **{**TP, **spec}), X, 150.0),
        measured(arm("pp", **PP), X, 100.0),
    ]
    if comparable:
        assert rule(*cells).verdict == "supported"
    else:
        with pytest.raises(Missing, match="tensor_parallel = 2 and with pipeline_parallel = 2"):
            rule(*cells)


def test_arms_on_unnamed_gpus_are_no_cases() -> None:
    with pytest.raises(Missing):
        rule(*case(GOOD, gpu=""))


def test_a_pair_in_which_something_else_moved_is_left_out_by_name() -> None:
    odd = measured(arm("odd", **PP, block_size=32), X, 500.0)
    found = rule(*case(GOOD), odd)
    assert found.verdict == "supported"
    assert found.assumptions == (
        "tp on chat, 10 in flight against odd (s) is left out: block_size moved as well",
    )


def test_advice_on_the_models_form_compares_models() -> None:
    cells = [
        measured(arm("small", gpu="L4", model="m-4bit", quantization="awq"), X, 150.0),
        measured(arm("large", gpu="L4", model="m"), X, 100.0),
    ]
    keys = {"choose": {"quantization": "awq"}, "over": {"quantization": ""}}
    assert rule(*cells, **keys, same_model=False).verdict == "supported"
    with pytest.raises(Missing):
        rule(*cells, **keys)


def test_replicas_bring_their_router() -> None:
    cells = [
        measured(arm("pair", gpu="L4", gpus=2, replicas=2, router="round_robin"), X, 150.0),
        measured(arm("tp", gpu="L4", gpus=2, tensor_parallel=2), X, 100.0),
    ]
    keys = {"choose": {"replicas": 2}, "over": {"tensor_parallel": 2}}
    assert rule(*cells, **keys).verdict == "supported"


# conditions


def test_loads_within_a_range() -> None:
    cells = [*case(GOOD, 1), *case(BAD, 10), *case(GOOD, 100)]
    assert rule(*cells, when={"at_most": 9}).verdict == "supported"
    assert rule(*cells, when={"at_least": 11}).verdict == "supported"
    assert rule(*cells, when={"at_least": 1, "at_most": 10}).verdict == "refuted"
    with pytest.raises(Missing, match="where the condition holds"):
        rule(*cells, when={"at_least": 101})


def test_a_workload_is_of_the_claims_own_study() -> None:
    cells = [*case(GOOD, workload="chat"), *case(BAD, workload="code")]
    other = study(*case(BAD, workload="chat"), name="other")
    assert rule(*cells, others=(other,), when={"workload": "chat"}).verdict == "supported"
    assert rule(*cells, others=(other,)).verdict == "refuted"


def test_a_link_between_the_gpus() -> None:
    cells = case(GOOD, interconnect="NVLink")
    assert rule(*cells, when={"interconnect": ["NVLink"]}).verdict == "supported"
    with pytest.raises(Missing):
        rule(*cells, when={"interconnect": ["PCIe"]})


@pytest.mark.parametrize("condition", [{"at_least": 1}, {"at_most": 9}, {"slots_cover": True}])
def test_without_a_cap_no_condition_on_the_load_holds(condition: dict[str, Any]) -> None:
    with pytest.raises(Missing):
        rule(*case(GOOD, None), when=condition)


def test_without_a_cap_the_other_conditions_are_still_asked() -> None:
    cells = case(GOOD, None, interconnect="PCIe")
    found = rule(*cells, when={"interconnect": ["PCIe"]})
    assert found.verdict == "supported"
    assert found.experiment is not None
    assert found.experiment.concurrency == ()
    with pytest.raises(Missing):
        rule(*cells, when={"interconnect": ["NVLink"]})
    with pytest.raises(Missing):
        rule(*cells, when={"workload": "code"})


def slots(tokens: float | None, **spec: Any) -> list[Cell]:
    """The arm advised against holds tokens / 150 requests; 10 are in flight."""
    log = None if tokens is None else {"kv_tokens": tokens}
    return [
        served(arm("tp", log={"kv_tokens": 1500.0}, **TP), x=2.0, itl=0.1),
        served(arm("pp", log=log, **PP, **spec), x=1.0, itl=0.2),
    ]


def test_whose_slots_hold_the_load() -> None:
    ample, scarce = slots(3000.0), slots(2999.0)
    assert rule(*ample, when={"slots_cover": True}).verdict == "supported"
    assert rule(*scarce, when={"slots_cover": False}).verdict == "supported"
    for cells, covered in ((ample, False), (scarce, True)):
        with pytest.raises(Missing):
            rule(*cells, when={"slots_cover": covered})
    assert rule(*ample, when={"slots_cover": False, "slots_of": "choose"}).verdict == "supported"


def test_slots_that_are_not_known_meet_no_condition() -> None:
    for cells in (slots(None), slots(None, max_num_seqs=256)):
        for covered in (True, False):
            with pytest.raises(Missing):
                rule(*cells, when={"slots_cover": covered})


def test_a_misspelt_side_is_not_taken_for_the_other() -> None:
    with pytest.raises(
        BadInput, match=r"when\.slots_of is 'chose'; one of choose, over; did you mean 'choose'"
    ):
        rule(*slots(3000.0), when={"slots_cover": True, "slots_of": "chose"})


def test_whether_the_model_fits_one_gpu() -> None:
    # Qwen3-14B has 29.5 GB of weights: an L4 of 24 GB does not hold them, an L40S does.
    def cells(gpu: str, model: str = "Qwen/Qwen3-14B") -> list[Cell]:
        return case(GOOD, gpu=gpu, model=model)

    for gpu, fits in (("L4", False), ("L40S", True)):
        assert rule(*cells(gpu), when={"fits_one_gpu": fits}).verdict == "supported"
        with pytest.raises(Missing):
            rule(*cells(gpu), when={"fits_one_gpu": not fits})
    for fits in (True, False):
        with pytest.raises(Missing):
            rule(*cells("L4", "unheard-of"), when={"fits_one_gpu": fits})


def test_an_arm_that_runs_on_one_gpu_proves_that_it_fits() -> None:
    cells = [
        measured(arm("tp", **TP), X, 150.0),
        measured(arm("pair", gpu="L4", model="m", gpus=2, replicas=2), X, 100.0),
    ]
    keys = {"over": {"replicas": 2}, "when": {"fits_one_gpu": True}}
    assert rule(*cells, **keys).verdict == "supported"


# what is not there


def tried(*cells: Cell, **keys: Any) -> str:
    with pytest.raises(Missing) as missing:
        rule(*cells, **keys)
    return missing.value.tried


def test_a_value_that_no_arm_has_names_those_there_are() -> None:
    known = [
        measured(arm("small", **TP, max_num_seqs=8), X, 1.0),
        measured(arm("plain", **PP), X, 1.0),
    ]
    assert tried(*known, choose={"max_num_seqs": 16}) == (
        "searched in s; max_num_seqs is 8 or not stated here"
    )
    assert tried(*known, over={"quantization": "fp8"}).endswith("; quantization is not stated here")
    assert tried(*known, over={"max_num_seqs": 8, "gpus": 4}).endswith("; gpus is 2 here")
    assert tried(choose={"gpu": "L4"}, over={"gpu": "L4"}) == (
        "searched in s; gpu is not stated here"
    )


def test_values_of_which_each_is_there_but_not_together_are_all_named() -> None:
    found = tried(*case(GOOD), choose={"tensor_parallel": 2, "pipeline_parallel": 2})
    assert found.endswith("; tensor_parallel is 2 or 1 here; pipeline_parallel is 1 or 2 here")


def test_very_many_values_are_not_all_named() -> None:
    cells = [measured(arm(f"a{n}", **TP, max_num_seqs=n), X, 1.0) for n in range(1, 10)]
    found = tried(*cells, choose={"max_num_seqs": 99}, over={"enable_prefix_caching": True})
    assert "; max_num_seqs is 1, 2, 3, 4, 5, 6 or one of 3 more here" in found
    caching = measured(arm("c", **TP, enable_prefix_caching=False), X, 1.0)
    found = tried(caching, over={"enable_prefix_caching": True})
    assert found.endswith("; enable_prefix_caching is false here")


def test_arms_that_differ_in_model_only_ask_for_the_word_that_allows_it() -> None:
    cells = [
        measured(arm("small", gpu="L4", model="m-4bit", quantization="awq"), X, 150.0),
        measured(arm("large", gpu="L4", model="m"), X, 100.0),
    ]
    keys = {"choose": {"quantization": "awq"}, "over": {"quantization": ""}}
    hint = "; the arms selected differ in model: set same_model = false"
    assert tried(*cells, **keys).endswith(hint)
    # Not where the models are equal and something else is missing, nor where it is allowed.
    twin = measured(arm("twin", gpu="L4", model="m-4bit"), X, 100.0, load=20)
    assert hint not in tried(*cells, twin, **keys)
    assert hint not in tried(cells[0], twin, **keys, same_model=False)


def test_weights_of_one_format_are_selected_by_any_name_of_it() -> None:
    cells = [
        measured(arm("small", gpu="L4", model="q", quantization="awq_marlin"), X, 150.0),
        measured(arm("large", gpu="L4", model="m"), X, 100.0),
    ]
    keys = {"over": {"quantization": ""}, "same_model": False}
    for name in ("awq", "auto_awq", "AWQ"):
        assert rule(*cells, choose={"quantization": name}, **keys).verdict == "supported"
    for wrong in ("gptq", True):
        assert "quantization is awq_marlin or not" in tried(
            *cells, choose={"quantization": wrong}, **keys
        )


def test_a_kernel_goes_with_the_weights_it_is_for() -> None:
    small, large = (
        arm("small", gpu="L4", model="q", quantization="awq"),
        arm("large", gpu="L4", model="m"),
    )
    small = replace(small, config={**small.config, "quantization_kernel": "MarlinLinearKernel"})
    keys = {"choose": {"quantization": "awq"}, "over": {"quantization": ""}, "same_model": False}
    found = rule(measured(small, X, 150.0), measured(large, X, 100.0), **keys)
    assert found.verdict == "supported"
    assert (
        "small against large (s): quantization_kernel: not stated against MarlinLinearKernel"
        in (found.confounds)
    )


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"choose": {"tensor_paralel": 2}}, "selects arms by 'tensor_paralel'; did you mean"),
        ({"over": {"pp": 2}}, "selects arms by 'pp'"),
        ({"metrics": []}, "names no metrics"),
        ({"metrics": ["output_througput"]}, "did you mean 'output_throughput'"),
        ({"metrics": ["in_flight"]}, "neither more nor less is better"),
    ],
)
def test_what_does_not_exist_is_the_authors_mistake(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(BadClaim, match=message):
        rule(*case(GOOD), **keys)


def test_an_arm_is_not_its_own_rival() -> None:
    with pytest.raises(Missing, match="any configuration"):
        rule(case(GOOD)[0], over={})


def test_no_metric_in_common_is_no_case() -> None:
    cells = [measured(arm("tp", **TP), X, 1.0), measured(arm("pp", **PP), "mean_itl", 1.0)]
    with pytest.raises(Missing):
        rule(*cells)
