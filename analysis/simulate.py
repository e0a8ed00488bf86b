"""A small discrete-event model of continuous batching, to test estimators where the truth is known.

    run = simulate(Arm(cost, engine), workload, Closed(10), seed=1)

`analysis.simulated_file` writes a run as a benchmark client would. It shares no code with the
estimators, and it draws no conclusion. The scheduler is that of vLLM V1
(`vllm/v1/core/sched/scheduler.py`): each step serves running requests first, oldest first; one
that finds no free KV block preempts the youngest, which loses its blocks and is computed again;
then waiting requests are admitted while sequences, blocks and the token budget of the step last,
and none in a step that preempted. A prompt longer than the budget is prefilled in chunks.

The truth of a cause is the model run again: `simulate(arm.with_cost_of(other), ...)` moves only
the step cost, `simulate(other.with_cost_of(arm), ...)` only what bounds the running batch.
`Arm.without_noise` gives what is to be expected of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis._simulated_engine import EngineState, Event, Job, Timeline

Routing = Literal["round robin", "least in flight", "random", "own client"]
"""How requests are spread over replicas. "own client": request i belongs to replica i mod k, and
each replica has a client of its own with its part of the requests in flight."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """Seconds of one engine step: a sum of what it reads and computes, times its noise."""

    weights: float
    """Of any step, s: weights read, kernels launched."""
    sequence: float = 0.0
    """Of each running sequence that decodes, s."""
    context: float = 0.0
    """Of each resident token of a sequence that decodes, s."""
    prefill: float = 0.0
    """Of each prompt token computed, s; recomputed tokens cost the same."""
    noise: float = 0.0
    """Standard deviation of the logarithm of the factor that each step is multiplied by."""
    persistence: float = 0.0
    """Correlation of that logarithm from one step to the next, in [0, 1)."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What bounds the running batch of one engine, and how many engines a router feeds."""

    max_num_seqs: int = 256
    kv_blocks: int = 1_000_000
    block_size: int = 16
    """Tokens."""
    max_num_batched_tokens: int = 8192
    replicas: int = 1
    routing: Routing = "round robin"


@dataclass(frozen=True, slots=True)
class Arm:
    """A server: what a step costs, and what may be in it."""

    cost: StepCost
    engine: Engine = Engine()

    def with_cost_of(self, other: Arm) -> Arm:
        """This server with the other one's step cost: only the cost moved."""
        return replace(self, cost=other.cost)

    def without_noise(self) -> Arm:
        """This server as it is in expectation (to the second order of the noise)."""
        return replace(self, cost=replace(self.cost, noise=0.0))


@dataclass(frozen=True, eq=False, slots=True)
class Workload:
    """Prompt and output lengths in tokens, in the order in which they are sent. Shapes (n,)."""

    prompt: NDArray[np.int64]
    output: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Closed:
    """A client that keeps this many requests in flight."""

    concurrency: int


@dataclass(frozen=True, slots=True)
class Open:
    """A client that sends by a Poisson process, whatever is in flight."""

    rate: float
    """1/s."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The way between client and engine."""

    to_server: float = 1e-3
    """From sending to the engine's queue, s."""
    to_client: float = 5e-4
    """From a step's end to the client, s, of every token."""
    jitter: float = 0.0
    """Mean of an exponential delay of each token on top, s; order within a stream is kept."""


