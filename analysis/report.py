"""Findings -> Markdown pages and findings.json; a second run leaves no stale page behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path, PurePosixPath

import msgspec

from analysis.checks import checks, verdict
from analysis.claims import ClaimBase, Kind, kinds
from analysis.frame import csv
from analysis.markdown import Safe, badge, code, environment, escape, link, up
from analysis.model import VERDICTS, Estimate, Figure, Finding, Outcome, Run, Source, Status
from analysis.page_names import page_names
from analysis.pipeline import Analysis, StudyReport
from analysis.quantity import quantity
from analysis.serialise import dumps
from analysis.wording import count_of, digits, shown_unit, span

TOP = ("index.md", "rules.md", "findings.json", "findings.schema.json", "runs.csv")
"""Files of the report that belong to no study."""

MANIFEST = ".findings-files"
"""Lists the files of the last run, so that the next one removes what it no longer writes."""

_QUESTIONS = {
    "standing.valid": "Valid?",
    "standing.binds": "What binds?",
    "standing.slots": "How many slots?",
    "standing.time": "Where does the time go?",
}


def pages(analysis: Analysis) -> dict[str, str]:
    """Every file of the report by its path below the output folder (pure)."""
    env = environment()
    names = page_names(analysis, TOP)
    env.globals.update(
        badge=badge,
        link=link,
        code=code,
        names=names,
        value=_value,
        interval=_interval,
        figure_text=_figure,
        level=_level,
        provenance=_provenance,
        why=_why,
        grouped=_grouped,
        runs_of=_runs_of,
        prose=Safe,
        up=up,
        keys=_keys,
        question=lambda finding: _QUESTIONS[finding.kind],
    )
    counts = Counter(f.verdict for report in analysis.studies for f in report.findings)
    out = {
        "index.md": env.get_template("index.md.jinja").render(
            studies=analysis.studies,
            skipped=analysis.skipped,
            verdicts=[(word, counts[word]) for word in VERDICTS if counts[word]],
        ),
        "rules.md": env.get_template("kinds.md.jinja").render(
            kinds=list(kinds().values()), checks=checks()
        ),
        "findings.json": dumps(analysis),
        "runs.csv": csv(analysis),
        "findings.schema.json": resources.files("analysis")
        .joinpath("schema/findings.schema.json")
        .read_text(encoding="utf-8"),
    }
    study_page, arm_page, claim_page = (
        env.get_template(f"{name}.md.jinja") for name in ("study", "arm", "claim")
    )
    for report in analysis.studies:
        study = report.study.name
        folder = names.folder(study)
        out[f"{folder}/index.md"] = study_page.render(
            report=report,
            runs=_runs(report),
            pairs=report.pairs,
            failed=[o for o in report.outcomes if o.status in ("SUSPECT", "INVALID")],
        )
        for arm in report.study.arms.values():
            cells = [(cell, found) for cell, found in report.cells if cell.arm is arm]
            path = f"{folder}/{names.arm(study, arm.name)}"
            out[path] = arm_page.render(arm=arm, study=report.study, cells=cells)
        for finding in report.findings:
            path = f"{folder}/{names.claim(study, finding.id)}"
            out[path] = claim_page.render(finding=finding, study=report.study)
    return {path: _tidy(text) if path.endswith(".md") else text for path, text in out.items()}


def write(analysis: Analysis, out: Path) -> tuple[int, list[str]]:
    """Write the report below `out`.

    Returns:
        The number of files, and those of the last run that were removed.

    Raises:
        OSError: the folder cannot be written.
    """
    files = pages(analysis)
    out.mkdir(parents=True, exist_ok=True)
    stale = [name for name in _manifest(out) if name not in files]
    for name in stale:
        # Before writing: where names differ in case only, a file system may hold one file.
        (out / name).unlink(missing_ok=True)
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(path.name + ".part")
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    (out / MANIFEST).write_text("".join(f"{name}\n" for name in sorted(files)), encoding="utf-8")
    return len(files), stale


def _manifest(out: Path) -> list[str]:
    """Files of the last run; names that would leave the folder are ignored."""
    try:
        lines = (out / MANIFEST).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    safe = [name for name in lines if name and ".." not in PurePosixPath(name).parts]
    return [name for name in safe if not PurePosixPath(name).is_absolute()]


def _tidy(text: str) -> str:
    """No more than one empty line in a row, one at the end."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines).strip() + "\n"


def _runs(report: StudyReport) -> list[tuple[Run, Status]]:
    return [(run, report.validity(run.id)) for run in report.study.runs]


def _why(finding: Finding) -> str:
    return finding.reasons[0]


def _level(finding: Finding) -> str:
    return finding.level.value if finding.level else Safe("-")


def _value(number: Estimate) -> str:
    return span(
        Estimate(number.name, number.value, number.value, number.value, number.unit, "")
        if number.lo == number.hi
        else number
    ).partition(" [")[0]


def _interval(number: Estimate) -> str:
    if number.lo == number.hi:
        return Safe("-")
    _, factor = shown_unit(number.unit, number.value)
    lo, hi = number.lo * factor, number.hi * factor
    return f"[{digits(lo, lo, hi)}, {digits(hi, lo, hi)}]"


def _figure(figure: Figure) -> str:
    return span(quantity(figure))


def _keys(kind: Kind) -> list[tuple[str, bool]]:
    """A kind's own keys, and whether a claim must give them."""
    common = {field.name for field in msgspec.structs.fields(ClaimBase)}
    return [
        (field.encode_name, field.required)
        for field in msgspec.structs.fields(kind.claim)
        if field.name not in common
    ]


def _provenance(finding: Finding) -> list[tuple[str, str, str]]:
    """(file, key, the numbers that rest on it) of every figure."""
    users: dict[Source, list[str]] = {}
    for number in finding.numbers:
        for source in number.sources:
            users.setdefault(source, []).append(number.name)
    return [
        (source.file, source.key or "the whole file", "; ".join(dict.fromkeys(names)))
        for source, names in users.items()
    ]


def _grouped(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, ...]]:
    """Outcomes of one check and status together: a check that every run fails is one row."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.code, outcome.status), []).append(outcome)
    return [tuple(group) for group in groups.values()]


def _runs_of(group: Sequence[Outcome]) -> str:
    return count_of([outcome.run for outcome in group], 2)


def summary_rows(analysis: Analysis) -> list[tuple[str, str, str, str, str]]:
    """(study, claim, verdict, level, why) of every claim, for the printed table."""
    return [
        (report.study.name, f.id, f.verdict, _level(f), _why(f))
        for report in analysis.studies
        for f in report.findings
    ]


def run_rows(analysis: Analysis) -> list[tuple[str, str, str, str]]:
    """(study, cell, validity, what the answers say) of every cell without claims to print."""
    rows: list[tuple[str, str, str, str]] = []
    for report in analysis.studies:
        if report.findings:
            continue
        for cell, found in report.cells:
            outcomes = tuple(o for o in report.outcomes if o.run in {run.id for run in cell.runs})
            words = " ".join(f.reasons[0] for f in found[1:])
            rows.append((report.study.name, cell.name, verdict(outcomes), words))
    return rows


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with every cell escaped."""

    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(escape(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)
