"""Studies of arms, workloads and cells: which runs may be compared with which.

A *cell* is one arm on one workload at one number of requests in flight; its runs are repeats.
`analysis.grouping` builds these from the records of a folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

import numpy as np

from analysis.accounting import Assumption, Ledger, metric
from analysis.hardware import Gpu, find_gpu
from analysis.model import (
    LEVELS,
    Estimate,
    Floats,
    HelpText,
    KernelTrace,
    Lengths,
    Level,
    Quoted,
    Run,
    Scalar,
    Skipped,
    Source,
    Startup,
)
from analysis.models import Model, find_model
from analysis.quantity import Env, Quantity
from analysis.stats import interval_of_mean
from analysis.study import ArmSpec, StudySpec


@dataclass(frozen=True, eq=False)
class Arm:
    """One server configuration, with what is known of its hardware, model and start-up."""

    study: str
    spec: ArmSpec
    config: Mapping[str, Scalar]
    """Every known field, for naming what differs between two arms."""
    startup: Startup | None = None
    spec_file: str = "study.toml"
    """Where its description stands, relative to the results folder."""
    own_model: Model | None = None
    """Its model as a config.json of the study describes it."""
    traces: tuple[KernelTrace, ...] = ()
    """What profilers saw of its servers."""

    @property
    def name(self) -> str:
        """The arm's name within its study."""
        return self.spec.name

    def stated_in(self, field: str) -> Source:
        """Where a field of its description stands: the start-up log that says so, or study.toml."""
        said = self.startup.config.get(field) if self.startup is not None else None
        if self.startup is not None and said is not None and said == getattr(self.spec, field):
            return Source(self.startup.source.file, field)
        return Source(self.spec_file, f"arm {self.name}, {field}")

    @cached_property
    def gpu(self) -> Gpu | None:
        """Data sheet of its GPU, if named and known."""
        return find_gpu(self.spec.gpu) if self.spec.gpu else None

    @cached_property
    def model(self) -> Model | None:
        """Geometry of its model: of its own config.json, else of models.toml by name."""
        if self.own_model is not None:
            return self.own_model
        return find_model(self.spec.model) if self.spec.model else None


@dataclass(frozen=True, eq=False)
class Cell:
    """Repeats of one arm on one workload at one number of requests in flight."""

    arm: Arm
    workload: str
    concurrency: int | None
    ledgers: tuple[Ledger, ...]

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The repeats."""
        return tuple(account.run for account in self.ledgers)

    @cached_property
    def stays(self) -> tuple[float, ...]:
        """Mean stays of its runs where they are known, s, from the shortest up."""
        found = (one.stay.value for one in self.ledgers if one.stay is not None)
        return tuple(sorted(stay for stay in found if stay > 0))

    @property
    def level(self) -> Level:
        """The weakest level among its runs."""
        return min((run.level for run in self.runs), key=LEVELS.index)

    @property
    def name(self) -> str:
        """The cell in words: "awq on sharegpt at 10 in flight"."""
        load = "no cap" if self.concurrency is None else f"{self.concurrency} in flight"
        return f"{self.arm.name} on {self.workload}, {load}"

    def each(self, name: str) -> tuple[Quantity, ...]:
        """A metric, run by run; empty unless every run has it."""
        found = [metric(account.run, name, account) for account in self.ledgers]
        return tuple(q for q in found if q is not None) if all(found) else ()

    def metric(self, name: str) -> Quantity | None:
        """A metric as the mean over the repeats."""
        return mean(self.each(name))

    def account(self, name: str) -> Quantity | None:
        """A quantity of the ledger (`l_first`, `l_decode` ...) as the mean over the repeats.

        A share is the ratio of means, so that it agrees with the means shown beside it.
        """
        if name not in self._accounts:
            self._accounts[name] = self._account(name)
        return self._accounts[name]

    @cached_property
    def _accounts(self) -> dict[str, Quantity | None]:
        """Quantities found so far: each cell of a study asks for those of all others."""
        return {}

    def _account(self, name: str) -> Quantity | None:
        if name == "first_token_share":
            ttft, stay = self.account("ttft"), self.account("stay")
            return None if ttft is None or stay is None else (ttft / stay).as_unit("")
        found = [getattr(account, name) for account in self.ledgers]
        return mean(tuple(found)) if all(q is not None for q in found) else None

    def estimate(self, name: str, label: str, definition: str = "") -> Estimate | None:
        """A metric ready to be shown; of repeats, with the interval between them."""
        found, values = self.metric(name), [q.value for q in self.each(name)]
        if found is None:
            return None
        plain = found.estimate(label, definition)
        if len(values) < 2 or min(values) <= 0:
            return plain
        lo, hi = interval_of_mean(values)
        words = f"95 % between {len(values)} runs (t on logs)"
        return replace(plain, lo=min(lo, plain.lo), hi=max(hi, plain.hi), interval=words)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What had to be assumed to draw up the accounts."""
        return tuple(note for account in self.ledgers for note in account.assumptions)

    @property
    def borrows(self) -> bool:
        """Whether token counts of another cell stand in for its own."""
        return any(account.borrows for account in self.ledgers)


