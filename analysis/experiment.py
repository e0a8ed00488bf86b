"""Whether runs are an experiment: randomised, interleaved repeats with evidence of the server."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from analysis.dataset import Cell
from analysis.model import Level

LEAST_REPEATS = 3
"""Of every arm: fewer are no experiment."""


def randomised(cells: Sequence[Cell]) -> bool:
    """Whether every cell has repeats enough, at level E, in a recorded random order.

    Interleaved means that in the order of the collector the arm changes at least twice as often as
    it would if each arm's runs were made in one go: a drift of the host then is no difference of
    arms.
    """
    orders: list[tuple[int, str]] = []
    for cell in cells:
        if len(cell.runs) < LEAST_REPEATS:
            return False
        for run in cell.runs:
            order = run.config.get("order")
            if run.level != Level.ENGINE or "order_seed" not in run.config:
                return False
            if not isinstance(order, int):
                return False
            orders.append((order, cell.arm.name))
    changes = sum(a != b for (_, a), (_, b) in pairwise(sorted(orders)))
    return changes >= 2 * (len(cells) - 1)
