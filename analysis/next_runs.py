"""Suggested runs of a study, each once, with the claims that they would settle."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.model import Finding


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A `collect` line and what it is for."""

    line: str
    settles: tuple[Finding, ...]
    arms: frozenset[str]
    wants: frozenset[tuple[str, str]]
    """Arms, workloads and loads, as options and values."""
    study: str
    note: str
    repeats: int

    def covers(self, other: Suggestion) -> bool:
        """Whether these runs hold those of the other."""
        same = (self.study, self.note) == (other.study, other.note)
        return same and self.wants >= other.wants and self.repeats >= other.repeats


def suggestions(findings: Sequence[Finding]) -> list[tuple[str, list[Suggestion]]]:
    """Runs of open claims by the arms that they compare; those that others hold are joined to them.

    Supported claims need no run, and a repeated sentence none of its own.
    """
    found: dict[str, Suggestion] = {}
    for finding in findings:
        line = finding.next_experiment
        if not line or finding.verdict == "supported" or finding.repeats:
            continue
        held = found.get(line)
        found[line] = (
            replace(held, settles=(*held.settles, finding)) if held else _read(line, finding)
        )
    kept: list[Suggestion] = []
    for one in sorted(found.values(), key=lambda one: -len(one.wants)):
        place = next((k for k, other in enumerate(kept) if other.covers(one)), None)
        if place is None:
            kept.append(one)
        else:
            wider = kept[place]
            kept[place] = replace(wider, settles=(*wider.settles, *one.settles))
    order = list(found)
    kept.sort(key=lambda one: order.index(one.line))
    groups: dict[frozenset[str], list[Suggestion]] = {}
    for one in kept:
        groups.setdefault(one.arms, []).append(one)
    return [(", ".join(sorted(arms)), group) for arms, group in groups.items()]


def _read(line: str, finding: Finding) -> Suggestion:
    """A line as `analysis.judge.command` writes it."""
    words, _, note = line.partition("  # ")
    try:
        parts = shlex.split(words)[1:]
    except ValueError:
        parts = []
    pairs = list(zip(parts[::2], parts[1::2], strict=False))
    of = {key: value for key, value in pairs if key in ("--study", "--repeats")}
    repeats = of.get("--repeats", "")
    return Suggestion(
        line,
        (finding,),
        frozenset(value for key, value in pairs if key == "--arm"),
        frozenset(pair for pair in pairs if pair[0] not in of),
        of.get("--study", ""),
        note,
        int(repeats) if repeats.isdecimal() else 0,
    )
