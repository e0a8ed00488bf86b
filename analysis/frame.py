"""One row a run as a pandas table: what a reader opens in a notebook or a spreadsheet.

Columns: study, arm, workload, concurrency, level, validity, the figures of the file in base units
(seconds, tokens, tokens a second), the account (Little's law), and every configuration field that
is not equal in all runs; a field that is equal everywhere says nothing about a difference.
"""

from __future__ import annotations

import pandas as pd

from analysis.dataset import Cell
from analysis.metrics import metric_of
from analysis.pipeline import Analysis, StudyReport
from analysis.serialise import round_significant

ACCOUNT = {
    "throughput": "account_throughput_1/s",
    "stay": "account_stay_s",
    "in_flight": "account_in_flight",
    "l_first": "account_before_first_token",
    "l_decode": "account_past_first_token",
}
"""Quantity of the ledger -> column."""


def frame(analysis: Analysis) -> pd.DataFrame:
    """All runs of an analysis, in order; a missing figure is NaN."""
    rows = [
        row
        for report in analysis.studies
        for cell in report.study.cells
        for row in _rows(report, cell)
    ]
    table = pd.DataFrame(rows)
    names = [str(name) for name in table.columns]
    config = [name for name in names if name.startswith("config_")]
    # "1" and a missing value differ, so compare the printed forms.
    moved = [name for name in config if len({repr(value) for value in table[name]}) > 1]
    account = list(ACCOUNT.values())
    others = {*config, *account}
    figures = [name for name in names if name not in others]
    return table[[*figures, *account, *moved]]


def csv(analysis: Analysis) -> str:
    """The table as CSV, floats with 10 significant digits, the same bytes for the same input."""
    table = frame(analysis).map(_harmless)
    return table.to_csv(index=False, lineterminator="\n", float_format="%.10g")


def _rows(report: StudyReport, cell: Cell) -> list[dict[str, object]]:
    rows = []
    for account in cell.ledgers:
        run = account.run
        row: dict[str, object] = {
            "study": report.study.name,
            "arm": run.arm,
            "workload": run.workload,
            "concurrency": run.concurrency,
            "requested_rate_1/s": run.requested_rate,
            "run": run.id,
            "level": run.level.value,
            "validity": report.validity(run.id),
        }
        for name, figure in run.figures.items():
            metric = metric_of(name)
            unit = metric.unit if metric is not None else figure.unit
            row[f"{name}_{unit}" if unit else name] = figure.value
        for name, column in ACCOUNT.items():
            quantity = getattr(account, name)
            row[column] = None if quantity is None else round_significant(quantity.value)
        for key, value in {**cell.arm.config, **run.config}.items():
            row[f"config_{key}"] = value
        rows.append(row)
    return rows


def _harmless(value: object) -> object:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
