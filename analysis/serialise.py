"""Findings as JSON: plain types, 10 significant digits, the same bytes for the same input."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from analysis.model import Source
from analysis.pipeline import Analysis, StudyReport

SCHEMA_VERSION = 1
"""1: first published form (analysis/schema/findings.schema.json)."""

SIGNIFICANT = 10
"""Digits kept: differences between machines in the last bits of a float do not show."""

_OBEYED = re.compile(
    r"[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control and direction characters beside those that JSON escapes anyway."""


def document(analysis: Analysis) -> dict[str, Any]:
    """The whole of findings.json."""
    return {
        "schema": SCHEMA_VERSION,
        "studies": [_study(report) for report in analysis.studies],
        "skipped": [plain(item) for item in analysis.skipped],
    }


def dumps(analysis: Analysis) -> str:
    """findings.json as text, which a terminal may show."""
    text = json.dumps(document(analysis), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _study(report: StudyReport) -> dict[str, Any]:
    study = report.study
    runs = []
    for cell in study.cells:
        for run in cell.runs:
            runs.append(
                {
                    "id": run.id,
                    "arm": run.arm,
                    "workload": run.workload,
                    "concurrency": run.concurrency,
                    "level": run.level.value,
                    "source": plain(run.source),
                    "also_in": plain(run.also_in),
                    "validity": report.validity(run.id),
                    "checks": plain(report.checks(run.id)),
                    "warnings": plain(run.warnings),
                }
            )
    return {
        "name": study.name,
        "title": study.title,
        "warnings": list(study.spec.warnings),
        "arms": [
            {
                "name": arm.name,
                "config": plain(dict(arm.config)),
                "startup": plain(arm.startup.source) if arm.startup else None,
            }
            for arm in study.arms.values()
        ],
        "runs": runs,
        "findings": plain(report.findings),
        "answers": plain(report.answers),
    }


def plain(value: Any) -> Any:
    """Dataclasses, tuples and floats as JSON holds them; not-a-number and infinity as null."""
    if isinstance(value, Source):
        return {"file": value.file, "key": value.key}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return round_significant(value)
    return value


def round_significant(value: float) -> float | None:
    """A float with 10 significant digits; None where JSON has no word for it."""
    rounded = float(f"{value:.{SIGNIFICANT}g}")
    return rounded if math.isfinite(rounded) else None
