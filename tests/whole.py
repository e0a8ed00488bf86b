"""Running the whole command on changed copies of the shipped results."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from analysis.model import Finding
from analysis.pipeline import Analysis, analyse

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"


PUBLISHED = ("writeup", "book-ch09")
"""Studies of published figures. Cases for and against advice in runs of our own are no part of a
flip of these, and take long to read."""


@cache
def published() -> Analysis:
    """Those studies as analysed once."""
    with tempfile.TemporaryDirectory() as folder:
        return analyse(copy_results(Path(folder) / "results", *PUBLISHED))


@cache
def shipped() -> Analysis:
    """The shipped results as analysed once; they take seconds."""
    return analyse(RESULTS)


def copy_results(target: Path, *studies: str) -> Path:
    """A copy of the shipped results, or of some of their studies, that a test may change."""
    for study in studies:
        shutil.copytree(RESULTS / study, target / study)
    if not studies:
        shutil.copytree(RESULTS, target)
    return target


def edit(path: Path, old: str, new: str) -> None:
    """Replace one text, which must be there."""
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {path.name}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def set_cell(path: Path, where: dict[str, str], column: str, value: str) -> None:
    """Change one figure of a published table."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    hits = [row for row in rows if all(row[k] == v for k, v in where.items())]
    assert hits, f"no row {where} in {path.name}"
    for row in hits:
        row[column] = value
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def findings(analysis: Analysis) -> dict[tuple[str, str], Finding]:
    """All findings by study and claim."""
    return {(r.study.name, f.id): f for r in analysis.studies for f in r.findings}


def verdict_after(tmp_path: Path, claim: str, change: Callable[[Path], None]) -> str:
    """Verdict of a claim of the first study after a change of its figures."""
    root = copy_results(tmp_path / "results", *PUBLISHED)
    change(root)
    return findings(analyse(root))["writeup", claim].verdict
