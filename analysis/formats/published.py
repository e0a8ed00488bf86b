"""A published table: a CSV as printed, and a TOML of the same stem that says what it means.

`name.csv` needs `name.toml` beside it (see `_sidecar`). Each cell is an interval: half a unit of
its last digit up and down, unless the description says otherwise. An empty cell is absent.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

import numpy as np

from analysis.formats import formats
from analysis.formats._files import lines_of, one_line, some_of
from analysis.formats._printed import UNITS, number_of, printed, scalar_of
from analysis.formats._sidecar import QUOTED_FIELDS, Sidecar, parse_sidecar, sidecar_path
from analysis.model import (
    Figure,
    Ignored,
    Lengths,
    Level,
    Quoted,
    Record,
    Run,
    Scalar,
    Skipped,
    Source,
    Startup,
)

MOST_ROWS, MOST_LENGTHS = 10_000, 200_000
"""Rows that are read of a table, and of a sample of lengths: each needs a kilobyte."""

Row = tuple[int, Mapping[str, str]]
"""Number, counted from 1 below the header, and the cells that are not empty, by column."""


def sniff(path: Path, head: bytes) -> bool:
    """Every CSV that is described, or that no tool writes (a sweep's summary.csv, samples)."""
    if path.suffix != ".csv" or sidecar_path(path).exists():
        return path.suffix == ".csv"
    if path.name == "summary.csv":
        return False
    others = (module for module in formats() if module.__name__ != __name__)
    return not any(other.sniff(path, head) for other in others)


def read(path: Path, file: str) -> list[Record]:
    """Runs, startup facts, lengths or quoted figures, as the description says."""
    if not sidecar_path(path).is_file():
        return [
            Skipped(
                file,
                f"a table without a description: put {sidecar_path(path).name} beside it that "
                "says what each column is (table, holds, [columns.NAME])",
            )
        ]
    if sidecar_path(path).is_symlink():
        # It is opened by the table's name, so the scan's care for links does not reach it.
        return [Skipped(file, f"{sidecar_path(path).name} is a link; copy the file here")]
    try:
        sidecar = parse_sidecar(path)
    except ValueError as error:
        return [Skipped(file, f"{sidecar_path(path).name}: {error}")]
    found: list[Record] = []
    try:
        rows, undescribed = _rows(path, sidecar, file, found)
    except ValueError as error:
        return [Skipped(file, str(error))]
    if undescribed:
        told = some_of(undescribed)
        found.append(
            Skipped(
                file,
                f"{sidecar_path(path).name} does not describe the column {told}; "
                "the other columns were read, add [columns.NAME] for it",
            )
        )
    reader = {"runs": _runs, "startup": _startups, "lengths": _lengths, "quoted": _quoted}
    return [*reader[sidecar.holds](rows, sidecar, file), *found]


def _rows(
    path: Path, sidecar: Sidecar, file: str, skipped: list[Record]
) -> tuple[list[Row], list[str]]:
    """The table's rows and the columns that nothing describes; broken rows go to `skipped`."""
    reader = csv.reader(lines_of(path))
    try:
        header = [name.strip().removeprefix("\ufeff") for name in next(reader, [])]
        known = set(header)
        absent = [name for name in sidecar.columns if name not in known]
        if absent:
            raise ValueError(
                f"no column {some_of(absent)}, which {sidecar_path(path).name} describes; "
                f"the header has {some_of(header, 6) or 'nothing'}"
            )
        if len(known) < len(header):
            raise ValueError("two columns of the header have the same name, rename one")
        rows: list[Row] = []
        most = MOST_LENGTHS if sidecar.holds == "lengths" else MOST_ROWS
        for number, cells in enumerate(reader, start=1):
            if number > most:
                told = f"more than {most:,} rows; the first were read, split the table"
                skipped.append(Skipped(file, told))
                break
            if not cells:
                continue
            if len(cells) != len(header):
                skipped.append(
                    Skipped(
                        file,
                        f"row {number} has {len(cells)} cells, the header {len(header)}; "
                        "quote a cell that holds a comma",
                    )
                )
                continue
            named = zip(header, (cell.strip() for cell in cells), strict=True)
            rows.append((number, {name: cell for name, cell in named if cell}))
    except csv.Error as error:
        raise ValueError(f"not a CSV: {one_line(str(error), 80)}") from None
    return rows, [name for name in header if name not in sidecar.columns]


def _fields(cells: Mapping[str, str], sidecar: Sidecar) -> dict[str, str]:
    return {
        column.field: cells[name]
        for name, column in sidecar.columns.items()
        if column.field and name in cells
    }


def _numbers(row: Row, sidecar: Sidecar) -> Iterator[tuple[str, str, Decimal]]:
    """Column, metric and number of every cell that holds a figure."""
    number, cells = row
    for name, column in sidecar.columns.items():
        if column.metric and name in cells:
            value = number_of(cells[name])
            if value is None:
                raise ValueError(
                    f"row {number}, {name} is {one_line(cells[name], 40)!r}, expected a number; "
                    "leave the cell empty where none was printed"
                )
            yield name, column.metric, value


def _figures(row: Row, sidecar: Sidecar, file: str) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for name, metric, value in _numbers(row, sidecar):
        column = sidecar.columns[name]
        source = Source(file, f"row {row[0]}, {name}")
        found[metric] = printed(metric, value, column.unit, source, column.rounding, column.basis)
        if found[metric].value < 0:
            raise ValueError(f"{source.key} is {value}, expected no negative number")
    if not found:
        raise ValueError(f"row {row[0]} holds no figure, fill in a cell or delete the row")
    return found


def _runs(rows: list[Row], sidecar: Sidecar, file: str) -> list[Record]:
    found: list[Record] = []
    for row in rows:
        number, cells = row
        fields = _fields(cells, sidecar)
        try:
            found.append(
                Run(
                    id=f"{file}#{number}",
                    level=Level.PUBLISHED,
                    source=Source(file, f"row {number}"),
                    figures=_figures(row, sidecar, file),
                    arm=fields.pop("arm", ""),
                    workload=fields.pop("workload", ""),
                    concurrency=_concurrency(number, fields.pop("concurrency", "")),
                    requested_rate=_rate(number, fields.pop("request_rate", "")),
                    config=_settings(fields),
                )
            )
        except ValueError as error:
            found.append(Skipped(file, str(error)))
    return found


def _settings(fields: Mapping[str, str]) -> dict[str, Scalar]:
    return {name: scalar_of(text) for name, text in fields.items()}


def _concurrency(row: int, text: str) -> int | None:
    value = number_of(text) if text else None
    if not text or text == "inf":
        return None
    if value is None or value < 1 or value != int(value):
        raise ValueError(f"row {row}: concurrency is {one_line(text, 40)!r}, expected a count")
    return int(value)


def _rate(row: int, text: str) -> float:
    if text in ("", "inf"):
        return math.inf
    value = number_of(text)
    if value is None or value <= 0:
        raise ValueError(
            f"row {row}: request_rate is {one_line(text, 40)!r}, expected a number or inf"
        )
    return float(value)


def _startups(rows: list[Row], sidecar: Sidecar, file: str) -> list[Record]:
    found: list[Record] = []
    for row in rows:
        number, cells = row
        fields = _fields(cells, sidecar)
        try:
            figures = _figures(row, sidecar, file)
        except ValueError as error:
            found.append(Skipped(file, str(error)))
            continue
        arm = fields.pop("arm", "")
        found.append(Startup(Source(file, f"row {number}"), arm, figures, _settings(fields)))
    return found


def _lengths(rows: list[Row], sidecar: Sidecar, file: str) -> list[Record]:
    pairs: list[tuple[int, int]] = []
    found: list[Record] = []
    for row in rows:
        try:
            values = {metric: value for _, metric, value in _numbers(row, sidecar)}
            pair = values["prompt_tokens"], values["output_tokens"]
            if any(value < 0 or value != int(value) for value in pair):
                raise ValueError(f"row {row[0]}: lengths are {pair[0]} and {pair[1]}, not counts")
            pairs.append((int(pair[0]), int(pair[1])))
        except ValueError as error:
            found.append(Skipped(file, str(error)))
        except KeyError as error:
            found.append(Skipped(file, f"row {row[0]} has no {error.args[0]}, fill in the cell"))
    if not pairs:
        return [*found, Skipped(file, "no row with a prompt and an output length")]
    columns = np.array(pairs, dtype=np.int64)
    return [Lengths(Source(file, ""), columns[:, 0].copy(), columns[:, 1].copy()), *found]


def _quoted(rows: list[Row], sidecar: Sidecar, file: str) -> list[Record]:
    by_field = {column.field: name for name, column in sidecar.columns.items()}
    absent = [field for field in QUOTED_FIELDS[:3] if field not in by_field]
    if absent:
        return [Skipped(file, f"no column has field = {some_of(absent)}, quoted figures need it")]
    value_column = sidecar.columns[by_field["value"]]
    figures: dict[str, Figure] = {}
    found: list[Record] = []
    for number, cells in rows:
        fields = _fields(cells, sidecar)
        name, text, unit = (fields.get(field, "") for field in QUOTED_FIELDS[:3])
        value = number_of(text)
        key = f"row {number}, {by_field['value']}"
        if value is None and not unit and text:
            told = one_line(f"{name}: {text}")
            found.append(Ignored(file, f"row {number} is in words, not a figure ({told})"))
        elif value is None or not name:
            found.append(
                Skipped(
                    file,
                    f"row {number} quotes {one_line(text, 40)!r} for {one_line(name, 60)!r}, "
                    "expected a name and a number",
                )
            )
        elif unit and unit not in UNITS:
            found.append(
                Skipped(
                    file,
                    f"row {number}: the unit is {one_line(unit, 40)!r}, "
                    f"expected one of {some_of(list(UNITS), 12)}",
                )
            )
        elif name in figures:
            found.append(Skipped(file, f"row {number} quotes {one_line(name, 60)!r} again"))
        else:
            figures[name] = printed(
                name, value, unit or "1", Source(file, key), value_column.rounding
            )
    if figures:
        found.insert(0, Quoted(Source(file, ""), figures))
    return found
