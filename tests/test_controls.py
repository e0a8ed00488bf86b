"""Negative controls: no step cost between arms whose steps cost the same."""

from __future__ import annotations

from functools import cache

from analysis.controls import TOLERANCE, Control, controls
from tests.whole import shipped


@cache
def of(study: str) -> tuple[Control, ...]:
    (report,) = (one for one in shipped().studies if one.study.name == study)
    return controls(report.study)


def pairs(study: str) -> dict[tuple[str, str], Control]:
    return {(one.baseline.arm.name, one.treatment.arm.name): one for one in of(study)}


def test_pairs_of_equal_weights_on_one_gpu_pass() -> None:
    """a-d, b-e and a-f of the recordings, at 2 % of the ITL."""
    found = pairs("h200-recorded")
    for pair in (("bf16", "bf16-kv75k"), ("awq", "awq-kv75k"), ("bf16", "bf16-kv2560")):
        assert found[pair].passed == "yes", pair
    for pair in (("bf16", "bf16-kv75k"), ("awq", "awq-kv75k")):
        assert found[pair].lo <= 0 <= found[pair].hi, pair


def test_other_weights_or_flags_of_a_step_are_no_control() -> None:
    found = pairs("h200-recorded")
    assert ("bf16", "awq") not in found
    assert ("awq", "awq-tuned") not in found
    assert ("awq", "awq-marlin") not in found


def test_what_is_given_passes_and_what_fails_is_not_given() -> None:
    for one in of("h200-recorded"):
        assert one.passed != "no" or one.refused, one.treatment.name
        assert one.passed != "yes" or abs(one.found) <= TOLERANCE * one.itl


def test_a_router_costs_no_step() -> None:
    found = pairs("h200-parallelism")
    assert found["replica2_direct", "replica2_rr"].passed == "yes"
