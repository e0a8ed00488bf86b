"""Findings -> Markdown pages and findings.json; a second run leaves no stale page behind."""

from __future__ import annotations

import errno
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Any

import jinja2

from analysis import page_words, server_page
from analysis.chart_parts import clean
from analysis.charts import figures, for_cells, for_finding, for_loads, table_of
from analysis.checks import checks, verdict
from analysis.claims import kinds
from analysis.controls import TOLERANCE, controls
from analysis.data_pages import DataPages, data_pages
from analysis.frame import csv
from analysis.kernel_page import gpu_rows, kernel_page
from analysis.markdown import Safe, anchor, badge, code, crumbs, environment, escape, link, up
from analysis.model import Estimate
from analysis.page_names import PageNames, page_names
from analysis.pipeline import Analysis, StudyReport
from analysis.serialise import dumps
from analysis.step_pages import cost, sections, step_rows
from analysis.wording import percent, plural, show, signed_percent

TOP = (
    "index.md", "quality.md", "rules.md", "glossary.md", "reproduce.md", "files",
    "findings.json", "findings.schema.json", "runs.csv",
)  # fmt: skip
"""Files of the report that belong to no study."""

MANIFEST = ".findings-files"
"""Lists the files of the last run by their hash, so that the next one removes what it no longer
writes, and nothing else: a file that is not as it was written is somebody else's."""

_WORDS = (
    "accounts", "bad", "board", "experiments", "figure_interval", "figure_text", "files", "gpu_of",
    "grouped", "headlines", "interval", "keys", "level", "levels", "listed", "parts_of",
    "plain_figure", "provenance", "runs", "runs_of", "said_again", "see_also", "short_run", "value",
    "why",
)  # fmt: skip
"""Functions of `page_words` that templates call by their name."""


def pages(analysis: Analysis) -> dict[str, str]:
    """Every file of the report by its path below the output folder (pure)."""
    names, data = page_names(analysis, TOP), data_pages(analysis)
    env = _environment(names, data)

    def page(template: str, **values: Any) -> str:
        return _tidy(env.get_template(f"{template}.md.jinja").render(**values))

    schema = resources.files("analysis").joinpath("schema/findings.schema.json")
    out = {
        "index.md": page("index", studies=analysis.studies, skipped=analysis.skipped,
                         verdicts=_counts(analysis)),
        "quality.md": page("quality", studies=analysis.studies, most=page_words.MOST_OUTCOMES),
        "rules.md": page("kinds", kinds=list(kinds().values()), checks=checks()),
        "glossary.md": page("glossary"),
        "reproduce.md": page("reproduce", studies=analysis.studies,
                             version=metadata.version("serving-assay")),
        "findings.json": dumps(analysis),
        "runs.csv": csv(analysis),
        "findings.schema.json": schema.read_text(encoding="utf-8"),
    }  # fmt: skip
    for file, rows in data.rows.items():
        out[data.page(file)] = page("data", file=file, rows=rows, most=12)
    for report in analysis.studies:
        out.update(_study_pages(report, names, page))
    return out


def _study_pages(report: StudyReport, names: PageNames, page: Any) -> dict[str, str]:
    """The pages of one study: its own, load curves, arms and claims."""
    study = report.study
    folder = names.folder(study.name)
    loads = [(workload, for_loads(study, workload)) for workload in study.workloads]
    if not any(found for _, found in loads):
        loads = []
    out = {
        f"{folder}/index.md": page(
            "study", report=report, charts=figures(for_cells(study), "time"), loads=bool(loads)
        )
    }
    if loads:
        shown = [(workload, figures(found, f"loads-{n}"), _load_rows(report, workload))
                 for n, (workload, found) in enumerate(loads)]  # fmt: skip
        out[f"{folder}/loads.md"] = page("loads", study=study, workloads=shown)
    for arm in study.arms.values():
        cells = [(cell, found) for cell, found in report.cells if cell.arm is arm]
        charts = figures(for_cells(study, arm.name), "time") if cells else ""
        out[f"{folder}/{names.arm(study.name, arm.name)}"] = page(
            "arm", arm=arm, study=study, cells=cells, charts=charts, steps=sections(study, arm),
            kernels=kernel_page(arm), gpus=gpu_rows([cell for cell, _ in cells]),
        )  # fmt: skip
    for finding in report.findings:
        charts = figures(for_finding(finding, list(study.arms), table_of(study, finding)), "chart")
        out[f"{folder}/{names.claim(study.name, finding.id)}"] = page(
            "claim", finding=finding, study=study, report=report, charts=charts
        )
    return out


_LOAD_COLUMNS = ("total_token_throughput", "output_throughput", "mean_ttft", "mean_itl")


def _load_rows(report: StudyReport, workload: str) -> list[tuple[Any, list[Any]]]:
    """Each cell of a workload with the numbers of its load curves."""
    rows: list[tuple[Any, list[Any]]] = []
    for cell in report.study.cells:
        if cell.workload == workload:
            total, *others = (cell.estimate(name, name) for name in _LOAD_COLUMNS)
            rows.append((cell, [total, _each(total, cell.concurrency), *others]))
    return rows


def _each(number: Estimate | None, load: int | None) -> Estimate | None:
    """A number for each request in flight."""
    if number is None or not load:
        return None
    return replace(number, value=number.value / load, lo=number.lo / load, hi=number.hi / load)


