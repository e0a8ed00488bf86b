"""How well attribution finds causes that are known: random arms, their shares and the truth.

    python -m tests.recovery 0 1040        # seeds from, to; prints the table

A configuration is a pair of arms that differ in what a step costs, in what bounds the running
batch (sequences, KV blocks, replicas of their own client or behind a router), or in both, on a
random workload. Each arm runs at the target load and at a quarter and half of it. The truth of the
step cost's share is the model run again, without noise, with only the other arm's step cost.
The estimator sees what client and server counters show, and none of the truth.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from analysis.attribution import MODEL_ERROR, TELLING, Causes, attribute, causes
from analysis.simulate import Arm, Closed, Delivery, Engine, Open, Simulated, StepCost, Workload
from analysis.simulate import simulate as simulate_run
from analysis.steps import Latency, Steps, reconstruct
from analysis.token_times import Refused
from tests.simulated import requests_of

KINDS = (
    "step cost", "KV", "sequences", "KV and cost", "sequences and cost", "replicas",
    "step cost", "KV", "sequences", "KV and cost", "sequences and cost", "replicas", "open loop",
)  # fmt: skip
LATENCIES: tuple[Latency, ...] = ("itl", "stay", "duration")
EXACT = 2e-4
"""Of the gap: a share of scheduling that has no noise has no interval, and the truth's own run
differs by what a millisecond on the network moves."""
LEAST_GAP = 0.10
"""Of the baseline's latency: smaller gaps are not attributed here."""


@dataclass(frozen=True, slots=True)
class Case:
    """One latency of one configuration. Shares are of the gap, of step cost and scheduling."""

    seed: int
    kind: str
    latency: Latency
    gap: float
    """Over the baseline's latency, in truth."""
    refused: str = ""
    truth: tuple[float, float] = (np.nan, np.nan)
    found: tuple[float, float] = (np.nan, np.nan)
    intervals: tuple[tuple[float, float], tuple[float, float]] = ((0.0, 0.0), (0.0, 0.0))
    verdict: Causes | None = None

    @property
    def error(self) -> float:
        """The larger error of the two shares."""
        return max(abs(t - f) for t, f in zip(self.truth, self.found, strict=True))

    @property
    def covered(self) -> tuple[bool, bool]:
        """Whether each share's interval holds the truth, to `EXACT`."""
        cost, scheduling = (
            lo - EXACT <= true <= hi + EXACT
            for (lo, hi), true in zip(self.intervals, self.truth, strict=True)
        )
        return cost, scheduling

    @property
    def wrong(self) -> bool:
        """Whether a verdict says that a cause acts where it does not, or the reverse."""
        if self.verdict is None:
            return False
        said = (self.verdict.step_cost, self.verdict.scheduling)
        return any(
            (acts == "acts" and abs(t) < TELLING) or (acts == "does not act" and abs(t) >= TELLING)
            for acts, t in zip(said, self.truth, strict=True)
        )


@dataclass(frozen=True, eq=False, slots=True)
class Configuration:
    """Two arms and what they are asked to do; the first workload is the target's."""

    seed: int
    kind: str
    a: Arm
    b: Arm
    loads: tuple[Closed | Open, ...]
    workloads: tuple[Workload, ...]
    delivery: Delivery


def _lengths(rng: np.random.Generator, mean: float, cv: float, n: int, most: int) -> np.ndarray:
    sigma = np.sqrt(np.log1p(cv**2))
    drawn = rng.lognormal(np.log(mean) - sigma**2 / 2, sigma, n)
    return np.clip(np.rint(drawn), 2, most).astype(np.int64)


