"""Arms that differ in named factors: what each factor does to a metric, and whether they interact.

The logarithm of the metric is fitted with one mean for each combination of levels and, where runs
share seeds, one for each seed (the prompts), by ordinary least squares over runs (statsmodels). An
effect is a contrast of these means with Student's t interval, so its exponential is a ratio:

    simple effect of A at b     mean(a1, b) - mean(a0, b)
    main effect of A            the mean of its simple effects over the levels of B
    interaction                 the simple effect of A at b1 less that at b0
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats as sps
from statsmodels.regression.linear_model import OLS

from analysis.model import Floats
from analysis.stats import CONFIDENCE, LEAST_RUN_SD

Levels = tuple[str, ...]
"""One level of each factor, in the order of the factors."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One run: its combination of levels, what it shares with runs of others, and its log value."""

    levels: Levels
    block: Hashable
    """None where nothing is known to be shared."""
    value: float


@dataclass(frozen=True, slots=True)
class Effect:
    """A contrast of log means as a ratio, with its 95 % and 90 % interval between runs."""

    ratio: float
    lo: float
    hi: float
    lo90: float
    hi90: float
    p: float | None
    """Of no effect; None without a spread between runs."""
    scale: float
    """Standard error of the log ratio for a run-to-run sd of 1."""

    @property
    def tested(self) -> bool:
        """Whether a spread between runs is known."""
        return self.p is not None


class Factorial:
    """A fit over all runs of all combinations."""

    def __init__(self, runs: Sequence[Observation]) -> None:
        """Fit log means of combinations and blocks.

        Raises:
            ValueError: no runs.
        """
        if not runs:
            raise ValueError("a factorial fit needs runs")
        self.cells: tuple[Levels, ...] = tuple(dict.fromkeys(run.levels for run in runs))
        blocks = _shared(runs)
        x = np.zeros((len(runs), len(self.cells) + max(len(blocks) - 1, 0)))
        for row, run in enumerate(runs):
            x[row, self.cells.index(run.levels)] = 1
            place = blocks.index(run.block) if run.block in blocks else 0
            if place:
                x[row, len(self.cells) + place - 1] = 1
        combinations = {(run.block, run.levels) for run in runs}
        self.shared = sum(sum(b == block for b, _ in combinations) > 1 for block in blocks)
        """Blocks with runs of several combinations."""
        self._space = np.linalg.pinv(x) @ x
        self.df = len(runs) - int(np.linalg.matrix_rank(x))
        self._width = x.shape[1]
        with warnings.catch_warnings():
            # What the runs do not tell is refused contrast by contrast.
            warnings.simplefilter("ignore")
            self._fit = OLS(np.array([run.value for run in runs]), x).fit()

    def effect(self, weights: Mapping[Levels, float]) -> Effect | None:
        """The contrast that gives each combination this weight; weights sum to zero.

        None where the runs do not tell it: combinations that share no block differ in their
        prompts as well.
        """
        c = np.zeros(self._width)
        for levels, weight in weights.items():
            c[self.cells.index(levels)] = weight
        if not np.allclose(c @ self._space, c, atol=1e-8):
            return None
        mean = float(c @ self._fit.params)
        covariance: Floats = np.asarray(self._fit.normalized_cov_params, float)
        scale = math.sqrt(max(float(c @ covariance @ c), 0.0))
        if self.df < 1:
            return Effect(math.exp(mean), 0.0, math.inf, 0.0, math.inf, None, scale)
        # Runs that print alike have no spread to speak of, but the quietest host has some.
        sd = max(math.sqrt(float(self._fit.ssr) / self.df), LEAST_RUN_SD)
        se = scale * sd
        half, half90 = (
            float(sps.t.ppf(0.5 + level / 2, self.df)) * se for level in (CONFIDENCE, 0.90)
        )
        p = float(2 * sps.t.sf(abs(mean) / se, self.df)) if se > 0 else 1.0
        lo, hi, lo90, hi90 = (math.exp(mean + end) for end in (-half, half, -half90, half90))
        return Effect(math.exp(mean), lo, hi, lo90, hi90, p, scale)


def _shared(runs: Sequence[Observation]) -> list[Hashable]:
    """Every block, where every run has one; one of a single combination uses its runs up."""
    blocks = [run.block for run in runs]
    return [] if None in blocks else list(dict.fromkeys(blocks))


def main_effect(at: int, low: str, high: str, cells: Sequence[Levels]) -> dict[Levels, float]:
    """Weights of the main effect of factor number `at`, over the other factors' combinations."""
    pairs = [
        (cell, _moved(cell, at, high)) for cell in cells
        if cell[at] == low and _moved(cell, at, high) in cells
    ]  # fmt: skip
    weights: dict[Levels, float] = {}
    for a, b in pairs:
        weights[a] = weights.get(a, 0.0) - 1 / len(pairs)
        weights[b] = weights.get(b, 0.0) + 1 / len(pairs)
    return weights


def _moved(cell: Levels, at: int, level: str) -> Levels:
    return (*cell[:at], level, *cell[at + 1 :])
