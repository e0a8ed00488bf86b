"""analysis.formats.gpu_samples: the collector's lines, a CSV of a real host, nulls and damage."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.formats import format_of, gpu_samples
from analysis.formats._files import head_of
from analysis.model import GpuSamples, Skipped, Source
from tests.formats.found import only, refused

NVML = Path(__file__).parents[1] / "data" / "gpu" / "nvml.csv"
LINE = {
    "t": 1796061447.714, "gpu": 0, "uuid": "GPU-5c", "utilization_gpu": 97,
    "utilization_memory": 61, "memory_used": 41203793920, "power": 312.4, "clock_sm": 1755,
    "clock_memory": 2619, "throttle_reasons": 4, "temperature": 61, "pstate": 0,
    "energy": 81234.125,
}  # fmt: skip


def lines(path: Path, *found: object) -> Path:
    path.write_text("".join(f"{x if isinstance(x, str) else json.dumps(x)}\n" for x in found))
    return path


def test_the_collectors_lines(tmp_path: Path) -> None:
    nothing = dict.fromkeys(LINE, None) | {"t": 1796061448.2, "gpu": 1}
    path = lines(tmp_path / "gpu.jsonl", LINE, nothing)
    assert format_of(path, head_of(path)) is gpu_samples
    found = only(gpu_samples.read(path, "a/gpu.jsonl"), GpuSamples)
    assert found.source == Source("a/gpu.jsonl", "")
    assert found.clock.tolist() == [1796061447.714, 1796061448.2]
    assert found.gpu.tolist() == [0, 1]
    assert found.utilisation[0] == pytest.approx(0.97)
    assert (found.power[0], found.sm_clock[0], found.memory_used[0]) == (312.4, 1755, 41203793920)
    assert (found.energy[0], found.pstate[0], found.temperature[0]) == (81234.125, 0, 61)
    assert found.throttle.tolist() == [4, -1]
    assert np.isnan(found.power[1])
    assert found.label is None


def test_a_csv_of_a_real_host() -> None:
    assert format_of(NVML, head_of(NVML)) is gpu_samples
    found = only(gpu_samples.read(NVML, "nvml.csv"), GpuSamples)
    table = pd.read_csv(NVML)
    assert found.clock == pytest.approx(table["time"].to_numpy())
    assert found.power == pytest.approx(table["power_w"].to_numpy())
    assert found.utilisation == pytest.approx(table["util_gpu_pct"].to_numpy() / 100)
    assert found.memory_used == pytest.approx(table["mem_used_mib"].to_numpy() * 2**20)
    assert found.label is not None
    assert [found.labels[k] for k in found.label] == table["run"].tolist()
    assert np.isnan(found.energy).all()
    assert (found.throttle == -1).all()


def test_half_a_line_at_the_end_is_no_fault_and_more_are_told(tmp_path: Path) -> None:
    path = lines(tmp_path / "gpu.jsonl", LINE, json.dumps(LINE)[:30])
    assert len(only(gpu_samples.read(path, "x"), GpuSamples).clock) == 1
    lines(path, LINE, "{", "[]", {**LINE, "t": None}, {**LINE, "t": -1})
    found, trouble = gpu_samples.read(path, "x")
    assert isinstance(found, GpuSamples)
    assert isinstance(trouble, Skipped)
    assert trouble.reason.startswith("4 lines")


@pytest.mark.parametrize(
    "content", ["", '{"t": null, "gpu": 0, "utilization_gpu": 1}\n', "time,util_gpu_pct,power_w\n"]
)
def test_a_file_without_a_sample(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x"
    path.write_text(content)
    assert "no whole line" in refused(gpu_samples.read(path, "x"))


def test_the_number_of_samples_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_samples, "MOST_SAMPLES", 3)
    found, trouble = gpu_samples.read(lines(tmp_path / "x", *[LINE] * 5), "x")
    assert isinstance(found, GpuSamples)
    assert len(found.clock) == 3
    assert isinstance(trouble, Skipped)
    assert "2 samples beyond" in trouble.reason


VALUE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@given(
    st.lists(st.dictionaries(st.sampled_from(sorted(LINE)), VALUE), max_size=5),
    st.binary(max_size=60),
)
@settings(max_examples=200, deadline=None)
def test_any_values_and_any_bytes(found: list[dict[str, Any]], data: bytes) -> None:
    text = "".join(json.dumps({**LINE, **line}) + "\n" for line in found).encode()
    table = b"time,util_gpu_pct,power_w,run\n" + data.replace(b"\n", b",")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "gpu.jsonl"
        for content in (text, text + data, data + text, table + b"\n" + data):
            path.write_bytes(content)
            for one in gpu_samples.read(path, "x"):
                assert isinstance(one, GpuSamples | Skipped)
                if isinstance(one, GpuSamples):
                    assert np.isfinite(one.clock).all()
                    assert not (one.power < 0).any()
