"""SA112: requests and tokens by the client and by the servers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analysis.checks import server_agrees
from analysis.model import Run
from analysis.scan import scan
from tests.builders import run
from tests.checks.helpers import outcome
from tests.simulated import simulated
from tests.simulated_metrics import write


def watched(folder: Path) -> Run:
    write(folder / "a", simulated(n=40))
    (found,) = [one for one in scan(folder) if isinstance(one, Run)]
    return found


def test_without_counters_it_is_not_applicable() -> None:
    assert outcome(server_agrees, run()).status == "NOT APPLICABLE"


def test_the_same_by_both_is_valid(tmp_path: Path) -> None:
    found = outcome(server_agrees, watched(tmp_path))
    assert found.status == "VALID"
    assert found.reason.startswith("40 requests, ")
    assert found.reason.endswith("by both")


def test_other_traffic_is_suspect(tmp_path: Path) -> None:
    one = watched(tmp_path)
    assert one.server is not None
    changed = tuple(
        replace(text, values={
            series: value + (9 if series.startswith("vllm:request_success") else 0)
            for series, value in text.values.items()
        }) if text.when == "after" else text
        for text in one.server.counters
    )  # fmt: skip
    found = outcome(server_agrees, replace(one, server=replace(one.server, counters=changed)))
    assert found.status == "SUSPECT"
    # Both series of reasons rose.
    assert "18 requests beside the 40 of the client" in found.reason


def test_a_restart_is_suspect(tmp_path: Path) -> None:
    one = watched(tmp_path)
    assert one.server is not None
    empty = tuple(
        replace(text, values=dict.fromkeys(text.values, 0.0)) if text.when == "after" else text
        for text in one.server.counters
    )
    found = outcome(server_agrees, replace(one, server=replace(one.server, counters=empty)))
    assert found.status == "SUSPECT"
    assert "started anew" in found.reason
