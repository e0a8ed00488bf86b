"""Requests in flight over time, against hand counts, Little's law and a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.in_flight import in_flight, residences, steady, whole
from analysis.token_times import Arrivals, arrivals
from tests.builders import requests
from tests.simulated import requests_of, simulated

STAYS = st.lists(st.tuples(st.floats(0, 50), st.floats(0.1, 20)), min_size=1, max_size=12)


def of(stays: list[tuple[float, float]]) -> Arrivals:
    found = arrivals(
        requests(
            [s / 2 for _, s in stays], [[s / 2] for _, s in stays], start=[t for t, _ in stays]
        )
    )
    assert isinstance(found, Arrivals)
    return found


def test_three_requests_by_hand():
    """In flight [0, 4), [1, 3), [3, 6): the third begins as the second ends."""
    flight = in_flight(of([(0, 4), (1, 2), (3, 3)]))
    assert flight.time.tolist() == [0, 1, 3, 3, 4, 6]
    assert flight.count.tolist() == [1, 2, 1, 2, 1, 0]
    assert flight.mean == pytest.approx(9 / 6)
    assert flight.between(1, 4) == pytest.approx(2)


@settings(deadline=None)
@given(STAYS)
def test_littles_law_holds_over_a_whole_run(stays):
    found = of(stays)
    span = found.last.max() - found.start.min()
    assert in_flight(found).mean == pytest.approx(sum(s for _, s in stays) / span)


@settings(deadline=None)
@given(STAYS, st.floats(0, 60))
def test_counts_are_those_of_a_plain_loop(stays, at):
    flight = in_flight(of(stays))
    edges = [edge for start, stay in stays for edge in (start, start + stay)]
    if min(abs(edge - at) for edge in edges) < 1e-6:
        return
    plain = sum(start <= at < start + stay for start, stay in stays)
    place = int(np.searchsorted(flight.time, at, side="right")) - 1
    assert (int(flight.count[place]) if place >= 0 else 0) == plain


def test_the_steady_window_leaves_out_ramp_and_drain():
    run = simulated(120, 8)
    found = arrivals(requests_of(run))
    assert isinstance(found, Arrivals)
    window, everything = steady(found, 8), whole(found)
    assert window is not None
    assert window.in_flight == pytest.approx(8, rel=0.01)
    assert everything.in_flight < window.in_flight
    assert window.output_throughput > everything.output_throughput
    assert everything.itl == pytest.approx(run.gaps.mean())
    assert everything.share == pytest.approx(1)
    assert 0.8 < window.share < 1
    assert residences(found) == pytest.approx(120 / everything.in_flight)


def test_a_cap_that_is_never_reached_has_no_steady_window():
    assert steady(of([(0, 4), (1, 2)]), 3) is None
