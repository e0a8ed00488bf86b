"""Claims of a study -> findings: kinds decide, this module adds what every finding carries."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.accounting import in_words
from analysis.caveats import possibly_missing, thin_tails
from analysis.checks import check_cell, checks
from analysis.claims import ClaimBase, Repeat, kinds, read_claim
from analysis.dataset import Cell, Dataset, Study
from analysis.evidence import Evidence, Experiment, Judgement, Missing, level_of
from analysis.model import LEVELS, Finding, Level, Outcome, Skipped
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
            if not claim.id:
                raise BadInput("has an empty id; give it a short name")
            if claim.id in seen:
                raise BadInput("has the id of an earlier claim; ids must be unique")
            seen.add(claim.id)
            claims.append(claim)
        except BadInput as error:
            skipped.append(Skipped(study.claims_file, f"{name}: {error}"))
    found: dict[str, Finding] = {}
    evidence = Evidence(dataset, study, found)
    # Composites need the corrected verdicts of their parts, and repeats those of their first.
    own = [claim for claim in claims if isinstance(claim, ClaimBase)]
    for claim in [claim for claim in own if claim.kind != "composite"]:
        _judge_into(found, skipped, evidence, claim)
    found.update((finding.id, finding) for finding in _corrected(tuple(found.values())))
    resting = [claim for claim in claims if isinstance(claim, Repeat) or claim.kind == "composite"]
    for claim in _after_parts(resting, found):
        if isinstance(claim, Repeat):
            _repeat_into(found, skipped, study, claim)
        else:
            _judge_into(found, skipped, evidence, claim)
    ordered = [found[claim.id] for claim in claims if claim.id in found]
    for finding in ordered:
        for other in () if finding.repeats else finding.see:
            if other not in found:
                near = nearest(other, found)
                reason = (
                    f"claim {finding.id!r}: names {other!r} in `see`, which is no claim; {near}"
                )
                skipped.append(Skipped(study.claims_file, reason))
    return Judged(tuple(ordered), tuple(skipped))


def _after_parts(
    claims: Sequence[ClaimBase | Repeat], judged: Collection[str]
) -> Iterator[ClaimBase | Repeat]:
    """Each claim once its parts are in `judged`, which grows meanwhile; the others at the end."""
    lacking = {claim.id: {part for part in _needs(claim) if part not in judged} for claim in claims}
    users: dict[str, list[ClaimBase | Repeat]] = {}
    for claim in claims:
        for part in lacking[claim.id]:
            users.setdefault(part, []).append(claim)
    ready = deque(claim for claim in claims if not lacking[claim.id])
    while ready:
        claim = ready.popleft()
        yield claim
        for user in users.pop(claim.id, ()) if claim.id in judged else ():
            lacking[user.id].discard(claim.id)
            if not lacking[user.id]:
                ready.append(user)
    yield from (claim for claim in claims if lacking[claim.id])


def _needs(claim: ClaimBase | Repeat) -> set[str]:
    """Ids of the claims that must be judged before this one."""
    if isinstance(claim, Repeat):
        return {claim.repeats}
    return set(getattr(claim, "parts", ()))


def _repeat_into(
    found: dict[str, Finding], skipped: list[Skipped], study: Study, claim: Repeat
) -> None:
    """The first claim's finding under the repeated sentence; it is not tested twice."""
    first = found.get(claim.repeats)
    if first is None:
        reason = (
            f"claim {claim.id!r}: repeats {claim.repeats!r}, which was not judged; "
            f"{nearest(claim.repeats, found)}"
        )
        skipped.append(Skipped(study.claims_file, reason))
        return
    found[claim.id] = replace(
        first,
        id=claim.id,
        says=claim.says,
        said_in=claim.source,
        repeats=claim.repeats,
        headline=False,
        p_value=None,
    )


def _name(table: Mapping[str, object], number: int) -> str:
    ident = table.get("id")
    return f"claim {ident!r}" if isinstance(ident, str) else f"claim {number}"


def _judge_into(
    found: dict[str, Finding], skipped: list[Skipped], evidence: Evidence, claim: ClaimBase
) -> None:
    try:
        found[claim.id] = _finding(evidence, claim)
    except RecursionError:
        reason = f"claim {claim.id!r}: nests references too deeply; give fewer levels"
        skipped.append(Skipped(evidence.study.claims_file, reason))
    except ArithmeticError as error:
        # Figures that each are plausible may still overflow, or divide by 0, in a claim's ratio.
        reason = f"claim {claim.id!r}: its figures cannot be calculated with ({error}); check them"
        skipped.append(Skipped(evidence.study.claims_file, reason))
    except BadInput as error:
        skipped.append(Skipped(evidence.study.claims_file, f"claim {claim.id!r}: {error}"))


