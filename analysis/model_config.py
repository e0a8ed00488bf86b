"""The shape of a model from its Hugging Face config.json: read in full, or refused with the reason.

What the arithmetic of `analysis.models` cannot describe (mixtures of experts, latent attention,
sliding windows, other packings) is refused, not guessed: its weights or its cache would be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.formats._files import one_line
from analysis.models import Model, Packing, is_packing, is_size

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
"""Dense decoders whose weights `Model` lists in full, as `model_type` names them."""

_SIZES = {
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "hidden": "hidden_size",
    "intermediate": "intermediate_size",
    "vocab": "vocab_size",
}
"""Field of a model -> key of a config."""

_FLAGS = ("attention_bias", "mlp_bias", "tie_word_embeddings")

_FOREIGN = {
    "num_experts": "a mixture of experts",
    "num_local_experts": "a mixture of experts",
    "n_routed_experts": "a mixture of experts",
    "moe_intermediate_size": "a mixture of experts",
    "kv_lora_rank": "latent attention",
    "q_lora_rank": "latent attention",
    "num_nextn_predict_layers": "draft layers",
    "text_config": "a model inside another",
    "vision_config": "a vision tower",
}
"""Keys of weights and caches that `Model` does not describe, and what they stand for."""

_DTYPES = frozenset({"bfloat16", "float16", "float32", "torch.bfloat16", "torch.float16", "auto"})


class _Unfit(Exception):
    """A config that the arithmetic cannot describe; the message says which part."""


def model_from_config(
    config: Mapping[str, Any], name: str = "", file: str = "config.json"
) -> Model | None:
    """The model that a Hugging Face config.json describes, or None where this arithmetic is unfit.

    Args:
        config: The parsed file; untrusted, so any value may be missing or of a wrong type.
        name: What to call the model; the config's `_name_or_path` or `model_type` by default.
        file: The file's path, as figures will cite it.
    """
    try:
        return _model(config, name, file)
    except _Unfit:
        return None


def unfit(config: Mapping[str, Any]) -> str:
    """Which part of a config makes `model_from_config` give None; empty where it gives a model."""
    try:
        _model(config, "", "")
    except _Unfit as error:
        return str(error)
    return ""


def _model(config: Mapping[str, Any], name: str, file: str) -> Model:
    family = _family(config)
    sizes = {field: config.get(key) for field, key in _SIZES.items()}
    for field, key in _SIZES.items():
        _need_size(key, sizes[field])
    # A Llama config without num_key_value_heads has as many as heads; the others must say.
    fallback = sizes["heads"] if family == "llama" else None
    sizes["kv_heads"] = _or_else(config.get("num_key_value_heads"), fallback)
    _need_size("num_key_value_heads", sizes["kv_heads"])
    whole: dict[str, Any] = sizes
    if whole["heads"] % whole["kv_heads"]:
        raise _Unfit(
            f"num_attention_heads ({whole['heads']}) is no multiple of num_key_value_heads "
            f"({whole['kv_heads']})"
        )
    head_dim: Any = _or_else(config.get("head_dim"), whole["hidden"] // whole["heads"])
    _need_size("head_dim", head_dim)
    packing = _packing(config.get("quantization_config"))
    flags = {key: config.get(key, False) for key in _FLAGS}
    for key, flag in flags.items():
        if not isinstance(flag, bool):
            raise _Unfit(f"{key} is {_shown(flag)}, not true or false")
    called = config.get("_name_or_path")
    return Model(
        name=name or (one_line(called, 80) if isinstance(called, str) else "") or family,
        head_dim=head_dim,
        tie_word_embeddings=flags["tie_word_embeddings"],
        qk_norm=family == "qwen3",
        qkv_bias=flags["attention_bias"] or family == "qwen2",
        output_bias=flags["attention_bias"],
        mlp_bias=flags["mlp_bias"],
        packing=packing,
        file=file,
        source=file,
        **whole,
    )


def _family(config: Mapping[str, Any]) -> str:
    """The config's family, once it has no weights or cache that `Model` does not describe."""
    for key, meaning in _FOREIGN.items():
        if config.get(key):
            raise _Unfit(f"{key} is {_shown(config[key])} ({meaning})")
    family = config.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        raise _Unfit(f"model_type is {_shown(family)}")
    # Qwen configs name a window and leave it unused; in the others a window that is named is used.
    windowed = config.get("use_sliding_window", not family.startswith("qwen"))
    if windowed and config.get("sliding_window"):
        raise _Unfit(f"sliding_window is {_shown(config['sliding_window'])} and in use")
    kinds = config.get("layer_types") or ()
    if not isinstance(kinds, list | tuple):
        raise _Unfit(f"layer_types is {_shown(kinds)}, not a list")
    other = next((kind for kind in kinds if kind != "full_attention"), "full_attention")
    if other != "full_attention":
        raise _Unfit(f"layer_types has {_shown(other)}")
    dtype = config.get("torch_dtype") or config.get("dtype") or "auto"
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise _Unfit(f"the weights' type (torch_dtype, dtype) is {_shown(dtype)}")
    return family


def _packing(config: object) -> Packing | None:
    """How a `quantization_config` packs the linear layers of all blocks; None without one."""
    if config is None:
        return None
    if not isinstance(config, Mapping):
        raise _Unfit(f"quantization_config is {_shown(config)}, not an object")
    method = config.get("quant_method")
    if method not in ("awq", "gptq"):
        raise _Unfit(f"quantization_config: quant_method is {_shown(method)}")
    bits = config.get("bits", config.get("w_bit"))
    group = config.get("group_size", config.get("q_group_size"))
    if not is_packing(bits, group):
        raise _Unfit(
            f"quantization_config: bits is {_shown(bits)} and group_size is {_shown(group)}"
        )
    kept = config.get("modules_to_not_convert") or []
    if not isinstance(kept, list) or any(part != "lm_head" for part in kept):
        raise _Unfit("quantization_config: modules_to_not_convert keeps parts at 16 bits")
    # A packed LM head, rules for single modules, and a stored order of activations.
    for key in ("lm_head", "dynamic", "desc_act"):
        if config.get(key):
            raise _Unfit(f"quantization_config: {key} is {_shown(config[key])}")
    # A symmetric GPTQ checkpoint stores zeros that no kernel reads.
    zeros = config.get("zero_point", True) if method == "awq" else not config.get("sym", True)
    return Packing(int(bits), int(group), bool(zeros))


def _need_size(key: str, value: object) -> None:
    if not is_size(value):
        raise _Unfit(f"{key} is {_shown(value)}, not a count")


def _or_else(value: object, fallback: object) -> object:
    return fallback if value is None else value


def _shown(value: object) -> str:
    """A value of an untrusted file in a message: short, and never the text of a whole list."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        return one_line(repr(value), 40)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float) and abs(value) < 2**63:
        return str(value)
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else "no usable number"
