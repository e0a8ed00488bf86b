"""Which run of one cell is paired with which of another: those of the same prompts.

Alike are runs of the client's same seed, or, where files hold no seed, those that sent as many
prompts with as many tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from analysis.dataset import Cell
from analysis.model import Run
from analysis.quantity import Quantity


def pairs_of(left: Cell, right: Cell) -> tuple[tuple[Run, Run], ...]:
    """Runs of both cells in pairs, in the order of the left one's.

    Repeats of the same prompts are paired in their order. Where no run has its like, the runs are
    paired in their order too: a mean over other prompts is compared then, which callers can see.
    """
    for key_of in (by_seed, by_prompts):
        a, b = ([key_of(run) for run in cell.runs] for cell in (left, right))
        if None in a or None in b:
            continue
        waiting = {
            key: [r for r, own in zip(right.runs, b, strict=True) if own == key] for key in b
        }
        found = tuple(
            (run, waiting[key].pop(0))
            for run, key in zip(left.runs, a, strict=True)
            if waiting.get(key)
        )
        if found:
            return found
    return tuple(zip(left.runs, right.runs, strict=False))


def of_shared_seeds(left: Cell, right: Cell) -> tuple[Cell, Cell]:
    """Both cells; where one was sent only some of the other's seeds, the other's runs of those.

    Another seed is other prompts: a mean over seeds that one arm was not sent compares prompts as
    well as arms. Seeds that overlap only in part leave the cells as they are.
    """
    a, b = ([by_seed(run) for run in cell.runs] for cell in (left, right))
    if None in a or None in b or len({*a}) < len(a) or len({*b}) < len(b):
        return left, right
    if {*a} < {*b}:
        return left, _of(right, a)
    if {*b} < {*a}:
        return _of(left, b), right
    return left, right


def _of(cell: Cell, seeds: Collection[object]) -> Cell:
    """The cell with its runs of these seeds only."""
    return replace(cell, ledgers=tuple(own for own in cell.ledgers if by_seed(own.run) in seeds))


def keyed(
    key_of: Callable[[Run], object], cell: Cell, values: Sequence[Quantity]
) -> dict[object, float]:
    """Each run's value by what makes it one of a pair; empty where a key is missing or twice."""
    keys = [key_of(run) for run in cell.runs]
    if None in keys or len(set(keys)) < len(keys):
        return {}
    return dict(zip(keys, (q.value for q in values), strict=True))


def by_seed(run: Run) -> object:
    """Its seed and clients: several draw other prompts from one seed; None where none is known."""
    seed = run.config.get("seed")
    return None if seed is None else (seed, run.config.get("clients", 1))


def by_prompts(run: Run) -> object:
    """How many prompts a run sent, with how many tokens; None where its file does not say."""
    found = [run.figures.get(name) for name in ("num_prompts", "total_input_tokens")]
    return None if None in found else tuple(figure.value for figure in found if figure is not None)
