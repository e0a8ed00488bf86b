"""How findings, figures and runs are worded in the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from analysis.claims import ClaimBase, Kind
from analysis.dataset import Cell
from analysis.floor import step_floor
from analysis.headlines import answer, chosen
from analysis.markdown import Safe
from analysis.model import LEVELS, Estimate, Figure, Finding, Level, Outcome, Run, Source, Validity
from analysis.next_runs import Suggestion, suggestions
from analysis.pipeline import StudyReport
from analysis.quantity import quantity
from analysis.wording import count_of, digits, plural, shown_unit, span

ORDER = ("refuted", "inconclusive", "untestable", "supported")
"""Of verdicts on the board: what a reader should know first."""

MOST_OUTCOMES = 1000
"""Checks listed one by one; beyond that only those that did not pass."""

QUESTIONS = {
    "standing.valid": "Valid?",
    "standing.binds": "What binds?",
    "standing.slots": "How many slots?",
    "standing.time": "Where does the time go?",
}


def runs(report: StudyReport) -> list[tuple[Run, Validity]]:
    """Each run of a study with its validity."""
    return [(run, report.validity(run.id)) for run in report.study.runs]


def why(finding: Finding) -> str:
    """The first reason: cause and size."""
    return finding.reasons[0]


def level(finding: Finding) -> str:
    """The letter of the evidence level."""
    return finding.level.value if finding.level else Safe("-")


def readable(number: Estimate) -> Estimate:
    """A share or a relative change as a percentage, which is how sentences give it."""
    words = number.name.split()
    if number.unit or not ("share" in words or words[:1] == ["change,"]):
        return number
    value, lo, hi = (100 * x for x in (number.value, number.lo, number.hi))
    return replace(number, value=value, lo=lo, hi=hi, unit="%")


def value(number: Estimate) -> str:
    """A number's value with its unit."""
    number = readable(number)
    return span(
        Estimate(number.name, number.value, number.value, number.value, number.unit, "")
        if number.lo == number.hi
        else number
    ).partition(" [")[0]


def interval(number: Estimate) -> str:
    """A number's interval, or a dash where it is exact."""
    number = readable(number)
    if number.lo == number.hi:
        return Safe("-")
    _, factor = shown_unit(number.unit, number.value)
    lo, hi = number.lo * factor, number.hi * factor
    return f"[{digits(lo, lo, hi)}, {digits(hi, lo, hi)}]"


def counted(number: Estimate) -> str:
    """A number that was counted, with six digits: no print has rounded it."""
    name, factor = shown_unit(number.unit, number.value)
    size = number.value * factor
    text = f"{size:,.0f}" if size.is_integer() else f"{size:,.6g}"
    return f"{text} {name}".strip()


def plain_figure(figure: Figure) -> str:
    """A figure as read, without its interval."""
    return span(quantity(figure)).partition(" [")[0]


def figure_interval(figure: Figure) -> str:
    """What the figure's print allows, or a dash."""
    return interval(quantity(figure).estimate(figure.name))


def figure_text(figure: Figure) -> str:
    """A figure with its interval and unit."""
    return span(quantity(figure))


def keys(kind: Kind) -> list[tuple[str, bool]]:
    """A kind's own keys, and whether a claim must give them."""
    common = {field.name for field in msgspec.structs.fields(ClaimBase)}
    return [
        (field.encode_name, field.required)
        for field in msgspec.structs.fields(kind.claim)
        if field.name not in common
    ]


def provenance(finding: Finding) -> Mapping[Source, str]:
    """Where every figure stands, with the numbers that rest on it."""
    users: dict[Source, list[str]] = {}
    for number in finding.numbers:
        for source in number.sources:
            users.setdefault(source, []).append(number.name)
    return {source: "; ".join(dict.fromkeys(names)) for source, names in users.items()}


def grouped(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, ...]]:
    """Outcomes of one check and status together: a check that every run fails is one row."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.code, outcome.status), []).append(outcome)
    return [tuple(group) for group in groups.values()]


def board(reports: Sequence[StudyReport]) -> list[tuple[StudyReport, Finding]]:
    """Every claim once: headlines, then the most telling verdicts, else as they were said."""
    rows = [(r, f) for r in reports for f in r.findings if not f.repeats]
    return sorted(rows, key=lambda row: (not row[1].headline, ORDER.index(row[1].verdict)))


def gpu_of(cell: Cell) -> str:
    """How many of which GPU a cell's arm has."""
    spec = cell.arm.spec
    return f"{spec.gpus} x {spec.gpu}" if spec.gpu else "not stated"


