"""Resolves what a claim names (a cell, a start-up fact, a quoted figure) to a quantity.

Two things can go wrong, and they differ: a claim that names what does not exist is the author's
mistake (`BadClaim`, with the nearest right name); a figure that no file holds makes the claim
untestable (`Missing`, with the file that would hold it and the identities that were tried).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from analysis.capacity import kv_tokens
from analysis.dataset import Arm, Cell, Dataset, Study
from analysis.floor import kv_token_bytes, read_bytes
from analysis.metrics import LATENCIES, METRICS, STATISTICS, label_of, metric_of
from analysis.model import (
    Estimate,
    Figure,
    Finding,
    HelpText,
    Lengths,
    Level,
    Verdict,
)
from analysis.quantity import Quantity, quantity
from analysis.study import BadInput, nearest


class BadClaim(BadInput):
    """A claim that names something that is not there; the message is one line for its author."""


class Missing(Exception):
    """A figure that no file holds: what is missing, what was tried, which runs would bring it."""

    def __init__(self, what: str, tried: str, experiment: Experiment | None = None) -> None:
        """Keep the three; the message is what is missing."""
        super().__init__(what)
        self.what = what
        self.tried = tried
        self.experiment = experiment


REPEATS = 6
"""Runs an arm that a suggestion asks for: the fewest that a paired test can reach 5 % with."""


@dataclass(frozen=True, eq=False, slots=True)
class Experiment:
    """The runs that would settle a claim."""

    arms: tuple[str, ...]
    workloads: tuple[str, ...] = ()
    concurrency: tuple[int, ...] = ()
    repeats: int = REPEATS
    note: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Judgement:
    """What a kind found; `analysis.judge` makes a Finding of it."""

    verdict: Verdict
    reasons: tuple[str, ...]
    numbers: tuple[Estimate, ...] = ()
    assumptions: tuple[str, ...] = ()
    confounds: tuple[str, ...] = ()
    flips: str = ""
    cells: tuple[Cell, ...] = ()
    """Whose runs the verdict rests on: for the level and the checks of validity."""
    experiment: Experiment | None = None
    p_value: float | None = None
    level: Level | None = None
    """Of files that are of no run, which it rests on instead (profiler traces)."""
    randomised: bool = False
    """Whether its runs are an experiment: interleaved repeats, so that level E is level X."""
    parts: tuple[Finding, ...] = ()
    """Findings it is made of: their level, checks, assumptions and confounds become its own."""


_NAMES = (*METRICS, *(f"{which}_{name}" for which in (*STATISTICS, "p99") for name in LATENCIES))
"""What a metric may be called, for the nearest right name."""

Direction = Literal["higher", "lower", "undecided"]

FACTS = (
    "model_bytes",
    "kv_bytes",
    "kv_tokens",
    "max_model_len",
    "reported_max_concurrency",
    "kv_tokens_total",
    "kv_bytes_total",
    "kv_bytes_per_token",
    "weights_read",
    "gpu_memory",
)
"""Start-up facts of an arm, logged or derived, as `fact` names them."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The data as seen from one study; other studies are reached by name."""

    dataset: Dataset
    study: Study
    findings: Mapping[str, Finding] = field(default_factory=dict)
    """The findings of the study so far, for composites."""

    def in_study(self, name: str) -> Study:
        """The study of that name, the own one for ""."""
        if not name:
            return self.study
        found = self.dataset.study(name)
        if found is None:
            known = [study.name for study in self.dataset.studies]
            raise Missing(
                f"the study {name!r} (not below this results folder)",
                f"studies here: {', '.join(known)}",
            )
        return found

    def arm(self, name: str, study: str = "") -> Arm:
        """An arm by name."""
        arms = self.in_study(study).arms
        if name not in arms:
            raise BadClaim(f"names arm {name!r}, which is not there; {nearest(name, arms)}")
        return arms[name]

    def workload(self, name: str, study: str = "") -> str:
        """A workload by name."""
        known = self.in_study(study).workloads
        if name not in known:
            raise BadClaim(f"names workload {name!r}, which is not there; {nearest(name, known)}")
        return name

    def cell(self, arm: str, workload: str, load: int | None, study: str = "") -> Cell:
        """A cell by name; an existing arm and workload without that run is `Missing`."""
        self.arm(arm, study)
        self.workload(workload, study)
        where = self.in_study(study)
        found = where.cell(arm, workload, load)
        if found is None:
            at = "without a cap on requests" if load is None else f"at {load}"
            raise Missing(
                f"a result file of {arm} on {workload} {at} in flight; "
                f"{_measured(where, arm, workload, load)}",
                "no other load stands in for it",
                Experiment((arm,), (workload,), () if load is None else (load,), 1),
            )
        return found

    def metric(self, name: str) -> str:
        """A metric by name."""
        if metric_of(name) is None:
            raise BadClaim(f"names metric {name!r}, which is not known; {nearest(name, _NAMES)}")
        return name

    def need(self, cell: Cell, name: str) -> Quantity:
        """A metric of a cell."""
        found = cell.metric(self.metric(name))
        if found is None:
            raise Missing(
                f"{label_of(name)} of {cell.name} in {cell.runs[0].source.file}",
                "the file does not print it and it does not follow from X = n / T, "
                "stay = TTFT + ITL x (output - 1) and L = X x stay",
                again(cell),
            )
        return found

    def account(self, cell: Cell, name: str) -> Quantity:
        """A quantity of a cell's ledger (`in_flight`, `l_first`, `throughput` ...)."""
        found = cell.account(name)
        if found is None:
            raise Missing(
                f"mean TTFT, mean ITL or token counts of {cell.name} in {cell.runs[0].source.file}",
                "Little's law needs throughput, TTFT and ITL of the same run",
                again(cell),
            )
        return found

    def fact(self, arm: Arm, name: str) -> Quantity:
        """A start-up fact of an arm, or one that follows from it."""
        if name not in FACTS:
            raise BadClaim(f"names fact {name!r}, which is not known; {nearest(name, FACTS)}")
        figures = arm.startup.figures if arm.startup is not None else {}
        found: Quantity | None = None
        if name in figures:
            found = quantity(figures[name])
        elif name == "kv_tokens_total":
            found = kv_tokens(arm)
        elif name == "kv_bytes_per_token":
            found = kv_token_bytes(arm)
        elif name == "weights_read":
            found = read_bytes(arm)
        elif name == "max_model_len" and arm.spec.max_model_len is not None:
            n = float(arm.spec.max_model_len)
            source = arm.stated_in("max_model_len")
            found = quantity(Figure(name, n, n, n, "tok", source))
        elif name == "gpu_memory" and arm.gpu is not None:
            found = quantity(arm.gpu.figure("memory_bytes"))
        elif name == "kv_bytes_total" and (per := kv_token_bytes(arm)) is not None:
            tokens = kv_tokens(arm)
            ranks = float(arm.spec.tensor_parallel * arm.spec.pipeline_parallel)
            found = None if tokens is None else (tokens * per * ranks).as_unit("B")
        if found is None:
            raise Missing(
                f"the start-up log of {arm.name} ({name.replace('_', ' ')})",
                "neither a log, a start-up table nor the model's geometry gives it",
                Experiment((arm.name,), repeats=1),
            )
        return found

    def lengths(self, workload: str, study: str = "") -> Lengths:
        """The length sample of a workload."""
        where = self.in_study(study)
        spec = next((w for w in where.spec.workload if w.name == workload), None)
        if spec is None:
            known = [w.name for w in where.spec.workload]
            raise BadClaim(
                f"names workload {workload!r}, which study.toml does not describe; "
                f"{nearest(workload, known)}"
            )
        path = f"{where.folder}/{spec.lengths}".lstrip("/")
        if not spec.lengths or path not in where.lengths:
            raise Missing(
                f"a length sample of {workload}",
                "means alone do not say how many requests pass a limit",
            )
        return where.lengths[path]

    def help_text(self, command: str) -> HelpText:
        """The stored --help of a command, of this study or another."""
        for study in (self.study, *self.dataset.studies):
            for text in study.help_texts:
                if text.command == command:
                    return text
        raise Missing(
            f"the stored output of `{command} --help`",
            "no help text of that command lies below the results folder",
        )


