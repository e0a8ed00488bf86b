"""Slots read off the steps, against the limits that a simulated engine was given."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.effective_slots import effective_slots
from analysis.simulate import Engine
from tests.simulated import simulated, steps_of


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 99), st.sampled_from([512, 8192]))
def test_a_limit_of_sequences_is_found_exactly(limit, more, seed, budget):
    engine = Engine(max_num_seqs=limit, max_num_batched_tokens=budget)
    found = effective_slots(steps_of(simulated(150, limit + more, seed, engine=engine)))[0]
    assert (found.most, found.limit) == (limit, "sequences")


def test_kv_blocks_are_a_limit_that_varies():
    found = effective_slots(steps_of(simulated(120, 8, engine=Engine(kv_blocks=120))))[0]
    assert found.limit == "varies"
    assert found.low < found.most <= 8


def test_without_a_queue_the_most_is_a_lower_bound():
    found = effective_slots(steps_of(simulated(120, 8)))[0]
    assert (found.most, found.limit) == (8, "none seen")
    assert found.queued < 0.05


def test_each_engine_has_its_own():
    engine = Engine(max_num_seqs=3, replicas=2)
    found = effective_slots(steps_of(simulated(200, 10, engine=engine)))
    assert [one.most for one in found.values()] == [3, 3]
    assert {one.limit for one in found.values()} == {"sequences"}


@pytest.mark.parametrize("load", [4, 5])
def test_a_cap_at_or_below_the_limit_makes_no_queue(load):
    engine = Engine(max_num_seqs=5)
    found = effective_slots(steps_of(simulated(120, load, engine=engine)))[0]
    assert (found.most, found.limit) == (load, "none seen")
