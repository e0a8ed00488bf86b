"""Builds the real site into a folder, as `make site` does, and knows its pages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from tests.browser.parsed import Parsed, parse

ROOT = Path(__file__).parents[2]

PARTS = ("mkdocs.yml", "analysis/theme", "docs")
"""What the build reads; the generated findings below docs/ are left out and made anew."""


@dataclass(frozen=True)
class Site:
    """A built site."""

    root: Path
    """The folder to serve."""

    @cached_property
    def pages(self) -> tuple[str, ...]:
        """The address of each page below the root: "", "method/", ..., "404.html".

        All files and not only those of sitemap.xml, which lists none where `site_url` is not set.
        """
        files = (path.relative_to(self.root).as_posix() for path in self.root.rglob("*.html"))
        return tuple(sorted(name.removesuffix("index.html") for name in files))

    @cached_property
    def parsed(self) -> dict[str, Parsed]:
        """What is in each page's file, by address."""
        return {page: parse(self.file(page).read_text("utf-8")) for page in self.pages}

    @cached_property
    def findings(self) -> dict[str, Any]:
        """The published findings.json."""
        text = (self.root / "findings" / "findings.json").read_text("utf-8")
        found: dict[str, Any] = json.loads(text)
        return found

    def file(self, page: str) -> Path:
        """The file behind an address."""
        path = self.root / page
        return path / "index.html" if page.endswith("/") or not page else path

    @cached_property
    def studies(self) -> frozenset[str]:
        """The folders of studies below findings/."""
        parts = (PurePosixPath(page).parts for page in self.pages)
        return frozenset(p[1] for p in parts if len(p) > 3 and p[0] == "findings")

    def type_of(self, page: str) -> str:
        """Pages of one template share a type: "findings/*/claims/*", "decisions/*", "method"."""
        parts = list(PurePosixPath(page).parts)
        if len(parts) > 1 and parts[0] == "findings" and parts[1] in self.studies:
            parts[1] = "*"
            parts[3:] = ["*"] * bool(parts[3:])
        elif len(parts) > 1 and parts[0] == "findings":
            parts[2:] = ["*"] * bool(parts[2:])
        else:
            parts[1:] = ["*"] * bool(parts[1:])
        return "/".join(parts) or "home"

    @cached_property
    def examples(self) -> tuple[str, ...]:
        """One page of each type: one with most charts, and among these the longest."""
        best: dict[str, tuple[int, int, str]] = {}
        for page, parsed in self.parsed.items():
            mark = (len(parsed.charts), self.file(page).stat().st_size, page)
            best[self.type_of(page)] = max(best.get(self.type_of(page), mark), mark)
        return tuple(sorted(page for _, _, page in best.values()))

    @cached_property
    def with_charts(self) -> tuple[str, ...]:
        """One page of each type that has charts."""
        return tuple(page for page in self.examples if self.parsed[page].charts)


def build(folder: Path) -> Site:
    """Analyses results/ and builds the site strictly, all below `folder`.

    Raises:
        AssertionError: a step failed; holds what it printed.
    """
    generated = ROOT / "docs" / "findings"
    for part in PARTS:
        source, target = ROOT / part, folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_file():
            shutil.copy(source, target)
            continue
        shutil.copytree(
            source,
            target,
            ignore=lambda at, names: (
                [name for name in names if name != "README.md"] if Path(at) == generated else []
            ),
        )
    findings = str(folder / "docs" / "findings")
    _run([sys.executable, "-m", "analysis.cli", "results", "--out", findings], ROOT)
    words = ["build", "--strict", "--quiet", "--site-dir", "site"]
    _run([sys.executable, "-m", "mkdocs", *words], folder)
    return Site(folder / "site")


def _run(words: list[str], cwd: Path) -> None:
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=cwd, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
