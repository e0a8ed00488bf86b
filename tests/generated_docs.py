"""The tables of docs/claims.md that are drawn up from the code: kinds, metrics, facts, units.

Each stands between `<!-- name: begin -->` and `<!-- name: end -->`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from analysis.claims import ClaimBase, kinds
from analysis.claims.rule import When
from analysis.evidence import FACTS, Evidence
from analysis.hardware import find_gpu
from analysis.metrics import LATENCIES, METRICS, STATISTICS
from analysis.reference import FACT_WORDS, GPU_FACTS, UNITS, units_for
from tests.builders import arm, dataset, startup, study
from tests.claims.helpers import ROUND


def table(head: str, rows: list[str]) -> str:
    """A Markdown table; `head` and rows without the outer bars."""
    rule = "|".join("---" for _ in head.split(" | "))
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {row} |" for row in rows)])


def own_fields(kind: Any) -> list[Any]:
    """Fields of a kind that not every claim has."""
    common = {field.name for field in msgspec.structs.fields(ClaimBase)}
    return [field for field in msgspec.structs.fields(kind) if field.name not in common]


def allowed(field: Any) -> str:
    """The values of a Literal field, the default one bold; empty for other fields."""
    types = get_args(field.type) if get_origin(field.type) in (Union, UnionType) else (field.type,)
    words = [w for kind in types if get_origin(kind) is Literal for w in get_args(kind) if w]
    shown = [f"**`{word}`**" if word == field.default else f"`{word}`" for word in words]
    return f"{field.encode_name}: {', '.join(shown)}" if shown else ""


def kinds_table() -> str:
    rows = []
    for kind in kinds().values():
        decides = re.split(r"(?<=[.?])\s", kind.doc.replace("\n", " "), maxsplit=1)[0]
        fields = own_fields(kind.claim)
        keys = " ".join(
            f"`{f.encode_name}`" if f.required else f"[`{f.encode_name}`]" for f in fields
        )
        values = "; ".join(filter(None, map(allowed, fields)))
        rows.append(f"`{kind.name}` | {decides} | {keys} | {values}")
    return table("kind | decides | keys (optional ones in brackets) | values", rows)


def units_of(base: str) -> str:
    """Units in which a figure of a base unit may be stated; a plain number has none."""
    return " ".join(f"`{unit}`" for unit in units_for(base)) if base else ""


def metrics_table() -> str:
    rows = []
    for metric in METRICS.values():
        names = [metric.name]
        if metric.name in LATENCIES:
            names = [f"{which}_{metric.name}" for which in (*STATISTICS, "p99")]
        better = "" if metric.better == "neither" else metric.better
        said = " ".join(f"`{name}`" for name in names)
        rows.append(f"{said} | {units_of(metric.unit)} | {better} | {metric.definition}")
    return table("metric | unit | better | definition", rows)


def facts_table() -> str:
    logged = dict.fromkeys(
        ("model_bytes", "kv_bytes", "kv_tokens", "max_model_len", "reported_max_concurrency"), 1e3
    )
    server = replace(arm("a", startup(logged, arm="a"), gpu="L40S"), own_model=ROUND)
    ev = Evidence(dataset(study()), study())
    rows = [f"`{f}` | {units_of(ev.fact(server, f).unit)} | {FACT_WORDS[f]}" for f in FACTS]
    return table("fact of an arm | unit | meaning", rows)


def gpu_facts_table() -> str:
    gpu = find_gpu("H100 SXM")
    assert gpu is not None
    rows = [f"`{f}` | {units_of(gpu.figure(f).unit)} | {FACT_WORDS[f]}" for f in GPU_FACTS]
    return table("fact of a GPU | unit | meaning", rows)


def units_table() -> str:
    rows = [f"`{unit}` | {factor:,.10g} {base}".rstrip() for unit, (base, factor) in UNITS.items()]
    return table("unit | is", rows)


def when_keys() -> list[str]:
    """First cells of the table of a rule's conditions: the key, and its values where listed."""
    cells = []
    for field in msgspec.structs.fields(When):
        values = allowed(field).partition(": ")[2]
        cells.append(f"`{field.encode_name}`" + (f": {values}" if values else ""))
    return cells


def common_keys() -> list[str]:
    """First cells of the table of every claim's keys."""
    return [f"`{field.encode_name}`" for field in msgspec.structs.fields(ClaimBase)]


TABLES = {
    "kinds": kinds_table,
    "metrics": metrics_table,
    "facts": facts_table,
    "gpu facts": gpu_facts_table,
    "units": units_table,
}
