"""What share of the prompts each engine read from its prefix cache: its own counters' differences.

vLLM counts in tokens: each prompt adds its tokens to the queries and, of those, what was found in
the cache to the hits. A prompt that is computed again after a preemption counts again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.model import Figure, Run, Source
from analysis.quantity import Quantity, quantity
from analysis.server_metrics import server_metrics
from analysis.server_series import SERIES
from analysis.token_times import Refused


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
    metrics = server_metrics(run)
    if metrics is None or isinstance(metrics, Refused):
        return {}
    found: dict[str, Hits] = {}
    for one in metrics.engines:
        queries, hits = one.counters.get("prefix_queries"), one.counters.get("prefix_hits")
        if not queries or hits is None or hits > queries:
            return {}
        found[one.engine] = Hits(queries, hits, one.source)
    return found


def prefix_hit_share(run: Run) -> Quantity | None:
    """The share over all engines."""
    found = prefix_hits(run)
    if not found:
        return None
    share = sum(one.hits for one in found.values()) / sum(one.queries for one in found.values())
    first = next(iter(found.values())).source
    name = SERIES["prefix_hits"].names[0]
    source = Source(first.file, name if len(found) == 1 else f"{name}, of all engines")
    return quantity(Figure("prefix_hit_share", share, share, share, "", source))
