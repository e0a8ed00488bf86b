"""What a run was made with: a field of its configuration against what the sentence says.

The records themselves come first (the model's name in every result file), then study.toml and the
start-up log. A sentence about somebody else's runs is tested on their records. `where` narrows it
to the records in which other keys have given values; the field `concurrency` is the requests in
flight in all, over all clients and replicas.
"""

from __future__ import annotations

import msgspec

from analysis.claims import ClaimBase
from analysis.dataset import Arm, Cell
from analysis.evidence import BadClaim, Evidence, Judgement, Missing
from analysis.model import Estimate, Run, Scalar, Source, Verdict
from analysis.study import nearest
from analysis.wording import listing, plural


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a configuration claim."""

    arms: tuple[str, ...]
    field: str
    """`model_id`, `gpu`, `max_num_seqs` ...: a key of a record, of study.toml or of a log."""
    stated: str
    where: dict[str, str | int | float | bool] = msgspec.field(default_factory=dict)
    """Keys of a record and the values they must have: {max_concurrency = 1}."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Compare the field in every record of the arms."""
    if not claim.arms:
        raise BadClaim("names no arms; list them in `arms`")
    arms = [ev.arm(name) for name in claim.arms]
    own = tuple(cell for cell in ev.study.cells if cell.arm in arms)
    known = {key for cell in own for run in cell.runs for key in run.config}
    for key in claim.where:
        if key not in known:
            raise BadClaim(f"selects records by {key!r}; {nearest(key, known)}")
    cells = tuple(cell for cell in own if _runs(cell, claim))
    by_arm = {arm.name: _values(arm, cells, claim) for arm in arms}
    found = [(str(value), source) for values in by_arm.values() for value, source in values]
    silent = [name for name, values in by_arm.items() if not values]
    if not found:
        raise Missing(
            f"{claim.field} of {listing(claim.arms)}{_condition(claim)}",
            "no such record"
            if claim.where
            else "no record, start-up log or study.toml has that field",
        )
    right = [text for text, _ in found if _same(text, claim.stated)]
    values = listing(dict.fromkeys(text for text, _ in found))
    share = float(len(right))
    number = Estimate(
        "records that agree",
        share,
        share,
        share,
        "",
        "exact",
        f"{claim.field} = {claim.stated}",
        tuple(dict.fromkeys(source for _, source in found)),
    )
    verdict: Verdict = "supported" if len(right) == len(found) else "refuted"
    if silent and verdict == "supported":
        verdict = "inconclusive"
    return Judgement(
        verdict,
        (
            f"{_FIELDS.get(claim.field, claim.field)} is {values} in "
            f"{plural(len(found), 'record')} of "
            f"{listing(name for name in by_arm if name not in silent)}{_condition(claim)}; the "
            f"sentence says {claim.stated}.",
            *([f"Nothing says it of {listing(silent)}."] if silent else []),
        ),
        (number,),
        flips="records with another value",
        cells=cells,
    )


def _values(arm: Arm, cells: tuple[Cell, ...], claim: Claim) -> list[tuple[Scalar, Source]]:
    """The field in the arm's records, else in its log, else in study.toml."""
    runs = [run for cell in cells if cell.arm is arm for run in _runs(cell, claim)]
    records: list[tuple[Scalar, Source]] = []
    for run in runs:
        value = run.config.get(claim.field)
        if claim.field == "concurrency":
            value = "without a cap" if run.concurrency is None else run.concurrency
        if value is not None:
            key = f"{run.source.key} {claim.field}".strip()
            records.append((value, Source(run.source.file, key)))
    if records or (claim.where and not runs):
        return records
    if arm.startup is not None and arm.startup.config.get(claim.field) is not None:
        return [(arm.startup.config[claim.field], arm.startup.source)]
    if arm.config.get(claim.field) is not None:
        source = Source(arm.spec_file, f"arm {arm.name}, {claim.field}")
        return [(arm.config[claim.field], source)]
    return []


_FIELDS = {"concurrency": "The number of requests in flight in all"}
"""Fields that are no key of a file, in words."""


def _runs(cell: Cell, claim: Claim) -> list[Run]:
    """The cell's runs whose configuration meets the condition."""
    return [
        run
        for run in cell.runs
        if all(_same(str(run.config.get(key)), str(value)) for key, value in claim.where.items())
    ]


def _condition(claim: Claim) -> str:
    text = listing(f"{key} = {value}" for key, value in claim.where.items())
    return f" with {text}" if text else ""


def _same(found: str, wanted: str) -> bool:
    if found.casefold() == wanted.casefold():
        return True
    try:
        return float(found) == float(wanted.replace(",", ""))
    except ValueError:
        return False
