"""What a run was made with: a field of its configuration against what the sentence says.

The records themselves come first (the model's name in every result file), then study.toml and the
start-up log. A sentence about somebody else's runs is tested on their records.
"""

from __future__ import annotations

from analysis.claims import ClaimBase
from analysis.dataset import Arm, Cell
from analysis.evidence import BadClaim, Evidence, Judgement, Missing
from analysis.model import Estimate, Scalar, Source, Verdict
from analysis.wording import listing, plural


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a configuration claim."""

    arms: tuple[str, ...]
    field: str
    """`model_id`, `gpu`, `max_num_seqs` ...: a key of a record, of study.toml or of a log."""
    stated: str


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Compare the field in every record of the arms."""
    if not claim.arms:
        raise BadClaim("names no arms; list them in `arms`")
    arms = [ev.arm(name) for name in claim.arms]
    cells = tuple(cell for cell in ev.study.cells if cell.arm in arms)
    by_arm = {arm.name: _values(arm, cells, claim) for arm in arms}
    found = [(str(value), source) for values in by_arm.values() for value, source in values]
    silent = [name for name, values in by_arm.items() if not values]
    if not found:
        raise Missing(
            f"{claim.field} of {listing(claim.arms)}",
            "no record, start-up log or study.toml has that field",
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
            f"{claim.field} is {values} in {plural(len(found), 'record')} of "
            f"{listing(name for name in by_arm if name not in silent)}; the sentence says "
            f"{claim.stated}.",
            *([f"Nothing says it of {listing(silent)}."] if silent else []),
        ),
        (number,),
        flips="records with another value",
        cells=cells,
    )


def _values(arm: Arm, cells: tuple[Cell, ...], claim: Claim) -> list[tuple[Scalar, Source]]:
    """The field in the arm's records, else in its log, else in study.toml."""
    records = [
        (
            run.config[claim.field],
            Source(run.source.file, f"{run.source.key} {claim.field}".strip()),
        )
        for cell in cells
        if cell.arm is arm
        for run in cell.runs
        if run.config.get(claim.field) is not None
    ]
    if records:
        return records
    if arm.startup is not None and arm.startup.config.get(claim.field) is not None:
        return [(arm.startup.config[claim.field], arm.startup.source)]
    if arm.config.get(claim.field) is not None:
        source = Source(arm.spec_file, f"arm {arm.name}, {claim.field}")
        return [(arm.config[claim.field], source)]
    return []


def _same(found: str, wanted: str) -> bool:
    if found.casefold() == wanted.casefold():
        return True
    try:
        return float(found) == float(wanted.replace(",", ""))
    except ValueError:
        return False
