"""Little's law on a run: where a request's time goes and how many requests that keeps in flight.

From means alone: X = completed / duration; stay = TTFT + ITL x (output tokens - 1);
L = X x stay requests are in flight on average, L_first of them before their first token
(waiting or in prefill) and L_decode after it. The throughput of two arms splits exactly:
ln X ratio = ln L ratio - ln stay ratio. ITL x (output - 1) equals the mean of stay - TTFT when
ITL is pooled over gaps and one chunk is one token (within 0.2 % on recorded runs); with
per-request arrays or a printed end-to-end latency the exact mean is used instead, and where
chunks carry several tokens TPOT takes the place of ITL.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from analysis.model import Figure, Level, Run, Source
from analysis.prefix_hits import prefix_hit_share
from analysis.quantity import Quantity, quantity
from analysis.wording import count_of

SEVERAL = 1.05
"""Mean ITL / mean TPOT above which a chunk carries more than one token."""
SLACK = 0.02
"""A rate counts as delivered from 2 % below it on, whatever the number of requests."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Token counts of a reference run, for rows that do not print theirs."""

    mean_output_tokens: Quantity | None
    mean_tokens: Quantity | None
    of: str
    """The reference cell in words."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something taken for granted in an account, and the figures that bring it in."""

    what: str
    """What is not printed."""
    instead: str
    """What stands in for it."""
    run: str
    sources: frozenset[Source]
    """A number that rests on none of these does not rest on the assumption."""


@dataclass(frozen=True, eq=False, slots=True)
class Ledger:
    """The account of one run. A quantity is None where the file does not allow it."""

    run: Run
    throughput: Quantity | None
    """X, completed requests a second."""
    mean_output_tokens: Quantity | None
    mean_tokens: Quantity | None
    ttft: Quantity | None
    decode: Quantity | None
    """Mean time from first to last token of a request, s."""
    assumptions: tuple[Assumption, ...] = ()
    borrows: bool = False
    """Whether token counts of another run stand in for its own."""
    completed: Quantity | None = None
    """n, completed requests: counted, or throughput x duration."""

    @property
    def stay(self) -> Quantity | None:
        """Mean time of a request from sending to last token, s."""
        return None if self.ttft is None or self.decode is None else self.ttft + self.decode

    @property
    def l_first(self) -> Quantity | None:
        """Mean requests waiting or in prefill."""
        return _times(self.throughput, self.ttft)

    @property
    def l_decode(self) -> Quantity | None:
        """Mean requests past their first token."""
        return _times(self.throughput, self.decode)

    @property
    def in_flight(self) -> Quantity | None:
        """L, mean requests in flight."""
        return _times(self.throughput, self.stay)

    @property
    def first_token_share(self) -> Quantity | None:
        """Share of the stay before the first token."""
        return None if self.ttft is None or self.stay is None else self.ttft / self.stay

    @property
    def resident_tokens(self) -> Quantity | None:
        """Mean tokens a running request holds in the KV cache half way through its output."""
        if self.mean_tokens is None or self.mean_output_tokens is None:
            return None
        return self.mean_tokens - self.mean_output_tokens * 0.5


def ledger(run: Run, borrowed: Borrowed | None = None) -> Ledger:
    """Draw up the account of a run from the figures its file holds."""
    have = {name: quantity(figure) for name, figure in run.figures.items()}
    assumptions: list[Assumption] = []
    if "completed" not in have and "num_prompts" in have and "failed" in have:
        have["completed"] = have["num_prompts"] - have["failed"]
    elif "completed" not in have and "num_prompts" in have:
        have["completed"] = have["num_prompts"]
        sent = frozenset(have["num_prompts"].sources)
        assumptions.append(
            Assumption(
                "completed requests", "all requests sent are taken as completed", run.id, sent
            )
        )
    completed, duration = have.get("completed"), have.get("duration")
    out_tps, all_tps = have.get("output_throughput"), have.get("total_token_throughput")

    def borrow(value: Quantity | None, what: str) -> Quantity | None:
        if value is not None and borrowed is not None:
            instead = f"those of {borrowed.of} are assumed"
            assumptions.append(Assumption(what, instead, run.id, frozenset(value.sources)))
        return value

    mean_out = _mean_tokens(have, "total_output_tokens", out_tps)
    if mean_out is None and borrowed is not None:
        mean_out = borrow(borrowed.mean_output_tokens, "mean output tokens")
    mean_all = _mean_tokens(have, "total_tokens", all_tps)
    if mean_all is None and "total_input_tokens" in have and "total_output_tokens" in have:
        if completed is not None:
            total = have["total_input_tokens"] + have["total_output_tokens"]
            mean_all = (total / completed).as_unit("tok")
    elif mean_all is None and borrowed is not None:
        mean_all = borrow(borrowed.mean_tokens, "mean prompt + output tokens")

    x = None
    if completed is not None and duration is not None:
        x = (completed / duration).as_unit("1/s")
    elif "request_throughput" in have:
        x = have["request_throughput"]
    elif out_tps is not None and mean_out is not None:
        x = (out_tps / mean_out).as_unit("1/s")
    elif all_tps is not None and mean_all is not None:
        x = (all_tps / mean_all).as_unit("1/s")

    ttft = have.get("mean_ttft")
    decode = _exact_decode(run)
    if decode is None and "mean_e2el" in have and ttft is not None:
        decode = have["mean_e2el"] - ttft
    if decode is None and "mean_itl" in have and mean_out is not None:
        # Gaps pooled over chunks of several tokens are longer than a time per token, and there are
        # fewer of them than tokens; TPOT divides by tokens. A ratio below 1 is left: ITL is then
        # lower because the long requests, which have most of the gaps, are the faster ones.
        a_token = "mean_tpot" if tokens_a_chunk(run) is not None else "mean_itl"
        decode = (have[a_token] * (mean_out - 1)).as_unit("s")
    if decode is not None and decode.value < 0:
        # An end-to-end latency below TTFT, or less than a token a request: no time at all.
        decode = None
    if completed is None and x is not None and duration is not None:
        completed = (x * duration).as_unit("")
    borrows = any(note.what != "completed requests" for note in assumptions)
    return Ledger(run, x, mean_out, mean_all, ttft, decode, tuple(assumptions), borrows, completed)


