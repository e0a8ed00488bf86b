"""analysis.request_stages against engines whose every request is known, and against real ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.model import Run, ServerSide, ServerTimes, Source
from analysis.request_stages import CLIENT, EACH, MEANS, STAGES, RequestStages, request_stages
from analysis.scan import scan
from analysis.simulate import Delivery, Engine, Simulated
from tests.builders import requests, run
from tests.simulated import DELIVERY, requests_of, simulated
from tests.simulated_metrics import truth, write
from tests.whole import RESULTS


def told(sim: Simulated, ids: Sequence[str] = (), delivery: Delivery = DELIVERY) -> ServerTimes:
    """The server's times of each request."""
    names = ids or [f"cmpl-bench-1a2b-{n}-0" for n in range(len(sim.start))]
    known = truth(sim, delivery)
    return ServerTimes(
        Source("requests-server.jsonl", ""), tuple(names), known.queue, known.prefill, known.decode
    )


def watched(sim: Simulated, *times: ServerTimes) -> Run:
    return replace(run(requests=requests_of(sim)), server=ServerSide(times=times))


def stages(of: Run) -> RequestStages:
    found = request_stages(of)
    assert found is not None
    closes(found)
    return found


def closes(found: RequestStages) -> None:
    """The parts add up to the stay, and are those of the client's times."""
    parts = sum(getattr(found, name) for name in STAGES)
    if found.by != CLIENT:
        assert parts == pytest.approx(found.stay, rel=1e-12)
        assert found.outside + found.queue + found.prefill == pytest.approx(found.ttft)


# ---- engines whose truth is known


@pytest.mark.parametrize("slots", [2, 8])
def test_each_request_is_split_as_the_engine_served_it(slots: int) -> None:
    way = Delivery(to_server=2e-3, to_client=3e-3)
    sim = simulated(n=80, engine=Engine(max_num_seqs=slots), delivery=way)
    known = truth(sim, way)
    found = stages(watched(sim, told(sim, delivery=way)))
    assert (found.by, found.requests, found.warnings) == (EACH, 80, ())
    each = found.each
    assert each is not None
    assert each.queue == pytest.approx(known.queue)
    assert each.outside == pytest.approx(np.full(80, 5e-3))
    assert each.residual == pytest.approx(np.zeros(80), abs=1e-9)
    assert found.queue == pytest.approx(known.queue.mean())
    assert found.decode == pytest.approx(known.decode.mean())
    assert found.stay == pytest.approx(float((sim.ttft + known.decode).mean()))
    assert (found.queue > 0.1) == (slots == 2)


def test_ids_in_any_order_and_twice_are_the_same_requests() -> None:
    sim = simulated(n=40)
    one = told(sim)
    order = np.random.default_rng(1).permutation(40)
    mixed = ServerTimes(
        one.source, tuple(one.request[n] for n in order), one.queue[order], one.prefill[order],
        one.decode[order],
    )  # fmt: skip
    a, b = stages(watched(sim, one)), stages(watched(sim, mixed, one))
    assert a.each is not None
    assert b.each is not None
    assert a.each.queue.tolist() == b.each.queue.tolist()


@pytest.mark.parametrize(
    "form",
    ["cmpl-{}-0", "cmpl-x-{}-0", "cmpl-r1.0-{}-0", "cmpl-p-{}-0-deadbeef", "chatcmpl-p-{}",
     "chatcmpl-p-{}-12345678"],
)  # fmt: skip
def test_forms_of_an_id(form: str) -> None:
    sim = simulated(n=30)
    ids = [form.format(n) for n in range(30)]
    assert stages(watched(sim, told(sim, ids))).by == EACH


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([f"cmpl-{n:032x}" for n in range(30)], "no id"),
        (["x"] * 30, "no id"),
        ([f"cmpl-a-{n}-0" for n in range(15)] + [f"cmpl-b-{n}-0" for n in range(15)], "no id"),
        ([f"cmpl-a-{n}-0" for n in range(15)] + ["x"] * 15, "are of 15 of 30 completed requests"),
        ([f"cmpl-a-{n + 900}-0" for n in range(30)], "no id"),
    ],
)
def test_ids_that_name_no_request_are_not_used(ids: list[str], said: str) -> None:
    sim = simulated(n=30)
    found = stages(watched(sim, told(sim, ids)))
    assert found.by == CLIENT
    assert said in found.warnings[0]


def test_times_that_are_longer_than_the_clients_are_of_others() -> None:
    sim = simulated(n=30, engine=Engine(max_num_seqs=2))
    one = told(sim)
    found = stages(watched(sim, replace(one, queue=one.queue + 1.0)))
    assert found.by == CLIENT
    assert "before they were sent" in found.warnings[0]


