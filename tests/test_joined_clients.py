"""analysis.joined_clients: clients that ran at the same time as one run, exact where it can be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.joined_clients import together
from analysis.model import Level, Requests, Run, Source
from tests.builders import requests, run

NAMES = ("mean_ttft", "median_ttft", "std_ttft", "p99_ttft", "mean_itl", "p50_itl", "mean_tpot",
         "mean_e2el", "p250_ttft")  # fmt: skip


def client(
    number: int, arrays: Requests | None = None, rate: float = float("inf"), **figures: float | None
) -> Run:
    """A client's result, without the latencies unless they are given."""
    return run(
        {"mean_ttft": None, "mean_itl": None, **figures},
        file=f"r/bench-{number}.json", requests=arrays, rate=rate,
        level=Level.SUMMARY if arrays is None else Level.REQUESTS,
    )  # fmt: skip


def value(found: Run, name: str) -> float:
    figure = found.figures[name]
    assert figure.lo == figure.value == figure.hi
    return figure.value


LEFT = requests([1.0, 2.0], [[1.0, 1.0], [2.0]], start=[10.0, 10.0])
RIGHT = requests([3.0, 0.0, 4.0], [[1.0], [9.0], []], start=[11.0, 0.0, 12.0],
                 failed=[False, True, False], output_tokens=[2, 0, 1])  # fmt: skip


def detailed() -> Run:
    names: dict[str, float | None] = dict.fromkeys(NAMES, 1.0)
    counts = {"completed": 2, "num_prompts": 2, "total_input_tokens": 200}
    return together(
        [
            client(0, LEFT, duration=5.0, **counts, total_output_tokens=5, **names),
            client(1, RIGHT, duration=5.5, **{**counts, "failed": 1, "num_prompts": 3},
                   total_output_tokens=3, **names),
        ]
    )  # fmt: skip


def test_counts_add_up_and_rates_are_over_the_whole_run() -> None:
    found = detailed()
    # Sent from 10 s on; the last token came at 12 + 4 s.
    assert value(found, "duration") == 6.0
    assert value(found, "completed") == 4
    assert value(found, "failed") == 1
    assert value(found, "num_prompts") == 5
    assert value(found, "request_throughput") == 4 / 6
    assert value(found, "output_throughput") == 8 / 6
    assert value(found, "total_token_throughput") == 408 / 6


def test_latencies_are_those_of_all_completed_requests() -> None:
    found = detailed()
    ttft = [1.0, 2.0, 3.0, 4.0]
    assert value(found, "mean_ttft") == 2.5
    assert value(found, "median_ttft") == 2.5
    assert value(found, "std_ttft") == np.std(ttft)
    assert value(found, "p99_ttft") == np.percentile(ttft, 99)
    assert value(found, "mean_itl") == (1 + 1 + 2 + 1) / 4
    assert value(found, "p50_itl") == 1.0
    # Of an answer of one token there is no time per further token.
    assert value(found, "mean_tpot") == (2 / 2 + 2 / 1 + 1 / 1) / 3
    assert value(found, "mean_e2el") == (3 + 4 + 4 + 4) / 4
    assert "p250_ttft" not in found.figures


def test_requests_of_all_are_kept_on_one_clock() -> None:
    arrays = detailed().requests
    assert arrays is not None
    assert arrays.start is not None
    assert arrays.start.tolist() == [10, 10, 11, 0, 12]
    assert arrays.ttft.tolist() == [1, 2, 3, 0, 4]
    assert arrays.offsets.tolist() == [0, 2, 3, 4, 5, 5]
    assert arrays.decode.tolist() == [2, 2, 1, 9, 0]
    assert arrays.failed.tolist() == [False, False, False, True, False]
    assert arrays.window == (10.0, 16.0)


