"""analysis.claims.fit: sizes against memory, types and methods against the GPU."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.claims.fit import ACTIVATIONS, UTILISATION
from analysis.evidence import BadClaim, Judgement
from analysis.hardware import find_gpu
from analysis.models import find_model
from tests.builders import study
from tests.claims.helpers import arm, figure_of, judge, measured

MODEL = "Qwen/Qwen3-14B"
"""40 layers, 8 KV heads of 128: 163,840 B of KV a token."""


def fit(gpu: str = "L40S", *cells: Any, **keys: Any) -> Judgement:
    away = study(*(cells or (measured("a", "mean_itl", 1.0),)))
    return judge(away, "fit", gpu=gpu, **keys)


def room_of(gpu: str) -> float:
    known = find_gpu(gpu)
    assert known is not None
    return UTILISATION * known.memory_bytes - ACTIVATIONS


def test_a_model_that_fits_and_one_that_does_not() -> None:
    assert fit(models=[MODEL]).verdict == "supported"
    assert fit(models=[MODEL], fits=False).verdict == "refuted"
    # 29.5 GB of weights on 22.5 GiB.
    assert fit("L4", models=[MODEL]).verdict == "refuted"
    assert fit("L4", models=[MODEL], fits=False).verdict == "supported"


def test_models_add_up() -> None:
    assert fit(models=[MODEL, MODEL]).verdict == "refuted"


def test_every_model_keeps_its_own_activations() -> None:
    small = "Qwen/Qwen3-4B"
    model = find_model(small)
    assert model is not None
    one, two = fit(models=[small]), fit(models=[small, small])
    assert figure_of(one, "room") - figure_of(two, "room") == pytest.approx(2.3 * 2**30)
    assert two.assumptions[0].endswith("for activations, once for each of the 2 models")
    assert one.assumptions[0].endswith("for activations")
    # KV that fits beside one reserve and not beside two.
    left = (room_of("L40S") - 2 * model.weight_bytes()) / 2 / model.kv_bytes_per_token()
    assert fit(models=[small, small], kv_tokens=int(left)).verdict == "inconclusive"
    inside = left - ACTIVATIONS / 2 / model.kv_bytes_per_token()
    assert fit(models=[small, small], kv_tokens=int(inside)).verdict == "supported"
    assert " needs " in one.reasons[0]
    assert " need " in two.reasons[0]


def test_between_the_usable_and_the_whole_memory_it_is_left_open() -> None:
    model = find_model(MODEL)
    assert model is not None
    spare = (room_of("L40S") - model.weight_bytes()) / 163_840
    inside, outside = int(spare), int(spare) + 1
    assert fit(models=[MODEL], kv_tokens=inside).verdict == "supported"
    for fits in (True, False):
        assert fit(models=[MODEL], kv_tokens=outside, fits=fits).verdict == "inconclusive"
    found = fit(models=[MODEL], kv_tokens=inside)
    assert figure_of(found, f"KV of {MODEL}") == inside * 163_840
    assert figure_of(found, "room") == room_of("L40S")
    assert f"with {inside:,} tokens of KV" in found.reasons[0]


def test_a_one_gpu_log_says_what_the_weights_take() -> None:
    def cell(size: float, **spec: Any) -> Any:
        return measured(arm("a", log={"model_bytes": size}, model=MODEL, **spec),
                        "mean_itl", 1.0)  # fmt: skip

    assert figure_of(fit("L40S", cell(30e9), models=[MODEL]), f"weights of {MODEL}") == 30e9
    halved = fit("L40S", cell(15e9, tensor_parallel=2), models=[MODEL])
    model = find_model(MODEL)
    assert model is not None
    assert figure_of(halved, f"weights of {MODEL}") == model.weight_bytes()
    no_size = measured(arm("a", log={"kv_tokens": 1.0}, model=MODEL), "mean_itl", 1.0)
    found = fit("L40S", no_size, models=[MODEL])
    assert figure_of(found, f"weights of {MODEL}") == model.weight_bytes()


@pytest.mark.parametrize(
    ("gpu", "memory", "verdict"),
    [
        ("L40S", "48", "supported"),  # as sold; 45.0 GiB, 48.3 GB to the driver
        ("L40S", "46", "supported"),
        ("L40S", "45", "supported"),
        ("L40S", "44", "refuted"),
        ("L40S", "51", "refuted"),
        ("RTX 4070", "12", "supported"),
        ("RTX 4070", "16", "refuted"),
        ("T4", "16", "supported"),
    ],
)
def test_memory_as_sold_or_as_shown(gpu: str, memory: str, verdict: str) -> None:
    found = fit(gpu, memory=memory)
    assert found.verdict == verdict
    assert found.numbers[0].interval == "datasheet"


@pytest.mark.parametrize(
    ("gpu", "kind", "has"), [("L40S", "fp8", True), ("T4", "bf16", False), ("T4", "FP16", True)]
)
def test_a_number_type_is_in_the_cores_or_not(gpu: str, kind: str, has: bool) -> None:
    assert fit(gpu, type=kind).verdict == ("supported" if has else "refuted")
    assert fit(gpu, type=kind, fits=False).verdict == ("refuted" if has else "supported")


def test_a_method_needs_a_capability() -> None:
    found = fit("T4", method="awq")
    assert found.verdict == "supported"
    assert found.reasons == ("vLLM runs awq on T4.",)
    assert fit("T4", method="marlin", fits=False).verdict in ("supported", "refuted")


def test_the_part_that_fails_comes_first() -> None:
    found = fit("T4", memory="16", type="bf16")
    assert found.verdict == "refuted"
    assert found.reasons[0] == "T4 (compute capability 7.5) has no bf16 arithmetic."
    # The tolerance of the size that was stated, and nothing of models.
    [allowed] = found.assumptions
    assert allowed.startswith("a stated size may lie 2 % below to 7 % above the card's GiB")
    assert "T4 has 15 GiB, which is 16.1 GB; the sentence says 16 GB, 6.7 % more than the GiB." in (
        found.reasons
    )


@pytest.mark.parametrize(
    ("gpu", "keys", "message"),
    [
        ("L40", {"memory": "48"}, "names GPU 'L40'; nearest: .*L40S"),
        ("L40S", {"models": ["Qwen/Qwen3-14"]}, "did you mean 'Qwen/Qwen3-14B"),
        ("L40S", {"type": "fp88"}, "asks for type 'fp88'; did you mean 'fp8'"),
        ("L40S", {"method": "magic"}, "hardware.toml does not know"),
        ("L40S", {}, "has no `models`, `type`, `method` or `memory`"),
        ("L40S", {"memory": "much"}, "no plain number"),
    ],
)
def test_what_is_not_known_is_the_authors_mistake(
    gpu: str, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadClaim, match=message):
        fit(gpu, **keys)
