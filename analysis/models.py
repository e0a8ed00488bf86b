"""Sizes of dense decoder-only models, computed from their shape: weights, KV cache, FLOPs.

Shapes come from models.toml or from a model's own config.json. What this arithmetic cannot describe
(mixtures of experts, latent attention, sliding windows, other packings) is refused, not guessed.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from analysis.hardware import TableError
from analysis.model import Figure, Source

FILE = "models.toml"
"""The table's name, as figures cite it."""

_ELEMENT = 2
"""Bytes of a 16-bit weight; vLLM's `--dtype auto` loads 32-bit checkpoints at 16 bits as well."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How the linear layers of a quantised model are stored."""

    bits: int
    group_size: int
    """Weights of one input group that share a scale; -1 for one group a column."""
    zero_point: bool
    """Whether each group has a packed zero as well."""

    def bytes(self, inputs: int, outputs: int) -> float:
        """Bytes of an inputs x outputs matrix: packed weights, 16-bit scales, packed zeros."""
        groups = 1 if self.group_size == -1 else math.ceil(inputs / self.group_size)
        zeros = groups * outputs * self.bits / 8 if self.zero_point else 0.0
        return inputs * outputs * self.bits / 8 + groups * outputs * _ELEMENT + zeros


@dataclass(frozen=True, slots=True)
class Model:
    """The shape of a dense decoder-only transformer with gated MLP and grouped-query attention."""

    name: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    intermediate: int
    vocab: int
    tie_word_embeddings: bool
    qk_norm: bool = False
    """Whether queries and keys are normalised per head (Qwen3)."""
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    packing: Packing | None = None
    """None where all weights have 16 bits."""
    kv_dtype_bytes: float = 2
    file: str = FILE
    """Where the shape is from, as figures cite it."""
    source: str = ""
    """The document the shape is from."""

    def _linears(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of every linear layer of one block."""
        query, key = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return (
            (self.hidden, query),
            (self.hidden, key),
            (self.hidden, key),
            (query, self.hidden),
            (self.hidden, self.intermediate),
            (self.hidden, self.intermediate),
            (self.intermediate, self.hidden),
        )

    def _vectors(self) -> int:
        """Elements of one block's norms and biases; never quantised."""
        query, key = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return (
            2 * self.hidden
            + 2 * self.head_dim * self.qk_norm
            + (query + 2 * key) * self.qkv_bias
            + self.hidden * self.output_bias
            + (2 * self.intermediate + self.hidden) * self.mlp_bias
        )

    def _table(self) -> int:
        """Elements of the input embedding table; the LM head has as many."""
        return self.vocab * self.hidden

    def parameters(self) -> int:
        """Parameters in all; a tied embedding table counts once. Quantisation changes nothing."""
        block = sum(inputs * outputs for inputs, outputs in self._linears()) + self._vectors()
        tables = 1 if self.tie_word_embeddings else 2
        return self.layers * block + self.hidden + tables * self._table()

    def weight_bytes(self) -> float:
        """Bytes of all weights as stored, without what a server allocates beside them.

        vLLM's "Model loading took" is greater: by 0.04 % for 16-bit weights (the rotary table), by
        1.6 % (Marlin) and 3.5 % (Machete) for Qwen3-14B-AWQ. That it differs by kernel for one
        checkpoint says it counts what repacking and the allocator add; the parts are not verified.
        """
        if self.packing is None:
            return float(self.parameters() * _ELEMENT)
        linears = self._linears()
        packed = sum(self.packing.bytes(inputs, outputs) for inputs, outputs in linears)
        plain = sum(inputs * outputs for inputs, outputs in linears)
        rest = self.parameters() - self.layers * plain
        return self.layers * packed + rest * _ELEMENT

    def unread_embedding_bytes(self) -> float:
        """Bytes of the input embedding table that a decode step leaves unread.

        A step reads one row a request. 0 where the table is the LM head too, which is read in full.
        """
        return 0.0 if self.tie_word_embeddings else float(self._table() * _ELEMENT)

    def kv_bytes_per_token(self, tensor_parallel: int = 1, pipeline_parallel: int = 1) -> float:
        """KV cache bytes that one token takes on one GPU.

        2 (key, value) x layers x KV heads x head size x bytes. Tensor parallelism divides the KV
        heads, and copies them where there are more GPUs than heads; pipeline parallelism divides
        the layers (the fullest stage counts where they do not divide evenly).

        Raises:
            ValueError: A degree below 1, or KV heads that cannot be divided or copied evenly.
        """
        if tensor_parallel < 1 or pipeline_parallel < 1:
            raise ValueError(
                f"parallel degrees {tensor_parallel} x {pipeline_parallel}: at least 1"
            )
        if self.kv_heads % tensor_parallel and tensor_parallel % self.kv_heads:
            raise ValueError(f"{self.kv_heads} KV heads do not divide over {tensor_parallel} GPUs")
        heads = max(1, self.kv_heads // tensor_parallel)
        layers = math.ceil(self.layers / pipeline_parallel)
        return 2 * layers * heads * self.head_dim * self.kv_dtype_bytes

    def flops_per_token(self) -> float:
        """FLOPs of one token's forward pass without attention: 2 a weight that is multiplied.

        The input embedding is a look-up and multiplies nothing; the LM head does, tied or not.
        Attention adds 4 x layers x heads x head size for every token of context.
        """
        lookup = 0 if self.tie_word_embeddings else self._table()
        return 2.0 * (self.parameters() - lookup)

    def figure(self, field: str) -> Figure:
        """One of `FIGURES` in base units, with the shape's file as its source.

        Raises:
            KeyError: The field is not one of `FIGURES`.
        """
        unit, words = _FIGURES[field]
        value = float(getattr(self, field)())
        source = Source(self.file, f"{self.name}, {words}")
        return Figure(field, value, value, value, unit, source, "datasheet")


_FIGURES = {
    "parameters": ("", "parameters"),
    "weight_bytes": ("B", "weights"),
    "unread_embedding_bytes": ("B", "embedding a decode step leaves unread"),
    "kv_bytes_per_token": ("B", "KV bytes a token"),
    "flops_per_token": ("FLOP", "FLOPs a token"),
}

FIGURES = tuple(_FIGURES)
"""What `Model.figure` can give, for the whole model on one GPU."""


def find_model(name: str) -> Model | None:
    """The model of that name: as on the hub, without its owner, or as the last part of a path."""
    return _by_key().get(_key(name))


def models() -> tuple[Model, ...]:
    """Every model of the table, in its order."""
    return _table()


def model_from_config(
    config: Mapping[str, Any], name: str = "", file: str = "config.json"
) -> Model | None:
    """The model that a Hugging Face config.json describes, or None where this arithmetic is unfit.

    Args:
        config: The parsed file; untrusted, so any value may be missing or of a wrong type.
        name: What to call the model; the config's `_name_or_path` or `model_type` by default.
        file: The file's path, as figures will cite it.
    """
    family = config.get("model_type")
    if not isinstance(family, str) or family not in _FAMILIES or _foreign(config, family):
        return None
    sizes: dict[str, Any] = {
        field: config.get(key)
        for field, key in (
            ("layers", "num_hidden_layers"),
            ("heads", "num_attention_heads"),
            ("hidden", "hidden_size"),
            ("intermediate", "intermediate_size"),
            ("vocab", "vocab_size"),
        )
    }
    # A Llama config without num_key_value_heads has as many as heads; the others must say.
    fallback = sizes["heads"] if family == "llama" else None
    sizes["kv_heads"] = _or_else(config.get("num_key_value_heads"), fallback)
    if not all(_is_size(value) for value in sizes.values()):
        return None
    head_dim = _or_else(config.get("head_dim"), sizes["hidden"] // sizes["heads"])
    packing = _packing(config.get("quantization_config"))
    if not _is_size(head_dim) or sizes["heads"] % sizes["kv_heads"] or packing == "unknown":
        return None
    bias, mlp_bias, tied = (
        config.get(key, False) for key in ("attention_bias", "mlp_bias", "tie_word_embeddings")
    )
    if not all(isinstance(flag, bool) for flag in (bias, mlp_bias, tied)):
        return None
    called = config.get("_name_or_path")
    return Model(
        name=name or (called if isinstance(called, str) and called else family),
        head_dim=head_dim,
        tie_word_embeddings=tied,
        qk_norm=family == "qwen3",
        qkv_bias=bias or family == "qwen2",
        output_bias=bias,
        mlp_bias=mlp_bias,
        packing=packing,
        file=file,
        source=file,
        **sizes,
    )


_FAMILIES = frozenset({"llama", "mistral", "qwen2", "qwen3"})
"""Dense decoders whose weights `Model` lists in full."""

_FOREIGN = (
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "moe_intermediate_size",
    "kv_lora_rank",
    "q_lora_rank",
    "num_nextn_predict_layers",
    "text_config",
    "vision_config",
)
"""Keys of experts, latent attention, draft layers and vision towers: none is described here."""

_DTYPES = frozenset({"bfloat16", "float16", "float32", "torch.bfloat16", "torch.float16", "auto"})


def _foreign(config: Mapping[str, Any], family: str) -> bool:
    """Whether the config has weights or a cache that `Model` does not describe."""
    # Qwen configs name a window and leave it unused; in the others a window that is named is used.
    windowed = config.get("use_sliding_window", not family.startswith("qwen"))
    kinds = config.get("layer_types") or ()
    dtype = config.get("torch_dtype") or config.get("dtype") or "auto"
    return (
        any(config.get(key) for key in _FOREIGN)
        or bool(windowed and config.get("sliding_window"))
        or not isinstance(kinds, list | tuple)
        or any(kind != "full_attention" for kind in kinds)
        or not isinstance(dtype, str)
        or dtype not in _DTYPES
    )


def _packing(config: object) -> Packing | Literal["unknown"] | None:
    """How a `quantization_config` packs the linear layers of all blocks; None without one."""
    if config is None:
        return None
    if not isinstance(config, Mapping):
        return "unknown"
    method = config.get("quant_method")
    bits = config.get("bits", config.get("w_bit"))
    group = config.get("group_size", config.get("q_group_size"))
    kept = config.get("modules_to_not_convert") or []
    plain_rest = isinstance(kept, list) and set(map(str, kept)) <= {"lm_head"}
    if (
        method not in ("awq", "gptq")
        or not _is_packing(bits, group)
        or not plain_rest
        or config.get("lm_head")
        or config.get("dynamic")
        or config.get("desc_act")  # the order of activations is stored as well
    ):
        return "unknown"
    # A symmetric GPTQ checkpoint stores zeros that no kernel reads.
    zeros = config.get("zero_point", True) if method == "awq" else not config.get("sym", True)
    return Packing(int(bits), int(group), bool(zeros))


def _is_packing(bits: Any, group: Any) -> bool:
    return bits in (4, 8) and (group == -1 or _is_size(group))


_MOST = 2**31
"""No dimension of a real model comes near; a file may hold an integer that no float can."""


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST


def _or_else(value: Any, fallback: Any) -> Any:
    return fallback if value is None else value


def read_table(text: str) -> tuple[Model, ...]:
    """Parse and check the text of a model table.

    Raises:
        TableError: A key is unknown, missing or out of range, or a name is used twice.
    """
    data = tomllib.loads(text)
    if set(data) != {"model"}:
        raise TableError(f"{FILE}: the file holds {sorted(data)}, only [[model]] is expected")
    found: dict[str, Model] = {}
    for entry in data["model"]:
        made = _quantised(entry, found) if "of" in entry else _plain(entry)
        if _key(made.name) in found:
            raise TableError(f"{FILE}: {made.name} is there twice")
        found[_key(made.name)] = made
    return tuple(found.values())


_SIZES = {"layers", "heads", "kv_heads", "head_dim", "hidden", "intermediate", "vocab"}
_FLAGS = {"tie_word_embeddings", "qk_norm"}


def _plain(entry: Mapping[str, Any]) -> Model:
    where = _check(entry, {"name", "source"} | _SIZES | _FLAGS)
    for key in sorted(_SIZES):
        if not _is_size(entry[key]):
            raise TableError(f"{FILE}: {where}: {key} is {entry[key]!r}, a count is needed")
    _check_flags(entry, where, _FLAGS)
    return Model(**entry)


def _quantised(entry: Mapping[str, Any], found: Mapping[str, Model]) -> Model:
    where = _check(entry, {"name", "source", "of", "bits", "group_size", "zero_point"})
    base = found.get(_key(entry["of"]))
    if base is None:
        raise TableError(f"{FILE}: {where}: {entry['of']!r} is not a model above it")
    if not _is_packing(entry["bits"], entry["group_size"]):
        raise TableError(f"{FILE}: {where}: 4 or 8 bits and a group size or -1 are needed")
    _check_flags(entry, where, {"zero_point"})
    packing = Packing(entry["bits"], entry["group_size"], entry["zero_point"])
    return replace(base, name=entry["name"], source=entry["source"], packing=packing)


def _check(entry: Mapping[str, Any], keys: set[str]) -> str:
    where = str(entry.get("name", "an entry without a name"))
    if wrong := set(entry) ^ keys:
        key = sorted(wrong)[0]
        how = "unknown key" if key in entry else "missing key"
        raise TableError(f"{FILE}: {where}: {how} {key!r}")
    return where


def _check_flags(entry: Mapping[str, Any], where: str, keys: set[str]) -> None:
    for key in sorted(keys):
        if not isinstance(entry[key], bool):
            raise TableError(f"{FILE}: {where}: {key} is {entry[key]!r}, true or false is needed")


@cache
def _table() -> tuple[Model, ...]:
    return read_table(files("analysis").joinpath(FILE).read_text("utf-8"))


@cache
def _by_key() -> dict[str, Model]:
    return {_key(model.name): model for model in _table()}


def _key(name: str) -> str:
    """The last part of a hub name or path, lower case; a hub cache's folder names its model."""
    parts = [part for part in name.strip().lower().replace("\\", "/").split("/") if part]
    cached = next((part for part in parts if part.startswith("models--")), None)
    if cached is not None:
        return cached.split("--")[-1]
    return parts[-1].replace("_", "-") if parts else ""
