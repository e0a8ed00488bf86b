"""Which engine served a request, from the ids in the servers' logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from analysis.model import Requests, Run, ServerSide, ServerTimes, Source
from analysis.served_by import engine_of, place_of
from tests.builders import requests, run


def of(count: int, clients: Sequence[int] | None = None) -> Requests:
    found = requests([0.1] * count, [[0.1]] * count, start=[0.0] * count)
    return found if clients is None else replace(found, client=np.array(clients))


def logged(arrays: Requests, *servers: Sequence[str]) -> Run:
    times = tuple(
        ServerTimes(
            Source(f"requests-replica-{n}.jsonl", ""), tuple(ids), *([np.zeros(len(ids))] * 3)
        )
        for n, ids in enumerate(servers)
    )
    return replace(run(), requests=arrays, server=ServerSide(times=times))


@pytest.mark.parametrize(
    ("name", "clients", "place"),
    [
        ("cmpl-arm.sharegpt-c10-r1.0-7-0", None, 7),
        ("chatcmpl-arm.w-c1-r1.0-0-0", None, 0),
        ("cmpl-arm.w-c1-r1.0-8-0", None, None),  # beyond the run
        ("cmpl-arm.w-c1-r1.1-2-0", None, None),  # another client's
        ("cmpl-arm.w-c1-r1.1-2-0", [0] * 4 + [1] * 4, 6),
        ("cmpl-b4b0179183b7b596-0", None, None),
        ("", None, None),
    ],
)
def test_place_of_a_request(name: str, clients: list[int] | None, place: int | None) -> None:
    assert place_of(name, of(8, clients)) == place


def test_each_server_has_the_requests_of_its_log() -> None:
    found = engine_of(logged(of(3), ["cmpl-r.0-0-0", "cmpl-r.0-2-0"], ["cmpl-r.0-1-0"]))
    assert found is not None and found.tolist() == [0, 1, 0]


def test_a_request_in_no_log_leaves_it_open() -> None:
    assert engine_of(logged(of(3), ["cmpl-r.0-0-0"], ["cmpl-r.0-1-0"])) is None
    assert engine_of(replace(run(), requests=of(3))) is None


def test_a_failed_request_needs_no_engine() -> None:
    arrays = replace(of(2), failed=np.array([False, True]))
    found = engine_of(logged(arrays, ["cmpl-r.0-0-0"]))
    assert found is not None and found.tolist() == [0, 0]
