"""Judges what `make collect-smoke` collected: the queue must be found where it is.

    python -m tests.server.smoke build/collect-smoke

Exits with 1 and a line for each thing that is not as it must be.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.cli import main as analyze

STUDY = "cpu-smoke"
CLAIMS = Path(__file__).with_name("claims.toml")
RUNS = 4
"""Two arms, two repeats."""
SOURCES = 4
CHUNKS = 0.99
"""Least share of tokens that came in a chunk of their own."""


def chunks_a_token(result: dict[str, Any]) -> float:
    """Chunks with text that the client received, over tokens that were generated."""
    answered = [n for n, error in enumerate(result["errors"]) if not error]
    chunks = sum(1 + len(result["itls"][n]) for n in answered)
    return chunks / int(sum(result["output_lens"][n] for n in answered))


def wrong(folder: Path) -> Iterator[str]:
    """What is not as it must be; what is said on the way is for a reader."""
    results = folder / "results"
    records = {
        path.parent.relative_to(results).as_posix(): json.loads(path.read_text("utf-8"))
        for path in sorted(results.glob(f"{STUDY}/*/*/run.json"))
        if not path.parent.parent.name.startswith(".")
    }
    complete = [name for name, record in records.items() if record["state"] == "complete"]
    if len(complete) != RUNS or len(records) != RUNS:
        yield f"{len(complete)} complete runs of {len(records)}; {RUNS} were to be made"
    for name in complete:
        result = json.loads((results / name / "bench.json").read_text("utf-8"))
        share = chunks_a_token(result)
        print(f"{name}: {share:.4f} chunks a token")
        if not share >= CHUNKS:
            yield f"{name}: {share:.4f} chunks a token; at least {CHUNKS} is needed"
        for source, said in records[name]["evidence"].items():
            if said != "ok" and source != "gpu":
                yield f"{name}: no {source}: {said}"
    shutil.copy(CLAIMS, results / STUDY / "claims.toml")
    report = folder / "report"
    code = analyze([str(results), "--out", str(report), "--strict"])
    if code:
        yield f"analyze ended with {code}"
    if code > 1:
        return
    (file,) = report.rglob("findings.json")
    (study,) = json.loads(file.read_text("utf-8"))["studies"]
    findings = {found["id"]: found for found in study["findings"]}
    for name in ("seqs4-queues-for-its-slots", "four-sources-agree-on-the-wait"):
        found = findings.get(name)
        if found is None:
            yield f"{name}: was not judged"
        elif found["verdict"] != "supported":
            yield f"{name}: {found['verdict']}: {' '.join(found['reasons'])}"
        elif name.startswith("four"):
            waits = [number for number in found["numbers"] if number["unit"] == "s"]
            if len(waits) != SOURCES:
                yield f"{name}: {len(waits)} sources instead of {SOURCES}"


def main(folder: str) -> int:
    """Judge; returns the exit code."""
    problems = list(wrong(Path(folder)))
    for problem in problems:
        print(f"collect-smoke: {problem}", file=sys.stderr)
    if not problems:
        print(f"collect-smoke: {RUNS} runs, the queue found by {SOURCES} sources")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
