"""Claims of a study -> findings: kinds decide, this module adds what every finding carries."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.checks import check_cell
from analysis.claims import ClaimBase, Repeat, kinds, read_claim
from analysis.dataset import Cell, Dataset, Study
from analysis.evidence import Evidence, Experiment, Judgement, Missing, level_of
from analysis.model import Finding, Level, Outcome, Skipped, Verdict
from analysis.stats import CONFIDENCE, holm
from analysis.study import BadInput, nearest


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a study's claims."""

    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]


def judge_study(dataset: Dataset, study: Study) -> Judged:
    """Judge every claim of a study; a claim that cannot be read is skipped with one line."""
    skipped: list[Skipped] = []
    claims: list[ClaimBase | Repeat] = []
    seen: set[str] = set()
    for number, table in enumerate(study.claims, 1):
        name = _name(table, number)
        try:
            claim = read_claim(table)
            if claim.id in seen:
                raise BadInput("has the id of an earlier claim; ids must be unique")
            seen.add(claim.id)
            claims.append(claim)
        except BadInput as error:
            skipped.append(Skipped(study.claims_file, f"{name}: {error}"))
    verdicts: dict[str, Verdict] = {}
    evidence = Evidence(dataset, study, verdicts)
    found: dict[str, Finding] = {}
    # Composites need the verdicts of their parts, and repeats those of their first.
    later = [c for c in claims if isinstance(c, Repeat) or c.kind == "composite"]
    for claim in [c for c in claims if c not in later]:
        _judge_into(found, verdicts, skipped, evidence, claim)
    for claim in [c for c in later if not isinstance(c, Repeat)]:
        _judge_into(found, verdicts, skipped, evidence, claim)
    for claim in [c for c in later if isinstance(c, Repeat)]:
        first = found.get(claim.repeats)
        if first is None:
            skipped.append(
                Skipped(
                    study.claims_file,
                    f"claim {claim.id!r}: repeats "
                    f"{claim.repeats!r}, which was not judged; "
                    f"{nearest(claim.repeats, found)}",
                )
            )
            continue
        found[claim.id] = replace(
            first,
            id=claim.id,
            says=claim.says,
            said_in=claim.source,
            repeats=claim.repeats,
            p_value=None,
        )
    ordered = [found[claim.id] for claim in claims if claim.id in found]
    return Judged(tuple(_corrected(ordered)), tuple(skipped))


def _name(table: Mapping[str, object], number: int) -> str:
    ident = table.get("id")
    return f"claim {ident!r}" if isinstance(ident, str) else f"claim {number}"


def _judge_into(
    found: dict[str, Finding],
    verdicts: dict[str, Verdict],
    skipped: list[Skipped],
    evidence: Evidence,
    claim: ClaimBase | Repeat,
) -> None:
    if isinstance(claim, Repeat):  # pragma: no cover - callers separate them
        raise TypeError
    try:
        finding = _finding(evidence, claim)
    except BadInput as error:
        skipped.append(Skipped(evidence.study.claims_file, f"claim {claim.id!r}: {error}"))
        return
    found[claim.id] = finding
    verdicts[claim.id] = finding.verdict


def _finding(evidence: Evidence, claim: ClaimBase) -> Finding:
    """Let the kind decide; a missing file makes the claim untestable."""
    try:
        judgement = kinds()[claim.kind].judge(claim, evidence)
    except Missing as missing:
        judgement = Judgement(
            "untestable",
            (f"Missing: {missing.what}.", f"Tried: {missing.tried}."),
            flips=f"the missing file: {missing.what}",
        )
    checks = failed_checks(judgement.cells)
    verdict, reasons = judgement.verdict, judgement.reasons
    if any(check.status == "INVALID" for check in checks) and verdict in ("supported", "refuted"):
        # A run that breaks its own arithmetic proves nothing, either way.
        verdict = "inconclusive"
        reasons = (
            f"A run this rests on is INVALID, so the verdict “{judgement.verdict}” is withheld.",
            *reasons,
        )
    level: Level | None = None if verdict == "untestable" else level_of(judgement.cells)
    return Finding(
        claim.id,
        evidence.study.name,
        claim.kind,
        claim.says,
        claim.source,
        verdict,
        reasons,
        level,
        judgement.numbers,
        ((claim.reads, *judgement.assumptions) if claim.reads else judgement.assumptions),
        judgement.confounds,
        checks,
        judgement.flips,
        command(evidence.study, judgement.experiment) if judgement.experiment else "",
        p_value=judgement.p_value,
    )


def failed_checks(cells: Sequence[Cell]) -> tuple[Outcome, ...]:
    """Checks of validity that some run of these cells did not pass."""
    return tuple(
        outcome
        for cell in dict.fromkeys(cells)
        for outcome in check_cell(cell)
        if outcome.status in ("SUSPECT", "INVALID")
    )


def command(study: Study, experiment: Experiment) -> str:
    """The `collect` line that would run an experiment."""
    words = ["collect", "--study", study.spec.collect_study or f"{study.name}.toml"]
    for arm in experiment.arms:
        words += ["--arm", arm]
    if experiment.workload:
        words += ["--workload", experiment.workload]
    for load in experiment.concurrency:
        words += ["--concurrency", str(load)]
    words += ["--repeats", str(experiment.repeats)]
    line = shlex.join(words)
    return f"{line}  # {experiment.note}" if experiment.note else line


def _corrected(findings: Sequence[Finding]) -> list[Finding]:
    """Holm's correction over the study's stochastic claims; repeats are not tested twice."""
    family = {f.id: f.p_value for f in findings if f.p_value is not None}
    adjusted = holm(family)
    result = []
    for finding in findings:
        p = adjusted.get(finding.id)
        if p is not None:
            text = f"p = {p:.2g} after Holm's correction over {len(family)} tests of this study."
            verdict = finding.verdict
            if p > 1 - CONFIDENCE and verdict == "refuted":
                verdict = "inconclusive"
            finding = replace(finding, p_value=p, verdict=verdict, reasons=(*finding.reasons, text))
        result.append(finding)
    return result
