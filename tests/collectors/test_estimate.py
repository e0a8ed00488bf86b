from __future__ import annotations

import json
from pathlib import Path

import pytest

from collectors import estimate
from collectors.workload_lengths import Lengths
from tests.collectors.plans import arm, planned, workload

LENGTHS = {"w": Lengths(100, 50, (150,), drawn=False)}


def test_a_floor_by_steps_and_starts() -> None:
    made = estimate.of_plan(planned(), steps={"a": 0.01}, lengths=LENGTHS, earlier={})
    # 20 prompts in 4 lanes of 50 tokens each at 10 ms: 2.5 s, and each run's own cost.
    assert [part.seconds for part in made.parts] == [
        2 * estimate.START_S, pytest.approx(2 * (2.5 + estimate.RUN_S)),
    ]  # fmt: skip
    assert made.seconds == pytest.approx(2 * (90 + 2.5 + 15))
    assert "assumed" not in made.parts[1].how


def test_a_request_rate_is_a_floor_as_well() -> None:
    slow = planned(work=[workload(request_rate=0.5)])
    made = estimate.of_plan(slow, steps={"a": 0.01}, lengths=LENGTHS, earlier={})
    assert made.parts[1].seconds == pytest.approx(2 * (40 + estimate.RUN_S))


def test_what_is_assumed_is_said() -> None:
    made = estimate.of_plan(planned(), steps={}, lengths={}, earlier={}, cpu=True)
    assert "0.03 s a step assumed for a" in made.parts[1].how
    assert made.parts[0].seconds == 2 * estimate.CPU_START_S
    assert made.lines()[0].startswith("Estimate: ")
    assert str(made) in made.lines()[0]


def test_replicas_start_one_after_another_unless_their_kv_is_fixed() -> None:
    two = planned(arm(replicas=2, router="direct"))
    assert estimate.of_plan(two, steps={}, lengths={}, earlier={}).parts[0].how == "4 x 90 s"
    fixed = {"replicas": 2, "router": "direct", "flags": ["--kv-cache-memory-bytes", "1"]}
    both = planned(arm("a", shares_gpu="x", **fixed), arm("b", shares_gpu="x", **fixed))
    assert estimate.of_plan(both, steps={}, lengths={}, earlier={}).parts[0].how == "2 x 90 s"


def test_recorded_durations_are_used(tmp_path: Path) -> None:
    for repeat, text in enumerate(('{"seconds": 100}', '{"seconds": 120}', "{", "[]", "{}"), 1):
        folder = tmp_path / "s" / "a" / f"w-c4-r{repeat}"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(text)
    earlier = estimate.recorded(tmp_path, "s")
    assert earlier == {("a", "w-c4"): 110.0}
    made = estimate.of_plan(planned(), steps={}, lengths={}, earlier=earlier)
    assert made.parts[1].seconds == 220
    assert made.parts[1].how == "2 runs, 2 as recorded earlier"
    assert estimate.recorded(tmp_path / "none", "s") == {}


def test_size_is_near_a_real_result() -> None:
    root = Path(__file__).parents[1] / "data/bench/detailed-0.28.json"
    real = json.loads(root.read_text())
    known = Lengths(0, real["total_output_tokens"] / real["completed"], (), drawn=True)
    job = planned(work=[workload(prompts=real["completed"])]).jobs[0]
    size = estimate.run_size(job, known, 0) - estimate._RUN_BYTES
    # Texts are blank in the file that ships, and take some bytes a token.
    assert root.stat().st_size < size < 3 * root.stat().st_size


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (100, "2 min"), (7200, "2 h 00 min"), (10_000, "2 h 47 min")]
)
def test_seconds_in_print(seconds: float, text: str) -> None:
    assert estimate.clock(seconds) == text
