"""analysis.prefix_hits: the counters' differences, engine by engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.model import Counters, Run, ServerSide, Source
from analysis.prefix_hits import prefix_hit_share, prefix_hits
from tests.builders import cell, run

QUERIES, HITS = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"


def counted(
    *engines: tuple[float, float, float, float], emptied: bool = True, extra: float = 0.0
) -> Run:
    """A run of engines with queries before and after, hits before and after."""
    counters = []
    for n, (q0, q1, h0, h1) in enumerate(engines):
        moments = (("before", q0, h0), ("after", q1, h1))
        for when, queries, hits in moments:
            values = {
                f'{QUERIES}{{engine="0"}}': queries,
                f'{HITS}{{engine="0"}}': hits,
                "vllm:prefix_cache_hits_created": extra,
            }
            file = f"metrics-replica-{n}.{when}.txt"
            counters.append(Counters(Source(file, ""), f"replica-{n}", when, values))  # type: ignore[arg-type]
    made = run(config={"prefix_cache_emptied": emptied})
    return replace(made, server=ServerSide(counters=tuple(counters)))


def test_a_share_is_of_the_tokens_between_both_moments() -> None:
    made = counted((1000.0, 3000.0, 100.0, 900.0), (0.0, 6000.0, 0.0, 200.0), extra=1.8e9)
    assert [one.share for one in prefix_hits(made).values()] == pytest.approx([0.4, 1 / 30])
    share = prefix_hit_share(made)
    assert share is not None
    # Of all tokens, not the mean of the engines' shares.
    assert share.value == pytest.approx(1000 / 8000)
    assert str(share.sources[0].file) == "metrics-replica-0.after.txt"
    found = cell("a", made).metric("prefix_hit_share")
    assert found is not None
    assert found.value == share.value


@pytest.mark.parametrize(
    "engine",
    [
        (1000.0, 1000.0, 0.0, 0.0),  # nothing was asked
        (1000.0, 10.0, 0.0, 0.0),  # restarted
        (0.0, 10.0, 5.0, 1.0),
        (0.0, 10.0, 0.0, 11.0),
    ],
)
def test_one_engine_that_does_not_tell_makes_the_share_unknown(
    engine: tuple[float, float, float, float],
) -> None:
    assert prefix_hit_share(counted((0.0, 100.0, 0.0, 50.0), engine)) is None


def test_runs_without_a_servers_counters_have_none() -> None:
    assert prefix_hit_share(run()) is None
