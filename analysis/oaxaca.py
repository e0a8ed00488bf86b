"""Kitagawa-Oaxaca-Blinder on steps: what of a latency gap is step cost, what is scheduling.

A mean latency is M = K tau + beside: K steps in a period, tau the time of such a step
(`analysis.steps.periods`). With a step's cost linear in what it holds, tau = x beta + misfit, x
the mean content of the steps that the latency counts. Between baseline a and treatment b
(Kitagawa 1955, Oaxaca 1973, Blinder 1973):

    step cost  at a's schedule: K_a x_a (beta_b - beta_a)      at b's: K_b x_b (beta_b - beta_a)
    scheduling at b's costs: (K_b x_b - K_a x_a) beta_b        at a's: the same with beta_a

The two firsts, and the two seconds, add up to the gap with the misfit and what lies beside the
steps. Scheduling is split exactly into the number of steps and their content:
K_b x_b - K_a x_a = (K_b - K_a)(x_a + x_b)/2 + (x_b - x_a)(K_a + K_b)/2.

Intervals are of a wild block bootstrap: the schedule is what it was, and the disturbances of step
times come again in blocks with random signs. Drawing the steps themselves anew would add what
other requests would have cost, which a rerun of the same requests does not show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.model import Floats
from analysis.step_cost import RECOMPUTED, Design, Fit
from analysis.steps import Latency, Steps, periods

DRAWS = 2000
Owner = Literal["baseline", "treatment"]


@dataclass(frozen=True, slots=True)
class Term:
    """A part of the gap, s, with its 95 % interval, and the same as a share of the gap."""

    value: float
    lo: float
    hi: float
    share: float
    share_lo: float
    share_hi: float

    @property
    def half_width(self) -> float:
        """Of the share's interval."""
        return (self.share_hi - self.share_lo) / 2


@dataclass(frozen=True, slots=True)
class Split:
    """Step cost at one arm's schedule, and scheduling at the other arm's costs."""

    schedule_of: Owner
    """Whose steps the step cost is weighed by."""
    step_cost: Term
    scheduling: Term
    count: Term
    """Of scheduling: more or fewer steps in a period (preemption, waiting)."""
    content: Term
    """Of scheduling: larger or smaller steps."""
    misfit: Term
    """What neither explains, delivery and idle time included."""
    assumes: str = ""
    """A price that the data does not hold, in words."""


@dataclass(frozen=True, eq=False, slots=True)
class Mean:
    """One arm's mean latency by its steps, and how each block's disturbance moves it."""

    steps: float
    """K."""
    content: Floats
    """x, shape (columns,)."""
    seconds: float
    """tau, s."""
    beside: float
    """s."""
    influence: Floats
    """Shape (blocks of both arms,): of tau."""


def means(f: Fit, baseline: Steps, treatment: Steps, latency: Latency) -> tuple[Mean, Mean]:
    """Both arms' means; each arm's own run is the first in its design."""
    blocks = len(f.influence_a)
    after = int(f.design_a.block[-1]) + 1
    return (
        _mean(baseline, latency, f.design_a, f.noise_a, 0, blocks),
        _mean(treatment, latency, f.design_b, f.noise_b, after, blocks),
    )


def _mean(
    run: Steps, latency: Latency, d: Design, noise: Floats, first_block: int, blocks: int
) -> Mean:
    p = periods(run, latency)
    rows = d.run == 0
    weight = p.weight / p.weight.sum()
    influence = np.zeros(blocks)
    np.add.at(influence, d.block[rows] + first_block, weight * noise[rows])
    return Mean(p.steps, weight @ d.x[rows], float(weight @ d.y[rows]), p.beside, influence)


class Gap:
    """The gap between two arms with its draws; every term is measured against it."""

    def __init__(self, f: Fit, a: Mean, b: Mean, seed: int) -> None:
        """Draw both arms' costs and means, seeded."""
        signs = np.random.default_rng(seed).choice((-1.0, 1.0), (DRAWS, len(f.influence_a)))
        signs[0] = 0.0  # the first draw is the estimate itself
        self._a, self._b = a, b
        self._beta_a, self._beta_b = f.a + signs @ f.influence_a, f.b + signs @ f.influence_b
        self._priced = _price_recomputing(f, self._beta_a, self._beta_b)
        self._tau_a, self._tau_b = a.seconds + signs @ a.influence, b.seconds + signs @ b.influence
        self._gap = b.steps * self._tau_b + b.beside - a.steps * self._tau_a - a.beside
        self.whole = self._term(self._gap)

    def _term(self, draws: Floats) -> Term:
        shares = draws / self._gap
        lo, hi = np.percentile(draws, [2.5, 97.5]).tolist()
        share_lo, share_hi = np.percentile(shares, [2.5, 97.5]).tolist()
        return Term(float(draws[0]), lo, hi, float(shares[0]), share_lo, share_hi)

    def split(self, owner: Owner) -> Split:
        """The split with the step cost at this arm's schedule."""
        a, b = self._a, self._b
        own, price = (a, self._beta_b) if owner == "baseline" else (b, self._beta_a)
        cost = own.steps * ((self._beta_b - self._beta_a) @ own.content)
        count = (b.steps - a.steps) * (price @ (a.content + b.content)) / 2
        content = (price @ (b.content - a.content)) * (a.steps + b.steps) / 2
        misfit = self._gap - cost - count - content
        lacking = "treatment" if owner == "baseline" else "baseline"
        assumes = RECOMPUTING if self._priced == lacking else ""
        term = self._term
        return Split(
            owner, term(cost), term(count + content), term(count), term(content), term(misfit),
            assumes,
        )  # fmt: skip


RECOMPUTING = (
    "one arm was never preempted: what recomputing would cost it is taken from the other, in "
    "proportion to what prefill costs them"
)


def _price_recomputing(f: Fit, a: Floats, b: Floats) -> Owner | None:
    """Give an arm that was never preempted a price for recomputed tokens, in place.

    The other arm's, times what prefill costs the one over the other. Prefill's own price would be
    wrong: recomputing was three to four times cheaper on a GPU, where prefixes were still cached.

    Returns:
        The arm that lacked the price.
    """
    at = f.names.index(RECOMPUTED)
    prefill = [i for i, name in enumerate(f.names) if name.startswith("prefill")]
    never_a, never_b = (not d.x[:, at].any() for d in (f.design_a, f.design_b))
    if never_a == never_b:
        return None
    ratio = b[:, prefill].sum(axis=1) / a[:, prefill].sum(axis=1)
    if never_b:
        b[:, at] = a[:, at] * ratio
        return "treatment"
    a[:, at] = b[:, at] / ratio
    return "baseline"