def _measured(study: Study, arm: str, workload: str, load: int | None) -> str:
    """Which cells there are instead of one without a run, and the key that would name one."""
    loads = [str(cell.concurrency) for cell in study.loads(arm, workload)]
    free = study.cell(arm, workload, None) is not None
    if not loads and not free:
        return "not measured at all"
    if not loads:
        return "measured without a cap; leave concurrency out"
    words = f"measured at {', '.join(loads)}{' and without a cap' if free else ''}"
    return f"{words}; set concurrency" if load is None else words


def again(*cells: Cell, repeats: int = 1, note: str = "") -> Experiment:
    """These cells once more, or several times; those of the first one's study."""
    own = [cell for cell in cells if cell.arm.study == cells[0].arm.study]
    loads = dict.fromkeys(c.concurrency for c in own if c.concurrency is not None)
    arms = dict.fromkeys(cell.arm.name for cell in own)
    workloads = dict.fromkeys(cell.workload for cell in own)
    return Experiment(tuple(arms), tuple(workloads), tuple(loads), repeats, note)


def level_of(cells: tuple[Cell, ...]) -> Level:
    """The weakest level behind a verdict; published facts where no run is involved."""
    levels = [cell.level for cell in cells]
    return min(levels, key=list(Level).index) if levels else Level.PUBLISHED


def single(cells: tuple[Cell, ...]) -> bool:
    """Whether any cell has one run only."""
    return any(len(cell.runs) < 2 for cell in cells)
