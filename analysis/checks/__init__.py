"""Checks of a run's validity, before any statistics.

Each module is one check and exports `CODE` (stable), `NAME`, and `check(cell, account) ->
Outcome`: VALID, SUSPECT or INVALID with the number and the threshold, or NOT APPLICABLE where the
file lacks what it needs. `CONCERNS`, where a check exports it, names the only kinds of findings
that it bears on ("load", "standing.valid"); the page of the study shows every outcome. Its
docstring says what it looks for and why that matters. The folder is the registry.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.model import STATUSES, Outcome, Status, Validity


class Check(NamedTuple):
    """A registered check."""

    code: str
    name: str
    check: Callable[[Cell, Ledger], Outcome]
    doc: str
    concerns: tuple[str, ...] = ()
    """Kinds of findings it bears on; empty for all."""

    def bears_on(self, kind: str) -> bool:
        """Whether a finding of this kind has to carry the check's outcome."""
        return not self.concerns or kind in self.concerns


@cache
def checks() -> tuple[Check, ...]:
    """All checks, by code."""
    found = []
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        doc, concerns = (module.__doc__ or "").strip(), getattr(module, "CONCERNS", ())
        found.append(Check(module.CODE, module.NAME, module.check, doc, concerns))
    return tuple(sorted(found))


_FOUND: WeakKeyDictionary[Cell, tuple[Outcome, ...]] = WeakKeyDictionary()


def check_cell(cell: Cell) -> tuple[Outcome, ...]:
    """Every check on every run of a cell, by run and code; each finding on it asks again."""
    if cell not in _FOUND:
        _FOUND[cell] = tuple(
            check.check(cell, account) for account in cell.ledgers for check in checks()
        )
    return _FOUND[cell]


def by_run(outcomes: Iterable[Outcome]) -> dict[str, tuple[Outcome, ...]]:
    """The outcomes of each run, by its id."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.run, []).append(outcome)
    return {run: tuple(own) for run, own in found.items()}


def verdict(outcomes: tuple[Outcome, ...]) -> Validity:
    """The worst status of a run's checks; NOT CHECKED where none applied."""
    found = [outcome.status for outcome in outcomes]
    worst: Status = max(found, key=STATUSES.index, default="NOT APPLICABLE")
    return "NOT CHECKED" if worst == "NOT APPLICABLE" else worst
