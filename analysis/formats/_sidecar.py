"""The TOML beside a table: what its columns mean, their units and how they were rounded.

```toml
table = "quantization.csv"          # the file of the same stem
holds = "runs"                      # runs, startup, lengths or quoted
said_in = "write-up, section 3"

[columns.arm]
field = "arm"                       # a label or a setting

[columns.mean_ttft_ms]
metric = "mean_ttft"                # a figure
unit = "ms"
rounding = "printed"                # the default; "exact", or a half-width in `unit`
```
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal, cast, get_args

from analysis.formats._files import one_line, some_of
from analysis.formats._printed import UNITS, Rounding
from analysis.metrics import metric_of
from analysis.model import LARGEST, Basis

Holds = Literal["runs", "startup", "lengths", "quoted"]

STARTUP_UNITS = {
    "model_bytes": "B",
    "kv_bytes": "B",
    "kv_tokens": "tok",
    "max_model_len": "tok",
    "reported_max_concurrency": "",
}
"""What a table of startup facts may hold, in the project's units."""
LENGTH_UNITS = {"prompt_tokens": "tok", "output_tokens": "tok"}
QUOTED_FIELDS = ("quantity", "value", "unit", "context")

_KEYS = ("table", "holds", "said_in", "columns")
_COLUMN_KEYS = ("field", "metric", "unit", "rounding", "basis")
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a `field` (label or setting) or a `metric` with its unit and rounding."""

    field: str = ""
    metric: str = ""
    unit: str = "1"
    rounding: Rounding = "printed"
    basis: Basis | None = None


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A table's description."""

    holds: Holds
    said_in: str
    columns: Mapping[str, Column]


def sidecar_path(table: Path) -> Path:
    """Where a table's description lies."""
    return table.with_suffix(".toml")


def parse_sidecar(table: Path) -> Sidecar:
    """The description of a table.

    Raises:
        ValueError: what is wrong with it, in one line.
    """
    path = sidecar_path(table)
    try:
        with path.open("rb") as file:
            found = tomllib.loads(file.read(_MOST_BYTES).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid TOML: {one_line(str(error), 120)}") from None
    _only(found, _KEYS, "")
    if found.get("table") != table.name:
        raise ValueError(f'table is {_told(found.get("table"))}, expected "{table.name}"')
    holds = found.get("holds")
    if holds not in get_args(Holds):
        raise ValueError(f"holds is {_told(holds)}, expected {_or(get_args(Holds))}")
    kind = cast(Holds, holds)
    columns = found.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise ValueError("no [columns.NAME] table, expected one for each column")
    said_in = found.get("said_in", "")
    if not isinstance(said_in, str):
        raise ValueError(f"said_in is {_told(said_in)}, expected text")
    described = {name: _column(name, column, kind) for name, column in columns.items()}
    return Sidecar(kind, said_in, described)


def _column(name: str, found: object, holds: Holds) -> Column:
    where = f"columns.{one_line(name, 40)}"
    if not isinstance(found, dict):
        raise ValueError(f"{where} is {_told(found)}, expected a table")
    _only(found, _COLUMN_KEYS, f"{where}.")
    texts = {key: found[key] for key in ("field", "metric", "unit", "basis") if key in found}
    for key, value in texts.items():
        if not isinstance(value, str):
            raise ValueError(f"{where}.{key} is {_told(value)}, expected text")
    if ("field" in found) == ("metric" in found):
        raise ValueError(f"{where} needs either field or metric")
    if "field" in found:
        if holds == "quoted" and texts["field"] not in QUOTED_FIELDS:
            raise ValueError(_nearest(f"{where}.field", texts["field"], QUOTED_FIELDS))
        return Column(field=texts["field"], rounding=_rounding(where, found))
    unit = texts.get("unit")
    if unit is None or unit not in UNITS:
        raise ValueError(f"{where}.unit is {_told(unit)}, expected {_or(UNITS)}")
    _check_metric(where, texts["metric"], unit, holds)
    basis = texts.get("basis")
    if basis is not None and basis not in get_args(Basis):
        raise ValueError(_nearest(f"{where}.basis", basis, get_args(Basis)))
    return Column("", texts["metric"], unit, _rounding(where, found), cast(Basis | None, basis))


def _check_metric(where: str, metric: str, unit: str, holds: Holds) -> None:
    if holds == "runs":
        known = metric_of(metric)
        if known is None:
            raise ValueError(
                f'{where}.metric is "{one_line(metric, 40)}", expected a metric of this project '
                "such as mean_ttft, p99_itl or output_throughput"
            )
        expected = known.unit
    else:
        units = {"startup": STARTUP_UNITS, "lengths": LENGTH_UNITS}.get(holds, {})
        if metric not in units:
            raise ValueError(_nearest(f"{where}.metric", metric, units))
        expected = units[metric]
    if UNITS[unit][1] != expected:
        right = [name for name, (_, base) in UNITS.items() if base == expected]
        raise ValueError(f'{where}.unit is "{unit}", but {metric} is in {_or(right)}')


def _rounding(where: str, found: Mapping[str, object]) -> Rounding:
    value = found.get("rounding", "printed")
    if value == "printed" or value == "exact":
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LARGEST:
        return Decimal(str(value))
    raise ValueError(
        f'{where}.rounding is {_told(value)}, expected "printed", "exact" or a half-width'
    )


def _only(found: Mapping[str, object], known: Iterable[str], prefix: str) -> None:
    for key in found:
        if key not in known:
            raise ValueError(_nearest(f"the key {prefix}{one_line(key, 40)}", key, known))


def _nearest(what: str, word: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(word, names, 1, 0.5)
    advice = f"did you mean {near[0]}?" if near else f"expected {_or(names) or 'none'}"
    shown = "" if what.endswith(word) else f' "{one_line(word, 40)}"'
    return f"{what}{shown} is not known: {advice}"


def _told(value: object) -> str:
    return "missing" if value is None else one_line(repr(value), 40)


def _or(names: Iterable[str]) -> str:
    return some_of(list(names), 12)