def _finding(own: Evidence, claim: ClaimBase) -> Finding:
    """Let the kind decide; a missing file makes the claim untestable."""
    evidence = own
    try:
        if claim.study:
            evidence = Evidence(own.dataset, own.in_study(claim.study), own.findings)
        judgement = kinds()[claim.kind].judge(claim, evidence)
    except Missing as missing:
        judgement = Judgement(
            "untestable",
            (f"Missing: {missing.what}.", f"Tried: {missing.tried}."),
            flips=f"the missing file: {missing.what}",
            experiment=missing.experiment,
        )
    parts, cells = judgement.parts, judgement.cells
    own_checks = failed_checks(cells, claim.kind)
    aside = failed_checks(cells, claim.kind, concerned=False)
    failed = tuple(dict.fromkeys((*own_checks, *(c for p in parts for c in p.checks))))
    verdict, reasons = judgement.verdict, judgement.reasons
    if any(check.status == "INVALID" for check in failed) and verdict in ("supported", "refuted"):
        # A run that breaks its own arithmetic proves nothing, either way.
        verdict = "inconclusive"
        reasons = (
            f"A run this rests on is INVALID, so the verdict “{judgement.verdict}” is withheld.",
            *reasons,
        )
    rested_on = {source for number in judgement.numbers for source in number.sources}
    taken = (note for cell in dict.fromkeys(cells) for note in cell.assumptions)
    assumptions = (
        *((claim.reads,) if claim.reads else ()),
        *in_words(taken, rested_on),
        *thin_tails(cells, rested_on),
        *possibly_missing(cells, evidence),
        *judgement.assumptions,
        *(note for part in parts for note in part.assumptions),
    )
    experiment = judgement.experiment
    return Finding(
        id=claim.id,
        study=own.study.name,
        kind=claim.kind,
        says=claim.says,
        said_in=claim.source,
        verdict=verdict,
        reasons=reasons,
        level=_level(judgement),
        numbers=judgement.numbers,
        assumptions=tuple(dict.fromkeys(assumptions)),
        confounds=tuple(
            dict.fromkeys((*judgement.confounds, *(c for p in parts for c in p.confounds)))
        ),
        checks=failed,
        set_aside=tuple(dict.fromkeys((*aside, *(c for p in parts for c in p.set_aside)))),
        flips=judgement.flips,
        next_experiment=command(_study_of(evidence, cells), experiment) if experiment else "",
        p_value=judgement.p_value,
        parts=tuple(part.id for part in parts),
        headline=claim.headline,
        see=claim.see,
    )


def _level(judgement: Judgement) -> Level | None:
    """The weakest level among its runs and parts; none where nothing was tested."""
    if judgement.verdict == "untestable":
        return None
    levels = [part.level for part in judgement.parts if part.level is not None]
    if judgement.level is not None:
        levels.append(judgement.level)
    if judgement.cells or not levels:
        levels.append(level_of(judgement.cells))
    found = min(levels, key=LEVELS.index)
    return Level.EXPERIMENT if judgement.randomised and found == Level.ENGINE else found


def _study_of(evidence: Evidence, cells: Sequence[Cell]) -> Study:
    """The study that the runs belong to, whose collector study would repeat them."""
    return evidence.in_study(cells[0].arm.study) if cells else evidence.study


def failed_checks(
    cells: Sequence[Cell], kind: str, *, concerned: bool = True
) -> tuple[Outcome, ...]:
    """Checks of validity that some run of these cells did not pass and that concern the kind.

    `concerned`: false for those that do not concern it.
    """
    codes = {check.code for check in checks() if check.bears_on(kind) == concerned}
    return tuple(
        outcome
        for cell in dict.fromkeys(cells)
        for outcome in check_cell(cell)
        if outcome.status in ("SUSPECT", "INVALID") and outcome.code in codes
    )


def command(study: Study, experiment: Experiment) -> str:
    """The `collect` line that would run an experiment; one for each study of the collector."""
    arms: dict[str, list[str]] = {}
    for name in experiment.arms:
        arm = study.arms.get(name)
        own = arm.spec.collect_study if arm is not None else ""
        called = arm.spec.collect_arm if arm is not None else ""
        known = arms.setdefault(own or study.spec.collect_study or f"{study.name}.toml", [])
        if (called or name) not in known:
            known.append(called or name)
    line = " && ".join(_collect(file, names, experiment) for file, names in arms.items())
    return f"{line}  # {experiment.note}" if experiment.note else line


def _collect(file: str, arms: Sequence[str], experiment: Experiment) -> str:
    words = ["collect", "--study", file]
    for arm in arms:
        words += ["--arm", arm]
    for workload in experiment.workloads:
        words += ["--workload", workload]
    for load in experiment.concurrency:
        words += ["--concurrency", str(load)]
    return shlex.join([*words, "--repeats", str(experiment.repeats)])


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
            if p > 1 - CONFIDENCE and verdict in ("supported", "refuted"):
                verdict = "inconclusive"
            finding = replace(finding, p_value=p, verdict=verdict, reasons=(*finding.reasons, text))
        result.append(finding)
    return result
