"""One check on one run of a cell."""

from __future__ import annotations

from types import ModuleType

from analysis.dataset import Cell
from analysis.model import Outcome, Run
from tests.builders import cell


def outcome(module: ModuleType, *runs: Run, number: int = 0) -> Outcome:
    """What the check says of the `number`-th of these repeats."""
    repeats: Cell = cell("base", *runs)
    found: Outcome = module.check(repeats, repeats.ledgers[number])
    assert (found.code, found.name) == (module.CODE, module.NAME)
    assert found.run == runs[number].id
    return found