_ACCOUNT = ("stay", "ttft", "decode", "in_flight", "l_first", "l_decode")


def accounts(report: StudyReport) -> list[tuple[Cell, list[Estimate | None]]]:
    """Each cell with its account and the floor of a step: the numbers of the charts of time."""
    rows: list[tuple[Cell, list[Estimate | None]]] = []
    for cell in report.study.cells:
        found = [cell.account(name) for name in _ACCOUNT]
        numbers = [None if q is None else q.estimate("") for q in found]
        floor = step_floor(cell)
        numbers.append(None if floor is None else floor.total.estimate(""))
        rows.append((cell, numbers))
    return rows


def parts_of(report: StudyReport, finding: Finding) -> list[Finding]:
    """The findings that a composite is made of."""
    return [f for f in report.findings if f.id in finding.parts]


def see_also(report: StudyReport, finding: Finding) -> list[Finding]:
    """Findings that belong beside this one, in the order that its claim names them."""
    found = {f.id: f for f in report.findings}
    return [found[other] for other in finding.see if other in found]


def said_again(report: StudyReport, finding: Finding) -> list[Finding]:
    """Later sentences that repeat this claim."""
    return [f for f in report.findings if f.repeats == finding.id]


def bad(report: StudyReport, run: str) -> list[Outcome]:
    """Checks of a run that did not pass."""
    return [o for o in report.checks(run) if o.status in ("SUSPECT", "INVALID")]


def listed(report: StudyReport) -> list[Outcome]:
    """Checks to list one by one: all that applied, or only what did not pass of very many."""
    applied = [o for o in report.outcomes if o.status != "NOT APPLICABLE"]
    if len(report.outcomes) <= MOST_OUTCOMES:
        return applied
    return [o for o in applied if o.status != "VALID"]


def files(report: StudyReport) -> list[tuple[str, str]]:
    """Every file of a study's runs, logs and tables, with what was read from it."""
    counts: dict[str, int] = {}
    for run in report.study.runs:
        for source in (run.source, *run.also_in):
            counts[source.file] = counts.get(source.file, 0) + 1
    found = [(file, plural(count, "run")) for file, count in counts.items()]
    others = {arm.startup.source.file for arm in report.study.arms.values() if arm.startup}
    found += [(file, "start-up facts") for file in sorted(others)]
    traces = (trace for arm in report.study.arms.values() for trace in arm.traces)
    found += [(file, "kernels") for file in dict.fromkeys(t.source.file for t in traces)]
    sides = (run.server for run in report.study.runs)
    sampled = (side.gpu.source.file for side in sides if side is not None and side.gpu is not None)
    found += [(file, "samples of GPUs") for file in dict.fromkeys(sampled)]
    found += [(file, "a length sample") for file in report.study.lengths]
    found += [(quoted.source.file, "quoted figures") for quoted in report.study.quoted]
    found += [(page.source.file, "a help text") for page in report.study.help_texts]
    return found


def experiments(report: StudyReport) -> list[tuple[str, list[Suggestion]]]:
    """Suggested runs of what is open, by the arms that they compare, each once."""
    return suggestions(report.findings)


def headlines(reports: Sequence[StudyReport]) -> list[tuple[StudyReport, Finding, str]]:
    """The few findings that stand above the board, with their answers in plain words."""
    owner = {id(f): r for r, f in board(reports)}
    return [(owner[id(f)], f, answer(f)) for f in chosen([f for _, f in board(reports)])]


def levels(reports: Sequence[StudyReport]) -> list[Level]:
    """The levels of evidence that some claim was reached at, from the weakest."""
    used = {f.level for r in reports for f in r.findings}
    return [level for level in LEVELS if level in used]


def short_run(report: StudyReport, run: str) -> str:
    """A run's name below its study's folder."""
    return run.removeprefix(f"{report.study.folder}/")


def runs_of(group: Sequence[Outcome]) -> str:
    """The runs of a group of outcomes, two of them by name."""
    return count_of([outcome.run for outcome in group], 2)
