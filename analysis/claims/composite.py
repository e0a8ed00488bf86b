"""A sentence that joins others ("A and B have the same cause"): it is as true as its parts."""

from __future__ import annotations

from analysis.claims import ClaimBase
from analysis.evidence import BadClaim, Evidence, Judgement
from analysis.model import Verdict
from analysis.study import nearest
from analysis.wording import listing


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a composite claim."""

    parts: tuple[str, ...]
    """Ids of claims of the same study, in any order."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Refuted with one part refuted, supported with all supported."""
    parts = tuple(dict.fromkeys(claim.parts))
    if len(parts) < 2:
        raise BadClaim("joins fewer than two parts; list claim ids in `parts`")
    for part in parts:
        if part not in ev.findings:
            raise BadClaim(
                f"names part {part!r}, which was not judged; {nearest(part, ev.findings)}"
            )
    by_verdict: dict[Verdict, list[str]] = {}
    for part in parts:
        by_verdict.setdefault(ev.findings[part].verdict, []).append(part)
    order: tuple[Verdict, ...] = ("refuted", "untestable", "inconclusive", "supported")
    verdict = next(v for v in order if v in by_verdict)
    texts = [
        f"{listing(by_verdict[v])} {'is' if len(by_verdict[v]) == 1 else 'are'} {v}"
        for v in order
        if v in by_verdict
    ]
    return Judgement(
        verdict,
        (f"All parts must hold: {'; '.join(texts)}.",),
        flips="another verdict on " + listing(by_verdict[verdict]),
        parts=tuple(ev.findings[part] for part in parts),
    )
