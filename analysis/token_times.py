"""When each chunk of each request arrived, on one clock: what every step-level figure starts from.

Start times, TTFT and gaps of a request add up to arrival times. Failed requests and requests
without a first token are left out: their times are zeros or cut off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.model import Floats, Ints, Requests
from analysis.wording import percent, plural

SEVERAL_A_CHUNK = 0.05
"""Share of tokens without a chunk of their own above which a chunk is no token any more. Chunks
that the client read together were at most 0.2 % of the tokens on recorded GPU runs, 2.3 % on a CPU
whose client lagged."""


@dataclass(frozen=True, eq=False, slots=True)
class Refused:
    """Why a figure is not given; `reasons` are sentences for a reader, the first the weightiest."""

    reasons: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Arrivals:
    """Chunks of the completed requests of one run, request after request.

    Times in seconds on the client's clock. n requests, m chunks.
    """

    time: Floats
    """Shape (m,)."""
    request: Ints
    """Shape (m,). Position of the chunk's request among the n."""
    offsets: Ints
    """Shape (n + 1,) into `time`."""
    start: Floats
    """Shape (n,). When the client sent the request."""
    input_tokens: Ints
    output_tokens: Ints
    index: Ints
    """Shape (n,). Position among all requests of the file, failed ones included."""
    warnings: tuple[str, ...] = ()

    @property
    def ordinal(self) -> Ints:
        """Shape (m,). 0 for a request's first chunk, 1 for the next ..."""
        return np.arange(len(self.time)) - self.offsets[self.request]

    @property
    def last(self) -> Floats:
        """Shape (n,). When each request was complete."""
        return self.time[self.offsets[1:] - 1]

    @property
    def merged(self) -> int:
        """Tokens that came in one chunk with the one before."""
        return int(np.maximum(self.output_tokens - np.diff(self.offsets), 0).sum())

    def only(self, wanted: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Arrivals:
        """The arrivals of some of the requests; `wanted` has shape (n,)."""
        sizes = np.diff(self.offsets)[wanted]
        return Arrivals(
            self.time[wanted[self.request]],
            np.repeat(np.arange(len(sizes)), sizes),
            np.concatenate([[0], np.cumsum(sizes)]),
            self.start[wanted],
            self.input_tokens[wanted],
            self.output_tokens[wanted],
            self.index[wanted],
            self.warnings,
        )


def arrivals(requests: Requests) -> Arrivals | Refused:
    """Arrival times of a run's chunks, or why they cannot be told."""
    if requests.start is None:
        return Refused((
            "The file has no start times, so requests cannot be laid side by side: latencies of "
            "each request hold, but nothing about steps or requests in flight (newer clients "
            "write `start_times` with --save-detailed).",
        ))  # fmt: skip
    kept = ~requests.failed & (requests.ttft > 0) & (requests.output_tokens > 0)
    if not kept.any():
        return Refused(("No request was completed.",))
    sizes = np.diff(requests.offsets) + 1
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    first = offsets[:-1]
    steps = np.zeros(offsets[-1])
    later = np.ones(len(steps), np.bool_)
    later[first] = False
    steps[later] = requests.gaps
    # A running sum within each request; over all of them it would lose digits to large totals.
    total = np.cumsum(steps)
    time = total - np.repeat(total[first], sizes)
    time += np.repeat(requests.start + requests.ttft, sizes)
    everything = Arrivals(
        time, np.repeat(np.arange(len(sizes)), sizes), offsets, requests.start,
        requests.input_tokens, requests.output_tokens, np.arange(len(sizes)),
    )  # fmt: skip
    found = everything.only(kept)
    tokens, chunks = int(found.output_tokens.sum()), len(found.time)
    if abs(tokens - chunks) > SEVERAL_A_CHUNK * tokens:
        return Refused((
            f"{chunks:,} chunks carried {tokens:,} tokens: a chunk is no token here (speculative "
            "decoding, or a buffer on the way), so arrivals do not show the engine's steps.",
        ))  # fmt: skip
    lost = int((~kept).sum())
    if lost:
        found = Arrivals(
            found.time, found.request, found.offsets, found.start, found.input_tokens,
            found.output_tokens, found.index,
            (f"{plural(lost, 'request')} of {len(kept):,} ({percent(lost / len(kept))}) failed: "
             "what the engine did for them is not seen",),
        )  # fmt: skip
    return found