@dataclass(frozen=True, eq=False, slots=True)
class Simulated:
    """One run as the client saw it, and what the engine knows of it."""

    arm: Arm
    load: Closed | Open
    workload: Workload
    start: NDArray[np.float64]
    """Shape (n,). Client clock, s."""
    received: NDArray[np.float64]
    """Shape (tokens,). When the client got each token, s, request after request."""
    offsets: NDArray[np.int64]
    """Shape (n + 1,) into `received`."""
    truth: Truth

    @property
    def ttft(self) -> NDArray[np.float64]:
        """Shape (n,). Time to first token, s."""
        return self.received[self.offsets[:-1]] - self.start

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Shape (tokens - n,). Times between tokens of one request, s."""
        between = np.diff(self.received)
        return np.delete(between, self.offsets[1:-1] - 1)

    @property
    def duration(self) -> float:
        """From the first request sent to the last token received, s."""
        return float(self.received.max() - self.start.min())


@dataclass(frozen=True, eq=False, slots=True)
class Truth:
    """What a server would know. One entry a step, in the order of their ends, but for `step_of`
    and `queued`."""

    end: NDArray[np.float64]
    """s."""
    duration: NDArray[np.float64]
    """s."""
    engine: NDArray[np.int64]
    running: NDArray[np.int64]
    """Requests scheduled in the step, prefilling ones included."""
    prefilled: NDArray[np.int64]
    """Tokens computed beyond one for each decoding sequence."""
    emitted: NDArray[np.int64]
    preemptions: int
    step_of: NDArray[np.int64]
    """Shape (tokens,). The step that made each token."""
    queued: NDArray[np.float64]
    """Shape (n,). From arrival at the engine to first scheduling, s."""
    engine_of: NDArray[np.int64]
    """Shape (n,). Which replica served each request."""


def simulate(
    arm: Arm,
    workload: Workload,
    load: Closed | Open,
    *,
    seed: int,
    noise_seed: int | None = None,
    delivery: Delivery = Delivery(),
) -> Simulated:
    """One run of the model.

    Args:
        arm: the server.
        workload: what is sent, in this order.
        load: how it is sent.
        seed: of arrivals, routes and delivery: which requests wait for which.
        noise_seed: of the steps' noise; the same as `seed` if not given. With another one the
            same requests meet the same server at another time.
        delivery: the way between client and engine.

    Raises:
        ValueError: a request that can never be served (it needs more blocks than there are), or a
            replica whose client may send nothing.
    """
    room = arm.engine.kv_blocks * arm.engine.block_size
    if int((workload.prompt + workload.output).max()) > room:
        raise ValueError(f"a request needs more than the {room:,} tokens of KV cache")
    # Streams of their own, so that one arm's draws do not shift another's.
    arrivals, routes, network = (np.random.default_rng([seed, stream]) for stream in range(3))
    noise = np.random.default_rng([seed if noise_seed is None else noise_seed, 3])
    n = len(workload.prompt)
    jobs = [Job(i, int(p), int(o)) for i, (p, o) in enumerate(_pairs(workload))]
    engines = [EngineState(arm.cost, arm.engine, noise) for _ in range(arm.engine.replicas)]
    timeline = Timeline()
    start = np.zeros(n)
    offsets = np.concatenate([[0], np.cumsum(workload.output)])
    late = delivery.to_client + network.exponential(delivery.jitter, offsets[-1])

    def send(job: Job, time: float) -> None:
        start[job.index] = time
        timeline.push(time + delivery.to_server, Event.ARRIVAL, job)

    apart = arm.engine.routing == "own client"
    if apart and isinstance(load, Closed) and load.concurrency < len(engines):
        raise ValueError(f"{len(engines)} clients need as many requests in flight")
    upcoming = [iter(jobs[i :: len(engines)] if apart else jobs) for i in range(len(engines))]
    if isinstance(load, Open):
        for job, time in zip(jobs, np.cumsum(arrivals.exponential(1 / load.rate, n)), strict=True):
            send(job, float(time))
    else:
        for at in range(load.concurrency):
            for job in islice(upcoming[at % len(engines) if apart else 0], 1):
                send(job, 0.0)

    turn = 0
    while timeline:
        time, events = timeline.pop()
        touched = set()
        for kind, what in events:
            if kind is Event.ARRIVAL:
                assert isinstance(what, Job)  # noqa: S101  narrows the payload
                at = what.index if apart else turn
                what.engine, what.arrived = _route(arm.engine, engines, at, routes), time
                turn += 1
                engines[what.engine].waiting.append(what)
                touched.add(what.engine)
            else:
                assert isinstance(what, int)  # noqa: S101
                touched.add(what)
                done = engines[what].finish_step(time)
                if isinstance(load, Closed):
                    for ended, job in zip(done, upcoming[what if apart else 0], strict=False):
                        # The client hears of the end before it sends the next request.
                        send(job, time + late[offsets[ended.index + 1] - 1])
        for engine in sorted(touched):
            until = engines[engine].start_step(time)
            if until is not None:
                timeline.push(until, Event.STEP_END, engine)
    return _result(arm, workload, load, start, jobs, engines, offsets, late)


def _pairs(workload: Workload) -> list[tuple[int, int]]:
    return list(zip(workload.prompt.tolist(), workload.output.tolist(), strict=True))


def _route(
    engine: Engine, engines: list[EngineState], turn: int, draws: np.random.Generator
) -> int:
    if engine.routing == "least in flight":
        return min(range(len(engines)), key=lambda i: engines[i].in_flight)
    if engine.routing == "random":
        return int(draws.integers(len(engines)))
    return turn % len(engines)


def _result(
    arm: Arm,
    workload: Workload,
    load: Closed | Open,
    start: NDArray[np.float64],
    jobs: list[Job],
    engines: list[EngineState],
    offsets: NDArray[np.int64],
    late: NDArray[np.float64],
) -> Simulated:
    sizes = np.array([len(engine.rows) for engine in engines])
    shift = np.concatenate([[0], np.cumsum(sizes)])
    raw = np.concatenate([np.reshape(engine.rows, (-1, 4)) for engine in engines])
    label = np.repeat(np.arange(len(engines)), sizes)
    order = np.argsort(raw[:, 0], kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    step_of = place[np.concatenate([np.array(job.steps) + shift[job.engine] for job in jobs])]
    rows, label = raw[order], label[order]
    truth = Truth(
        rows[:, 0], rows[:, 1], label, rows[:, 2].astype(np.int64), rows[:, 3].astype(np.int64),
        np.bincount(step_of, minlength=len(rows)),
        sum(engine.preemptions for engine in engines), step_of,
        np.array([job.scheduled - job.arrived for job in jobs]),
        np.array([job.engine for job in jobs]),
    )  # fmt: skip
    received = truth.end[step_of] + late
    # A stream is read in order: a chunk behind a late one is no earlier.
    received = np.concatenate([np.maximum.accumulate(received[a:b]) for a, b in pairwise(offsets)])
    return Simulated(arm, load, workload, start, received, offsets, truth)
