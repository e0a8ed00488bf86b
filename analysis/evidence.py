"""Resolves what a claim names (a cell, a start-up fact, a quoted figure) to a quantity.

Two things can go wrong, and they differ: a claim that names what does not exist is the author's
mistake (`BadClaim`, with the nearest right name); a figure that no file holds makes the claim
untestable (`Missing`, with the file that would hold it and the identities that were tried).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from analysis.capacity import kv_tokens
from analysis.dataset import Arm, Cell, Dataset, Study
from analysis.floor import kv_token_bytes, read_bytes
from analysis.hardware import find_gpu
from analysis.hardware import nearest as nearest_gpu
from analysis.metrics import METRICS, label_of, metric_of
from analysis.model import Estimate, Figure, HelpText, Lengths, Level, Source, Verdict
from analysis.quantity import Quantity, quantity
from analysis.study import BadInput, nearest
from analysis.wording import listing


class BadClaim(BadInput):
    """A claim that names something that is not there; the message is one line for its author."""


class Missing(Exception):
    """A figure that no file holds: what is missing, and what was tried instead."""

    def __init__(self, what: str, tried: str) -> None:
        super().__init__(what)
        self.what = what
        self.tried = tried


class Ref(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A reference to one number. One of `metric`, `fact`, `quoted`, `value`, `sample` is set."""

    study: str = ""
    """Another study; the claim's own when empty."""
    arm: str = ""
    workload: str = ""
    concurrency: int | None = None
    metric: str = ""
    """A metric of the cell (arm, workload, concurrency): `mean_itl`, `in_flight` ..."""
    fact: str = ""
    """A start-up fact of the arm (`kv_tokens`, `model_bytes` ...) or of the `gpu`."""
    gpu: str = ""
    quoted: str = ""
    """A figure by its name in a table of quoted figures."""
    value: str = ""
    """A number given by the sentence itself, as printed there."""
    unit: str = ""
    sample: str = ""
    """A workload whose length sample is meant, with `stat`."""
    stat: str = ""
    """`max_prompt`, `mean_output`, `median_total` ..."""
    times: float = 1.0
    plus: Ref | None = None
    minus: Ref | None = None
    over: Ref | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Experiment:
    """The runs that would settle a claim."""

    arms: tuple[str, ...]
    workload: str = ""
    concurrency: tuple[int, ...] = ()
    repeats: int = 5
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


Direction = Literal["higher", "lower", "undecided"]

_FACTS = (
    "model_bytes", "kv_bytes", "kv_tokens", "max_model_len", "reported_max_concurrency",
    "kv_tokens_total", "kv_bytes_total", "kv_bytes_per_token", "weights_read", "gpu_memory",
)  # fmt: skip
_GPU_FACTS = ("memory_bytes", "bandwidth", "flops", "link_bandwidth")
_STATS = ("min", "mean", "median", "max", "count")


