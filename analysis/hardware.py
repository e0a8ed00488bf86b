"""The GPUs that serving runs on: data-sheet figures, found by any name a tool prints for them.

The numbers are in hardware.toml, each with its document; this module reads it once, strictly.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from analysis.model import Figure, Source

FILE = "hardware.toml"
"""The table's name, as figures cite it."""

_GB = 1e9
_TERA = 1e12
_MIB = 2**20
_GIB = 2**30

_TYPES = frozenset({"fp16", "bf16", "fp8", "int8", "int4", "fp4"})
_LINKS = frozenset({"pcie", "nvlink", "infinity fabric"})
_WORDS = re.compile(r"\b(nvidia|tesla|geforce|amd|instinct|corporation|gpu)\b")
_CAPABILITY = re.compile(r"\d+\.\d|gfx[0-9a-f]+")
_COUNT = re.compile(r"^\s*\d+\s*x\s*(?=[a-z])")
_SUGGESTIONS = 3


class TableError(ValueError):
    """A shipped table breaks its own rules; the message names the file, the entry and the key."""


@dataclass(frozen=True, slots=True)
class Link:
    """How a GPU reaches another GPU of its host."""

    kind: str
    """pcie, nvlink or infinity fabric."""
    bandwidth: float
    """Bytes a second in one direction."""
    counts: str
    """What the number counts: which links, and what a data sheet prints instead."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What vLLM asks of a GPU before it runs one kind of quantised weights."""

    method: str
    minimum: float
    """Least CUDA compute capability."""
    amd: bool
    """Whether vLLM's table of supported hardware lists AMD GPUs for it."""
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as its maker describes it."""

    name: str
    aliases: tuple[str, ...]
    memory_bytes: float
    """What a driver reports in all where that is known, else the data sheet's GB as 2^30 bytes."""
    bandwidth: float
    """Bytes a second between memory and chip, the peak."""
    flops: float
    """FLOP/s on the tensor cores at the rated boost clock, dense; of `flops_type`."""
    flops_type: str
    """bf16, or fp16 where the GPU has no bf16."""
    link: Link
    compute_capability: str
    """"8.9" for CUDA, an architecture name such as gfx942 for AMD."""
    types: frozenset[str]
    source: str
    """The document the figures are from."""
    url: str
    note: str

    def supports(self, kind: str) -> bool:
        """Whether the tensor cores multiply this type (fp16, bf16, fp8, int8, int4, fp4).

        Weights stored in a type the tensor cores lack may still run, unpacked first: see `runs`.
        """
        return kind.strip().lower() in self.types

    def runs(self, method: str) -> bool | None:
        """Whether vLLM runs weights quantised by `method` here; None for an unknown method."""
        rule = requirement(method)
        if rule is None:
            return None
        capability = self.cuda_capability
        return rule.amd if capability is None else capability >= rule.minimum

    @property
    def cuda_capability(self) -> float | None:
        """Compute capability as a number; None where the GPU is no CUDA device."""
        return float(self.compute_capability) if self.compute_capability[0].isdigit() else None

    def figure(self, field: str) -> Figure:
        """One of `FIGURES` in base units, with the table as its source.

        Raises:
            KeyError: The field is not one of `FIGURES`, or is bf16_flops and the GPU has no bf16.
        """
        unit, words, read = _FIGURES[field]
        value = read(self)
        if value is None:
            raise KeyError(f"{self.name} has no {field}: it multiplies {self.flops_type}")
        source = Source(FILE, f"{self.name}, {words}")
        return Figure(field, value, value, value, unit, source, "datasheet")


_FIGURES: Mapping[str, tuple[str, str, Callable[[Gpu], float | None]]] = {
    "memory_bytes": ("B", "memory", lambda gpu: gpu.memory_bytes),
    "bandwidth": ("B/s", "bandwidth", lambda gpu: gpu.bandwidth),
    "bf16_flops": (
        "FLOP/s",
        "bf16, dense",
        lambda gpu: gpu.flops if gpu.flops_type == "bf16" else None,
    ),
    "flops": ("FLOP/s", "16 bit, dense", lambda gpu: gpu.flops),
    "link_bandwidth": ("B/s", "link, one direction", lambda gpu: gpu.link.bandwidth),
}

FIGURES = tuple(_FIGURES)
"""What `Gpu.figure` can give. `flops` is bf16 where the GPU has it, else fp16."""


def find_gpu(name: str) -> Gpu | None:
    """The GPU of that name, in any spelling a tool or a person uses; None if unknown or ambiguous.

    Case, spaces, hyphens, the maker's name and a leading count ("2x L4") do not matter. "A100" and
    "H100" alone are ambiguous (PCIe or SXM, 40 or 80 GB), so they find nothing.
    """
    return _by_key().get(_key(name))


def nearest(name: str) -> tuple[str, ...]:
    """Names of known GPUs that look like `name`, the likeliest first, for a message."""
    key = _key(name)
    keys = _by_key()
    begins = [gpu.name for known, gpu in keys.items() if key and known.startswith(key)]
    alike = difflib.get_close_matches(key, list(keys), n=_SUGGESTIONS, cutoff=0.5)
    found = dict.fromkeys(begins + [keys[match].name for match in alike])
    return tuple(found)[:_SUGGESTIONS]


