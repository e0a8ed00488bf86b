"""The client's figures of a run beside its servers' own of the same thing, with the difference.

Counts must agree, but for what a client sends before its clock starts: `vllm bench serve` tries its
first prompt once (`--ready-check-timeout-sec`) and again for each of `--num-warmups`; all of these
are in the servers' counters. Times differ by what lies between the two clocks, and each row says
what that is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.model import Run, Source
from analysis.server_metrics import Histogram, ServerMetrics, server_metrics
from analysis.token_times import Refused
from analysis.wording import percent, plural, show

TOKENS = 0.01
"""Prompt or output tokens that server and client may count differently: special tokens, text that
is cut into tokens again. On 69 recorded runs they were equal to the token."""
STRANGERS = 0.01
"""Share of requests that nobody knows of above which they are traffic of others."""

LONGER = 0.02
"""By how much the servers' mean stay may exceed the client's, whose requests are the same."""
OUTSIDE = 0.2
"""Share of the client's mean stay outside the servers above which it is no stay at a server: the
client, or what lies between, was the slower one."""

REQUESTS, PROMPT, OUTPUT = "requests", "prompt tokens", "output tokens"
COUNTS = (REQUESTS, PROMPT, OUTPUT)
TIMES = ("TTFT", "ITL", "TPOT", "stay", "stages")


@dataclass(frozen=True, slots=True)
class Pair:
    """One thing by two counts."""

    what: str
    client: float
    server: float
    unit: str
    meaning: str
    """What the difference is made of."""
    client_source: Source
    server_source: Source

    @property
    def difference(self) -> float:
        """Client less server for times; server less client for counts."""
        return self.server - self.client if self.what in COUNTS else self.client - self.server


@dataclass(frozen=True, slots=True)
class Reconciled:
    """All pairs of a run, and what is not in order in their counts."""

    pairs: tuple[Pair, ...]
    own: int
    """Requests of the client before its clock started, as its first prompt's tokens show."""
    strangers: float
    """Requests that the servers finished, and that are none of the client's; below 0 where the
    servers told of fewer than it completed."""
    faults: tuple[str, ...]
    """What disagrees beyond the tolerances, a clause each; empty where nothing does."""

    def pair(self, what: str) -> Pair | None:
        """The pair of that name."""
        return next((one for one in self.pairs if one.what == what), None)


def reconciled(run: Run) -> Reconciled | Refused | None:
    """A run's figures beside those of its servers; None where no counters tell what it tells."""
    metrics = server_metrics(run)
    if metrics is None or isinstance(metrics, Refused):
        return metrics
    counts = _counts(run, metrics)
    if not counts:
        return None
    own = _own(run, {one.what: one.difference for one in counts})
    pairs = {one.what: one for one in counts}
    strangers, faults = _faults(run, pairs, own)
    times = tuple(_times(run, metrics))
    if not strangers and not faults:
        faults = _apart({one.what: one for one in times})
    return Reconciled((*counts, *times), own, strangers, faults)


def _counts(run: Run, metrics: ServerMetrics) -> list[Pair]:
    """Requests and tokens by both."""
    finished = metrics.counter("finished")
    told = (
        (REQUESTS, "completed", "finished", finished, "", "the client's own tries and warm-ups, "
         "requests that it gave up, and those of others"),
        (PROMPT, "total_input_tokens", "prompt_tokens", metrics.counter("prompt_tokens"), "tok",
         "prompts of such requests, and special tokens"),
        (OUTPUT, "total_output_tokens", "output_tokens", metrics.counter("output_tokens"), "tok",
         "answers of such requests, and tokens that the client did not get"),
    )  # fmt: skip
    return [
        Pair(what, figure.value, server, unit, meaning, figure.source, metrics.cite(series))
        for what, name, series, server, unit, meaning in told
        if (figure := run.figures.get(name)) is not None and server is not None
    ]


def _own(run: Run, more: dict[str, float]) -> int:
    """How many times the client sent its first prompt before its clock started.

    The servers' excess of requests, where their excess of tokens is as many times those of the
    first request.
    """
    extra, requests = more.get(REQUESTS, 0.0), run.requests
    if extra < 1 or not extra.is_integer() or requests is None or not len(requests.ttft):
        return 0
    wanted = {
        PROMPT: extra * float(requests.input_tokens[0]),
        OUTPUT: extra * float(requests.output_tokens[0]),
    }
    alike = all(
        abs(more[what] - tokens) <= TOKENS * max(tokens, 1.0)
        for what, tokens in wanted.items()
        if what in more
    )
    return int(extra) if alike and PROMPT in more and OUTPUT in more else 0