@dataclass(frozen=True, eq=False)
class Evidence:
    """The data as seen from one study; other studies are reached by name."""

    dataset: Dataset
    study: Study
    findings: dict[str, Verdict] = field(default_factory=dict)
    """Verdicts of the study's claims so far, for composites."""

    def in_study(self, name: str) -> Study:
        """The study of that name, the own one for ""."""
        if not name:
            return self.study
        found = self.dataset.study(name)
        if found is None:
            known = [study.name for study in self.dataset.studies]
            raise Missing(f"the study {name!r} (not below this results folder)",
                          f"studies here: {', '.join(known)}")  # fmt: skip
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
            loads = [str(cell.concurrency) for cell in where.loads(arm, workload)]
            measured = f"measured at {', '.join(loads)}" if loads else "not measured at all"
            raise Missing(f"a result file of {arm} on {workload} at {load} in flight",
                          f"that cell is {measured}; no other load stands in for it")  # fmt: skip
        return found

    def need(self, cell: Cell, name: str) -> Quantity:
        """A metric of a cell."""
        if metric_of(name) is None:
            raise BadClaim(f"names metric {name!r}, which is not known; {nearest(name, METRICS)}")
        found = cell.metric(name)
        if found is None:
            raise Missing(f"{label_of(name)} of {cell.name} in {cell.runs[0].source.file}",
                          "the file does not print it and it does not follow from X = n / T, "
                          "stay = TTFT + ITL x (output - 1) and L = X x stay")  # fmt: skip
        return found

    def account(self, cell: Cell, name: str) -> Quantity:
        """A quantity of a cell's ledger (`in_flight`, `l_first`, `throughput` ...)."""
        found = cell.account(name)
        if found is None:
            raise Missing(
                f"mean TTFT, mean ITL or token counts of {cell.name} in {cell.runs[0].source.file}",
                "Little's law needs throughput, TTFT and ITL of the same run",
            )
        return found

    def fact(self, arm: Arm, name: str) -> Quantity:
        """A start-up fact of an arm, or one that follows from it."""
        if name not in _FACTS:
            raise BadClaim(f"names fact {name!r}, which is not known; {nearest(name, _FACTS)}")
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
        elif name == "gpu_memory" and arm.gpu is not None:
            found = quantity(arm.gpu.figure("memory_bytes"))
        elif name == "kv_bytes_total" and (per := kv_token_bytes(arm)) is not None:
            tokens = kv_tokens(arm)
            ranks = float(arm.spec.tensor_parallel * arm.spec.pipeline_parallel)
            found = None if tokens is None else (tokens * per * ranks).as_unit("B")
        if found is None:
            raise Missing(f"the start-up log of {arm.name} ({name.replace('_', ' ')})",
                          "neither a log, a start-up table nor the model's geometry gives it")  # fmt: skip
        return found

    def lengths(self, workload: str, study: str = "") -> Lengths:
        """The length sample of a workload."""
        where = self.in_study(study)
        spec = next((w for w in where.spec.workload if w.name == workload), None)
        if spec is None:
            known = [w.name for w in where.spec.workload]
            raise BadClaim(f"names workload {workload!r}, which study.toml does not describe; "
                           f"{nearest(workload, known)}")  # fmt: skip
        path = f"{where.folder}/{spec.lengths}".lstrip("/")
        if not spec.lengths or path not in where.lengths:
            raise Missing(f"a length sample of {workload}",
                          "means alone do not say how many requests pass a limit")  # fmt: skip
        return where.lengths[path]

    def help_text(self, command: str) -> HelpText:
        """The stored --help of a command, of this study or another."""
        for study in (self.study, *self.dataset.studies):
            for text in study.help_texts:
                if text.command == command:
                    return text
        raise Missing(f"the stored output of `{command} --help`",
                      "no help text of that command lies below the results folder")  # fmt: skip

    def resolve(self, ref: Ref) -> Quantity:
        """The number a reference stands for."""
        result = self._plain(ref)
        if ref.times != 1.0:
            result = result * ref.times
        if ref.plus is not None:
            result = result + self.resolve(ref.plus)
        if ref.minus is not None:
            result = result - self.resolve(ref.minus)
        if ref.over is not None:
            result = result / self.resolve(ref.over)
        return result

    def _plain(self, ref: Ref) -> Quantity:
        if ref.metric:
            return self.need(self.cell(ref.arm, ref.workload, ref.concurrency, ref.study),
                             ref.metric)  # fmt: skip
        if ref.fact and ref.gpu:
            gpu = find_gpu(ref.gpu)
            if gpu is None:
                raise BadClaim(f"names GPU {ref.gpu!r}, which hardware.toml does not have; "
                               f"nearest: {listing(nearest_gpu(ref.gpu), 'or')}")  # fmt: skip
            if ref.fact not in _GPU_FACTS:
                raise BadClaim(f"names GPU fact {ref.fact!r}; {nearest(ref.fact, _GPU_FACTS)}")
            return quantity(gpu.figure(ref.fact))
        if ref.fact:
            return self.fact(self.arm(ref.arm, ref.study), ref.fact)
        if ref.quoted:
            return self._quoted(ref)
        if ref.value:
            return stated(ref.value, ref.unit)
        if ref.sample:
            return self._statistic(ref)
        raise BadClaim("has a reference without metric, fact, quoted, value or sample; give one")

    def _quoted(self, ref: Ref) -> Quantity:
        tables = self.in_study(ref.study).quoted
        for table in tables:
            if ref.quoted in table.figures:
                return quantity(table.figures[ref.quoted])
        known = [name for table in tables for name in table.figures]
        raise BadClaim(f"names the quoted figure {ref.quoted!r}, which is not there; "
                       f"{nearest(ref.quoted, known)}")  # fmt: skip

    def _statistic(self, ref: Ref) -> Quantity:
        sample = self.lengths(ref.sample, ref.study)
        stat, _, column = ref.stat.partition("_")
        columns = {
            "prompt": sample.prompt, "output": sample.output,
            "total": sample.prompt + sample.output,
        }  # fmt: skip
        if stat not in _STATS or column not in columns:
            raise BadClaim(f"names the statistic {ref.stat!r}; expected one of "
                           f"{', '.join(_STATS)} and prompt, output or total: max_prompt")  # fmt: skip
        import numpy as np

        values = columns[column]
        value = float(len(values) if stat == "count" else getattr(np, stat)(values))
        source = Source(sample.source.file, f"{stat} of {column} tokens")
        return quantity(Figure(ref.stat, value, value, value, "tok", source))

    def describe(self, ref: Ref) -> str:
        """A reference in words."""
        text = self._describe_plain(ref)
        if ref.times != 1.0:
            text = f"{ref.times:g} x {text}"
        for word, other in (("plus", ref.plus), ("minus", ref.minus), ("over", ref.over)):
            if other is not None:
                text += f" {word} {self.describe(other)}"
        return text

    def _describe_plain(self, ref: Ref) -> str:
        where = f" ({ref.study})" if ref.study else ""
        if ref.metric:
            return f"{label_of(ref.metric)} of {ref.arm} on {ref.workload} at " \
                   f"{ref.concurrency} in flight{where}"  # fmt: skip
        if ref.fact:
            words = ref.fact.replace("_", " ").replace("kv", "KV").replace("bytes", "memory")
            return f"{words} of {ref.gpu or ref.arm}{where}"
        if ref.quoted:
            return f"the quoted {ref.quoted}{where}"
        if ref.value:
            return f"the stated {ref.value} {ref.unit}".rstrip()
        return f"{ref.stat.replace('_', ' ')} tokens in the sample of {ref.sample}{where}"

    def cells_of(self, *refs: Ref | None) -> tuple[Cell, ...]:
        """The cells behind references, nested ones included."""
        found: list[Cell] = []
        for ref in refs:
            if ref is None:
                continue
            if ref.metric:
                found.append(self.cell(ref.arm, ref.workload, ref.concurrency, ref.study))
            found.extend(self.cells_of(ref.plus, ref.minus, ref.over))
        return tuple(dict.fromkeys(found))


