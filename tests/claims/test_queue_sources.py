"""queue_sources: sources agree where they tell of one truth, and not where one is off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.evidence import Judgement, Missing
from analysis.load import load
from analysis.model import Level
from analysis.queue_sources import LITTLE, STEPS, TIMES, TTFT
from tests.claims.helpers import figure_of, judge
from tests.collected import Simulated, put, simulated, write_run

KEYS = {"arm": "slotted", "workload": "chat", "concurrency": 8}
SLOTTED, FREE = simulated(slots=4), simulated(slots=16)


def runs(
    root: Path, *slotted: Simulated, change: Callable[[Path, int], None] | None = None
) -> Path:
    """Repeats of an arm of four slots, and one run of an arm that does not queue."""
    for number, sim in enumerate(slotted or (SLOTTED,), start=1):
        folder = root / "s" / "slotted" / f"chat-c8-r{number}"
        write_run(folder, [sim], arm="slotted", repeat=number, flags=["--max-num-seqs", "4"],
                  date=f"20261130-12000{number}")  # fmt: skip
        if change is not None:
            change(folder, number)
    write_run(
        root / "s" / "free" / "chat-c8-r1", [FREE], arm="free", flags=["--max-num-seqs", "16"]
    )
    return root


def verdict(root: Path, **keys: Any) -> Judgement:
    found = load(root)
    (study,) = found.studies
    assert found.skipped == ()
    return judge(study, "queue_sources", **{**KEYS, **keys})


def scaled(file: str, key: str, factor: Callable[[int], float]) -> Callable[[Path, int], None]:
    """A change of one key in each line of a file of a run."""

    def change(folder: Path, number: int) -> None:
        path = folder / file
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        put(path, [{**line, key: type(line[key])(line[key] * factor(number))} for line in lines])

    return change


def test_four_sources_of_one_truth_agree(tmp_path: Path) -> None:
    found = verdict(runs(tmp_path), reference="free")
    assert found.verdict == "supported"
    assert found.cells[0].level is Level.ENGINE
    truth = SLOTTED.mean_queue
    assert truth == pytest.approx(0.2, rel=0.02)
    for name, near in ((TIMES, 1e-6), (STEPS, 1e-6), (TTFT, 1e-6), (LITTLE, 0.05)):
        assert figure_of(found, name) == pytest.approx(truth, rel=near), name
    assert "4 sources agree within 10 %" in found.reasons[0]
    assert found.assumptions == (
        "4 requests run whenever one waits (max_num_seqs)",
        "prefill takes as long as the whole TTFT of free",
    )


@pytest.mark.parametrize(
    "change",
    [
        # An engine of two slots kept its waiting count; a server forgot half of the wait.
        scaled("steps-server.jsonl", "waiting", lambda _: 2),
        scaled("requests-server.jsonl", "queue", lambda _: 0.5),
    ],
)
def test_the_verdict_flips_where_one_source_tells_another_truth(
    tmp_path: Path, change: Callable[[Path, int], None]
) -> None:
    found = verdict(runs(tmp_path, change=change), reference="free")
    assert found.verdict == "refuted"
    assert "do not agree within 10 %" in found.reasons[0]


def test_the_verdict_flips_with_what_the_sentence_says(tmp_path: Path) -> None:
    root = runs(tmp_path, change=scaled("requests-server.jsonl", "queue", lambda _: 0.9))
    assert verdict(root, margin=20).verdict == "supported"
    assert verdict(root, margin=5).verdict == "refuted"


def test_repeats_that_agree_in_the_mean_only_settle_nothing(tmp_path: Path) -> None:
    sims = [simulated(requests=n) for n in (400, 396, 392, 388)]
    root = runs(
        tmp_path, *sims,
        change=scaled("requests-server.jsonl", "queue", lambda n: 1.6 if n % 2 else 1 / 1.6),
    )  # fmt: skip
    found = verdict(root)
    assert found.verdict == "inconclusive"
    assert "is not settled" in found.reasons[0]


def test_repeats_that_agree_are_supported_and_that_differ_alike_refuted(tmp_path: Path) -> None:
    sims = [simulated(requests=n) for n in (400, 396, 392)]
    assert verdict(runs(tmp_path / "a", *sims)).verdict == "supported"
    change = scaled("requests-server.jsonl", "queue", lambda n: 1.5 + 0.01 * n)
    assert verdict(runs(tmp_path / "b", *sims, change=change)).verdict == "refuted"


def test_where_nobody_waits_there_is_nothing_to_agree_on(tmp_path: Path) -> None:
    found = verdict(runs(tmp_path), arm="free")
    assert found.verdict == "inconclusive"
    assert found.reasons[0].startswith("There is no wait by ")


def test_a_wait_that_one_source_does_not_see_is_refuted(tmp_path: Path) -> None:
    found = verdict(runs(tmp_path, change=scaled("steps-server.jsonl", "waiting", lambda _: 0)))
    assert found.verdict == "refuted"
    assert found.reasons[0].startswith(f"There is no wait by {STEPS}")


def test_one_source_alone_is_untestable(tmp_path: Path) -> None:
    write_run(tmp_path / "s/slotted/chat-c8-r1", [SLOTTED], evidence=False)
    with pytest.raises(Missing, match="two sources of the wait") as error:
        verdict(tmp_path)
    assert "steps-*.jsonl" in error.value.tried
    assert error.value.experiment is not None
