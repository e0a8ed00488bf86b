"""Pages of the raw figures: each file that a verdict rests on, with every key that was used.

A number on a claim's page links to its row here; the row shows the figure as the file gives it and
the claims that use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.hardware import gpus
from analysis.model import Figure, Finding, Source
from analysis.models import models
from analysis.page_names import file_names
from analysis.pipeline import Analysis

_GPU_FIELDS = ("memory_bytes", "bandwidth", "flops", "link_bandwidth")


@dataclass(frozen=True, slots=True)
class Row:
    """One key of a file: its anchor, its figures, and who uses it."""

    key: str
    anchor: str
    figures: tuple[Figure, ...]
    """Empty where the number was counted or looked up and is no figure of its own."""
    users: tuple[tuple[str, str], ...]
    """(study, claim id), each once, in order."""


@dataclass(frozen=True, slots=True)
class DataPages:
    """All pages of raw figures of a report."""

    rows: Mapping[str, tuple[Row, ...]]
    """By file, in order of first use."""
    names: Mapping[str, str]
    """File -> page below the report, without suffix."""
    anchors: Mapping[Source, str]

    def page(self, file: str) -> str:
        """The file's page, below the report."""
        return f"files/{self.names[file]}.md"

    def target(self, source: Source) -> str:
        """Where a number stands: page and anchor, below the report; empty for the sentence."""
        if not source.file:
            return ""
        return f"{self.page(source.file)}#{self.anchors[source]}"


def data_pages(analysis: Analysis) -> DataPages:
    """Collect every source that some claim's number names, with its figure where there is one."""
    figures = _figures(analysis)
    users: dict[Source, dict[tuple[str, str], None]] = {}
    for report in analysis.studies:
        for finding in report.findings:
            for source in _sources(finding):
                users.setdefault(source, {})[report.study.name, finding.id] = None
    by_file: dict[str, list[Source]] = {}
    for source in users:
        if source.file:
            by_file.setdefault(source.file, []).append(source)
    anchors: dict[Source, str] = {}
    rows: dict[str, tuple[Row, ...]] = {}
    for file, sources in by_file.items():
        slugs = file_names((source.key or "file" for source in sources), ("index",))
        for source in sources:
            anchors[source] = slugs[source.key or "file"]
        rows[file] = tuple(
            Row(
                source.key or "the whole file",
                anchors[source],
                tuple(figures.get(source, ())),
                tuple(users[source]),
            )
            for source in sources
        )
    return DataPages(rows, file_names(by_file, ("index",)), anchors)


def _sources(finding: Finding) -> Iterable[Source]:
    return dict.fromkeys(source for number in finding.numbers for source in number.sources)


def _figures(analysis: Analysis) -> dict[Source, list[Figure]]:
    """Every figure that was read or looked up, by where it stands."""
    found: dict[Source, list[Figure]] = {}

    def add(figure: Figure) -> None:
        held = found.setdefault(figure.source, [])
        if figure not in held:
            held.append(figure)

    for study in analysis.dataset.studies:
        for run in study.runs:
            for figure in run.figures.values():
                add(figure)
        for arm in study.arms.values():
            for figure in arm.startup.figures.values() if arm.startup is not None else ():
                add(figure)
        for quoted in study.quoted:
            for figure in quoted.figures.values():
                add(figure)
    for gpu in gpus():
        for name in _GPU_FIELDS:
            add(gpu.figure(name))
    for model in models():
        for name, value in (
            ("weights", model.weight_bytes()),
            ("input embedding", model.unread_embedding_bytes()),
        ):
            size = float(value)
            add(Figure(name, size, size, size, "B", model.cite(name)))
    return found
