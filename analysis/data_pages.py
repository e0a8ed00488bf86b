"""Pages of the raw figures: each file that a verdict rests on, with every key that was used.

A number on a claim's page links to its row here; the row shows the figure as the file gives it and
the claims that use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from analysis.dataset import Arm
from analysis.floor import kv_token_bytes
from analysis.hardware import gpus
from analysis.model import Estimate, Figure, Finding, Source
from analysis.models import models
from analysis.page_names import file_names
from analysis.pipeline import Analysis
from analysis.study import ArmSpec

_WORD = re.compile(r"(\D+)(\d{1,18})?")
_GPU_FIELDS = ("memory_bytes", "bandwidth", "flops", "link_bandwidth")


@dataclass(frozen=True, slots=True)
class Row:
    """One key of a file: its anchor, its figures, and who uses it."""

    key: str
    anchor: str
    figures: tuple[Figure, ...]
    """Empty where the number was counted, or read as text."""
    users: tuple[tuple[str, str], ...]
    """(study, claim id), each once, in order."""
    counted: tuple[Estimate, ...] = ()
    """Numbers that rest on this key alone, where it has no figure."""
    text: str = ""
    """What the file says there in words."""


@dataclass(frozen=True, slots=True)
class DataPages:
    """All pages of raw figures of a report."""

    rows: Mapping[str, tuple[Row, ...]]
    """By file, in order of first use; rows by their key, numbers in it as numbers."""
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
    figures, texts, counted = _figures(analysis), _texts(analysis), _counted(analysis)
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
                tuple(counted.get(source, ())),
                texts.get(source, ""),
            )
            for source in sorted(sources, key=lambda source: _natural(source.key))
        )
    return DataPages(rows, file_names(by_file, ("index",)), anchors)


def _natural(key: str) -> tuple[tuple[str, int], ...]:
    """A key for sorting in which row 2 stands before row 10."""
    return tuple((word, int(number or 0)) for word, number in _WORD.findall(key))


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
            for figure in _described(arm):
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
            ("FLOP a token", model.flops_per_token()),
        ):
            size = float(value)
            unit = "FLOP" if name.startswith("FLOP") else "B"
            add(Figure(name, size, size, size, unit, model.cite(name)))
    return found


def _counted(analysis: Analysis) -> dict[Source, list[Estimate]]:
    """Numbers by the one key that they rest on, each once."""
    found: dict[Source, list[Estimate]] = {}
    for report in analysis.studies:
        for finding in report.findings:
            for number in finding.numbers:
                if len(number.sources) != 1:
                    continue
                held = found.setdefault(number.sources[0], [])
                if all(other.value != number.value for other in held):
                    held.append(number)
    return found


def _texts(analysis: Analysis) -> dict[Source, str]:
    """Configuration of runs, and lines of help texts, by where they stand."""
    found: dict[Source, str] = {}
    for study in analysis.dataset.studies:
        for run in study.runs:
            for place in (run.source, *run.also_in):
                for name, value in run.config.items():
                    found[Source(place.file, f"{place.key} {name}".strip())] = str(value)
        for page in study.help_texts:
            for number, line in enumerate(page.text.splitlines(), 1):
                found[Source(page.source.file, f"line {number}")] = line.strip()
    return found


def _described(arm: Arm) -> Iterable[Figure]:
    """What study.toml or a start-up log says of an arm in numbers, and sizes of its model."""
    for field in msgspec.structs.fields(ArmSpec):
        value = getattr(arm.spec, field.name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            size = float(value)
            yield Figure(field.name, size, size, size, "", arm.stated_in(field.name))
    per_token = kv_token_bytes(arm)
    for figure in per_token.leaves if per_token is not None else ():
        ranks = (arm.spec.tensor_parallel, arm.spec.pipeline_parallel)
        split = f" at tensor parallel {ranks[0]}, pipeline parallel {ranks[1]}"
        yield replace(figure, name="KV bytes a token" + (split if max(ranks) > 1 else ""))
