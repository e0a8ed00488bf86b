"""What a step costs: its duration as a sum over what is in it, by least squares over all loads.

    duration = constant + batch + context + prefill + first tokens + recomputed   (s)

- All runs of an arm are fitted together: in one closed loop the batch hardly varies.
- Prefilled tokens and first tokens enter at the step before, the same and the step after, and
  their sum is the cost: an asynchronous engine shows a first token a step early or late, and with
  the wrong one alone the slope of the batch turns negative.
- The batch may bend (hinges), where steps are large enough to show it.
- Least squares, never a robust fit: means are to be split, and a robust fit passes by the mean.
- The context's cost may be held common to arms of one KV type: within one arm, batch and context
  grow together and are not told apart.

The pseudo-inverse is used, so what the data cannot tell apart is split evenly and *predicts* well
where it was seen together; `Fit.reaches` says whether a mean can be predicted at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.model import Floats, Ints
from analysis.steps import Steps

HINGES = (16, 48)
"""Sequences. Attention kernels and GEMMs change shape there; a straight line left 0.3 of 15 ms
at 128 in flight unexplained, two hinges 0.06."""
BLOCK = 40
"""Steps whose disturbances may be related: delivery, clocks, neighbours."""
LEAST_BLOCKS = 20
LEAST_RANGE = 2.0
"""Sequences, between the 10th and 90th percentile of the batch: below it no slope is told."""
MOST_ALIKE = 0.95
"""Correlation of batch and context above which their costs are not told apart."""
CONTEXT = "context"
RECOMPUTED = "recomputed"
_LAGS = (-1, 0, 1)


@dataclass(frozen=True, eq=False, slots=True)
class Design:
    """Regressors of one arm's steps. Shape of `x`: (steps, columns)."""

    names: tuple[str, ...]
    x: Floats
    y: Floats
    """Duration, s."""
    block: Ints
    """Shape (steps,). Which block of consecutive steps of one engine a row is in."""
    run: Ints


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One cost, with its 95 % interval; `refused` says in words why it is not given."""

    name: str
    value: float
    lo: float
    hi: float
    unit: str
    refused: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class ArmCost:
    """What steps of one arm cost, with bends where its runs show them."""

    runs: tuple[Steps, ...]
    design: Design
    solved: Solved


def arm_cost(runs: Sequence[Steps]) -> ArmCost:
    """Least squares over all runs of an arm."""
    d = design(runs, hinges=hinges_of(runs))
    return ArmCost(tuple(runs), d, solve(d.x, d.y, d.block))


@dataclass(frozen=True, eq=False, slots=True)
class Fit:
    """Costs of two arms fitted in one regression. Coefficients (a's, b's; shared ones in both)."""

    names: tuple[str, ...]
    a: Floats
    """Shape (columns,)."""
    b: Floats
    noise_a: Floats
    """Shape (steps,). Residuals over one less their leverage, s."""
    noise_b: Floats
    influence_a: Floats
    """Shape (blocks, columns). What each block's disturbances moved in a's coefficients; the
    blocks are a's, then b's."""
    influence_b: Floats
    design_a: Design
    design_b: Design
    row_space_a: Floats
    """Projection onto what arm a's data can tell. Shape (columns, columns)."""
    row_space_b: Floats
    r_squared: tuple[float, float]


def design(runs: Sequence[Steps], *, hinges: Sequence[int] = ()) -> Design:
    """Regressors of all runs of an arm, run after run, engine after engine."""
    parts, blocks, labels, shift = [], [], [], 0
    for number, run in enumerate(runs):
        t = run.table
        batch = t.decoding.astype(float)
        columns: dict[str, Floats] = {"constant": np.ones(len(batch)), "batch": batch}
        columns |= {f"batch above {h}": np.maximum(batch - h, 0) for h in hinges}
        columns[CONTEXT] = t.context / 1000
        for name, values in (("prefill", t.prefilled / 1000), ("firsts", t.firsts.astype(float))):
            columns |= {f"{name} {lag:+d}": _moved(values, lag, t.engine) for lag in _LAGS}
        columns[RECOMPUTED] = t.recomputed / 1000
        parts.append(np.column_stack(list(columns.values())))
        names = tuple(columns)
        within = np.concatenate([
            np.arange(int((t.engine == e).sum())) // BLOCK for e in np.unique(t.engine)
        ])  # fmt: skip
        fresh = np.concatenate([[0], (np.diff(within) != 0) | (np.diff(t.engine) != 0)])
        block = np.cumsum(fresh).astype(np.int64)
        blocks.append(block + shift)
        shift += int(block[-1]) + 1
        labels.append(np.full(len(batch), number))
    return Design(
        names, np.concatenate(parts), np.concatenate([run.table.duration for run in runs]),
        np.concatenate(blocks), np.concatenate(labels),
    )  # fmt: skip


def hinges_of(runs: Sequence[Steps]) -> tuple[int, ...]:
    """Where the cost of the batch may bend: where the runs have steps on both sides."""
    most = max(float(np.percentile(run.table.decoding, 90)) for run in runs)
    return tuple(hinge for hinge in HINGES if hinge < most)


@dataclass(frozen=True, eq=False, slots=True)
class Solved:
    """Least squares over steps: coefficients, and what each block of steps did to them."""

    beta: Floats
    noise: Floats
    scores: Floats
    """Shape (blocks, columns)."""
    space: Floats
    residual: Floats


