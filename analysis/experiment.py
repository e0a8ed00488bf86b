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
    plans: set[tuple[object, ...]] = set()
    for cell in cells:
        if len(cell.runs) < LEAST_REPEATS:
            return False
        for run in cell.runs:
            order, seed = run.config.get("order"), run.config.get("order_seed")
            if run.level != Level.ENGINE or seed is None:
                return False
            if not isinstance(order, int) or isinstance(order, bool):
                return False
            orders.append((order, cell.arm.name))
            plans.add((run.config.get("study"), run.config.get("collect"), seed))
    # Places in two plans are no order of one to the other.
    if len(cells) < 2 or len(plans) > 1 or len({place for place, _ in orders}) < len(orders):
        return False
    changes = sum(a != b for (_, a), (_, b) in pairwise(sorted(orders)))
    return changes >= 2 * (len(cells) - 1)