def configuration(seed: int) -> Configuration:
    """A random pair of arms; the kind goes round with the seed."""
    rng = np.random.default_rng([seed, 2026])
    kind = KINDS[seed % len(KINDS)]
    flight = int(rng.integers(6, 25))
    prompt, output = rng.uniform(40, 500), rng.uniform(50, 200)
    weights = float(np.exp(rng.uniform(np.log(4e-3), np.log(30e-3))))
    context = weights * rng.uniform(1e-6, 2e-5)
    noise = (rng.uniform(0.005, 0.05), float(rng.choice([0.0, rng.uniform(0, 0.6)])))

    def cost(scale: float, context: float) -> StepCost:
        base = weights * scale
        each, prefill = base * rng.uniform(5e-4, 1e-2), base * rng.uniform(2e-3, 8e-3)
        return StepCost(base, each, context, prefill, *noise)

    cost_a = cost(1.0, context)
    scale = rng.uniform(0.4, 0.88) if rng.random() < 0.8 else rng.uniform(1.15, 1.6)
    cost_b = cost_a if kind in ("KV", "sequences") else cost(scale, context)

    def workload(n: int) -> Workload:
        return Workload(
            _lengths(rng, prompt, rng.uniform(0.3, 1), n, 2000),
            _lengths(rng, output, rng.uniform(0.2, 0.8), n, 600),
        )

    loads = (flight, max(3, flight // 2), max(2, flight // 4))
    works = tuple(workload(max(40, int(rng.integers(16, 26)) * load)) for load in loads)
    free = Engine(max_num_batched_tokens=int(rng.choice([512, 2048, 2048, 8192])))
    bound = free
    if kind.startswith("KV"):
        resident = float((works[0].prompt + works[0].output / 2).mean())
        largest = max(int((w.prompt + w.output).max()) for w in works)
        blocks = max(int(rng.uniform(0.45, 0.9) * flight * resident / 16), largest // 16 + 2)
        bound = replace(free, kv_blocks=blocks)
    elif kind.startswith("sequences"):
        bound = replace(free, max_num_seqs=max(2, int(rng.uniform(0.4, 0.85) * flight)))
    elif kind == "replicas":
        routing = "own client" if rng.random() < 0.7 else "round robin"
        bound = replace(free, replicas=2, routing=routing)
        cost_b = replace(cost_b, context=context * rng.uniform(0.5, 1))
    a, b = Arm(cost_a, bound), Arm(cost_b, free)
    if kind != "step cost" and rng.random() < 0.5:
        a, b = b, a
    target: Closed | Open = Closed(flight)
    if kind == "open loop":
        target = Open(0.7 * flight / (output * weights * 1.1))
    delivery = Delivery(5e-4, 3e-4, jitter=weights * rng.uniform(0, 0.01))
    return Configuration(seed, kind, a, b, (target, *map(Closed, loads[1:])), works, delivery)


def _steps(run: Simulated) -> Steps | Refused:
    engine = run.arm.engine
    several = engine.replicas > 1
    return reconstruct(
        requests_of(run),
        engine_of=run.truth.engine_of if several else None,
        token_budget=engine.max_num_batched_tokens,
        preemptions=None if several else run.truth.preemptions,
    )


def _means(run: Simulated) -> dict[Latency, float]:
    stay = run.received[run.offsets[1:] - 1] - run.start
    return {"itl": run.gaps.mean(), "stay": stay.mean(), "duration": run.duration}


def cases(seed: int) -> list[Case]:
    """What attribution makes of one configuration, by latency."""
    c = configuration(seed)

    def run(arm: Arm, at: int, noise_seed: int) -> Simulated:
        # Another noise, but the same arrivals and delivery: the same requests wait for the same.
        return simulate_run(
            arm, c.workloads[at], c.loads[at], seed=seed, noise_seed=noise_seed,
            delivery=c.delivery,
        )  # fmt: skip

    quiet = [
        _means(run(arm.without_noise(), 0, 0))
        for arm in (c.a, c.b, c.a.with_cost_of(c.b), c.b.with_cost_of(c.a))
    ]
    seen = [
        [_steps(run(arm, at, 10 * seed + 3 * side + at)) for at in range(len(c.loads))]
        for side, arm in enumerate((c.a, c.b))
    ]
    engines = max(c.a.engine.replicas, c.b.engine.replicas)
    return [
        _case(c, latency, quiet, seen)
        for latency in LATENCIES
        if not (latency == "duration" and engines > 1)
        and abs(quiet[1][latency] / quiet[0][latency] - 1) >= LEAST_GAP
    ]


def _case(
    c: Configuration,
    latency: Latency,
    quiet: list[dict[Latency, float]],
    seen: list[list[Steps | Refused]],
) -> Case:
    a, b, cost_moved, limits_moved = (means[latency] for means in quiet)
    case = Case(c.seed, c.kind, latency, b / a - 1)
    sides: list[list[Steps]] = [[], []]
    for side, runs in zip(sides, seen, strict=True):
        for steps in runs:
            if isinstance(steps, Refused):
                return replace(case, refused=steps.reasons[0])
            side.append(steps)
    found = attribute(
        sides[0][0], sides[1][0], latency, baseline_loads=sides[0][1:],
        treatment_loads=sides[1][1:], same_kv=c.kind != "replicas",
        open_loop=c.kind == "open loop",
    )  # fmt: skip
    if isinstance(found, Refused):
        return replace(case, refused=found.reasons[0])
    if not found.splits:
        return replace(case, refused=found.refused[0])
    split = found.splits[0]
    moved = cost_moved - a if split.schedule_of == "baseline" else b - limits_moved
    truth = (moved / (b - a), 1 - moved / (b - a))
    terms = (split.step_cost, split.scheduling)
    verdict = causes(found)
    return replace(
        case, truth=truth, found=(terms[0].share, terms[1].share),
        intervals=((terms[0].share_lo, terms[0].share_hi), (terms[1].share_lo, terms[1].share_hi)),
        verdict=verdict if isinstance(verdict, Causes) else None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Summary:
    """Of many cases."""

    cases: int
    refused: int
    median_error: float
    p95_error: float
    covered: tuple[float, float]
    """Of the shares of step cost and scheduling."""
    wrong: int
    undecided: int

    @property
    def refusal_share(self) -> float:
        """Refused cases over all."""
        return self.refused / self.cases if self.cases else 0.0


def summary(found: list[Case]) -> Summary:
    """Errors are the larger of the two shares', over cases that are not refused."""
    kept = [case for case in found if not case.refused]
    errors = [case.error for case in kept] or [np.nan]
    covered = np.array([case.covered for case in kept] or [[False, False]], float).mean(axis=0)
    return Summary(
        len(found), len(found) - len(kept), float(np.median(errors)),
        float(np.percentile(errors, 95)), (float(covered[0]), float(covered[1])),
        sum(case.wrong for case in kept),
        sum(case.verdict is not None and "open" in
            (case.verdict.step_cost, case.verdict.scheduling) for case in kept),
    )  # fmt: skip


def table(found: list[Case]) -> Iterator[str]:
    """Lines to print: by latency and kind, then the refusals by reason."""
    for latency in (*LATENCIES, "all"):
        for kind in (*dict.fromkeys(KINDS), "all"):
            some = [c for c in found if latency in (c.latency, "all") and kind in (c.kind, "all")]
            if some:
                s = summary(some)
                yield (
                    f"{latency:9s}{kind:19s}{s.cases:5d} cases {s.refused:4d} refused  error "
                    f"{s.median_error:.4f} {s.p95_error:.4f}  covered {s.covered[0]:.3f} "
                    f"{s.covered[1]:.3f}  wrong {s.wrong}  undecided {s.undecided}"
                )
    for (kind, reason), count in Counter(
        (c.kind, re.sub(r"[\d.,]+", "#", c.refused)[:100]) for c in found if c.refused
    ).most_common():
        yield f"{count:5d} {kind}: {reason}"
    for c in found:
        if c.wrong:
            yield f"wrong: {c} (of {TELLING}, model error {MODEL_ERROR})"


def study(seeds: range, workers: int | None = None) -> list[Case]:
    """All cases of these seeds, in order."""
    with ProcessPoolExecutor(workers) as pool:
        return [case for found in pool.map(cases, seeds, chunksize=4) for case in found]


if __name__ == "__main__":
    for line in table(study(range(int(sys.argv[1]), int(sys.argv[2])))):
        print(line)