def solve(x: Floats, y: Floats, block: Ints) -> Solved:
    """Least squares by the pseudo-inverse of scaled columns."""
    scale = np.sqrt((x**2).mean(axis=0))
    scale[scale == 0] = 1.0
    # Of the triangle only: the pseudo-inverse of all rows takes ten times as long.
    q, r = np.linalg.qr(x / scale)
    inverse = np.linalg.pinv(r, rcond=1e-9) @ q.T
    beta = (inverse @ y) / scale
    residual = y - x @ beta
    # A row that rules the fit leaves a residual too small for its noise (MacKinnon, White 1985).
    leverage = np.einsum("ij,ji->i", x / scale, inverse)
    noise = residual / np.maximum(1 - leverage, 0.1)
    scores = np.zeros((int(block[-1]) + 1, x.shape[1]))
    np.add.at(scores, block, (inverse.T * noise[:, None]) / scale)
    space = (inverse @ (x / scale)) * scale[:, None] / scale
    return Solved(beta, noise, scores, space, residual)


def fit(a: Design, b: Design, shared: Sequence[str] = ()) -> Fit:
    """Least squares over both arms; columns named in `shared` have one coefficient for both."""
    names, p, at = a.names, len(a.names), len(a.y)
    own = np.flatnonzero([name not in shared for name in names])
    place_a, place_b = np.arange(p), np.arange(p)
    place_b[own] = p + np.arange(len(own))
    x = np.zeros((at + len(b.y), p + len(own)))
    x[:at, place_a] = a.x
    x[at:, place_b] = b.x
    block = np.concatenate([a.block, b.block + a.block[-1] + 1])
    s = solve(x, np.concatenate([a.y, b.y]), block)
    return Fit(
        names, s.beta[place_a], s.beta[place_b], s.noise[:at], s.noise[at:],
        s.scores[:, place_a], s.scores[:, place_b], a, b,
        s.space[np.ix_(place_a, place_a)], s.space[np.ix_(place_b, place_b)],
        (_r2(a.y, s.residual[:at]), _r2(b.y, s.residual[at:])),
    )  # fmt: skip


def coefficients(runs: Sequence[Steps]) -> tuple[Coefficient, ...]:
    """What the steps of one arm cost, over all its runs, each with its interval or why not."""
    d = design(runs)
    s = solve(d.x, d.y, d.block)
    groups: dict[str, list[int]] = {}
    for at, name in enumerate(d.names):
        groups.setdefault(name.split(" ")[0], []).append(at)
    weights = {name: dict.fromkeys(columns, 1.0) for name, columns in groups.items()}
    batch, context = d.names.index("batch"), d.names.index(CONTEXT)
    # What is told where batch and context are not: a sequence with the context it has on average.
    each = float(d.x[:, context].sum() / max(d.x[:, batch].sum(), 1.0))
    weights["sequence"] = {batch: 1.0, context: each}
    found = []
    for name, parts in weights.items():
        which, times = list(parts), np.array(list(parts.values()))
        value = float(s.beta[which] @ times)
        half = 1.96 * float(np.sqrt(((s.scores[:, which] @ times) ** 2).sum()))
        words = _untold(d, name, which[0], value, half)
        found.append(Coefficient(name, value, value - half, value + half, _UNITS[name], words))
    return tuple(found)


_UNITS = {
    "constant": "s a step",
    "batch": "s a sequence",
    CONTEXT: "s a thousand resident tokens",
    "prefill": "s a thousand prompt tokens",
    "firsts": "s a first token",
    RECOMPUTED: "s a thousand recomputed tokens",
    "sequence": "s a sequence with its mean context",
}


def _untold(d: Design, name: str, column: int, value: float, half: float) -> str:
    """Why a coefficient is not given; empty where it is."""
    x = d.x[:, column]
    if not x.any():
        return "No step had any."
    batch, context = (d.x[:, d.names.index(n)] for n in ("batch", CONTEXT))
    low, high = np.percentile(batch, [10, 90])
    if name in ("batch", CONTEXT, "constant", "sequence") and high - low < LEAST_RANGE:
        return (
            f"The batch hardly varies: {low:.0f} to {high:.0f} sequences in eight steps of ten. "
            "Runs at other loads would tell what a sequence costs."
        )
    if name in ("batch", CONTEXT) and context.any():
        r = float(np.corrcoef(batch, context)[0, 1])
        if r > MOST_ALIKE:
            return f"Batch and context grow together (r = {r:.2f}): only their sum is told."
    alike = {"prefill": "firsts", "firsts": "prefill"}.get(name)
    if alike is not None:
        both = d.names.index(f"{name} +0"), d.names.index(f"{alike} +0")
        r = float(np.corrcoef(d.x[:, both[0]], d.x[:, both[1]])[0, 1])
        if r > MOST_ALIKE:
            return (
                f"Prompts are of about one length, so prefill and first tokens come together "
                f"(r = {r:.2f}): only their sum is told."
            )
    if name == "constant" and value > float(d.y.mean()):
        return f"It comes out above the mean step ({value:.2g} s): the other costs are not told."
    if value + half < 0:
        return f"It comes out negative ({value:.2g} {_UNITS[name]}), which no step can cost."
    if half > abs(value):
        return f"It is not told from 0: {value:.2g} ± {half:.2g} {_UNITS[name]}."
    return ""


def _moved(values: Floats, lag: int, engine: Ints) -> Floats:
    """The value at the step before (-1) or after (+1) within one engine; 0 at its ends."""
    if lag == 0:
        return values.copy()
    out = np.zeros(len(values))
    if lag < 0:
        out[1:] = np.where(engine[1:] == engine[:-1], values[:-1], 0)
    else:
        out[:-1] = np.where(engine[1:] == engine[:-1], values[1:], 0)
    return out


def _r2(y: Floats, residual: Floats) -> float:
    total = float(((y - y.mean()) ** 2).sum())
    return 1 - float((residual**2).sum()) / total if total > 0 else 1.0
