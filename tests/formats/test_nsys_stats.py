"""analysis.formats.nsys_stats: reports as CSV, the exported database, and hostile ones."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.formats import _nsys_base, format_of, nsys_stats
from analysis.formats._files import head_of
from analysis.model import KernelTrace, Skipped
from tests.formats.found import only, refused
from tests.traces import FLASH, GEMM

PREAMBLE = (
    "\nNOTICE: Existing SQLite export found: x.sqlite\n"
    "        It is assumed file was previously exported from: x.nsys-rep\n\n"
    "Processing [x.sqlite] with [cuda_gpu_trace.py]... \n"
)
TRACE = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),"
    "DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
)
SUMS = (
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    f"75.0,3000000,30,100000.0,1.0,1,2,0.0,{GEMM}\n"
    f'25.0,1000000,10,100000.0,1.0,1,2,0.0,"{FLASH}"\n'
)


def row(start: str, length: str, name: str, device: int = 0) -> str:
    return f'{start},{length},7,1,1,1,64,1,1,24,0,0,,,,,NVIDIA H200 ({device}),1,,7,"{name}"\n'


def test_a_report_of_every_kernel(tmp_path: Path) -> None:
    path = tmp_path / "x_cuda_gpu_trace.csv"
    rows = row("1000", "600", GEMM) + row("2000", "300", "[CUDA memcpy HtoD]")
    path.write_text(PREAMBLE + TRACE + rows + row("x", "5", GEMM))
    assert format_of(path, head_of(path)) is nsys_stats
    trace, trouble = nsys_stats.read(path, "a/x.csv")
    assert isinstance(trace, KernelTrace)
    assert isinstance(trouble, Skipped)
    assert trace.kinds["gemm"] == pytest.approx(600e-9)
    assert trace.kinds["memory"] == pytest.approx(300e-9)
    assert (trace.span, trace.busy, trace.gaps) == pytest.approx((1300e-9, 900e-9, 1))
    assert trace.steps is None
    assert "1 rows" in trouble.reason


def test_a_report_in_microseconds_of_two_devices(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    head = TRACE.replace("(ns)", "(us)")
    path.write_text(head + row("1.5", "0.6", GEMM) + row("1.5", "0.7", GEMM, device=1))
    first, second = nsys_stats.read(path, "x")
    assert isinstance(first, KernelTrace)
    assert isinstance(second, KernelTrace)
    assert (first.device, second.device) == ("GPU 0", "GPU 1")
    assert first.kinds["gemm"] == pytest.approx(0.6e-6)


def test_a_report_of_sums_has_no_time_line(tmp_path: Path) -> None:
    path = tmp_path / "x_cuda_gpu_kern_sum.csv"
    path.write_text(SUMS)
    assert format_of(path, head_of(path)) is nsys_stats
    trace = only(nsys_stats.read(path, "x"), KernelTrace)
    assert trace.kinds["gemm"] == pytest.approx(3e-3)
    assert trace.kernels[1].count == 10
    assert np.isnan(trace.span)
    assert np.isnan(trace.busy)
    assert "no steps" in trace.told_by


def test_a_kernel_in_several_rows_is_one(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(SUMS + f"1.0,500000,5,1,1,1,1,0,{GEMM}\n")
    trace = only(nsys_stats.read(path, "x"), KernelTrace)
    assert (trace.names, trace.kernels[0].count) == (2, 35)


def database(path: Path, *, origin: int = 1_796_061_447_000_000_000, processes: int = 1) -> Path:
    """Three steps of 10 requests in each process: GEMM 800 ns, a copy, and a range on the host."""
    with closing(sqlite3.connect(path)) as base:
        base.executescript(
            "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT,"
            " contextId INT, streamId INT, correlationId INT, globalPid INT, demangledName INT,"
            " shortName INT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, deviceId INT,"
            " streamId INT, correlationId INT, globalPid INT, copyKind INT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, eventClass INT,"
            " globalTid INT, correlationId INT, nameId INT, returnValue INT);"
            "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, textId INT,"
            " globalTid INT);"
        )
        base.executemany(
            "INSERT INTO StringIds VALUES (?, ?)",
            [(1, GEMM), (2, "cudaGraphLaunch_v10000"), (3, "cudaEventSynchronize_v3020"),
             (4, "execute_context_0(0)_generation_10(10)")],
        )  # fmt: skip
        for process in range(processes):
            owner = (100 + process) << 24
            for step in range(3):
                at = origin + 2000 * step + 100 * process
                base.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, NULL, 4, ?)",
                             (at, at + 300, owner | 9))  # fmt: skip
                calls = [(at + 10, at + 20, 0, owner | 9, step, 2, 0),
                         (at + 500, at + 700, 0, owner | 9, 90 + step, 3, 0)]  # fmt: skip
                base.executemany(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?,?)", calls
                )
                base.execute(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,1,7,?,?,1,1)",
                    (at + 400, at + 1200, process, step or 70, owner),
                )
                base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,7,99,?,1)",
                             (at + 1300, at + 1400, process, owner))  # fmt: skip
                if step == 0:
                    base.execute(
                        "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = 70 "
                        "WHERE correlationId = 0"
                    )
        base.commit()
    return path


def test_the_database_has_steps_by_their_ranges(tmp_path: Path) -> None:
    path = database(tmp_path / "x.sqlite")
    assert format_of(path, head_of(path)) is nsys_stats
    trace = only(nsys_stats.read(path, "a/x.sqlite"), KernelTrace)
    assert trace.tool == "nsys"
    assert trace.steps is not None
    assert trace.steps.batch.tolist() == [10, 10, 10]
    assert trace.steps.kinds["gemm"] == pytest.approx([800e-9] * 3)
    assert trace.steps.kinds["memory"] == pytest.approx([100e-9] * 3)
    assert trace.steps.seconds == pytest.approx([2000e-9, 2000e-9, 1000e-9])
    assert trace.synchronisations["cudaEventSynchronize"] == pytest.approx((3, 600e-9))


def test_correlations_of_two_processes_are_not_mixed(tmp_path: Path) -> None:
    first, second = nsys_stats.read(database(tmp_path / "x.sqlite", processes=2), "x")
    for number, trace in enumerate((first, second)):
        assert isinstance(trace, KernelTrace)
        assert trace.device == f"GPU {number}"
        assert trace.steps is not None
        assert trace.steps.kinds["gemm"] == pytest.approx([800e-9] * 3)


def test_graphs_recorded_whole_are_warned_about(tmp_path: Path) -> None:
    path = database(tmp_path / "x.sqlite")
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INT, end INT)")
        base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 2)")
        base.commit()
    trace = only(nsys_stats.read(path, "x"), KernelTrace)
    assert "--cuda-graph-trace=node" in trace.warnings[0]


FOR_EVER = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
    "SELECT x AS start, x AS end, 1 AS demangledName FROM n"
)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL", "no table of kernels"),
        (f"DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS "
         f"{FOR_EVER}", "no table of kernels"),
        ("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL", "is empty"),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'x', end = NULL", "is empty"),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = -5", "is empty"),
        ("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN end", "lacks start, end or names"),
        ("DROP TABLE StringIds", "lacks start, end or names"),
    ],
)  # fmt: skip
def test_databases_of_no_use(tmp_path: Path, script: str, expected: str) -> None:
    path = database(tmp_path / "x.sqlite")
    with closing(sqlite3.connect(path)) as base:
        base.executescript(script)
    assert expected in refused(nsys_stats.read(path, "x"))


def test_a_query_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = database(tmp_path / "x.sqlite")
    with closing(sqlite3.connect(path)) as base:
        base.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT k.* FROM CUPTI_ACTIVITY_KIND_KERNEL k, "
            "(WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 9999) "
            "SELECT x FROM n)"
        )
        base.commit()
    monkeypatch.setattr(_nsys_base, "_LONGEST", -1.0)
    assert "interrupted" in refused(nsys_stats.read(path, "x"))


def test_nothing_of_the_database_is_changed(tmp_path: Path) -> None:
    path = database(tmp_path / "x.sqlite")
    before = path.read_bytes()
    nsys_stats.read(path, "x")
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.sqlite"]


def test_a_compressed_or_damaged_database_is_told(tmp_path: Path) -> None:
    path = database(tmp_path / "x.sqlite")
    data = path.read_bytes()
    packed = tmp_path / "x.sqlite.gz"
    packed.write_bytes(gzip.compress(data))
    assert "gunzip" in refused(nsys_stats.read(packed, "x"))
    path.write_bytes(data[:5000])
    assert "cannot be read" in refused(nsys_stats.read(path, "x"))


@given(st.binary(max_size=60), st.integers(0, 30_000))
@settings(max_examples=60, deadline=None)
def test_any_bytes_within_a_database(noise: bytes, place: int) -> None:
    with TemporaryDirectory() as folder:
        path = database(Path(folder) / "x.sqlite")
        data = bytearray(path.read_bytes())
        place %= len(data)
        data[place : place + len(noise)] = noise
        path.write_bytes(bytes(data))
        for one in nsys_stats.read(path, "x"):
            assert isinstance(one, KernelTrace | Skipped)


@given(st.lists(st.text(max_size=12), max_size=21), st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_cells_of_a_report(cells: list[str], tail: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        for head in (TRACE, SUMS):
            path.write_text(head + ",".join(cells) + "\n" + tail, encoding="utf-8", errors="ignore")
            for one in nsys_stats.read(path, "x"):
                assert isinstance(one, KernelTrace | Skipped)