def tokens_a_chunk(run: Run) -> float | None:
    """Mean ITL / mean TPOT where it is clearly above one token a chunk; None elsewhere.

    Speculative decoding or buffering puts several tokens into one stream chunk. "Clearly": above
    `SEVERAL` whatever the rounding of the two.
    """
    itl, tpot = run.figures.get("mean_itl"), run.figures.get("mean_tpot")
    if itl is None or tpot is None or tpot.lo <= 0:
        return None
    ratio = quantity(itl) / quantity(tpot)
    return ratio.value if ratio.lo > SEVERAL else None


def least_delivered(account: Ledger) -> float | None:
    """The share of the requested rate from which it counts as delivered; None if unknown.

    1 - `SLACK` - 2 / sqrt(n) - L / n. The time that n Poisson arrivals take scatters by
    1 / sqrt(n), twice which is allowed for; after the last one the run goes on for about a stay,
    which is L / n of its duration. Where L is unknown the cap stands in, the most it can be. With
    so few requests that nothing is left of 1, any throughput would pass: unknown too.
    """
    n, in_flight = account.completed, account.in_flight
    drain = account.run.concurrency if in_flight is None else in_flight.value
    if n is None or n.value <= 0 or not drain:
        return None
    least = 1 - SLACK - 2 / math.sqrt(n.value) - drain / n.value
    return least if least > 0 else None


def delivered(account: Ledger) -> bool | None:
    """Whether a finite requested rate was delivered; None where none was asked or it is unknown.

    X >= rate x `least_delivered`; at 1 - `SLACK` and above whatever the number of requests.
    """
    rate, x = account.run.requested_rate, account.throughput
    if x is None or not x.finite or not math.isfinite(rate) or rate <= 0:
        return None
    if x.value >= (1 - SLACK) * rate:
        return True
    least = least_delivered(account)
    return None if least is None else x.value >= least * rate


def metric(run: Run, name: str, account: Ledger) -> Quantity | None:
    """A figure of the run by its metric name, printed or derived by accounting."""
    if name in run.figures:
        return quantity(run.figures[name])
    derived: Mapping[str, Quantity | None] = {
        "request_throughput": account.throughput,
        "stay": account.stay,
        "in_flight": account.in_flight,
        "first_token_share": account.first_token_share,
        "mean_output_tokens": account.mean_output_tokens,
        "mean_tokens": account.mean_tokens,
        "mean_input_tokens": _minus(account.mean_tokens, account.mean_output_tokens),
        "output_share": _over(run, "output_throughput", "total_token_throughput"),
        "prefix_hit_share": prefix_hit_share(run) if name == "prefix_hit_share" else None,
    }
    return derived.get(name)


def _mean_tokens(
    have: Mapping[str, Quantity], total: str, throughput: Quantity | None
) -> Quantity | None:
    completed, duration = have.get("completed"), have.get("duration")
    if total in have and completed is not None:
        return (have[total] / completed).as_unit("tok")
    if throughput is None:
        return None
    if completed is not None and duration is not None:
        return (throughput * duration / completed).as_unit("tok")
    if "request_throughput" in have:
        return (throughput / have["request_throughput"]).as_unit("tok")
    return None


def _exact_decode(run: Run) -> Quantity | None:
    """Mean of (stay - TTFT) over completed requests from the per-request arrays."""
    requests = run.requests
    if run.level == Level.PUBLISHED or requests is None:
        return None
    ok = ~requests.failed
    if not ok.any():
        return None
    mean = float(requests.decode[ok].mean())
    source = Source(run.source.file, f"{run.source.key} itls".strip())
    return quantity(Figure("mean decode time", mean, mean, mean, "s", source))


def _times(left: Quantity | None, right: Quantity | None) -> Quantity | None:
    return None if left is None or right is None else (left * right).as_unit("")


def _minus(left: Quantity | None, right: Quantity | None) -> Quantity | None:
    return None if left is None or right is None else left - right


def _over(run: Run, top: str, bottom: str) -> Quantity | None:
    if top not in run.figures or bottom not in run.figures:
        return None
    return quantity(run.figures[top]) / quantity(run.figures[bottom])


def in_words(assumptions: Iterable[Assumption], rested_on: Collection[Source]) -> tuple[str, ...]:
    """Assumptions that bear on numbers with these sources, one sentence for all their runs."""
    runs: dict[tuple[str, str], dict[str, None]] = {}
    for note in assumptions:
        if not note.sources.isdisjoint(rested_on):
            runs.setdefault((note.what, note.instead), {})[note.run] = None
    return tuple(
        f"{what}: not printed for {count_of(list(names), 3)}; {instead}"
        for (what, instead), names in runs.items()
    )