@dataclass(frozen=True, eq=False)
class Study:
    """A folder of results that belong together."""

    name: str
    spec: StudySpec
    arms: Mapping[str, Arm]
    cells: tuple[Cell, ...]
    lengths: Mapping[str, Lengths] = field(default_factory=dict)
    """By file, relative to the results folder."""
    quoted: tuple[Quoted, ...] = ()
    help_texts: tuple[HelpText, ...] = ()
    claims: tuple[Mapping[str, object], ...] = ()
    claims_file: str = ""
    folder: str = ""
    """Relative to the results folder; empty when the study is the whole folder."""
    skipped: tuple[Skipped, ...] = ()
    """Files of it that were read and could not be used for any arm."""

    @property
    def title(self) -> str:
        """Its title, or its name."""
        return self.spec.title or self.name

    @property
    def workloads(self) -> tuple[str, ...]:
        """Workloads in order of appearance."""
        return tuple(dict.fromkeys(cell.workload for cell in self.cells))

    @property
    def runs(self) -> tuple[Run, ...]:
        """All its runs."""
        return tuple(run for cell in self.cells for run in cell.runs)

    def cell(self, arm: str, workload: str, concurrency: int | None) -> Cell | None:
        """The cell of that name, or None."""
        for cell in self.cells:
            key = (cell.arm.name, cell.workload, cell.concurrency)
            if key == (arm, workload, concurrency):
                return cell
        return None

    def loads(self, arm: str, workload: str) -> tuple[Cell, ...]:
        """The arm's cells on the workload, from the fewest in flight up; no cap is left out."""
        cells = [
            cell
            for cell in self.cells
            if (cell.arm.name, cell.workload) == (arm, workload) and cell.concurrency is not None
        ]
        return tuple(sorted(cells, key=lambda cell: cell.concurrency or 0))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Everything below a results folder."""

    studies: tuple[Study, ...]
    skipped: tuple[Skipped, ...] = ()

    def study(self, name: str) -> Study | None:
        """The study of that name, or None."""
        return next((study for study in self.studies if study.name == name), None)


def mean(quantities: Sequence[Quantity]) -> Quantity | None:
    """Mean of like quantities; None of none."""
    if not quantities:
        return None
    if len(quantities) == 1:
        return quantities[0]
    leaves = tuple(dict.fromkeys(leaf for one in quantities for leaf in one.leaves))
    share = 1.0 / len(quantities)

    def evaluate(env: Env) -> Floats:
        # One flat sum: sums within sums would pass the depth of Python's stack with 1,000 repeats.
        return reduce(np.add, (one.evaluate(env) for one in quantities)) * share

    return Quantity(quantities[0].unit, leaves, evaluate)


def differing(left: Arm, right: Arm) -> dict[str, tuple[Scalar, Scalar]]:
    """Configuration fields that are not equal in two arms: each a possible confound."""
    keys = dict.fromkeys([*left.config, *right.config])
    return {
        key: (left.config.get(key), right.config.get(key))
        for key in keys
        if left.config.get(key) != right.config.get(key)
    }
