"""The few sentences at the top of the board: headline claims with their answers, in plain words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analysis.model import VERDICTS, Finding, Verdict

MOST = 5
"""Sentences at the top."""
_SENTENCES = 2
"""Of an answer, at most."""
_INTERVAL = re.compile(r"(\d(?: (?:ms|s|B|GiB|tok|tok/s|1/s|%))?) \[[^\[\]]*\]")
_ORDER: tuple[Verdict, ...] = ("refuted", "inconclusive", "untestable", "supported")


def chosen(findings: Sequence[Finding]) -> list[Finding]:
    """Headline findings, one a kind while there are others, verdicts in turn, then by verdict."""
    marked = [f for f in findings if f.headline and not f.repeats]
    kinds: set[str] = set()
    first: list[Finding] = []
    later: list[Finding] = []
    for finding in marked:
        (later if finding.kind in kinds else first).append(finding)
        kinds.add(finding.kind)
    taken: list[Finding] = []
    for group in (first, later):
        by_verdict = {word: [f for f in group if f.verdict == word] for word in VERDICTS}
        while len(taken) < MOST and any(by_verdict.values()):
            for word in _ORDER:
                if by_verdict[word] and len(taken) < MOST:
                    taken.append(by_verdict[word].pop(0))
            by_verdict["answered"].clear()
    return sorted(taken, key=lambda f: (_ORDER.index(f.verdict), marked.index(f)))


def answer(finding: Finding) -> str:
    """The first reason without its intervals, two sentences at most."""
    plain = _INTERVAL.sub(r"\1", finding.reasons[0])
    sentences = re.split(r"(?<=\.) (?=[A-Z0-9])", plain)
    return " ".join(sentences[:_SENTENCES])
