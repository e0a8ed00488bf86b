"""The exact split of a gap in stay, against scipy and Little's own sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps

from analysis.simulate import Engine
from analysis.stages import of_arrivals, of_requests, same_requests, split
from analysis.token_times import Refused
from tests.simulated import requests_of, simulated, steps_of

TIMES = st.lists(st.floats(0.001, 100), min_size=5, max_size=5)


@settings(deadline=None)
@given(TIMES, TIMES, TIMES, TIMES, st.booleans())
def test_stages_add_up_to_the_gap(a_first, a_rest, b_first, b_rest, paired):
    a = {"first token": np.array(a_first), "decode": np.array(a_rest)}
    b = {"first token": np.array(b_first), "decode": np.array(b_rest)}
    found = split(a, b, paired=paired)
    assert not isinstance(found, Refused)
    *stages, stay = found
    assert sum(stage.gap for stage in stages) == pytest.approx(stay.gap, abs=1e-9)
    other = (
        sps.ttest_rel(b["decode"], a["decode"])
        if paired
        else sps.ttest_ind(b["decode"], a["decode"], equal_var=False)
    )
    low, high = other.confidence_interval(0.95)
    if np.isfinite([low, high]).all():
        assert (stages[1].lo, stages[1].hi) == pytest.approx((low, high), rel=1e-6, abs=1e-9)


def test_few_sequences_cost_the_first_token_only():
    plain, few = (steps_of(simulated(engine=e)).found for e in (Engine(), Engine(max_num_seqs=4)))
    assert same_requests(plain, few)
    found = split(of_arrivals(plain), of_arrivals(few), paired=True)
    assert not isinstance(found, Refused)
    first, decode, stay = found
    assert first.lo > 0.3
    assert decode.hi < 0
    assert stay.gap == pytest.approx(first.gap + decode.gap)


def test_stages_need_no_start_times():
    run = simulated()
    with_them = of_arrivals(steps_of(run).found)
    without = of_requests(replace(requests_of(run), start=None))
    for name, seconds in with_them.items():
        assert without[name] == pytest.approx(seconds)


def test_other_requests_are_not_paired():
    one, other = (steps_of(simulated(120, seed=s)).found for s in (1, 2))
    assert not same_requests(one, other)


def test_unlike_stages_and_lone_requests_are_refused():
    one = {"decode": np.ones(3)}
    assert isinstance(split(one, {"queue": np.ones(3)}, paired=True), Refused)
    assert isinstance(split({"decode": np.ones(1)}, one, paired=False), Refused)
