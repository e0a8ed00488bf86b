"""A capture of a real server's decode steps: each rank's trace holds the steps of the batch."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from collectors import rundir
from tests.server import commands
from tests.server.collecting import Place

pytestmark = pytest.mark.server

STUDY = """
name = "profiled"
random_weights = true

[servers]
flags = [
  "--dtype", "bfloat16", "--max-model-len", "512", "--max-num-seqs", "4",
  "--kv-cache-memory-bytes", "64M", "--enforce-eager",
]
env = { TORCHDYNAMO_DISABLE = "1" }

[made_model.profiled-qwen3]
hidden = 256
layers = 4
heads = 4
kv_heads = 2
vocab = 4096
max_len = 512

[[arm]]
name = "one"
model = "profiled-qwen3"
profile = [1, 4, 8]
env = { VLLM_CPU_OMP_THREADS_BIND = "0" }

[[arm]]
name = "two"
model = "profiled-qwen3"
profile = [2]
gpus = 2
flags = ["--tensor-parallel-size", "2"]
env = { VLLM_CPU_OMP_THREADS_BIND = "0|1" }

[[workload]]
name = "random"
flags = ["--dataset-name", "random", "--random-input-len", "16", "--random-output-len", "8"]
loads = [{ concurrency = 1, prompts = 2 }]
"""

_STEP = re.compile(r"execute_.*generation_(\d+)\(\d+\)")


def steps(trace: Path) -> Counter[int]:
    """Engine steps of a trace, by the requests that they decode."""
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    found = (_STEP.fullmatch(event.get("name", "")) for event in events)
    return Counter(int(each[1]) for each in found if each)


def test_decode_steps_of_each_batch_are_captured(tmp_path: Path) -> None:
    file = tmp_path / "profiled.toml"
    file.write_text(STUDY)
    place = Place(tmp_path / "results", file, "profiled", shlex.join(commands.vllm()))
    with place.collect("--profile") as running:
        code, said = running.ended()
    assert code == 1, said
    # Four run at once: eight never do.
    assert "3 made, 1 failed" in said
    for arm, batch, ranks in (("one", 1, 1), ("one", 4, 1), ("two", 2, 2)):
        folder = place.study / arm / f"profile-b{batch}"
        assert rundir.whole(folder) == ""
        traces = sorted(folder.glob("*.pt.trace.json.gz"))
        assert len(traces) == ranks
        for trace in traces:
            found = steps(trace)
            assert found[batch] >= 40, said
            assert found[batch] >= 0.9 * found.total()
        record = rundir.read_record(folder) or {}
        assert record["profile"]["running_at_the_end"] == batch
    assert place.states()["profile-b8"] == "failed"
