"""What the analyser reads, built in memory: figures, runs, arms, cells, studies.

    from tests.builders import cell, figure, printed, run, study

Times in seconds. A figure is exact unless it is built with `printed` or `between`. The defaults
make one plausible run: 100 requests in 100 s, 10 in flight, 100 prompt and 50 output tokens each.
Give runs with printed figures a `file` or `key` of their own: figures that are equal in value and
in source are one figure to the arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis.accounting import Borrowed, ledger
from analysis.dataset import Arm, Cell, Dataset, Study
from analysis.metrics import metric_of
from analysis.model import (
    Basis,
    Figure,
    Lengths,
    Level,
    Quoted,
    Requests,
    Run,
    Scalar,
    Source,
    Startup,
)
from analysis.study import ArmSpec, StudySpec, WorkloadSpec, arm_config

FILE = "runs/a.json"
"""Where built numbers say they stand."""

FIGURES: Mapping[str, float] = {
    "completed": 100,
    "failed": 0,
    "num_prompts": 100,
    "duration": 100,
    "total_input_tokens": 10_000,
    "total_output_tokens": 5_000,
    "request_throughput": 1,
    "output_throughput": 50,
    "total_token_throughput": 150,
    "mean_ttft": 0.1,
    "mean_itl": 9.8 / 49,
}
"""A run that obeys Little's law: X = 1/s, stay = 0.1 + 0.2 x 49 = 9.9 s, 9.9 in flight."""


def figure(
    name: str, value: float, unit: str | None = None, *, file: str = FILE, key: str | None = None
) -> Figure:
    """An exact figure; its unit is the metric's unless given."""
    return between(name, value, value, value, unit, file=file, key=key, basis="exact")


def between(
    name: str,
    value: float,
    lo: float,
    hi: float,
    unit: str | None = None,
    *,
    file: str = FILE,
    key: str | None = None,
    basis: Basis = "printed",
) -> Figure:
    """A figure with an interval."""
    known = metric_of(name)
    found = unit if unit is not None else known.unit if known else ""
    source = Source(file, name if key is None else key)
    return Figure(name, float(value), float(lo), float(hi), found, source, basis)


def printed(
    name: str, text: str, factor: float = 1.0, unit: str | None = None, *, file: str = FILE
) -> Figure:
    """A figure as printed: half a unit of the last digit either way, times `factor`."""
    _, _, decimals = text.partition(".")
    half = 0.5 * 10.0 ** -len(decimals)
    value = float(text)
    lo, hi = (value - half) * factor, (value + half) * factor
    return between(name, value * factor, lo, hi, unit, file=file)


def requests(
    ttft: Sequence[float],
    gaps: Sequence[Sequence[float]],
    *,
    input_tokens: Sequence[int] | None = None,
    output_tokens: Sequence[int] | None = None,
    failed: Sequence[bool] | None = None,
    start: Sequence[float] | None = None,
) -> Requests:
    """Per-request arrays from plain lists; output tokens are one more than the gaps by default."""
    n = len(ttft)
    counts = [len(row) for row in gaps]
    return Requests(
        np.array(ttft, float),
        np.array([gap for row in gaps for gap in row], float),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([100] * n if input_tokens is None else input_tokens, np.int64),
        np.array(
            [count + 1 for count in counts] if output_tokens is None else output_tokens, np.int64
        ),
        np.array([False] * n if failed is None else failed, bool),
        None if start is None else np.array(start, float),
    )


def run(
    figures: Mapping[str, float | Figure | None] | None = None,
    *,
    id: str = "",
    arm: str = "base",
    workload: str = "chat",
    concurrency: int | None = 10,
    level: Level = Level.SUMMARY,
    rate: float = float("inf"),
    config: Mapping[str, Scalar] | None = None,
    requests: Requests | None = None,
    file: str = FILE,
    key: str = "",
    bare: bool = False,
    warnings: tuple[str, ...] = (),
) -> Run:
    """A run with the default figures; `figures` replaces some, or drops one with None.

    `bare` starts from no figures at all. Plain numbers become exact figures.
    """
    values: dict[str, float | Figure | None] = {} if bare else dict(FIGURES)
    values.update(figures or {})
    return Run(
        id or f"{file}#{arm}-{workload}-{concurrency}",
        level,
        Source(file, key),
        {
            name: value if isinstance(value, Figure) else figure(name, value, file=file)
            for name, value in values.items()
            if value is not None
        },
        dict(config or {}),
        requests,
        arm=arm,
        workload=workload,
        concurrency=concurrency,
        requested_rate=rate,
        warnings=warnings,
    )


def startup(
    figures: Mapping[str, float | Figure] | None = None,
    *,
    arm: str = "base",
    file: str = "logs/server.log",
    config: Mapping[str, Scalar] | None = None,
) -> Startup:
    """A start-up log with these figures (kv_tokens, model_bytes ...)."""
    units = {"kv_tokens": "tok", "max_model_len": "tok", "model_bytes": "B", "kv_bytes": "B"}
    found = {
        name: value
        if isinstance(value, Figure)
        else figure(name, value, units.get(name, ""), file=file)
        for name, value in (figures or {}).items()
    }
    return Startup(Source(file, ""), arm, found, dict(config or {}))


def arm(name: str = "base", log: Startup | None = None, *, study: str = "s", **spec: Any) -> Arm:
    """An arm; further words are fields of its `ArmSpec`."""
    described = ArmSpec(name=name, **spec)
    return Arm(study, described, arm_config(described), log)


def cell(
    of: Arm | str = "base",
    *runs: Run,
    concurrency: int | None = 10,
    workload: str = "chat",
    borrowed: Borrowed | None = None,
) -> Cell:
    """A cell of these repeats; without any, of one default run."""
    owner = arm(of) if isinstance(of, str) else of
    found = runs or (run(arm=owner.name, workload=workload, concurrency=concurrency),)
    first = found[0]
    return Cell(
        owner, first.workload, first.concurrency, tuple(ledger(one, borrowed) for one in found)
    )


def study(
    *cells: Cell,
    name: str = "s",
    workloads: Sequence[WorkloadSpec] = (),
    claims: Sequence[Mapping[str, object]] = (),
    lengths: Mapping[str, Lengths] | None = None,
    quoted: Sequence[Quoted] = (),
    **spec: Any,
) -> Study:
    """A study of these cells and their arms; further words are fields of its `StudySpec`."""
    arms = {one.arm.name: one.arm for one in cells}
    described = StudySpec(
        name=name, arm=tuple(a.spec for a in arms.values()), workload=tuple(workloads), **spec
    )
    return Study(
        name, described, arms, cells, dict(lengths or {}), tuple(quoted), claims=tuple(claims)
    )


def dataset(*studies: Study) -> Dataset:
    """A results folder with these studies."""
    return Dataset(studies)
