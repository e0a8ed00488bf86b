"""A sentence that joins others ("A and B have the same cause"): it is as true as its parts."""

from __future__ import annotations

from analysis.claims import ClaimBase
from analysis.evidence import BadClaim, Evidence, Judgement
from analysis.model import Finding, Verdict
from analysis.study import nearest
from analysis.wording import listing

SAYS_WORDS, MOST_WORDS = 16, 42
"""Of a part's sentence, and of that with its first reason: one line that says where to look."""


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
    order: tuple[Verdict, ...] = ("refuted", "untestable", "inconclusive", "supported")
    found = tuple(ev.findings[part] for part in parts)
    weakest_first = sorted(found, key=lambda part: order.index(part.verdict))
    verdict = weakest_first[0].verdict
    deciding = [part for part in found if part.verdict == verdict]
    return Judgement(
        verdict,
        tuple(_words(part) for part in weakest_first),
        flips="another verdict on " + listing(f"“{_bare(part.says)}”" for part in deciding),
        parts=found,
    )


def _words(part: Finding) -> str:
    """ "Refuted with “the sentence”: its first reason."."""
    says, reason = _bare(part.says), part.reasons[0]
    return (
        f"{part.verdict.capitalize()} with “{says}”: "
        f"{_short(reason, MOST_WORDS - len(says.split()))}"
    )


def _bare(says: str) -> str:
    return _short(says, SAYS_WORDS).rstrip(".")


def _short(text: str, most: int) -> str:
    """The first words of a longer text."""
    words = text.split()
    return text if len(words) <= most else " ".join(words[:most]) + " …"
