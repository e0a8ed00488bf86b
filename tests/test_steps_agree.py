"""Reconstructed steps against the servers' own logs of the shipped runs."""

from __future__ import annotations

from functools import cache

from analysis.steps import Steps
from analysis.steps_agree import StepCheck, checks_of
from analysis.token_times import Refused
from tests.whole import shipped


@cache
def of(study: str) -> tuple[StepCheck, ...]:
    (report,) = (one for one in shipped().studies if one.study.name == study)
    return checks_of(report.study)


def test_every_run_of_two_gpus_is_met_or_refused_with_a_reason() -> None:
    found = of("h200-parallelism")
    assert len(found) == 31
    shown = [one for one in found if isinstance(one.found, Steps)]
    assert len(shown) == 24
    for one in shown:
        assert isinstance(one.found, Steps) and one.counted is not None
        quality = one.found.quality
        # Equal, or short by no more than chunks that the client read together.
        assert 0 <= one.counted - quality.steps <= quality.merged_chunks + 5, one.run.id
        assert one.batch_off == 0
        assert one.lag is not None and 0 < one.lag < 1e-3
    refused = [one.found for one in found if isinstance(one.found, Refused)]
    assert all(one.reasons[0] for one in refused)


def test_behind_a_router_the_servers_logs_tell_the_engines_apart() -> None:
    found = [one for one in of("h200-parallelism") if one.cell.arm.name == "replica2_rr"]
    known = [one.found for one in found if isinstance(one.found, Steps)]
    assert len(known) == 6
    assert all(set(one.engine_of.tolist()) == {0, 1} for one in known)


def test_the_batch_on_a_cpu_is_that_of_its_engine() -> None:
    found = [one for one in of("cpu-smoke") if isinstance(one.found, Steps)]
    assert len(found) == 3
    for one in found:
        assert isinstance(one.found, Steps)
        assert one.found.quality.rule == "lattice"
        assert one.batch_off is not None and one.batch_off <= 1
        assert one.counted is not None and abs(one.counted - one.found.quality.steps) <= 1
