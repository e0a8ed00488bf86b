"""Results folder -> findings, in five steps: scan, group, check, judge, answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from analysis.checks import by_run, check_cell, verdict
from analysis.dataset import Cell, Dataset, Study
from analysis.judge import judge_study
from analysis.load import load
from analysis.model import Finding, Outcome, Skipped, Validity
from analysis.standing import of_cell, of_pairs, uncompared


@dataclass(frozen=True, eq=False)
class StudyReport:
    """Everything said of one study."""

    study: Study
    findings: tuple[Finding, ...]
    """Of its claims, in the order of claims.toml."""
    cells: tuple[tuple[Cell, tuple[Finding, ...]], ...]
    """Each cell with the answers to its standing questions."""
    pairs: tuple[Finding, ...]
    """Which arms differ at equal workload and load, and by how much."""
    outcomes: tuple[Outcome, ...]
    """Every check of every run."""

    @cached_property
    def _by_run(self) -> Mapping[str, tuple[Outcome, ...]]:
        return by_run(self.outcomes)

    def checks(self, run: str) -> tuple[Outcome, ...]:
        """Every check of a run, by its id."""
        return self._by_run.get(run, ())

    def validity(self, run: str) -> Validity:
        """The worst check of a run, by its id."""
        return verdict(self.checks(run))

    @property
    def answers(self) -> tuple[Finding, ...]:
        """Of all standing questions."""
        return (*(finding for _, found in self.cells for finding in found), *self.pairs)


@dataclass(frozen=True, eq=False, slots=True)
class Analysis:
    """The result of `analyze`."""

    dataset: Dataset
    studies: tuple[StudyReport, ...]
    skipped: tuple[Skipped, ...]


def analyse(root: Path, *, jobs: int = 1, only: Collection[str] = ()) -> Analysis:
    """Run the pipeline on a folder or a single file.

    Raises:
        BadInput: `only` names no study.
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
        cells = tuple((cell, of_cell(study, cell)) for cell in study.cells)
        pairs = tuple(of_pairs(study))
        skipped.extend(uncompared(study))
        reports.append(StudyReport(study, judged.findings, cells, pairs, outcomes))
    return Analysis(dataset, tuple(reports), tuple(skipped))