def _faults(run: Run, pairs: dict[str, Pair], own: int) -> tuple[float, tuple[str, ...]]:
    """Requests of others, and what is beyond the tolerances."""
    faults: list[str] = []
    failed = run.figures["failed"].value if "failed" in run.figures else 0.0
    strangers = 0.0
    requests = pairs.get(REQUESTS)
    if requests is not None:
        # A request that failed at the client may have ended at the server all the same.
        more = requests.difference - own
        strangers = min(more, 0.0) or max(more - failed, 0.0)
        most = max(requests.client, 1.0) * STRANGERS
        if strangers < 0:
            faults.append(
                f"the servers finished {show(requests.server)} requests, of "
                f"{show(requests.client)} that the client completed: counters of some of the "
                "servers only, or of another run"
            )
        elif strangers > most:
            faults.append(
                f"the servers finished {plural(int(strangers), 'request')} beside the "
                f"{show(requests.client)} of the client: traffic of others, or a run of its own "
                "between the two readings"
            )
    for what in (PROMPT, OUTPUT):
        pair = pairs.get(what)
        if pair is None or own or failed or strangers:
            # Their tokens are those of the requests that differ.
            continue
        if abs(pair.difference) > TOKENS * max(pair.client, 1.0):
            share = percent(pair.server / pair.client - 1) if pair.client else "without end"
            faults.append(
                f"the servers counted {show(pair.server)} {what} and the client "
                f"{show(pair.client)} ({share} more)"
            )
    return strangers, tuple(faults)


def _apart(times: dict[str, Pair]) -> tuple[str, ...]:
    """A fault where the stay of the same requests cannot be, or is not, one stay by both."""
    stay = times.get("stay")
    if stay is None or stay.client <= 0:
        return ()
    both = f"a request was {show(stay.server, 's')} at the servers"
    if stay.server > (1 + LONGER) * stay.client:
        return (f"{both} and only {show(stay.client, 's')} at the client: counters of another run",)
    share = stay.difference / stay.client
    if share > OUTSIDE:
        return (
            f"{both} and {show(stay.client, 's')} at the client: {percent(share, 0)} of the time "
            "lies outside the servers, at the client or on the way",
        )
    return ()


def _times(run: Run, metrics: ServerMetrics) -> list[Pair]:
    """Mean times by both, of the requests that each knows of."""
    found = []
    ttft, decode = _mean_ttft(run), _mean_decode(run)
    stay = None if ttft is None or decode is None else ttft + decode
    itl, tpot = (_figure(run, name) for name in ("mean_itl", "mean_tpot"))
    parts = [metrics.histogram(name) for name in ("queue", "prefill", "decode")]
    told: tuple[tuple[str, float | None, Histogram | None, str, str], ...] = (
        ("TTFT", ttft, metrics.histogram("ttft"), "ttft",
         "the network, and the client's own reading of the stream"),
        ("ITL", itl, metrics.histogram("itl"), "itl",
         "chunks that the client read together, and jitter on the way"),
        ("TPOT", tpot, metrics.histogram("tpot"), "tpot",
         "the same, each request counted once"),
        ("stay", stay, metrics.histogram("stay"), "stay",
         "the network, and the client's own reading of the stream"),
        ("stages", stay, _sum(parts), "queue",
         "all that is neither queue, prefill nor decode: network, client, API server, and the wait "
         "until the engine's loop takes the request up"),
    )  # fmt: skip
    for what, client, server, series, meaning in told:
        if client is None or server is None or math.isnan(server.mean):
            continue
        found.append(
            Pair(what, client, server.mean, "s", meaning, _cite(run, what),
                 metrics.cite(series, "_sum over _count"))
        )  # fmt: skip
    return found


def _sum(parts: list[Histogram | None]) -> Histogram | None:
    """Stages of the same requests one after another; None where they are not of as many."""
    known = [one for one in parts if one is not None]
    if len(known) < len(parts) or len({one.count for one in known}) > 1:
        return None
    return Histogram(known[0].count, sum(one.total for one in known))


def _mean_ttft(run: Run) -> float | None:
    if run.requests is None:
        return _figure(run, "mean_ttft")
    ok = ~run.requests.failed
    return float(run.requests.ttft[ok].mean()) if ok.any() else None


def _mean_decode(run: Run) -> float | None:
    if run.requests is None:
        ttft, stay = _figure(run, "mean_ttft"), _figure(run, "mean_e2el")
        return None if ttft is None or stay is None else stay - ttft
    ok = ~run.requests.failed
    return float(run.requests.decode[ok].mean()) if ok.any() else None


def _figure(run: Run, name: str) -> float | None:
    figure = run.figures.get(name)
    return figure.value if figure is not None and math.isfinite(figure.value) else None


def _cite(run: Run, what: str) -> Source:
    keys = {"TTFT": "ttfts", "ITL": "itls", "TPOT": "itls", "stay": "ttfts and itls",
            "stages": "ttfts and itls"}  # fmt: skip
    named = run.figures.get({"ITL": "mean_itl", "TPOT": "mean_tpot"}.get(what, ""))
    if named is not None:
        return named.source
    return Source(run.source.file, f"{run.source.key} {keys[what]}".strip())


def in_words(found: Reconciled) -> str:
    """The counts in one clause: "200 requests, 46,520 prompt and 44,120 output tokens by both"."""
    counts = [one for one in found.pairs if one.what in COUNTS]
    if all(one.difference == 0 for one in counts):
        return ", ".join(f"{show(one.client)} {one.what}" for one in counts) + " by both"
    told = ", ".join(
        f"{one.what} {show(one.client)} by the client and {show(one.server)} by the servers"
        for one in counts
    )
    if found.own:
        told += f": {found.own} more of its first prompt, tried before its clock started"
    return told


def shown(pair: Pair) -> str:
    """A pair with its difference: "41.36 ms; server 36.64 ms"."""
    return f"{show(pair.client, pair.unit)}; server {show(pair.server, pair.unit)}"
