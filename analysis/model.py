"""The data every stage speaks: frozen, in seconds, bytes and tokens, each number with its source.

This module imports nothing of ours, so every other module may import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Scalar = str | int | float | bool | None
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST = 1e18
"""Beyond any figure of a benchmark in any unit; larger ones would overflow in arithmetic."""
SMALLEST = 1e-60
"""Below any figure but 0, and any noise of one; smaller ones would vanish in arithmetic."""


MOST_TOLD = 1_000
"""Characters of a line that says what is wrong: a name in it may be of any length."""


def escaped(text: str) -> str:
    """Text of others' as a terminal shows and does not obey it: on one line, with escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def told(text: str, most: int = MOST_TOLD) -> str:
    """Text of others' as a line of a message: escaped, and cut."""
    shown = escaped(text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


class Level(StrEnum):
    """How good the evidence is; a statement is as good as the weakest file it rests on."""

    PUBLISHED = "P"
    """A table of means as printed: identities with rounding intervals."""
    SUMMARY = "S"
    """A result file without per-request arrays: the same, exact."""
    REQUESTS = "R"
    """Per-request arrays: distributions, windows, engine steps."""
    ENGINE = "E"
    """Requests and the server's own counters."""
    EXPERIMENT = "X"
    """Engine evidence from randomised interleaved repeats, one factor moved at a time."""

    @property
    def words(self) -> str:
        """The level in words, for a reader who does not know the letters."""
        return _LEVEL_WORDS[self]


_LEVEL_WORDS = {
    Level.PUBLISHED: "published means",
    Level.SUMMARY: "summary of a run",
    Level.REQUESTS: "per-request records",
    Level.ENGINE: "server counters",
    Level.EXPERIMENT: "randomised experiment",
}

LEVELS = tuple(Level)
"""From the weakest to the strongest."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a number stands: a file below the results folder and the key in it."""

    file: str
    """POSIX path relative to the results folder."""
    key: str
    """Row and column, record and key, or line: enough to find the number by hand."""

    def __str__(self) -> str:
        return f"{self.file}: {self.key}" if self.key else self.file


Basis = Literal["exact", "printed", "datasheet", "assumed"]
"""Where a figure's interval comes from: none, rounding in print, a data sheet, a reading."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number as a file gives it, in base units, with the interval its print allows.

    A figure printed as 43.1 ms is 0.0431 s in [0.04305, 0.04315]; one from a JSON file is exact.
    """

    name: str
    value: float
    lo: float
    hi: float
    unit: str
    source: Source
    basis: Basis = "exact"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, record or claim that could not be used, and the one line that says why."""

    file: str
    reason: str
    """What was found, what was expected, what to do."""
    wanted: bool = False
    """Left out on purpose (by study.toml): listed, but nothing is wrong."""

    def __post_init__(self) -> None:
        # Here for every message at once: the names and values in them are the user's.
        object.__setattr__(self, "reason", told(self.reason))


@dataclass(frozen=True, slots=True)
class Ignored:
    """A file that was recognised and holds nothing new (a sweep's own summary, a licence)."""

    file: str
    reason: str


@dataclass(frozen=True, eq=False, slots=True)
class Requests:
    """Per-request arrays of one run; failed requests are in it and marked, never averaged in.

    All times in seconds. Arrays have one entry a request, but for `gaps`, which is flat:
    request i owns `gaps[offsets[i]:offsets[i + 1]]`.
    """

    ttft: Floats
    """Shape (n,). Time to first token; 0 for most failed requests."""
    gaps: Floats
    """Shape (sum of chunks - 1,). Gaps between stream chunks (vLLM's `itls`)."""
    offsets: Ints
    """Shape (n + 1,)."""
    input_tokens: Ints
    output_tokens: Ints
    failed: NDArray[np.bool_]
    start: Floats | None = None
    """Shape (n,). Client clock (perf_counter), taken after the client's own wait for a slot."""
    client: Ints | None = None
    """Shape (n,). Which load client sent each, where several drove the run."""

    @property
    def decode(self) -> Floats:
        """Shape (n,). From the first token to the last, s."""
        totals: Floats = np.concatenate([[0.0], np.cumsum(self.gaps)])
        return totals[self.offsets[1:]] - totals[self.offsets[:-1]]

    @property
    def window(self) -> tuple[float, float] | None:
        """First sending and last token of the completed requests, by the client's clock, s.

        A failed request may have no start. None without starts or completed requests.
        """
        ok = ~self.failed
        if self.start is None or not ok.any():
            return None
        ends = self.start + self.ttft + self.decode
        return float(self.start[ok].min()), float(ends[ok].max())


@dataclass(frozen=True, eq=False, slots=True)
class Steps:
    """Engine steps as the server itself counted them, one entry a step, in the order of time."""

    source: Source
    engine: str
    """Which engine of the run."""
    clock: Floats
    """When each ended: the host's monotonic clock in seconds, which a client on the same host
    reads as well (`Requests.start`)."""
    running: Ints
    waiting: Ints
    """Requests that wait for a slot after the step was scheduled."""
    prompt: Ints
    """Tokens of prompts whose first token the step brought."""
    generated: Ints
    """Tokens that the step generated."""
    preempted: Ints
    kv_use: Floats
    """Share of the KV cache in use; NaN where the server does not say."""


@dataclass(frozen=True, eq=False, slots=True)
class ServerTimes:
    """What the server says of each request, in seconds; shapes (n,). NaN where it does not say."""

    source: Source
    request: tuple[str, ...]
    """Ids as the server has them: the client's prefix, its number, a choice."""
    queue: Floats
    """From arrival in the engine to the first scheduling."""
    prefill: Floats
    """From the first scheduling to the first token."""
    decode: Floats
    """From the first token to the last; what a preempted request waits again is in it."""


@dataclass(frozen=True, eq=False, slots=True)
class Counters:
    """A server's /metrics at one moment."""

    source: Source
    engine: str
    when: Literal["before", "after"]
    values: Mapping[str, float]
    """By series, labels included, as the text has them."""


@dataclass(frozen=True, eq=False, slots=True)
class GpuSamples:
    """What GPUs told of themselves while a server ran, one entry a sample; shapes (n,).

    In the order of the file; NaN (-1 of `throttle`) where it does not say.
    """

    source: Source
    clock: Floats
    """Unix time, s."""
    gpu: Ints
    """Index by NVML."""
    utilisation: Floats
    """Share of NVML's own window (up to 1 s) in which at least one kernel ran."""
    memory_used: Floats
    """Bytes."""
    power: Floats
    """W."""
    sm_clock: Floats
    """MHz, as NVML tells clocks."""
    memory_clock: Floats
    temperature: Floats
    """Degrees Celsius."""
    pstate: Floats
    """Performance state, 0 the fastest."""
    energy: Floats
    """J since the driver was loaded."""
    throttle: Ints
    """NVML's bits of reasons why the clock is not higher."""
    labels: tuple[str, ...] = ()
    """Names of runs in the file; empty where it has none."""
    label: Ints | None = None
    """Which of `labels`; None where the file has none."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """All calls of one kernel in a trace."""

    name: str
    kind: str
    """A class of `analysis.kernel_classes`."""
    count: int
    seconds: float


@dataclass(frozen=True, eq=False, slots=True)
class KernelSteps:
    """Engine steps of a profiler trace, in the order of time; shapes (n,)."""

    seconds: Floats
    """From the step's first work on the device to that of the next; of the last, to its end."""
    busy: Floats
    """Of these, seconds in which the device worked: the union over its streams."""
    kinds: Mapping[str, Floats]
    """Seconds of each class of kernels, added up over streams."""
    batch: Ints
    """Sequences that the step brought a token; -1 where the trace does not say."""
    prompts: Ints
    """Sequences of which the step computed prompt tokens; -1 where the trace does not say."""


@dataclass(frozen=True, eq=False, slots=True)
class KernelTrace:
    """What a profiler saw on one device: kernels by name and class, and steps where it tells."""

    source: Source
    tool: str
    rank: int | None
    device: str
    """ "GPU 0", or "CPU" for a trace of operators of a server without a GPU."""
    span: float
    """From the first work to the end of the last, s; NaN of a table of sums."""
    busy: float
    """Of these, the union over streams, s; NaN of a table of sums."""
    gaps: int
    """Pauses in which nothing ran."""
    kinds: Mapping[str, float]
    """Seconds of each class, added up over streams."""
    kernels: tuple[Kernel, ...]
    """The longest first; a bounded number."""
    names: int
    """How many kernels by name there are in all."""
    synchronisations: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    """Calls in which the host waited for the device: count and s, by the name of the call."""
    steps: KernelSteps | None = None
    told_by: str = ""
    """How steps are known; or why they are not."""
    arm: str = ""
    """Where a collector's record beside it says so."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class MetricSamples:
    """One engine's /metrics, sampled over time; shapes (n,), NaN where a scrape lacks the figure.

    Counts are those since the server started.
    """

    source: Source
    engine: str
    clock: Floats
    """When each scrape began, Unix time in s."""
    running: Floats
    waiting: Floats
    kv_use: Floats
    """Share of the KV cache in use."""
    preemptions: Floats
    iterations: Floats
    """Engine steps."""
    prompt_tokens: Floats
    output_tokens: Floats
    failures: int = 0
    """Scrapes of its server that failed."""


@dataclass(frozen=True, eq=False, slots=True)
class ServerSide:
    """What the servers of a run tell of it."""

    steps: tuple[Steps, ...] = ()
    """One an engine."""
    times: tuple[ServerTimes, ...] = ()
    counters: tuple[Counters, ...] = ()
    samples: tuple[MetricSamples, ...] = ()
    """One an engine."""
    served: Mapping[str, int] = field(default_factory=dict)
    """Requests that each server finished, by its name, as the collector counted them."""
    gpu: GpuSamples | None = None
    """Of the GPUs that served the run, over its time."""


@dataclass(frozen=True, eq=False, slots=True)
class Collected:
    """A collector's record of a run: what was run, and whether it was run to its end."""

    source: Source
    state: str
    """ "complete", "failed", "running" or "interrupted"."""
    reason: str
    arm: str
    workload: str
    concurrency: int
    """Requests in flight in all, over all clients."""
    config: Mapping[str, Scalar]
    clients: int | None = None
    """Load clients, each with a result of its own; None where the record does not say."""
    engines: int = 1
    """Engines with a KV cache of their own."""
    served: Mapping[str, int] = field(default_factory=dict)
    """Requests that each server finished, by its name."""
    kv_tokens: Mapping[str, int] = field(default_factory=dict)
    """Room for KV of each server as it was driven, in tokens, by its name."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Run:
    """One benchmark run at the best level its file allows."""

    id: str
    """File and record, unique within a results folder."""
    level: Level
    source: Source
    figures: Mapping[str, Figure]
    """By the names of `analysis.metrics`, in seconds, tokens and tokens a second."""
    config: Mapping[str, Scalar] = field(default_factory=dict)
    """Every other key of the file, unknown ones included: server, client and metadata."""
    requests: Requests | None = None
    arm: str = ""
    workload: str = ""
    concurrency: int | None = None
    """Requests in flight in all; None where the client had no cap."""
    requested_rate: float = float("inf")
    """Requests a second the client was asked to send."""
    also_in: tuple[Source, ...] = ()
    """Other places that hold the same record."""
    warnings: tuple[str, ...] = ()
    server: ServerSide | None = None
    """What the servers told, where a collector kept it."""


@dataclass(frozen=True, eq=False, slots=True)
class Startup:
    """What a server said of itself when it started.

    `figures` may hold model_bytes, kv_bytes, kv_tokens, max_model_len, reported_max_concurrency.
    """

    source: Source
    arm: str
    figures: Mapping[str, Figure]
    config: Mapping[str, Scalar] = field(default_factory=dict)
    """Version, flags, attention backend, quantisation kernel: as the log names them."""


@dataclass(frozen=True, eq=False, slots=True)
class Lengths:
    """A sample of prompt and output lengths in tokens, one row a request. Shapes (n,)."""

    source: Source
    prompt: Ints
    output: Ints


@dataclass(frozen=True, eq=False, slots=True)
class Quoted:
    """Figures that a text quotes, by name."""

    source: Source
    figures: Mapping[str, Figure]


@dataclass(frozen=True, eq=False, slots=True)
class HelpText:
    """What a command printed for --help, stored beside the results that used it."""

    source: Source
    command: str
    version: str
    text: str


@dataclass(frozen=True, eq=False, slots=True)
class ModelShape:
    """A model's config.json; `analysis.model_config` makes a model of it."""

    source: Source
    config: Mapping[str, object]
    """As the file has it: untrusted, but checked to describe a model."""


Record = (
    Run
    | Startup
    | Lengths
    | Quoted
    | HelpText
    | ModelShape
    | Collected
    | Steps
    | ServerTimes
    | Counters
    | GpuSamples
    | KernelTrace
    | MetricSamples
    | Skipped
    | Ignored
)
"""What a format reader may return."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number ready to be shown: value, interval, unit, definition and where it came from."""

    name: str
    value: float
    lo: float
    hi: float
    unit: str
    interval: str
    """What the interval is: "rounding", "exact", "95 % between runs (t, n = 3)" ..."""
    definition: str = ""
    sources: tuple[Source, ...] = ()
    warnings: tuple[str, ...] = ()


Status = Literal["VALID", "SUSPECT", "INVALID", "NOT APPLICABLE"]
STATUSES: tuple[Status, ...] = ("NOT APPLICABLE", "VALID", "SUSPECT", "INVALID")
"""From harmless to fatal."""

Validity = Literal["NOT CHECKED", "VALID", "SUSPECT", "INVALID"]
"""Of a run: its worst check; not checked where its file lacks what any check needs."""
VALIDITIES: tuple[Validity, ...] = ("NOT CHECKED", "VALID", "SUSPECT", "INVALID")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check of validity found in one run."""

    code: str
    name: str
    status: Status
    reason: str
    """One sentence with the number and the threshold."""
    run: str = ""


Verdict = Literal["supported", "refuted", "inconclusive", "untestable", "answered"]
VERDICTS: tuple[Verdict, ...] = ("supported", "refuted", "inconclusive", "untestable", "answered")
""" "answered" is the verdict of a standing question, which claims nothing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim (or a standing question) and what the data says about it."""

    id: str
    study: str
    kind: str
    says: str
    said_in: str
    """Where the sentence stands: "write-up, section 5"."""
    verdict: Verdict
    reasons: tuple[str, ...]
    """The first states cause and size; the rest say how."""
    level: Level | None
    numbers: tuple[Estimate, ...] = ()
    assumptions: tuple[str, ...] = ()
    confounds: tuple[str, ...] = ()
    checks: tuple[Outcome, ...] = ()
    """Checks of validity that did not pass, of the runs the verdict rests on."""
    set_aside: tuple[Outcome, ...] = ()
    """Checks that these runs did not pass either, but that do not bear on this kind of claim."""
    flips: str = ""
    """What would change the verdict."""
    next_experiment: str = ""
    """A `collect` command line that would settle or strengthen it."""
    repeats: str = ""
    """Id of the claim that says the same thing first."""
    parts: tuple[str, ...] = ()
    """Ids of the claims it is made of."""
    see: tuple[str, ...] = ()
    """Ids of claims that belong beside it: the other half of its sentence."""
    headline: bool = False
    """Whether its author marked it as one to see first."""
    p_value: float | None = None
    """Of a stochastic test, after Holm's correction over the study; None for identities."""
