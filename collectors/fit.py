"""Does an arm's server fit on its GPUs? Lower bounds of what it needs against what is there (pure).

vLLM takes `--gpu-memory-utilization` of a GPU, refuses to start where less is free, and needs room
for the weights and for the KV of one request of `--max-model-len`. Activations and graphs come on
top and are not reckoned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from collectors.errors import Problem
from collectors.flags import values
from collectors.hardware import Gpu
from collectors.model_folder import Shape

GIB = 2**30
UTILISATION = 0.92
"""vLLM's default since 0.28; 0.9 before. Where there is a help text, its figure is used."""
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_KV_NUMBER = {"bfloat16": 2.0, "float16": 2.0, "fp8": 1.0}
"""Bytes; of the newer, packed ones no more is known here than half a byte."""
_HUMAN = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)")

CAPABILITY: Mapping[str, tuple[int, int]] = {
    "awq": (7, 5),
    "gptq": (6, 0),
    "fp8": (7, 5),
    "compressed-tensors": (7, 0),
    "modelopt": (8, 0),
    "mxfp4": (8, 0),
}
"""Least compute capability by method: `get_min_capability` in vLLM 0.28.0's quantization/."""
_BFLOAT16 = (8, 0)
_LEAST = (7, 0)
"""Below it vLLM's own builds hold no kernels."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one server is told about memory, by its flags."""

    utilisation: float
    max_len: int | None
    """Tokens; None: the model's own."""
    shrinks: bool = False
    """Whether the longest context is cut to what fits ("auto")."""
    tp: int = 1
    pp: int = 1
    kv_tokens: int | None = None
    """Fixed by a number of blocks."""
    kv_bytes: int | None = None
    """Fixed, for each GPU."""
    kv_number: float | None = None
    """Bytes of a number of KV; None: as the model's."""
    offloaded: float = 0.0
    """Bytes of weights of each GPU that lie in the machine's memory."""
    dtype: str = ""
    quantization: str = ""

    @property
    def split(self) -> int:
        """GPUs that the weights are split over."""
        return self.tp * self.pp


def human(text: str | None) -> int | None:
    """A number as vLLM reads it: 4096, 4k (4,000), 4K (4,096); None: it is none."""
    found = _HUMAN.fullmatch((text or "").strip())
    if not found:
        return None
    return round(float(found[1]) * {**_DECIMAL, **_BINARY, "": 1}[found[2]])


def demand(words: Sequence[str], utilisation: float = UTILISATION) -> Demand:
    """What the words of a `vllm serve` ask for.

    Args:
        words: Its flags.
        utilisation: The installed version's default.
    """
    blocks = human(values(words, "--num-gpu-blocks-override"))
    block = human(values(words, "--block-size")) or 16
    kv_dtype = values(words, "--kv-cache-dtype") or "auto"
    kv_number = None if kv_dtype == "auto" else _KV_NUMBER.get(kv_dtype.partition("_")[0], 0.5)
    share = values(words, "--gpu-memory-utilization", "--device-memory-utilization")
    offload = values(words, "--cpu-offload-gb")
    return Demand(
        utilisation=_number(share, utilisation),
        max_len=human(values(words, "--max-model-len")),
        shrinks=values(words, "--max-model-len") in ("auto", "-1"),
        tp=human(values(words, "--tensor-parallel-size", "-tp")) or 1,
        pp=human(values(words, "--pipeline-parallel-size", "-pp")) or 1,
        kv_tokens=blocks * block if blocks else None,
        kv_bytes=human(values(words, "--kv-cache-memory-bytes")),
        kv_number=kv_number,
        offloaded=_number(offload, 0.0) * GIB,
        dtype=values(words, "--dtype") or "",
        quantization=values(words, "--quantization", "-q") or "",
    )


def _number(text: str | None, otherwise: float) -> float:
    try:
        return float(text) if text is not None else otherwise
    except ValueError:
        return otherwise


def weights_each(shape: Shape, asked: Demand) -> float | None:
    """Bytes of weights that each GPU holds at least."""
    if shape.weights is None:
        return None
    return max(shape.weights / asked.split - asked.offloaded, 0.0)


