"""analysis.kernel_page: the chart and tables of an arm's traces, and rows of GPU samples."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.formats import nsys_stats, torch_trace
from analysis.kernel_page import MOST_TRACES, gpu_rows, kernel_page
from analysis.model import KernelTrace
from tests import builders
from tests.formats.test_nsys_stats import SUMS
from tests.gpus import sampled, samples
from tests.traces import FLASH, GEMM, event, server, write


def traces(folder: Path, *found: list[dict[str, Any]]) -> tuple[KernelTrace, ...]:
    read = [
        torch_trace.read(write(folder / f"{n}.json", one, n), f"t/{n}.json")
        for n, one in enumerate(found)
    ]
    return tuple(one for own in read for one in own if isinstance(one, KernelTrace))


def spec(charts: str) -> dict[str, Any]:
    text = re.search(r'<script type="application/json">(.*?)</script>', charts)
    assert text is not None
    found: dict[str, Any] = json.loads(text[1])
    return found


def test_a_trace_as_a_bar_and_a_table(tmp_path: Path) -> None:
    arm = replace(builders.arm("a"), traces=traces(tmp_path, server(4000.0)))
    page = kernel_page(arm)
    (table,) = page.traces
    assert table.title == "rank 0, 10 sequences a step"
    assert "29 decode steps of 4.60 ms (median), of 30 that torch profiler saw" in table.about
    rows = {name: (n.value, share) for name, n, share in table.rows}
    gemm, share = rows["matrix multiplications (GEMM)"]
    assert gemm == pytest.approx(4002e-6, rel=1e-3)
    assert share == "87.0 %"
    assert rows["idle: no kernel runs"][1] == "2.2 %"
    assert rows["the whole step"][0] == pytest.approx(4602e-6, rel=1e-3)
    assert [k.name for k in table.kernels] == [GEMM, FLASH, "triton_red_fused_fused_add_rms_norm_0"]
    assert table.kernels[0].calls == "30"
    chart = spec(page.charts)
    assert "Where a decode step's time goes on the GPU, a" in html.unescape(page.charts)
    bars = json.dumps(chart)
    assert "matrix multiplications (GEMM)" in bars
    assert "communication" not in bars


def test_the_same_traces_give_the_same_page(tmp_path: Path) -> None:
    arm = replace(builders.arm("a"), traces=traces(tmp_path, server(4000.0), server(3000.0)))
    assert kernel_page(arm) == kernel_page(arm)
    assert len(kernel_page(arm).traces) == 2


def test_traces_without_steps_have_a_table_of_all_and_no_chart(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(SUMS)
    found = tuple(one for one in nsys_stats.read(path, "x.csv") if isinstance(one, KernelTrace))
    bare = traces(tmp_path, [event(GEMM, "kernel", 1000, 60), event(FLASH, "kernel", 1100, 20)])
    page = kernel_page(replace(builders.arm("a"), traces=(*found, *bare)))
    assert page.charts == ""
    sums, line = page.traces
    assert sums.rows[0][2] == "75.0 %"
    assert "a table of sums has no steps" in sums.about
    assert "Some kernel runs for 66.7 % of the time." in line.about
    assert "1 pauses" not in sums.about


def test_an_arm_without_traces_shows_nothing_and_many_are_cut(tmp_path: Path) -> None:
    assert kernel_page(builders.arm("a")).traces == ()
    (one,) = traces(tmp_path, server(4000.0))
    many = kernel_page(replace(builders.arm("a"), traces=(one,) * 40))
    assert len(many.traces) == MOST_TRACES


def test_a_name_of_a_kernel_cannot_break_the_page(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>|](x) " * 20
    found = server(4000.0)
    for one in found:
        if one["name"] == FLASH:
            one["name"] = hostile
    page = kernel_page(replace(builders.arm("a<b>"), traces=traces(tmp_path, found)))
    assert "<script>alert" not in page.charts
    assert len(page.traces[0].kernels[1].name) <= 100


def test_a_row_of_samples() -> None:
    power = samples([500.0] * 41, clock=[1980.0] + [1500.0] * 40, throttle=4)
    cell = builders.cell("a", sampled(power), builders.run())
    (row,) = gpu_rows([cell])
    text = " | ".join(map(str, row))
    assert "chat, 10 in flight" in text
    assert "500 W | 2 J" in text.replace("2.00 J", "2 J")
    assert "power cap (100 %)" in text
    assert "P0" in text
    counted = samples([500.0] * 41, energy=[1e5 + 240.0 * k for k in range(41)])
    (row,) = gpu_rows([builders.cell("a", sampled(counted))])
    assert "500 W; by its counter 480 W" in " | ".join(map(str, row))
    unknown = samples([500.0] * 41)
    (row,) = gpu_rows([builders.cell("a", sampled(unknown))])
    assert "not told" in " | ".join(map(str, row))
