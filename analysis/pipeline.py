"""Results folder -> findings, in five steps: scan, group, check, judge, answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from analysis.checks import check_cell
from analysis.dataset import Dataset, Study
from analysis.judge import judge_study
from analysis.load import load
from analysis.model import Finding, Outcome, Skipped
from analysis.standing import standing


@dataclass(frozen=True, eq=False, slots=True)
class StudyReport:
    """Everything said of one study."""

    study: Study
    findings: tuple[Finding, ...]
    """Of its claims, in the order of claims.toml."""
    answers: tuple[Finding, ...]
    """Of the standing questions."""
    outcomes: tuple[Outcome, ...]
    """Every check of every run."""


@dataclass(frozen=True, eq=False, slots=True)
class Analysis:
    """The result of `analyze`."""

    dataset: Dataset
    studies: tuple[StudyReport, ...]
    skipped: tuple[Skipped, ...]


def analyse(root: Path, *, jobs: int = 1, only: Collection[str] = ()) -> Analysis:
    """Run the pipeline on a folder or a single file.

    Raises:
        BadInput: `only` names no study, or two studies share a name.
        OSError: the folder cannot be read at all.
    """
    dataset = load(root, jobs=jobs, only=only)
    reports, skipped = [], list(dataset.skipped)
    for study in dataset.studies:
        if only and study.name not in only:
            continue
        judged = judge_study(dataset, study)
        skipped.extend(judged.skipped)
        outcomes = tuple(outcome for cell in study.cells for outcome in check_cell(cell))
        reports.append(StudyReport(study, judged.findings, standing(study), outcomes))
    return Analysis(dataset, tuple(reports), tuple(skipped))