def test_where_it_stands() -> None:
    found = detailed()
    assert found.id.endswith("with bench-1.json")
    assert found.source == Source("r/bench-0.json", "with bench-1.json")
    assert found.also_in == (Source("r/bench-1.json", ""),)
    assert found.figures["duration"].source == Source(
        "r/bench-0.json", "duration, with bench-1.json"
    )
    assert found.level is Level.REQUESTS


def test_summaries_give_weighted_means_and_the_longest_duration_and_no_percentile() -> None:
    found = together(
        [
            client(0, duration=100, completed=100, total_output_tokens=1100, mean_ttft=1.0,
                   mean_itl=0.1, p99_ttft=9.0, mean_tpot=0.2),
            client(1, duration=80, completed=300, total_output_tokens=3300, mean_ttft=2.0,
                   mean_itl=0.2, p99_ttft=8.0),
        ]
    )  # fmt: skip
    assert value(found, "duration") == 100
    assert value(found, "mean_ttft") == (100 * 1 + 300 * 2) / 400
    assert value(found, "mean_itl") == pytest.approx((1000 * 0.1 + 3000 * 0.2) / 4000)
    assert {"p99_ttft", "mean_tpot"}.isdisjoint(found.figures)
    assert found.requests is None


def test_one_client_without_its_requests_makes_a_summary_of_all() -> None:
    found = together([client(0, LEFT, duration=5.0, mean_ttft=1.0), client(1, mean_ttft=3.0)])
    assert (found.level, found.requests) == (Level.SUMMARY, None)
    assert value(found, "mean_ttft") == 2.0
    assert value(found, "duration") == 100


def test_without_starts_the_longest_counts() -> None:
    arrays = replace(LEFT, start=None)
    found = together([client(0, arrays, duration=5.0), client(1, arrays, duration=7.0)])
    assert value(found, "duration") == 7.0
    assert found.requests is not None
    assert found.requests.start is None


@pytest.mark.parametrize(
    ("shift", "warned"), [(0.0, False), (0.25, False), (2.0, True), (60.0, True)]
)
def test_clients_that_ran_one_after_another_are_warned_about(shift: float, warned: bool) -> None:
    assert LEFT.start is not None
    later = replace(LEFT, start=LEFT.start + shift)
    found = together([client(0, LEFT, duration=4.0), client(1, later, duration=4.0)])
    assert value(found, "duration") == 4.0 + shift
    assert any("drove at once" in note for note in found.warnings) is warned


def test_rates_add_up() -> None:
    assert together([client(0, rate=2.0), client(1, rate=3.0)]).requested_rate == 5.0
    assert together([client(0, rate=2.0), client(1)]).requested_rate == float("inf")


def test_figures_of_one_client_only_are_left_out() -> None:
    found = together([client(0, failed=None), client(1), client(2)])
    assert "failed" not in found.figures
    assert value(found, "completed") == 300
    assert found.source.key == "with bench-1.json and bench-2.json"


@given(st.lists(st.tuples(st.floats(0.01, 9), st.booleans()), min_size=2, max_size=20), st.data())
def test_a_split_of_one_run_is_that_run(
    rows: list[tuple[float, bool]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(rows) - 1))

    def part(some: list[tuple[float, bool]]) -> Requests:
        return requests([t for t, _ in some], [[t, t] for t, _ in some],
                        failed=[bad for _, bad in some], start=[100.0] * len(some))  # fmt: skip

    whole, parts = part(rows), [client(n, part(some), mean_ttft=1.0, duration=1.0)
                                for n, some in enumerate((rows[:cut], rows[cut:]))]  # fmt: skip
    found = together(parts)
    assert found.requests is not None
    for name in ("ttft", "gaps", "offsets", "failed", "start", "output_tokens"):
        assert (getattr(found.requests, name) == getattr(whole, name)).all()
    assert found.requests.window == whole.window
    if whole.failed.all():
        assert "mean_ttft" not in found.figures
    else:
        assert value(found, "mean_ttft") == pytest.approx(whole.ttft[~whole.failed].mean())
