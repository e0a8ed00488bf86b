"""What share of the prompts each engine read from its prefix cache: its own counters' differences.

vLLM counts in tokens: each prompt adds its tokens to the queries and, of those, what was found in
the cache to the hits. A prompt that is computed again after a preemption counts again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.model import Counters, Figure, Run, Source
from analysis.quantity import Quantity, quantity

_QUERIES, _HITS = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"


@dataclass(frozen=True, slots=True)
class Hits:
    """Tokens of one engine over a run."""

    queries: float
    hits: float
    source: Source
    """The later of its two files."""

    @property
    def share(self) -> float:
        """Hits / queries."""
        return self.hits / self.queries


def prefix_hits(run: Run) -> Mapping[str, Hits]:
    """By engine; empty where one of them does not say, or counted backwards (it was restarted)."""
    counters = () if run.server is None else run.server.counters
    before = {one.engine: one for one in counters if one.when == "before"}
    found: dict[str, Hits] = {}
    for after in counters:
        if after.when == "before":
            continue
        start = before.get(after.engine)
        queries, hits = (
            None if start is None else _difference(start, after, name) for name in (_QUERIES, _HITS)
        )
        if not queries or hits is None or queries < 0 or not 0 <= hits <= queries:
            return {}
        found[after.engine] = Hits(queries, hits, after.source)
    return found


def prefix_hit_share(run: Run) -> Quantity | None:
    """The share over all engines."""
    found = prefix_hits(run)
    if not found:
        return None
    share = sum(one.hits for one in found.values()) / sum(one.queries for one in found.values())
    first = next(iter(found.values())).source
    source = Source(first.file, _HITS if len(found) == 1 else f"{_HITS}, of all engines")
    return quantity(Figure("prefix_hit_share", share, share, share, "", source))


def _difference(before: Counters, after: Counters, name: str) -> float | None:
    """How far a counter went, over all of its labels; None where it is not there."""
    a, b = (
        [value for series, value in one.values.items() if series.partition("{")[0] == name]
        for one in (before, after)
    )
    return sum(b) - sum(a) if a and b else None
