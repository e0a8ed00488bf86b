"""Attribution over random arms whose causes are known; the thousand take `-m slow`."""

from __future__ import annotations

import pytest

from tests.recovery import LATENCIES, Case, cases, study, summary, table


@pytest.fixture(scope="module")
def few() -> list[Case]:
    return [case for seed in range(13) for case in cases(seed)]


def test_a_few_configurations_are_recovered(few):
    found = summary(few)
    assert found.cases >= 25
    assert found.median_error < 0.01
    assert found.p95_error < 0.08
    assert min(found.covered) > 0.85
    assert found.wrong == 0
    assert found.refusal_share < 0.35


def test_refusals_have_reasons_and_the_table_lists_them(few):
    refused = [case for case in few if case.refused]
    assert refused
    lines = list(table(few))
    assert any("open loop" in line for line in lines)
    assert sum("wrong:" in line for line in lines) == 0


@pytest.mark.slow
def test_a_thousand_configurations_are_recovered():
    found = study(range(1040))
    for latency in LATENCIES:
        one = summary([case for case in found if case.latency == latency])
        assert one.median_error < 0.03
        assert one.p95_error < 0.08
        assert one.refusal_share < 0.20
    everything = summary(found)
    assert everything.wrong == 0
    assert everything.covered[0] == pytest.approx(0.95, abs=0.02)
