"""The bridge of a claim: from one arm's mean to the other's by the parts of the difference."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.chart_parts import Spec, Text, capital
from analysis.claims._step_level import BY_STEPS, PART
from analysis.model import Estimate
from analysis.vegalite_lines import Move, bridge
from analysis.wording import shown_unit


def bridge_chart(numbers: Sequence[Estimate]) -> list[Spec]:
    """One chart where the numbers hold both means and all parts; else none."""
    ends = [n for n in numbers if f" {BY_STEPS}, " in n.name]
    parts = [n for n in numbers if n.name.startswith(f"{PART}: ")]
    if len(ends) != 2 or not parts:
        return []
    before, after = ends
    unit, factor = shown_unit("s", max(before.value, after.value))
    moves = [_move(before, before.name.partition(", ")[2], factor, whole=True)]
    moves += [_move(n, n.name.partition(": ")[2], factor) for n in parts]
    moves.append(_move(after, after.name.partition(", ")[2], factor, whole=True))
    of = before.name.partition(f" {BY_STEPS}")[0]
    text = Text(
        f"From {of} of {moves[0].label} to that of {moves[-1].label}",
        "Grey bars are the means, cut at the left edge. Thin lines are intervals of the parts: "
        f"{parts[0].interval}.",
        f"{of}, {unit}",
        unit=unit,
    )
    return [bridge(moves, text)]


def _move(number: Estimate, label: str, factor: float, *, whole: bool = False) -> Move:
    return Move(
        capital(label) if not whole else label,
        number.value * factor,
        number.lo * factor,
        number.hi * factor,
        whole,
    )
