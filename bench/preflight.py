"""How long `collect --check` takes, for each study that ships.

Without vLLM it must stay under 2 s. Where COLLECT_VLLM names a `vllm`, also with it: first with no
help text kept (under 30 s), then again. COLLECT_ROUTER may name a `vllm-router`.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from collectors import preflight
from collectors.host import Host, command_of
from collectors.schedule import plan
from collectors.study_file import read_study, shipped


def check(study: str, host: Host, cache: Path) -> str:
    """Check a study and tell the wall seconds and what was found."""
    start = time.perf_counter()
    found = preflight.check(plan(read_study(study)), host, cache=cache)
    seconds = time.perf_counter() - start
    return f"{seconds:6.2f} s  {len(found.problems)} problems, {len(found.notes)} notes"


def main() -> None:
    """Check each study without vLLM, then with it, cold and warm."""
    vllm = command_of(shlex.split(os.environ.get("COLLECT_VLLM", "")), "vllm")
    router = command_of(shlex.split(os.environ.get("COLLECT_ROUTER", "")), "vllm-router")
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        for study in shipped():
            without = Host((), results=results)
            print(f"{study:14} without vLLM        {check(study, without, Path(folder) / 'none')}")
            if not vllm:
                continue
            mine, cache = Host(vllm, router, results=results), Path(folder) / study
            for what in ("first", "again"):
                print(f"{study:14} with vLLM, {what:7}  {check(study, mine, cache)}")


if __name__ == "__main__":
    main()