_UNITS = {"ms": ("s", 1e-3), "GiB": ("B", 2.0**30), "GB": ("B", 1e9), "x": ("", 1.0),
          "ratio": ("", 1.0), "%": ("", 0.01), "percent": ("", 0.01)}  # fmt: skip


def stated(text: str, unit: str = "") -> Quantity:
    """A number as a sentence prints it, in base units, with half its last digit either way.

    Raises:
        BadClaim: the text is no plain decimal number.
    """
    plain = text.replace(",", "").strip()
    try:
        value = float(plain)
    except ValueError:
        raise BadClaim(f"states {text!r}, which is no plain number; write it like '2.74'") from None
    places = len(plain.partition(".")[2])
    base, factor = _UNITS.get(unit, (unit, 1.0))
    half = 0.5 * 10.0**-places
    source = Source("", f"stated: {text}{' ' + unit if unit else ''}")
    figure = Figure("stated", value * factor, (value - half) * factor, (value + half) * factor,
                    base, source, "printed")  # fmt: skip
    return quantity(figure)


def level_of(cells: tuple[Cell, ...]) -> Level:
    """The weakest level behind a verdict; published facts where no run is involved."""
    levels = [cell.level for cell in cells]
    return min(levels, key=list(Level).index) if levels else Level.PUBLISHED


def single(cells: tuple[Cell, ...]) -> bool:
    """Whether any cell has one run only."""
    return any(len(cell.runs) < 2 for cell in cells)
