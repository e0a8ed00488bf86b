"""The whole of `analyze results/` against importing its libraries and parsing its own output.

A ratio near 1 would mean that the analysis costs no more than starting Python with scipy and
reading the findings back as JSON.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROUNDS = 3


def timed(*words: str) -> float:
    """Wall seconds of a command."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True, cwd=ROOT)
    return time.perf_counter() - start


def main() -> None:
    """Run both in turn and print the best of each."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "findings")
        read = (
            "import json, scipy.stats, statsmodels.stats.multitest, pandas, jinja2; "
            f"json.load(open({out + '/findings.json'!r}))"
        )
        whole = [timed("-m", "analysis.cli", "results", "--out", out) for _ in range(ROUNDS)]
        base = [timed("-c", read) for _ in range(ROUNDS)]
    print(f"analyze results/      {min(whole):5.2f} s")
    print(f"imports and json.load {min(base):5.2f} s")
    print(f"ratio                 {min(whole) / min(base):5.2f}")


if __name__ == "__main__":
    main()
