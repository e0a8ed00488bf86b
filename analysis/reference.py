"""One number that a claim names: a metric of a cell, a start-up fact, a quoted figure ...

References nest (`minus`, `over`, `times`), so that "the KV cache gained" is the difference of
two facts and every verdict still rests on figures with a file and a key.
"""

from __future__ import annotations

import re

import msgspec
import numpy as np

from analysis.dataset import Cell
from analysis.evidence import BadClaim, Evidence
from analysis.hardware import find_gpu
from analysis.hardware import nearest as nearest_gpu
from analysis.metrics import label_of
from analysis.model import Figure, Source
from analysis.pairing import of_shared_seeds
from analysis.quantity import Quantity, quantity
from analysis.study import nearest
from analysis.wording import listing

GPU_FACTS = ("memory_bytes", "bandwidth", "flops", "link_bandwidth")
"""Facts of a GPU's data sheet, as `fact` beside `gpu` names them."""
FACT_WORDS = {
    "model_bytes": "model size",
    "kv_bytes": "KV cache size as printed",
    "kv_tokens": "KV cache tokens",
    "kv_tokens_total": "KV cache tokens of all engines",
    "kv_bytes_total": "KV cache size of all GPUs",
    "kv_bytes_per_token": "KV bytes a token on one GPU",
    "max_model_len": "max_model_len",
    "reported_max_concurrency": "maximum concurrency as reported",
    "weights_read": "weights read a step",
    "gpu_memory": "GPU memory",
    "memory_bytes": "memory",
    "bandwidth": "memory bandwidth",
    "flops": "dense 16-bit FLOP/s",
    "link_bandwidth": "link bandwidth",
}
"""What a fact is called in a sentence."""
_WAYS = ("metric", "fact", "quoted", "value", "sample")
_STATS = ("min", "mean", "median", "max", "count")