def kv_each(shape: Shape, asked: Demand) -> float:
    """Bytes of KV that each GPU must hold at least: what is fixed, else one longest request."""
    if asked.kv_bytes is not None:
        return float(asked.kv_bytes)
    tokens = asked.kv_tokens or asked.max_len or shape.max_len
    if shape.kv_token is None or tokens is None or (asked.shrinks and asked.kv_tokens is None):
        return 0.0
    # A KV head is not split: with more ways than heads each GPU holds a copy.
    ways = min(asked.tp, shape.kv_heads or asked.tp) * asked.pp
    return tokens * shape.kv_token * (asked.kv_number or 2.0) / 2.0 / ways


def server(where: str, shape: Shape | None, asked: Demand, gpu: Gpu) -> Iterator[Problem]:
    """Why one server does not fit on one of its GPUs; nothing where it does, or nothing is known.

    Args:
        where: "arm 'tp2', GPU 1".
        shape: Of its model; None where the model is not on this machine.
        asked: Its flags.
        gpu: One that it gets.
    """
    yield from _capable(where, shape, asked, gpu)
    if gpu.memory_total is None:
        return
    taken = asked.utilisation * gpu.memory_total
    if gpu.memory_free is not None and gpu.memory_free < taken:
        yield Problem(
            where,
            f"{_gib(gpu.memory_free)} of {_gib(gpu.memory_total)} free",
            f"{_gib(taken)} (--gpu-memory-utilization {asked.utilisation:g})",
            "end what else uses the GPU (nvidia-smi names it), or lower the share",
        )
    if shape is None:
        return
    weights = weights_each(shape, asked)
    if weights is None:
        return
    # KV that is fixed by flag is taken whatever the share says.
    fixed = asked.kv_bytes is not None or asked.kv_tokens is not None
    room = gpu.memory_total if fixed else taken
    kv = kv_each(shape, asked)
    split = f" (1/{asked.split} of all)" if asked.split > 1 else ""
    if weights > room:
        yield Problem(
            where,
            f"{_gib(room)} to use",
            f"{_gib(weights)} for the weights alone{split}",
            "split it over more GPUs (--tensor-parallel-size), or take smaller weights",
        )
    elif weights + kv > room:
        yield Problem(
            where,
            f"{_gib(room)} to use",
            f"{_gib(weights)} for the weights{split} and {_gib(kv)} for "
            + ("the KV that is fixed" if fixed else "the KV of one longest request"),
            "fix less KV" if fixed else "lower --max-model-len, or split it over more GPUs",
        )


def side_by_side(
    where: str, servers: Sequence[tuple[Shape | None, Demand]], gpu: Gpu
) -> Iterator[Problem]:
    """Why servers that stay up together, each with its KV fixed by a flag, do not fit on a GPU.

    They start at the same time, so that any may be the last to look at what is free.

    Args:
        where: "arms 'a', 'b', GPU 0".
        servers: Each that has a part on this GPU; nothing is said if one's model is not known.
        gpu: The GPU.
    """
    total, free = gpu.memory_total, gpu.memory_free
    if total is None:
        return
    held = []
    for shape, asked in servers:
        weights = weights_each(shape, asked) if shape else None
        if shape is None or weights is None:
            return
        held.append(weights + kv_each(shape, asked))
    room = total if free is None else free
    if sum(held) > room:
        yield Problem(
            where,
            f"{_gib(room)} free",
            f"{_gib(sum(held))} for weights and KV of {len(servers)} servers",
            "fix less KV, or drop shares_gpu",
        )
        return
    last = max(
        (sum(held) - mine + asked.utilisation * total, asked.utilisation)
        for mine, (_, asked) in zip(held, servers, strict=True)
    )
    if last[0] > room:
        yield Problem(
            where,
            f"{_gib(room)} free",
            f"{_gib(last[0])} when the last of {len(servers)} servers looks for its share "
            f"(--gpu-memory-utilization {last[1]:g})",
            "lower the share: KV that is fixed is not bound by it",
        )


def _capable(where: str, shape: Shape | None, asked: Demand, gpu: Gpu) -> Iterator[Problem]:
    if gpu.capability is None:
        return
    method = asked.quantization or (shape.quantization if shape else "")
    needs = [(_LEAST, "vLLM itself")]
    for known, least in CAPABILITY.items():
        if method.split("_")[0] == known:
            needs.append((least, f"{method} weights"))
    if asked.dtype == "bfloat16":
        needs.append((_BFLOAT16, "--dtype bfloat16"))
    for least, what in needs:
        if gpu.capability < least:
            yield Problem(
                where,
                f"{gpu.name} has compute capability {_dotted(gpu.capability)}",
                f"{_dotted(least)} for {what}",
                "choose another GPU or another arm",
            )


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
