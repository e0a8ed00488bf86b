"""A model's folder -> its size and shape: bytes of weights, KV bytes a token, longest context.

Every figure is a lower bound, so that what does not fit by it does not fit at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collectors.errors import Problem

_MOST = 1 << 60
"""A size beyond it is none of a model's."""
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
_BYTES = {"float32": 4.0, "float": 4.0, "bfloat16": 2.0, "float16": 2.0, "half": 2.0, "fp8": 1.0}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a model needs of a GPU. What its folder does not tell is None."""

    weights: float | None
    """Bytes of all weights, as they lie on disk or as the shape gives them."""
    kv_token: float | None
    """Bytes of KV of one token over all layers, at two bytes a number or as float32 needs."""
    max_len: int | None
    """Tokens of its longest context."""
    quantization: str = ""
    """"awq", "gptq", "fp8", ...; empty: none."""
    kv_heads: int | None = None
    heads: int | None = None
    layers: int | None = None


def find(name: str) -> Path | None:
    """The folder that a name stands for: itself, or a snapshot in the local cache of the hub."""
    try:
        if Path(name).expanduser().is_dir():
            return Path(name).expanduser()
    except (OSError, RuntimeError):
        # Too long for a name; or "~" of a user that there is not.
        return None
    home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    model = hub / f"models--{name.replace('/', '--')}"
    try:
        commit = (model / "refs" / "main").read_text("utf-8").strip()
    except (OSError, ValueError):
        return None
    folder = model / "snapshots" / Path(commit).name
    return folder if (folder / "config.json").is_file() else None


def is_path(name: str) -> bool:
    """Whether a name can only be a folder: no hub has such names."""
    return name.startswith(("/", "./", "../", "~")) or name.count("/") > 1


def read(folder: Path) -> Shape | Problem:
    """The shape of the model in a folder."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
    except OSError as error:
        return Problem(
            f"model {folder}",
            f"config.json: {error.strerror}",
            "a folder that vLLM can serve",
            "name the folder that holds config.json",
        )
    except (ValueError, RecursionError) as error:
        return Problem(str(path), f"is no JSON: {str(error)[:160]}")
    if not isinstance(config, dict):
        return Problem(str(path), "is no JSON object")
    return shape(config, on_disk(folder))


def on_disk(folder: Path) -> int | None:
    """Bytes of the weights in a folder: by its index, else by its files; None: there are none."""
    for index in sorted(folder.glob("*.safetensors.index.json")):
        try:
            total = json.loads(index.read_text("utf-8"))["metadata"]["total_size"]
            if 0 < int(total) < _MOST:
                return int(total)
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue
    for pattern in _WEIGHTS:
        sizes = [path.stat().st_size for path in folder.glob(pattern)]
        if sizes:
            return sum(sizes)
    return None


def shape(config: Mapping[str, Any], weights: float | None = None) -> Shape:
    """The shape that a config.json describes.

    Args:
        config: as parsed.
        weights: Bytes on disk; None: reckon them from the shape.
    """
    inner = config.get("text_config")
    text: Mapping[str, Any] = {**config, **inner} if isinstance(inner, dict) else config
    hidden, heads = _count(text, "hidden_size"), _count(text, "num_attention_heads")
    layers = _count(text, "num_hidden_layers")
    kv_heads = _count(text, "num_key_value_heads") or heads
    head_dim = _count(text, "head_dim") or (hidden // heads if hidden and heads else None)
    number = _BYTES.get(str(text.get("torch_dtype") or text.get("dtype")), 2.0)
    quantization = config.get("quantization_config")
    scheme = quantization if isinstance(quantization, dict) else {}
    return Shape(
        weights=weights
        or _weights(text, number, scheme, (hidden, layers, heads, kv_heads, head_dim)),
        kv_token=_kv(text, layers, kv_heads, head_dim, max(number, 2.0)),
        max_len=_count(text, "max_position_embeddings"),
        quantization=str(scheme.get("quant_method") or ""),
        kv_heads=kv_heads,
        heads=heads,
        layers=layers,
    )


def _count(config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and 0 < value < _MOST else None


def _kv(
    text: Mapping[str, Any],
    layers: int | None,
    kv_heads: int | None,
    head_dim: int | None,
    number: float,
) -> float | None:
    kinds = text.get("layer_types")
    if isinstance(kinds, list) and kinds:
        # Sliding and linear layers keep a bounded state, whatever the length.
        layers = sum(kind == "full_attention" for kind in kinds)
    latent = _count(text, "kv_lora_rank")
    if layers is None:
        return None
    if latent:
        return layers * (latent + (_count(text, "qk_rope_head_dim") or 0)) * number
    if kv_heads is None or head_dim is None:
        return None
    return 2 * layers * kv_heads * head_dim * number


def _weights(
    text: Mapping[str, Any],
    number: float,
    scheme: Mapping[str, Any],
    shape: tuple[int | None, int | None, int | None, int | None, int | None],
) -> float | None:
    """Bytes of a plain decoder with gated MLPs, dense or with experts; None: it is another."""
    inner, vocab = _count(text, "intermediate_size"), _count(text, "vocab_size")
    hidden, layers, heads, kv_heads, head_dim = shape
    if not (hidden and layers and heads and kv_heads and head_dim and vocab):
        return None
    experts = _count(text, "num_experts") or _count(text, "num_local_experts")
    width = _count(text, "moe_intermediate_size") or inner
    if width is None or _count(text, "kv_lora_rank") or text.get("layer_types"):
        return None
    attention = hidden * head_dim * (2 * heads + 2 * kv_heads)
    linear = layers * (attention + 3 * hidden * width * (experts or 1))
    tables = vocab * hidden * (1 if text.get("tie_word_embeddings") else 2)
    return linear * _linear_bytes(number, scheme) + tables * number


def _linear_bytes(number: float, scheme: Mapping[str, Any]) -> float:
    bits = _count(scheme, "bits") or _count(scheme, "w_bit")
    if bits:
        return bits / 8
    return 1.0 if scheme.get("quant_method") == "fp8" else number
