"""analysis.formats.vllm_sweep: what lies beside a sweep's results and is no measurement."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.formats import vllm_sweep
from analysis.model import Ignored, Skipped

SWEEP = Path(__file__).parents[1] / "data" / "sweep"
FOLDER = SWEEP / "SERVE--max_num_seqs=4-BENCH--max_concurrency=16"


@pytest.mark.parametrize("path", [FOLDER / "summary.json", SWEEP / "summary.csv"])
def test_summaries_are_ignored_because_the_runs_are_read(path: Path) -> None:
    assert vllm_sweep.sniff(path, path.read_bytes())
    (found,) = vllm_sweep.read(path, path.name)
    assert isinstance(found, Ignored)
    assert "run=*.json" in found.reason


def test_a_summary_without_the_runs_beside_it_is_left_to_the_reader_of_results(
    tmp_path: Path,
) -> None:
    assert not vllm_sweep.sniff(tmp_path / "summary.json", b"[{}]")
    assert not vllm_sweep.sniff(tmp_path / "summary.csv", b"a,b\n1,2")
    assert not vllm_sweep.sniff(FOLDER / "run=0.json", b"{}")


@pytest.mark.parametrize(
    ("name", "told"),
    [("warmup.json", "warm-up"), ("x.pytorch.json", "PyTorch"), ("x.pytorch.json.gz", "PyTorch")],
)
def test_other_leftovers_are_ignored(tmp_path: Path, name: str, told: str) -> None:
    assert vllm_sweep.sniff(tmp_path / name, b"{}")
    (found,) = vllm_sweep.read(tmp_path / name, name)
    assert isinstance(found, Ignored)
    assert told in found.reason


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"error": "server not ready", "returncode": 1}', "server not ready"),
        ('{"error": null, "traceback": "Traceback\\n  File\\nOSError: gone\\n"}', "OSError: gone"),
        ('{"returncode": 137}', "137"),
        ('{"cmd": ["vllm"]}', '{"cmd":["vllm"]}'),
        ('["a"]', '["a"]'),
        ('"plain"', "plain"),
        ('""', "no reason given"),
        ("broken {", "broken {"),
        ("", "no reason given"),
    ],
)
def test_a_failure_is_skipped_with_its_reason(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "run=1.failure.json"
    path.write_text(text)
    assert vllm_sweep.sniff(path, text.encode())
    (found,) = vllm_sweep.read(path, "s/run=1.failure.json")
    assert isinstance(found, Skipped)
    assert found.reason == f"the sweep noted a failed run: {told}; run it again"
