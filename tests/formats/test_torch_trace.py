"""analysis.formats.torch_trace: real traces, exact sums by another way, damage, hostile values."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.formats import _chrome_trace, format_of, torch_trace
from analysis.formats._files import head_of
from analysis.kernel_classes import kind_of
from analysis.model import Ignored, KernelTrace, Record, Skipped, Source
from tests.formats.found import only, refused
from tests.traces import BF16, FLASH, GEMM, MACHETE, MARLIN, NCCL, event, events, text, write


def read(path: Path) -> KernelTrace:
    return only(torch_trace.read(path, f"a/{path.name}"), KernelTrace)


def frame(path: Path) -> pd.DataFrame:
    """The trace by another way: all of it in memory."""
    found = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return pd.DataFrame(found)


@pytest.mark.parametrize(
    ("path", "gemm", "busy", "kernels"),
    # Of whole traces of 39, 48 and 59 steps: GEMM in ms a step, device time over span, kernels.
    [(BF16, 7.41, 0.96, 540), (MACHETE, 4.55, 0.88, 700), (MARLIN, 4.12, 0.95, 540)],
)
def test_a_cut_of_a_real_trace(path: Path, gemm: float, busy: float, kernels: int) -> None:
    trace, table = read(path), frame(path)
    work = table[table["cat"].isin(["kernel", "gpu_memcpy", "gpu_memset"])].copy()
    starts = table[table["cat"] == "gpu_user_annotation"]["ts"].to_numpy()
    work["step"] = np.searchsorted(starts, work["ts"], "right") - 1
    work["kind"] = work["name"].map(kind_of)
    assert trace.source == Source(f"a/{path.name}", "traceEvents")
    assert (trace.tool, trace.rank, trace.device) == ("torch profiler", 0, "GPU 0")
    assert trace.steps is not None
    assert trace.steps.batch.tolist() == [10, 10]
    assert trace.steps.prompts.tolist() == [0, 0]
    for kind, own in trace.steps.kinds.items():
        exact = work[work["kind"] == kind].groupby("step")["dur"].sum().reindex([0, 1]).fillna(0)
        assert own * 1e6 == pytest.approx(exact.to_numpy(), abs=1e-3)
        assert trace.kinds[kind] * 1e6 == pytest.approx(exact.sum(), abs=1e-3)
    assert trace.steps.kinds["gemm"] * 1e3 == pytest.approx([gemm] * 2, rel=5e-3)
    ends = (work["ts"] + work["dur"]).max()
    assert trace.span * 1e6 == pytest.approx(ends - work["ts"].min(), abs=1e-2)
    # Streams overlap a little, so the union is below the sum.
    assert trace.busy * 1e6 <= work["dur"].sum()
    assert trace.busy / trace.span == pytest.approx(busy, abs=0.012)
    by_name = work.groupby("name")["dur"].agg(["count", "sum"]).sort_values("sum", ascending=False)
    assert trace.names == len(by_name)
    assert [k.name for k in trace.kernels[:5]] == [n[:2000] for n in by_name.index[:5]]
    assert [k.count for k in trace.kernels[:5]] == by_name["count"].tolist()[:5]
    assert len(work) > 2 * 0.9 * kernels
    waits = table[table["name"] == "cudaEventSynchronize"]["dur"]
    assert trace.synchronisations["cudaEventSynchronize"] == pytest.approx(
        (len(waits), waits.sum() / 1e6)
    )
    assert trace.warnings == ()


def test_the_union_counts_overlap_once(tmp_path: Path) -> None:
    two = [
        event("execute_context_0(0)_generation_4(4)", "gpu_user_annotation", 1000, 90),
        event(GEMM, "kernel", 1000, 60, device=0, stream=7),
        event(NCCL, "kernel", 1030, 50, device=0, stream=8),
        event(FLASH, "kernel", 1100, 10, device=0, stream=7),
    ]
    trace = read(write(tmp_path / "a.json", two))
    assert trace.span == pytest.approx(110e-6)
    assert trace.busy == pytest.approx(90e-6)
    assert trace.gaps == 1
    assert trace.kinds["communication"] == pytest.approx(50e-6)
    assert trace.steps is not None
    assert trace.steps.busy == pytest.approx([90e-6])


def test_steps_without_annotations_on_the_device_are_found_by_their_launches(
    tmp_path: Path,
) -> None:
    found = [one for one in events([[(GEMM, 80.0)]] * 4) if one["cat"] != "gpu_user_annotation"]
    starts = [one["ts"] for one in found if one["cat"] == "kernel"]
    for number, start in enumerate(starts):
        found.append(event("cudaGraphLaunch", "cuda_runtime", start - 30, 5, correlation=number))
    trace = read(write(tmp_path / "a.json", found))
    assert trace.steps is not None
    assert trace.steps.kinds["gemm"] == pytest.approx([80e-6] * 4)
    assert trace.steps.seconds == pytest.approx([180e-6] * 3 + [80e-6], rel=1e-4)
    assert "launched" in trace.told_by


def test_without_annotations_there_are_no_steps_and_the_trace_says_why(tmp_path: Path) -> None:
    found = [event(GEMM, "kernel", 1000 + 100 * k, 60, device=0) for k in range(3)]
    trace = read(write(tmp_path / "rank3.pt.trace.json", found, rank=3))
    assert trace.steps is None
    assert "marks no engine steps" in trace.told_by
    assert trace.rank == 3


def test_each_device_is_a_trace_of_its_own(tmp_path: Path) -> None:
    found = [event(GEMM, "kernel", 1000, 60, device=k) for k in (1, 0)]
    first, second = torch_trace.read(write(tmp_path / "a.json", found), "x")
    assert isinstance(first, KernelTrace)
    assert isinstance(second, KernelTrace)
    assert (first.device, second.device) == ("GPU 0", "GPU 1")


def test_operators_of_a_cpu_count_in_their_own_time(tmp_path: Path) -> None:
    found = [
        event("execute_new_0_cached_2", "user_annotation", 900, 300),
        event("aten::linear", "cpu_op", 1000, 100),
        event("aten::mm", "cpu_op", 1010, 80),
        event("aten::silu", "cpu_op", 1150, 20),
        event("execute_new_0_cached_2", "user_annotation", 1250, 300),
        event("aten::mm", "cpu_op", 1300, 40),
    ]
    trace = read(write(tmp_path / "a.json", found))
    assert trace.device == "CPU"
    assert {k.name: (k.count, round(k.seconds * 1e6)) for k in trace.kernels} == {
        "aten::mm": (2, 120), "aten::linear": (1, 20), "aten::silu": (1, 20),
    }  # fmt: skip
    assert trace.steps is not None
    assert trace.steps.kinds["gemm"] == pytest.approx([100e-6, 40e-6])
    assert trace.steps.batch.tolist() == [2, 2]


def test_names_of_unknown_purpose_are_told_with_their_share(tmp_path: Path) -> None:
    found = events([[(GEMM, 90.0), ("my_secret_kernel", 10.0)]] * 3)
    trace = read(write(tmp_path / "a.json", found))
    assert "10.0 % of the kernel time" in trace.warnings[0]
    assert "my_secret_kernel" in trace.warnings[0]


def test_a_trace_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = text(events([[(GEMM, 80.0)]] * 50))
    path = tmp_path / "a.json"
    path.write_text(whole[: len(whole) // 2])
    found, trouble = torch_trace.read(path, "x")
    assert isinstance(found, KernelTrace)
    assert isinstance(trouble, Skipped)
    assert "cut short" in trouble.reason
    assert 20 < found.kernels[0].count < 30
    packed = tmp_path / "b.json.gz"
    packed.write_bytes(gzip.compress(whole.encode())[:-600])
    found, trouble = torch_trace.read(packed, "x")
    assert isinstance(trouble, Skipped)
    assert trouble.reason.startswith("the gzip data is damaged")


def test_pieces_are_cut_between_events_wherever_braces_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = events([[(GEMM, 80.0), ('a "kernel" },{ of }, { braces', 5.0)]] * 40)
    for one in found:
        one["args"]["nested"] = [{"a": 1}, {"b": [{"c": 2}, {"d": "},{"}]}]
    whole = read(write(tmp_path / "a.json", found))
    monkeypatch.setattr(_chrome_trace, "_CHUNK", 700)
    pieces = read(tmp_path / "a.json")
    assert pieces.kinds == whole.kinds
    assert [k.count for k in pieces.kernels] == [k.count for k in whole.kernels] == [40, 40]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"schemaVersion": 1, "traceEvents": []}', "no kernel and no operator"),
        ('{"schemaVersion": 1, "traceEvents": [1, 2]}', "cut short"),
        ('{"schemaVersion": 1, "traceEvents": {}}', "no list of events"),
        ('{"schemaVersion": 1, "traceEvents": [' + '{"a":' * 90_000, "cut short or damaged"),
        ('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel"}]}', "no kernel"),
    ],
)
def test_what_is_no_trace_of_a_worker(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    assert expected in refused(torch_trace.read(path, "x"))


@pytest.mark.parametrize(
    "change",
    [{"ts": -1}, {"dur": 1e308}, {"ts": "now"}, {"dur": None}, {"ts": True}, {"name": 7}],
)
def test_events_without_a_time_or_a_name_are_counted(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    found = [{**event(GEMM, "kernel", 1000, 5), **change}, event(GEMM, "kernel", 2000, 60)]
    trace, trouble = torch_trace.read(write(tmp_path / "a.json", found), "x")
    assert isinstance(trace, KernelTrace)
    assert isinstance(trouble, Skipped)
    assert trace.kernels[0].count == 1
    assert "1 events" in trouble.reason


def test_it_is_known_by_its_first_keys_and_steals_nothing(tmp_path: Path) -> None:
    assert format_of(BF16, head_of(BF16)) is torch_trace
    for other in sorted((BF16.parent.parent / "bench").iterdir()):
        assert not torch_trace.sniff(other, head_of(other))
    chrome = write(tmp_path / "chrome.json", [])
    chrome.write_text('{"traceEvents": [{"name": "Browser", "ph": "X"}]}')
    assert not torch_trace.sniff(chrome, head_of(chrome))


@pytest.mark.parametrize("name", ["profiler_out_0.txt", "rank0.profiler_out.txt"])
def test_the_profilers_own_table_is_known_and_left_aside(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("---  ---\n Name    Self CPU %      Self CPU   CPU total %\n")
    assert format_of(path, head_of(path)) is torch_trace
    assert isinstance(torch_trace.read(path, "x")[0], Ignored)


VALUE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
CATEGORY = st.sampled_from(
    ["kernel", "cpu_op", "user_annotation", "gpu_user_annotation", "cuda_runtime"]
)
EVENT = st.fixed_dictionaries(
    {"ph": st.sampled_from(["X", "i"]), "cat": CATEGORY | VALUE},
    optional={
        "name": st.sampled_from(["execute_new_1_cached_2", GEMM, "aten::mm"]) | VALUE,
        "ts": st.integers(0, 1000) | VALUE,
        "dur": st.integers(0, 1000) | VALUE,
        "pid": VALUE,
        "tid": VALUE,
        "args": st.dictionaries(st.sampled_from(["device", "correlation"]), VALUE) | VALUE,
    },
)


@given(st.lists(EVENT, max_size=12), st.binary(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_values_and_any_bytes(found: list[dict[str, Any]], data: bytes) -> None:
    whole = text(found).encode()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.pt.trace.json"
        for content in (whole, whole[: len(whole) // 2] + data, data + whole):
            path.write_bytes(content)
            records: list[Record] = torch_trace.read(path, "x")
            assert records
            for one in records:
                assert isinstance(one, KernelTrace | Skipped)
                if isinstance(one, KernelTrace):
                    assert 0 <= one.busy <= one.span * (1 + 1e-9) + 1e-12
                    assert sum(k.seconds for k in one.kernels) == pytest.approx(
                        sum(one.kinds.values())
                    )


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(0, 80), st.sampled_from([GEMM, FLASH, NCCL])),
        min_size=1,
        max_size=40,
    )
)
@settings(max_examples=200, deadline=None)
def test_busy_and_gaps_are_those_of_a_line_of_microseconds(
    work: list[tuple[int, int, str]],
) -> None:
    with TemporaryDirectory() as folder:
        found = [event(name, "kernel", start, length) for start, length, name in work]
        trace = read(write(Path(folder) / "a.json", found))
    covered = {at for start, length, _ in work for at in range(start, start + length)}
    assert trace.busy * 1e6 == pytest.approx(len(covered), abs=1e-6)
    for kind in ("gemm", "attention", "communication"):
        exact = sum(length for _, length, name in work if kind_of(name) == kind)
        assert trace.kinds[kind] * 1e6 == pytest.approx(exact, abs=1e-6)