def test_the_means_of_the_histograms_are_those_of_the_requests(tmp_path: Path) -> None:
    sim = simulated(n=80, engine=Engine(max_num_seqs=3))
    write(tmp_path / "a", sim)
    (one,) = [one for one in scan(tmp_path) if isinstance(one, Run)]
    found, known = stages(one), truth(sim)
    assert (found.by, found.requests, found.warnings) == (MEANS, 80, ())
    assert found.queue == pytest.approx(known.queue.mean())
    assert found.prefill == pytest.approx(known.prefill.mean())
    assert found.decode == pytest.approx(known.decode.mean())
    # The model's API server takes no time: all outside the engine is the way.
    assert found.client == pytest.approx(found.outside)
    assert found.api_server == pytest.approx(0.0, abs=1e-9)
    assert one.server is not None
    both = stages(replace(one, server=replace(one.server, times=(told(sim),))))
    assert both.by == EACH
    assert both.queue == pytest.approx(found.queue)
    assert both.client == pytest.approx(found.client)


def test_what_a_preempted_request_waits_again_is_in_its_decode_and_said(tmp_path: Path) -> None:
    sim = simulated(n=60, engine=Engine(kv_blocks=90))
    assert sim.truth.preemptions > 5
    write(tmp_path / "a", sim)
    (one,) = [one for one in scan(tmp_path) if isinstance(one, Run)]
    found = stages(one)
    assert f"{sim.truth.preemptions} preemptions" in found.warnings[0]
    assert found.queue == pytest.approx(sim.truth.queued.mean())


# ---- runs that tell less


def test_the_client_alone_knows_two_parts() -> None:
    found = stages(run(requests=requests([1.0, 3.0], [[2.0], [4.0, 2.0]])))
    assert (found.by, found.ttft, found.decode, found.stay) == (CLIENT, 2.0, 4.0, 6.0)
    assert math.isnan(found.queue)


def test_failed_requests_are_left_out_and_of_none_there_is_nothing() -> None:
    arrays = requests([1.0, 9.0], [[2.0], [9.0]], failed=[False, True])
    assert stages(run(requests=arrays)).stay == 3.0
    assert request_stages(run(requests=replace(arrays, failed=np.array([True, True])))) is None
    assert request_stages(run()) is None


def test_warm_ups_in_the_servers_means_are_said() -> None:
    sim = simulated(n=30)
    (one,) = [
        one
        for one in scan(RESULTS / "h200-recorded/awq-tuned")
        if isinstance(one, Run) and "sharegpt" in one.id
    ]
    assert stages(one).warnings == ()
    found = stages(replace(one, requests=requests_of(sim)))
    assert "are of 196 requests, the client's of 30" in found.warnings[0]


# ---- recorded runs, as another program reads them


def test_recorded_runs() -> None:
    runs = {
        one.source.file: one
        for arm in ("bf16", "bf16-kv2560")
        for one in scan(RESULTS / "h200-recorded" / arm)
        if isinstance(one, Run)
    }
    found = stages(runs["sharegpt-c10-s42.json.gz"])
    # bf16-kv2560 is the later of the two.
    parts = [found.stay, found.client, found.outside, found.queue, found.prefill, found.decode]
    assert parts == pytest.approx([3.64997, 0.00429, 0.02011, 1.03730, 0.04085, 2.55227], abs=1e-5)
    assert "173 preemptions" in found.warnings[0]


def test_every_shipped_run_closes() -> None:
    found = [
        stages_
        for study in ("cpu-smoke", "h200-parallelism")
        for one in scan(RESULTS / study)
        if isinstance(one, Run) and (stages_ := request_stages(one)) is not None
    ]
    assert len(found) == 35
    for one in found:
        closes(one)
        assert one.outside > 0
    assert [one.by for one in found].count(EACH) == 33


@given(
    st.lists(
        st.tuples(*[st.floats(0, 5)] * 5), min_size=1, max_size=20
    )
)  # fmt: skip
@settings(deadline=None)
def test_parts_of_any_requests_add_up(rows: list[tuple[float, ...]]) -> None:
    outside, queue, prefill, decode, late = map(np.array, zip(*rows, strict=True))
    arrays = requests((outside + queue + prefill).tolist(), [[d] for d in (decode + late).tolist()])
    times = ServerTimes(
        Source("x", ""), tuple(f"cmpl-{n}-0" for n in range(len(rows))), queue, prefill, decode
    )
    found = stages(replace(run(requests=arrays), server=ServerSide(times=(times,))))
    assert found.by == EACH
    assert found.outside == pytest.approx(outside.mean(), abs=1e-9)
    assert found.residual == pytest.approx(late.mean(), abs=1e-9)
