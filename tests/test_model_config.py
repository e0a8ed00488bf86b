"""config.json as a model: the same sizes as the table, and refusals that say which part."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model import Source
from analysis.model_config import model_from_config, unfit
from analysis.models import Packing, find_model

QWEN3_14B = {
    "architectures": ["Qwen3ForCausalLM"],
    "attention_bias": False,
    "head_dim": 128,
    "hidden_size": 5120,
    "intermediate_size": 17408,
    "max_window_layers": 40,
    "model_type": "qwen3",
    "num_attention_heads": 40,
    "num_hidden_layers": 40,
    "num_key_value_heads": 8,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_sliding_window": False,
    "vocab_size": 151936,
}
AWQ = {
    "bits": 4,
    "group_size": 128,
    "modules_to_not_convert": None,
    "quant_method": "awq",
    "version": "gemm",
    "zero_point": True,
}
LLAMA_7B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "vocab_size": 32000,
    "torch_dtype": "float16",
}


def model(name):
    found = find_model(name)
    assert found is not None, name
    return found


def from_config(config):
    found = model_from_config(config)
    assert found is not None, config
    return found


def test_a_config_gives_the_same_model_as_the_table():
    made = model_from_config(QWEN3_14B, "Qwen/Qwen3-14B", "arm/config.json")
    assert made is not None
    kept = model("Qwen/Qwen3-14B")
    assert made == replace(kept, file="arm/config.json", source="arm/config.json")
    assert made.figure("weight_bytes").source == Source(
        "arm/config.json", "Qwen/Qwen3-14B, weights"
    )


def test_a_quantised_config_gives_the_same_size_as_the_table():
    made = from_config({**QWEN3_14B, "quantization_config": AWQ})
    assert made.packing == Packing(4, 128, True)
    assert made.weight_bytes() == model("Qwen3-14B-AWQ").weight_bytes()
    old_keys = {"quant_method": "awq", "w_bit": 4, "q_group_size": 128}
    assert from_config({**QWEN3_14B, "quantization_config": old_keys}).packing == made.packing


@pytest.mark.parametrize(
    ("quantised", "packing"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, (4, 128, False)),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": False}, (8, -1, True)),
        ({**AWQ, "zero_point": False, "modules_to_not_convert": ["lm_head"]}, (4, 128, False)),
    ],
)
def test_packings_of_other_checkpoints(quantised, packing):
    found = from_config({**QWEN3_14B, "quantization_config": quantised})
    assert found.packing == Packing(*packing)


def test_families_differ_in_norms_biases_and_defaults():
    llama = from_config(LLAMA_7B)
    assert llama.parameters() == 6_738_415_616  # as published for Llama 2 7B
    assert (llama.name, llama.kv_heads, llama.head_dim, llama.qk_norm) == ("llama", 32, 128, False)
    biased = from_config({**LLAMA_7B, "attention_bias": True, "mlp_bias": True})
    extra = 32 * (4 * 4096 + 2 * 11008 + 4096)
    assert biased.parameters() == llama.parameters() + extra
    qwen2 = from_config({
        "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
        "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
        "vocab_size": 152064, "tie_word_embeddings": False, "use_sliding_window": False,
        "sliding_window": 131072, "dtype": "bfloat16", "_name_or_path": "Qwen2.5-7B",
    })  # fmt: skip
    assert qwen2.parameters() == 7_615_616_512  # as published
    assert qwen2.name == "Qwen2.5-7B"
    assert from_config({**LLAMA_7B, "_name_or_path": ["x"]}).name == "llama"
    mistral = from_config({
        **LLAMA_7B, "model_type": "mistral", "num_key_value_heads": 8,
        "intermediate_size": 14336, "sliding_window": None, "head_dim": None,
    })  # fmt: skip
    assert mistral.parameters() == 7_241_732_096  # as published for Mistral 7B


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"model_type": "qwen3_moe"}, "model_type is 'qwen3_moe'"),
        ({"model_type": "deepseek_v3"}, "model_type is 'deepseek_v3'"),
        ({"model_type": None}, "model_type is missing"),
        ({"model_type": ["qwen3"]}, "model_type is a list"),
        ({"num_experts": 128}, "num_experts is 128 (a mixture of experts)"),
        ({"kv_lora_rank": 512}, "kv_lora_rank is 512 (latent attention)"),
        ({"text_config": {"hidden_size": 1}}, "text_config is an object (a model inside another)"),
        (
            {"use_sliding_window": True, "sliding_window": 4096},
            "sliding_window is 4096 and in use",
        ),
        (
            {"layer_types": ["full_attention", "linear_attention"]},
            "layer_types has 'linear_attention'",
        ),
        ({"layer_types": 7}, "layer_types is 7, not a list"),
        (
            {"torch_dtype": "float8_e4m3fn"},
            "the weights' type (torch_dtype, dtype) is 'float8_e4m3fn'",
        ),
        ({"torch_dtype": 16}, "the weights' type (torch_dtype, dtype) is 16"),
        ({"hidden_size": None}, "hidden_size is missing, not a count"),
        ({"hidden_size": 0}, "hidden_size is 0, not a count"),
        ({"hidden_size": "5120"}, "hidden_size is '5120', not a count"),
        ({"hidden_size": 5120.0}, "hidden_size is 5120.0, not a count"),
        ({"hidden_size": 10**400}, "hidden_size is no usable number, not a count"),
        ({"hidden_size": 10**5000}, "hidden_size is no usable number, not a count"),
        ({"hidden_size": float("nan")}, "hidden_size is no usable number, not a count"),
        ({"num_hidden_layers": True}, "num_hidden_layers is true, not a count"),
        ({"num_key_value_heads": None}, "num_key_value_heads is missing, not a count"),
        (
            {"num_key_value_heads": 7},
            "num_attention_heads (40) is no multiple of num_key_value_heads (7)",
        ),
        ({"head_dim": -128}, "head_dim is -128, not a count"),
        ({"head_dim": "wide"}, "head_dim is 'wide', not a count"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no', not true or false"),
        ({"attention_bias": 1}, "attention_bias is 1, not true or false"),
        (
            {"model_type": "x\n\ud800" + "y" * 100},
            "model_type is 'x\\n\\ud800" + "y" * 29 + "…",
        ),
    ],
)
def test_what_cannot_be_described_is_refused_by_its_part(change, part):
    config = {**QWEN3_14B, **change}
    assert model_from_config(config) is None
    assert unfit(config) == part


@pytest.mark.parametrize(
    ("quantised", "part"),
    [
        ("int4", "quantization_config is 'int4', not an object"),
        ({}, "quantization_config: quant_method is missing"),
        ({**AWQ, "quant_method": "fp8"}, "quantization_config: quant_method is 'fp8'"),
        ({**AWQ, "bits": 3}, "quantization_config: bits is 3 and group_size is 128"),
        ({**AWQ, "group_size": 0}, "quantization_config: bits is 4 and group_size is 0"),
        ({**AWQ, "group_size": None}, "quantization_config: bits is 4 and group_size is missing"),
        (
            {**AWQ, "modules_to_not_convert": ["mlp.gate"]},
            "quantization_config: modules_to_not_convert keeps parts at 16 bits",
        ),
        (
            {**AWQ, "modules_to_not_convert": "mlp"},
            "quantization_config: modules_to_not_convert keeps parts at 16 bits",
        ),
        ({**AWQ, "lm_head": True}, "quantization_config: lm_head is true"),
        (
            {**AWQ, "quant_method": "gptq", "desc_act": True},
            "quantization_config: desc_act is true",
        ),
        (
            {**AWQ, "quant_method": "gptq", "dynamic": {"x": {}}},
            "quantization_config: dynamic is an object",
        ),
    ],
)
def test_other_packings_are_refused_by_their_part(quantised, part):
    config = {**QWEN3_14B, "quantization_config": quantised}
    assert model_from_config(config) is None
    assert unfit(config) == part


def test_a_fit_config_has_no_unfit_part():
    assert unfit(QWEN3_14B) == unfit({**QWEN3_14B, "quantization_config": AWQ}) == ""


def test_the_name_in_a_config_is_made_one_short_line():
    named = from_config({**LLAMA_7B, "_name_or_path": "a\nb\ud800" + "c" * 200}).name
    assert named.startswith("a b\\ud800c")
    assert (len(named), named.encode()[-3:]) == (80, "…".encode())
    assert from_config({**LLAMA_7B, "_name_or_path": " \n "}).name == "llama"


def test_a_window_that_mistral_names_is_used_so_refused():
    config = {**LLAMA_7B, "model_type": "mistral", "num_key_value_heads": 8}
    assert model_from_config({**config, "sliding_window": 4096}) is None
    assert model_from_config(config) is not None
    assert model_from_config({}) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted({*QWEN3_14B, "quantization_config"})), ANYTHING))
def test_no_config_breaks_the_reader(change):
    made = model_from_config({**QWEN3_14B, **change})
    assert made is None or (made.parameters() > 0 and made.weight_bytes() > 0)
    part = unfit({**QWEN3_14B, **change})
    assert (made is None) == bool(part)
    assert len(part.splitlines()) < 2


@given(
    st.dictionaries(
        st.sampled_from(["quant_method", "bits", "group_size", "modules_to_not_convert", "sym"]),
        ANYTHING,
    )
)
def test_no_quantisation_breaks_the_reader(change):
    made = model_from_config({**QWEN3_14B, "quantization_config": {**AWQ, **change}})
    assert made is None or made.packing is not None
