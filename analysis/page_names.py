"""File names of pages, from names that results choose: safe, bounded, and never two the same."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.pipeline import Analysis
from analysis.study import slug

MOST_BYTES = 100
"""Of a file name without number and suffix: file systems allow 255."""


@dataclass(frozen=True, slots=True)
class PageNames:
    """Where the pages of a report stand."""

    folders: Mapping[str, str]
    """By study."""
    arms: Mapping[tuple[str, str], str]
    """By study and arm, without suffix."""
    claims: Mapping[tuple[str, str], str]
    """By study and claim, without suffix."""

    def folder(self, study: str) -> str:
        """The study's folder, below the report."""
        return self.folders[study]

    def arm(self, study: str, arm: str) -> str:
        """The arm's page, below the study's folder."""
        return f"arms/{self.arms[study, arm]}.md"

    def claim(self, study: str, claim: str) -> str:
        """The claim's page, below the study's folder."""
        return f"claims/{self.claims[study, claim]}.md"


def page_names(analysis: Analysis, taken: Iterable[str]) -> PageNames:
    """Names for every study, arm and claim; `taken` are files at the top of the report."""
    arms: dict[tuple[str, str], str] = {}
    claims: dict[tuple[str, str], str] = {}
    # MkDocs shows both of these at the address of their folder.
    front = ("index.md", "README.md")
    for report in analysis.studies:
        study = report.study.name
        for name, file in file_names(report.study.arms, front).items():
            arms[study, name] = file
        for name, file in file_names((f.id for f in report.findings), front).items():
            claims[study, name] = file
    studies = (report.study.name for report in analysis.studies)
    return PageNames(file_names(studies, (*taken, *front)), arms, claims)


def file_names(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """A file name for each name; where two would be one, the later gets a number.

    Names that differ in case or composition only count as one: some file systems and web
    servers cannot tell them apart. A page `x.md` takes the address of a folder `x`.
    """
    used = {_folded(form) for file in taken for form in (file, file.removesuffix(".md"))}
    found: dict[str, str] = {}
    for name in names:
        plain = slug(name).encode()[:MOST_BYTES].decode(errors="ignore").rstrip("-.")
        file, number = plain, 1
        while _folded(file) in used:
            number += 1
            file = f"{plain}-{number}"
        used.add(_folded(file))
        found[name] = file
    return found


def _folded(file: str) -> str:
    return unicodedata.normalize("NFKC", file).casefold()
