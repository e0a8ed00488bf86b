"""Sizes of dense decoder-only models, computed from their shape: weights, KV cache, FLOPs.

Shapes come from models.toml, read here, or from a model's own config.json, which
`analysis.model_config` reads.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

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
        return Figure(field, value, value, value, unit, self.cite(words), "datasheet")

    def cite(self, what: str) -> Source:
        """Where the shape stands that `what` ("weights", "KV bytes a token") is computed from."""
        return Source(self.file, f"{self.name}, {what}")


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
    return _by_key().get(model_key(name))


def models() -> tuple[Model, ...]:
    """Every model of the table, in its order."""
    return _table()


_MOST = 2**31
"""No dimension of a real model comes near; a file may hold an integer that no float can."""


def is_size(value: object) -> bool:
    """Whether a value from a file can be a dimension: a positive whole number below 2**31."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST


def is_packing(bits: object, group: object) -> bool:
    """Whether two values from a file can be a packing: 4 or 8 bits, a group size or -1."""
    return bits in (4, 8) and (group == -1 or is_size(group))


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
        if model_key(made.name) in found:
            raise TableError(f"{FILE}: {made.name} is there twice")
        found[model_key(made.name)] = made
    return tuple(found.values())


_SIZES = {"layers", "heads", "kv_heads", "head_dim", "hidden", "intermediate", "vocab"}
_FLAGS = {"tie_word_embeddings", "qk_norm"}


def _plain(entry: Mapping[str, Any]) -> Model:
    where = _check(entry, {"name", "source"} | _SIZES | _FLAGS)
    for key in sorted(_SIZES):
        if not is_size(entry[key]):
            raise TableError(f"{FILE}: {where}: {key} is {entry[key]!r}, a count is needed")
    _check_flags(entry, where, _FLAGS)
    return Model(**entry)


def _quantised(entry: Mapping[str, Any], found: Mapping[str, Model]) -> Model:
    where = _check(entry, {"name", "source", "of", "bits", "group_size", "zero_point"})
    base = found.get(model_key(entry["of"]))
    if base is None:
        raise TableError(f"{FILE}: {where}: {entry['of']!r} is not a model above it")
    if not is_packing(entry["bits"], entry["group_size"]):
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
    return {model_key(model.name): model for model in _table()}


def model_key(name: str) -> str:
    """What two names of one model share.

    The last part of a hub name or path, lower case; a hub cache's folder names its model.
    """
    parts = [part for part in name.strip().lower().replace("\\", "/").split("/") if part]
    cached = next((part for part in parts if part.startswith("models--")), None)
    if cached is not None:
        return cached.split("--")[-1]
    return parts[-1].replace("_", "-") if parts else ""
