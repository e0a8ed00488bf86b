"""runs.csv: one row a run, figures in base units, only configuration that differs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest

from analysis.frame import csv, frame
from analysis.pipeline import analyse
from tests.whole import shipped


def test_one_row_a_run_with_the_files_own_figures() -> None:
    analysis = shipped()
    table = frame(analysis)
    assert len(table) == sum(len(report.study.runs) for report in analysis.studies)
    row = table[table["run"] == "writeup/quantization_l40s.csv#1"].iloc[0]
    assert row["mean_itl_s"] == pytest.approx(0.0431)
    assert row["account_in_flight"] == pytest.approx(9.946, abs=1e-3)
    assert row["validity"] == "SUSPECT"
    assert list(table.columns[:3]) == ["study", "arm", "workload"]
    assert str(table.columns[-1]).startswith("config_")


def test_csv_reads_back_to_the_same_numbers() -> None:
    analysis = shipped()
    back = pd.read_csv(io.StringIO(csv(analysis)))
    table = frame(analysis)
    assert list(back.columns) == list(table.columns)
    assert back["duration_s"].to_numpy() == pytest.approx(
        table["duration_s"].to_numpy(dtype=float), nan_ok=True, rel=1e-9
    )


def record(path: Path, **change: object) -> None:
    values: dict[str, object] = {
        "model_id": "m", "num_prompts": 400, "request_rate": "inf", "max_concurrency": 8,
        "duration": 500.0, "completed": 400, "total_input_tokens": 40000,
        "total_output_tokens": 40000, "mean_ttft_ms": 100.0, "mean_itl_ms": 98.0,
    }  # fmt: skip
    path.write_text(json.dumps({**values, **change}), encoding="utf-8")


def test_equal_configuration_has_no_column_and_a_missing_value_differs(tmp_path: Path) -> None:
    record(tmp_path / "a.json", same="x", flag="on")
    record(tmp_path / "b.json", same="x", duration=501.0)
    table = frame(analyse(tmp_path))
    assert "config_same" not in table
    assert table["config_flag"].tolist()[0] == "on"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_text_that_a_spreadsheet_would_run_is_disarmed(tmp_path: Path, text: str) -> None:
    record(tmp_path / "a.json", note=text)
    record(tmp_path / "b.json", note="plain", duration=501.0)
    back = pd.read_csv(io.StringIO(csv(analyse(tmp_path))))
    assert back["config_note"].tolist() == [f"'{text}", "plain"]


def test_tens_of_thousands_of_keys(tmp_path: Path) -> None:
    for place in ("a", "b"):
        record(
            tmp_path / f"{place}.json",
            date=place,
            **{f"k{n}": f"{place}{n}" for n in range(30_000)},
        )
    table = frame(analyse(tmp_path))
    assert len(table) == 2
    assert sum(str(name).startswith("config_k") for name in table.columns) == 30_000