def _environment(names: PageNames, data: DataPages) -> jinja2.Environment:
    env = environment()
    env.filters["counted"] = page_words.counted
    env.filters["cut"] = clean
    env.globals.update({word: getattr(page_words, word) for word in _WORDS})
    env.globals["server"] = server_page
    env.globals.update(
        anchor=anchor, badge=badge, code=code, cost=cost, crumbs=crumbs, dash=Safe("-"), data=data,
        controls=controls, figures=figures, show=show, signed_percent=signed_percent,
        tolerance=percent(TOLERANCE, 0),
        line=Safe(" <br>"), link=link, names=names, prose=Safe,
        step_rows=step_rows,
        question=lambda finding: page_words.QUESTIONS[finding.kind], up=up,
    )  # fmt: skip
    return env


def _counts(analysis: Analysis) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter(
        f.verdict for r in analysis.studies for f in r.findings if not f.repeats
    )
    return [(word, counts[word]) for word in page_words.ORDER if counts[word]]


def site(analysis: Analysis) -> dict[str, str]:
    """The pages with all that `mkdocs serve -f DIR/mkdocs.yml` needs: a site of its own."""
    files = {f"docs/{path}": text for path, text in pages(analysis).items()}
    files["mkdocs.yml"] = environment().get_template("mkdocs.yml.jinja").render()
    files.update(_tree(resources.files("analysis").joinpath("theme"), "theme"))
    return files


def _tree(folder: Traversable, path: str) -> dict[str, str]:
    """Text files of a package folder by their path."""
    found: dict[str, str] = {}
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        below = f"{path}/{item.name}"
        if item.is_dir():
            found.update(_tree(item, below))
        elif not item.name.startswith("."):
            found[below] = item.read_text(encoding="utf-8")
    return found


def write(files: Mapping[str, str], out: Path) -> list[str]:
    """Write files below `out`, and remove those of the last run that are no longer written.

    Returns:
        The files that were removed.

    Raises:
        OSError: the folder cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    stale = [
        name
        for name, written in _manifest(out).items()
        if name not in files and not _through_link(out, name) and _hash_of(out / name) == written
    ]
    for name in stale:
        # Before writing: where names differ in case only, a file system may hold one file.
        (out / name).unlink(missing_ok=True)
    for name, text in files.items():
        _put(out, name, text.encode())
    listed = "".join(f"{_hash(text.encode())} {name}\n" for name, text in sorted(files.items()))
    _put(out, MANIFEST, listed.encode())
    return stale


def _put(out: Path, name: str, data: bytes) -> None:
    """Write a file whole or not at all, beside another run that writes the same one."""
    if _through_link(out, name):
        raise OSError(errno.ELOOP, f"{name} is or lies behind a link; remove the link")
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    draft.unlink(missing_ok=True)  # left by a run that was stopped, or a link
    try:
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hash_of(path: Path) -> str | None:
    """Of what a file holds; None where there is none that can be read."""
    try:
        return _hash(path.read_bytes()) if path.is_file() else None
    except OSError:
        return None


def _through_link(out: Path, name: str) -> bool:
    """Whether a path below `out` is a link, or passes one on its way."""
    parts = PurePosixPath(name).parts
    return any(out.joinpath(*parts[:end]).is_symlink() for end in range(1, len(parts) + 1))


def _manifest(out: Path) -> dict[str, str]:
    """Files of the last run with their hashes; names that would leave the folder are ignored."""
    try:
        lines = (out / MANIFEST).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    listed = {name: written for written, _, name in (line.partition(" ") for line in lines)}
    return {
        name: written
        for name, written in listed.items()
        if name and "\0" not in name and ".." not in PurePosixPath(name).parts
        if not PurePosixPath(name).is_absolute()
    }


def _tidy(text: str) -> str:
    """No more than one empty line in a row, one at the end."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines).strip() + "\n"


def summary_rows(analysis: Analysis) -> list[tuple[str, str, str, str, str]]:
    """(study, claim, verdict, level, why) of every claim, for the printed table."""
    return [
        (report.study.name, f.id, f.verdict, page_words.level(f), page_words.why(f))
        for report in analysis.studies
        for f in report.findings
    ]


def run_rows(analysis: Analysis) -> list[tuple[str, str, str, str]]:
    """(study, cell, validity, what the answers say) of every cell of a study without claims."""
    rows: list[tuple[str, str, str, str]] = []
    for report in analysis.studies:
        if report.findings:
            continue
        for cell, found in report.cells:
            outcomes = tuple(o for run in cell.runs for o in report.checks(run.id))
            failed = dict.fromkeys(
                f"{o.name}: {o.reason}." for o in outcomes if o.status in ("SUSPECT", "INVALID")
            )
            words = " ".join([*failed, *(f.reasons[0] for f in found[1:])])
            rows.append((report.study.name, cell.name, verdict(outcomes), words))
    return rows


def pair_rows(analysis: Analysis) -> list[str]:
    """Which arms differ, a sentence a pair, of studies without claims."""
    return [
        f"{report.study.name}: {finding.says} {' '.join(finding.reasons)}"
        for report in analysis.studies
        if not report.findings
        for finding in report.pairs
    ]


def totals(analysis: Analysis) -> list[str]:
    """Counts for the last lines: verdicts, claims that were not judged, validity of the runs."""
    lines = []
    verdicts = Counter(f.verdict for r in analysis.studies for f in r.findings)
    if verdicts:
        lines.append(", ".join(f"{count} {word}" for word, count in sorted(verdicts.items())))
    lost = sum(item.file.endswith("claims.toml") for item in analysis.skipped)
    if lost:
        lines.append(f"{plural(lost, 'line')} of claims.toml not judged: see above")
    for report in analysis.studies:
        counts = Counter(report.validity(run.id) for run in report.study.runs)
        text = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        lines.append(f"runs of {report.study.name}: {text or 'none'}")
    return lines


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with every cell escaped."""

    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(escape(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)