def gpus() -> tuple[Gpu, ...]:
    """Every GPU of the table, in its order."""
    return _table()[0]


def requirement(method: str) -> Requirement | None:
    """What vLLM asks of a GPU for a quantisation method, by its name in the table."""
    wanted = method.strip().lower()
    return next((rule for rule in _table()[1] if rule.method == wanted), None)


def read_table(text: str) -> tuple[tuple[Gpu, ...], tuple[Requirement, ...]]:
    """Parse and check the text of a hardware table.

    Raises:
        TableError: A key is unknown, missing or out of range, or two GPUs share a name.
    """
    data = tomllib.loads(text)
    _check_keys("the file", data, {"gpu"}, {"vllm_quantization"})
    found = tuple(_gpu(entry) for entry in data["gpu"])
    rules = tuple(_requirement(entry) for entry in data.get("vllm_quantization", ()))
    owners: dict[str, str] = {}
    for gpu in found:
        for alias in (gpu.name, *gpu.aliases):
            owner = owners.setdefault(_key(alias), gpu.name)
            if owner != gpu.name:
                raise TableError(f"{FILE}: {alias!r} names both {owner} and {gpu.name}")
    return found, rules


@cache
def _table() -> tuple[tuple[Gpu, ...], tuple[Requirement, ...]]:
    return read_table(files("analysis").joinpath(FILE).read_text("utf-8"))


@cache
def _by_key() -> dict[str, Gpu]:
    return {_key(name): gpu for gpu in gpus() for name in (gpu.name, *gpu.aliases)}


def _key(name: str) -> str:
    """A name without what tools add or drop: count, maker, case, spaces and hyphens."""
    bare = _WORDS.sub(" ", _COUNT.sub("", name.lower().replace("_", " ")))
    return re.sub(r"[^a-z0-9]", "", bare)


_GPU_KEYS = {
    "name",
    "aliases",
    "memory_gb",
    "bandwidth_gb_s",
    "compute_capability",
    "types",
    "link",
    "source",
}
_GPU_MAY = {"usable_mib", "bf16_dense_tflops", "fp16_dense_tflops", "url", "note"}


def _gpu(entry: Mapping[str, Any]) -> Gpu:
    where = str(entry.get("name", "an entry without a name"))
    _check_keys(where, entry, _GPU_KEYS, _GPU_MAY)
    rates = [kind for kind in ("bf16", "fp16") if f"{kind}_dense_tflops" in entry]
    if len(rates) != 1:
        raise TableError(f"{FILE}: {where}: one of bf16_ and fp16_dense_tflops is needed")
    if not _CAPABILITY.fullmatch(entry["compute_capability"]):
        raise TableError(f"{FILE}: {where}: compute_capability {entry['compute_capability']!r}")
    unknown = set(entry["types"]) - _TYPES
    if unknown:
        raise TableError(f"{FILE}: {where}: unknown type {sorted(unknown)[0]!r}")
    _check_keys(f"{where}, link", entry["link"], {"kind", "gb_s", "counts"}, set())
    if entry["link"]["kind"] not in _LINKS:
        raise TableError(f"{FILE}: {where}: unknown link {entry['link']['kind']!r}")
    memory = (
        _positive(where, entry, "usable_mib") * _MIB
        if "usable_mib" in entry
        else _positive(where, entry, "memory_gb") * _GIB
    )
    return Gpu(
        name=entry["name"],
        aliases=tuple(entry["aliases"]),
        memory_bytes=memory,
        bandwidth=_positive(where, entry, "bandwidth_gb_s") * _GB,
        flops=_positive(where, entry, f"{rates[0]}_dense_tflops") * _TERA,
        flops_type=rates[0],
        link=Link(
            entry["link"]["kind"],
            _positive(where, entry["link"], "gb_s") * _GB,
            entry["link"]["counts"],
        ),
        compute_capability=entry["compute_capability"],
        types=frozenset(entry["types"]),
        source=entry["source"],
        url=entry.get("url", ""),
        note=entry.get("note", ""),
    )


def _requirement(entry: Mapping[str, Any]) -> Requirement:
    where = str(entry.get("method", "a requirement without a method"))
    _check_keys(where, entry, {"method", "minimum", "amd", "source"}, {"note"})
    return Requirement(
        entry["method"],
        _positive(where, entry, "minimum"),
        bool(entry["amd"]),
        entry["source"],
        entry.get("note", ""),
    )


def _check_keys(where: str, entry: Mapping[str, Any], must: set[str], may: set[str]) -> None:
    if unknown := set(entry) - must - may:
        raise TableError(f"{FILE}: {where}: unknown key {sorted(unknown)[0]!r}")
    if missing := must - set(entry):
        raise TableError(f"{FILE}: {where}: key {sorted(missing)[0]!r} is missing")


def _positive(where: str, entry: Mapping[str, Any], key: str) -> float:
    value = entry[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise TableError(f"{FILE}: {where}: {key} is {value!r}, a number above 0 is needed")
    return float(value)