class Ref(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A reference to one number. One of `metric`, `fact`, `quoted`, `value`, `sample` is set."""

    study: str = ""
    """Another study; the claim's own when empty."""
    arm: str = ""
    workload: str = ""
    concurrency: int | None = None
    metric: str = ""
    """A metric of the cell (arm, workload, concurrency): `mean_itl`, `in_flight` ..."""
    fact: str = ""
    """A start-up fact of the arm (`kv_tokens`, `model_bytes` ...) or of the `gpu`."""
    gpu: str = ""
    quoted: str = ""
    """A figure by its name in a table of quoted figures."""
    value: str = ""
    """A number given by the sentence itself, as printed there."""
    unit: str = ""
    sample: str = ""
    """A workload whose length sample is meant, with `stat`."""
    stat: str = ""
    """`max_prompt`, `mean_output`, `median_total` ..."""
    times: float = 1.0
    plus: Ref | None = None
    minus: Ref | None = None
    over: Ref | None = None


def resolve(ev: Evidence, ref: Ref) -> Quantity:
    """The number a reference stands for."""
    result = _plain(ev, ref)
    if ref.times != 1.0:
        result = result * ref.times
    if ref.plus is not None:
        result = result + like(result, resolve(ev, ref.plus))
    if ref.minus is not None:
        result = result - like(result, resolve(ev, ref.minus))
    if ref.over is not None:
        result = result / resolve(ev, ref.over)
    return result


def resolve_pair(ev: Evidence, of: Ref, against: Ref) -> tuple[Quantity, Quantity]:
    """Two numbers that are compared; of one metric of two cells, over the seeds that they share."""
    if not (is_cell(of) and is_cell(against) and of.metric == against.metric):
        return resolve(ev, of), resolve(ev, against)
    # Both as they stand, for what is wrong with either to be said.
    resolve(ev, of), resolve(ev, against)
    (mine,), (other,) = cells_of(ev, of), cells_of(ev, against)
    left, right = of_shared_seeds(mine, other)
    return ev.need(left, of.metric), ev.need(right, against.metric)


def like(mine: Quantity, other: Quantity) -> Quantity:
    """The other term of a sum, which must be in the same unit."""
    if mine.unit != other.unit:
        raise BadClaim(
            f"adds figures in {mine.unit or 'no unit'} and in {other.unit or 'no unit'}; "
            "only like units can be added or subtracted"
        )
    return other


def _plain(ev: Evidence, ref: Ref) -> Quantity:
    given = [key for key in _WAYS if getattr(ref, key)]
    if len(given) > 1:
        raise BadClaim(f"has a reference with {listing(given)}; give one of them")
    _complete(ref)
    if ref.metric:
        return ev.need(ev.cell(ref.arm, ref.workload, ref.concurrency, ref.study), ref.metric)
    if ref.fact and ref.gpu:
        gpu = find_gpu(ref.gpu)
        if gpu is None:
            raise BadClaim(
                f"names GPU {ref.gpu!r}, which hardware.toml does not have; "
                f"nearest: {listing(nearest_gpu(ref.gpu), 'or')}"
            )
        if ref.fact not in GPU_FACTS:
            raise BadClaim(f"names GPU fact {ref.fact!r}; {nearest(ref.fact, GPU_FACTS)}")
        return quantity(gpu.figure(ref.fact))
    if ref.fact:
        return ev.fact(ev.arm(ref.arm, ref.study), ref.fact)
    if ref.quoted:
        return _quoted(ev, ref)
    if ref.value:
        return stated(ref.value, ref.unit)
    if ref.sample:
        return _statistic(ev, ref)
    raise BadClaim("has a reference without metric, fact, quoted, value or sample; give one")


def _complete(ref: Ref) -> None:
    """Refuse a figure of a run or a server that does not say whose."""
    absent = [key for key in ("arm", "workload") if not getattr(ref, key)]
    if ref.metric and absent:
        raise BadClaim(
            f"has a reference with metric and no {listing(absent, 'or')}; add {absent[0]}"
        )
    if ref.fact and not (ref.arm or ref.gpu):
        raise BadClaim("has a reference with fact and no arm or gpu; add the one whose fact it is")


def _quoted(ev: Evidence, ref: Ref) -> Quantity:
    tables = ev.in_study(ref.study).quoted
    for table in tables:
        if ref.quoted in table.figures:
            return quantity(table.figures[ref.quoted])
    known = [name for table in tables for name in table.figures]
    raise BadClaim(
        f"names the quoted figure {ref.quoted!r}, which is not there; {nearest(ref.quoted, known)}"
    )


def _statistic(ev: Evidence, ref: Ref) -> Quantity:
    sample = ev.lengths(ref.sample, ref.study)
    stat, _, column = ref.stat.partition("_")
    columns = {
        "prompt": sample.prompt,
        "output": sample.output,
        "total": sample.prompt + sample.output,
    }
    if stat not in _STATS or column not in columns:
        raise BadClaim(
            f"names the statistic {ref.stat!r}; expected one of "
            f"{', '.join(_STATS)} and prompt, output or total: max_prompt"
        )
    values = columns[column]
    value = float(len(values) if stat == "count" else getattr(np, stat)(values))
    source = Source(sample.source.file, f"{stat} of {column} tokens")
    return quantity(Figure(ref.stat, value, value, value, "tok", source))


def describe(ref: Ref) -> str:
    """A reference in words."""
    text = _describe_plain(ref)
    if ref.times != 1.0:
        text = f"{ref.times:g} x {text}"
    for word, other in (("plus", ref.plus), ("minus", ref.minus), ("over", ref.over)):
        if other is not None:
            text += f" {word} {describe(other)}"
    return text


def described_beside(ref: Ref, other: Ref) -> str:
    """The same, shortened where it differs from `other` in one thing: "that of awq"."""
    nested = (ref.plus, ref.minus, ref.over, other.plus, other.minus, other.over)
    if any(nested) or ref.times != 1.0 or other.times != 1.0 or ref.quoted or ref.value:
        return describe(ref)
    where = f" ({ref.study})" if ref.study else ""
    mine = (ref.metric, ref.fact, ref.arm, ref.gpu, ref.workload, ref.concurrency, ref.study)
    theirs = (
        other.metric,
        other.fact,
        other.arm,
        other.gpu,
        other.workload,
        other.concurrency,
        other.study,
    )
    apart = [i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b]
    if apart == [2] and (ref.metric or ref.fact):
        return f"that of {ref.arm}{where}"
    if apart == [4] and ref.metric:
        return f"that on {ref.workload}{where}"
    if apart == [5] and ref.metric:
        return f"that {_load(ref)}{where}"
    return describe(ref)


def _describe_plain(ref: Ref) -> str:
    where = f" ({ref.study})" if ref.study else ""
    if ref.metric:
        return f"{label_of(ref.metric)} of {ref.arm} on {ref.workload} {_load(ref)}{where}"
    if ref.fact:
        return f"{FACT_WORDS.get(ref.fact, ref.fact)} of {ref.gpu or ref.arm}{where}"
    if ref.quoted:
        return f"the quoted {ref.quoted}{where}"
    if ref.value:
        return f"the stated {ref.value} {ref.unit}".rstrip()
    return f"{ref.stat.replace('_', ' ')} tokens in the sample of {ref.sample}{where}"


def _load(ref: Ref) -> str:
    """The load of a cell: "at 10 in flight", "without a cap"."""
    return "without a cap" if ref.concurrency is None else f"at {ref.concurrency} in flight"


def is_cell(ref: Ref) -> bool:
    """Whether a reference is a metric of one cell and nothing else, so that its repeats compare."""
    return bool(ref.metric) and ref.times == 1.0 and not (ref.plus or ref.minus or ref.over)


def cells_of(ev: Evidence, *refs: Ref | None) -> tuple[Cell, ...]:
    """The cells behind references, nested ones included."""
    found: list[Cell] = []
    for ref in refs:
        if ref is None:
            continue
        if ref.metric:
            found.append(ev.cell(ref.arm, ref.workload, ref.concurrency, ref.study))
        found.extend(cells_of(ev, ref.plus, ref.minus, ref.over))
    return tuple(dict.fromkeys(found))


UNITS = {
    "ms": ("s", 1e-3),
    "GiB": ("B", 2.0**30),
    "GB": ("B", 1e9),
    "x": ("", 1.0),
    "ratio": ("", 1.0),
    "%": ("", 0.01),
    "percent": ("", 0.01),
}
"""A unit as a claim may write it: the unit inside and the factor to it."""

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")


def base_unit(unit: str) -> tuple[str, float]:
    """The unit inside for a unit as printed, and the factor to it."""
    return UNITS.get(unit, (unit, 1.0))


def units_for(base: str) -> list[str]:
    """The units in which a figure of this base unit may be stated."""
    return [*([base] if base else []), *(name for name, (of, _) in UNITS.items() if of == base)]


def stated(text: str, unit: str = "") -> Quantity:
    """A number as a sentence prints it, in base units, with half its last digit either way.

    Raises:
        BadClaim: the text is no plain decimal number.
    """
    plain = text.replace(",", "").strip()
    if _DECIMAL.fullmatch(plain) is None:
        raise BadClaim(f"states {text!r}, which is no plain number; write it like '2.74'")
    value = float(plain)
    places = len(plain.partition(".")[2])
    base, factor = base_unit(unit)
    half = 0.5 * 10.0**-places
    source = Source("", f"stated: {text}{' ' + unit if unit else ''}")
    figure = Figure(
        "stated",
        value * factor,
        (value - half) * factor,
        (value + half) * factor,
        base,
        source,
        "printed",
    )
    return quantity(figure)
