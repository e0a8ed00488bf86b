"""Reading a `--save-detailed` result against the standard library, side by side in one run.

Prints wall time and peak memory of each way and their ratios. The file is made anew: 20,000
requests of 200 gaps with generated texts, about 90 MB.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REQUESTS, GAPS, ROUNDS = 20_000, 200, 3


def make(path: Path) -> None:
    """Write a detailed result whose arrays are as long as a long run's."""
    rng = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        head = {
            "date": "20260101-000000", "model_id": "m", "num_prompts": REQUESTS,
            "request_rate": "inf", "max_concurrency": 64, "duration": 1000.0,
            "completed": REQUESTS, "failed": 0, "total_input_tokens": REQUESTS * 100,
            "total_output_tokens": REQUESTS * (GAPS + 1), "mean_ttft_ms": 50.0,
            "mean_itl_ms": 10.0,
        }  # fmt: skip
        file.write(json.dumps(head)[:-1])
        arrays = {
            "input_lens": (100 for _ in range(REQUESTS)),
            "output_lens": (GAPS + 1 for _ in range(REQUESTS)),
            "ttfts": (rng.random() for _ in range(REQUESTS)),
            "start_times": (float(i) for i in range(REQUESTS)),
            "itls": ([rng.random() * 0.02 for _ in range(GAPS)] for _ in range(REQUESTS)),
            "generated_texts": ("lorem ipsum " * 60 for _ in range(REQUESTS)),
            "errors": ("" for _ in range(REQUESTS)),
        }
        for name, values in arrays.items():
            file.write(f', "{name}": [')
            for place, value in enumerate(values):
                file.write((", " if place else "") + json.dumps(value))
            file.write("]")
        file.write("}")


WAYS = {
    "json.load": "import json; json.load(open(path, encoding='utf-8'))",
    "analysis.scan": "from pathlib import Path; from analysis.scan import scan; "
    "(run,) = scan(Path(path)); assert run.requests is not None",
}


def measure(code: str, path: Path) -> tuple[float, float]:
    """Seconds (imports not counted) and peak resident MiB, in a process of its own."""
    script = (
        "import resource, sys, time\n"
        "import json, numpy, analysis.scan, analysis.formats.vllm_bench\n"
        "path = sys.argv[1]\n"
        "start = time.perf_counter()\n"
        f"{code}\n"
        "took = time.perf_counter() - start\n"
        "print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True
    )
    seconds, mib = found.stdout.split()
    return float(seconds), float(mib)


def main() -> None:
    """Measure each way in turn, several rounds, and print the best of each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "detailed.json"
        make(path)
        size = path.stat().st_size / 2**20
        best: dict[str, tuple[float, float]] = {}
        for _ in range(ROUNDS):
            for name, code in WAYS.items():
                found = measure(code, path)
                best[name] = min(found, best.get(name, found))
                time.sleep(0.1)
        for name, (seconds, mib) in best.items():
            print(f"{name:<14} {seconds:6.2f} s  peak {mib:7.0f} MiB  ({size:.0f} MiB file)")
        (json_s, json_mib), (own_s, own_mib) = best["json.load"], best["analysis.scan"]
        print(f"ratio          {own_s / json_s:6.2f}    peak {own_mib / json_mib:7.2f}")


if __name__ == "__main__":
    main()
