"""Which steps of a profiler's trace may be compared, and what a part of them takes.

Decode steps only: those that computed no prompt, with the number of sequences that most of them
had; not the last of a capture, whose end is not seen. A part's time is the mean over these steps,
and its interval is the middle 95 % of them: the spread over steps of one capture, which holds no
spread between server starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.kernel_classes import KINDS
from analysis.model import Estimate, Floats, KernelTrace, Source
from analysis.wording import plural

IDLE = "idle"
PARTS = {**KINDS, IDLE: "idle: no kernel runs"}
"""Classes of kernels, and the rest of a step."""
FEWEST = 5
"""Decode steps below which a trace decides nothing."""
FEW = 20
"""Decode steps below which a trace carries a warning."""
_MIDDLE = (0.025, 0.975)


@dataclass(frozen=True, eq=False, slots=True)
class Decoding:
    """The comparable steps of one trace."""

    trace: KernelTrace
    batch: int | None
    """Sequences a step; None where the trace does not say."""
    seconds: Floats
    """Shape (n,): of each step."""
    busy: Floats
    kinds: dict[str, Floats]
    all_steps: int
    """Of any batch, and with prompts."""

    @property
    def count(self) -> int:
        """How many steps there are."""
        return len(self.seconds)

    @property
    def median(self) -> float:
        """Of the steps' durations, s; a pause between requests does not move it."""
        return float(np.median(self.seconds))

    @property
    def busy_share(self) -> float:
        """Share of the steps' time in which the device worked."""
        return float(self.busy.sum() / self.seconds.sum())

    def part(self, name: str) -> Floats:
        """Shape (n,): seconds of a class of kernels, or idle, in each step."""
        return self.seconds - self.busy if name == IDLE else self.kinds[name]

    def estimate(self, name: str, label: str) -> Estimate:
        """A part's mean time a step with the spread over steps."""
        how = f"{PARTS[name]}, seconds a step, mean over decode steps"
        return self._over_steps(label, self.part(name), "s", how, name)

    def whole(self, label: str) -> Estimate:
        """Mean duration of a step."""
        how = "from a step's first kernel to that of the next, mean over decode steps"
        return self._over_steps(label, self.seconds, "s", how, "ts, dur")

    def busy_estimate(self, label: str) -> Estimate:
        """Share of the steps in which the device worked: a long step weighs more."""
        how = "share of the steps in which some kernel runs, over all streams"
        found = self._over_steps(label, self.busy / self.seconds, "", how, "ts, dur")
        return replace(found, value=self.busy_share)

    def _over_steps(self, label: str, values: Floats, unit: str, how: str, key: str) -> Estimate:
        lo, hi = (float(end) for end in np.quantile(values, _MIDDLE))
        value = float(values.mean())
        return Estimate(
            label,
            value,
            min(lo, value),
            max(hi, value),
            unit,
            f"middle 95 % of {plural(self.count, 'step')}",
            how,
            (Source(self.trace.source.file, f"{self.trace.source.key}: {key}"),),
            self.trace.warnings,
        )


def decoding(trace: KernelTrace) -> Decoding | None:
    """The decode steps of a trace; None where it marks no steps, or has no time line."""
    steps = trace.steps
    if steps is None:
        return None
    plain = (steps.prompts <= 0) & (steps.seconds > 0)
    # Of the last one the pause before the next is missing.
    plain[-1] = False
    if not plain.any():
        return None
    sizes, counts = np.unique(steps.batch[plain], return_counts=True)
    # Of two sizes as frequent the larger: a batch shrinks while requests end.
    most = int(sizes[len(sizes) - 1 - int(np.argmax(counts[::-1]))])
    kept = plain & (steps.batch == most)
    return Decoding(
        trace,
        most if most >= 0 else None,
        steps.seconds[kept],
        steps.busy[kept],
        {kind: values[kept] for kind, values in steps.kinds.items()},
        len(steps.seconds),
    )


def best(traces: Sequence[KernelTrace], batch: int | None) -> tuple[Decoding, ...]:
    """The decode steps of an arm's traces, the nearest to a batch first, then the lowest rank.

    Ranks of one capture hold the same steps, so one of them stands for all.
    """
    found = [steps for trace in traces if (steps := decoding(trace)) is not None]

    def order(steps: Decoding) -> tuple[float, int, int, str]:
        far = 0.0 if batch is None or steps.batch is None else abs(steps.batch - batch)
        rank = steps.trace.rank if steps.trace.rank is not None else 0
        return far, rank, -steps.count, steps.trace.source.file

    return tuple(sorted(found, key=order))


def near(left: int | None, right: int | None, share: float) -> bool:
    """Whether two batches differ by no more than a share of the larger; unknown ones may be."""
    if left is None or right is None:
        return True
    return abs(left - right) <= share * max(left, right)
