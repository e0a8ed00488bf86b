"""A gap in mean stay between two arms, split exactly into the stages of a request.

A stay is the sum of its stages (to the first token and after it; or queue, prefill and decode
where the server tells them), so the means and their differences add up. The interval is between
requests: paired where both arms served the same requests in the same order, else Welch's. It says
what other requests might have given in these two runs, and is no test between arms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats as sps

from analysis.model import Floats, Requests
from analysis.token_times import Arrivals, Refused


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage's mean in each arm and its part of the gap, s, with the 95 % interval."""

    name: str
    baseline: float
    treatment: float
    gap: float
    lo: float
    hi: float


def of_arrivals(found: Arrivals) -> dict[str, Floats]:
    """Stages that a client sees, s. Shapes (n,)."""
    first = found.time[found.offsets[:-1]]
    return {"first token": first - found.start, "decode": found.last - first}


def of_requests(requests: Requests) -> dict[str, Floats]:
    """The same of completed requests where a file has no start times: what it still tells."""
    total = np.concatenate([[0.0], np.cumsum(requests.gaps)])
    decode = total[requests.offsets[1:]] - total[requests.offsets[:-1]]
    kept = ~requests.failed & (requests.ttft > 0)
    return {"first token": requests.ttft[kept], "decode": decode[kept]}


def same_requests(a: Arrivals, b: Arrivals) -> bool:
    """Whether both arms served requests of the same lengths in the same order."""
    return (
        len(a.start) == len(b.start)
        and bool((a.input_tokens == b.input_tokens).all())
        and bool((a.output_tokens == b.output_tokens).all())
    )


def split(
    baseline: Mapping[str, Floats], treatment: Mapping[str, Floats], *, paired: bool
) -> tuple[Stage, ...] | Refused:
    """Each stage's part of the gap in mean stay, and the stay itself last.

    Args:
        baseline: seconds of each request in each stage, by name; shapes (n,).
        treatment: the same stages of the other arm.
        paired: request i is the same in both.
    """
    if baseline.keys() != treatment.keys():
        return Refused((
            f"The arms tell different stages: {', '.join(baseline)} and {', '.join(treatment)}.",
        ))  # fmt: skip
    a = {**baseline, "stay": np.sum(list(baseline.values()), axis=0)}
    b = {**treatment, "stay": np.sum(list(treatment.values()), axis=0)}
    if min(len(a["stay"]), len(b["stay"])) < 2:
        return Refused(("An interval between requests needs two requests in each arm.",))
    return tuple(_stage(name, a[name], b[name], paired) for name in a)


def _stage(name: str, a: Floats, b: Floats, paired: bool) -> Stage:
    gap = float(b.mean() - a.mean())
    if paired:
        se, df = float((b - a).std(ddof=1)) / math.sqrt(len(a)), float(len(a) - 1)
    else:
        va, vb = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
        se = math.sqrt(va + vb)
        spread = va**2 / (len(a) - 1) + vb**2 / (len(b) - 1)
        df = (va + vb) ** 2 / spread if spread > 0 else float(len(a) + len(b) - 2)
    half = float(sps.t.ppf(0.975, df)) * se
    return Stage(name, float(a.mean()), float(b.mean()), gap, gap - half, gap + half)
