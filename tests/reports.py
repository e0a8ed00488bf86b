"""Studies built in memory, taken through every step behind the reading of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.checks import check_cell
from analysis.dataset import Dataset, Study
from analysis.judge import judge_study
from analysis.model import Estimate, Finding, Level, Skipped, Source
from analysis.pipeline import Analysis, StudyReport
from analysis.standing import of_cell, of_pairs

SENTENCE = {"says": "a sentence", "source": "a text"}


def report(study: Study, findings: Sequence[Finding] = (), dataset: Dataset | None = None) -> Any:
    """Checks, claims and standing questions of a study; `findings` instead of its claims."""
    judged = judge_study(dataset or Dataset((study,)), study)
    return StudyReport(
        study,
        tuple(findings) or judged.findings,
        tuple((cell, of_cell(study, cell)) for cell in study.cells),
        tuple(of_pairs(study)),
        tuple(outcome for cell in study.cells for outcome in check_cell(cell)),
    )


def analysis(*reports: StudyReport | Study, skipped: Sequence[Skipped] = ()) -> Analysis:
    """An analysis of these studies."""
    found = [one if isinstance(one, StudyReport) else report(one) for one in reports]
    return Analysis(Dataset(tuple(r.study for r in found)), tuple(found), tuple(skipped))


def finding(id: str = "c", study: str = "s", **more: Any) -> Finding:
    """A finding of no kind in particular."""
    fields: dict[str, Any] = {
        "kind": "magnitude",
        "says": "a sentence",
        "said_in": "a text",
        "verdict": "supported",
        "reasons": ("A reason.",),
        "level": Level.SUMMARY,
        **more,
    }
    return Finding(id=id, study=study, **fields)


def estimate(
    value: float, lo: float | None = None, hi: float | None = None, **more: Any
) -> Estimate:
    """A number of one file."""
    fields: dict[str, Any] = {
        "name": "n",
        "unit": "",
        "interval": "exact",
        "sources": (Source("a.json", "key"),),
        **more,
    }
    return Estimate(
        value=value, lo=value if lo is None else lo, hi=value if hi is None else hi, **fields
    )
