"""What a server is started with so that its torch profiler can be told to start and to stop."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from collectors.captures import STEPS
from collectors.starting import Extra

FLAG = "--profiler-config"
OLD_VARIABLE = "VLLM_TORCH_PROFILER_DIR"
"""What versions without the flag are told by."""


class Profiler:
    """What a server of one start is given so that it can be profiled."""

    def __init__(self, stem: Path, by_flag: bool) -> None:
        """Nothing is started yet.

        Args:
            stem: Of the files of this start.
            by_flag: Whether the installed version has the flag; else the variable tells it.
        """
        self.folder = stem.with_name(f"{stem.name}-profile").resolve()
        self._by_flag = by_flag

    def extra(self, replica: int) -> Extra:
        """Flags and variables of the server."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return told(self.folder, self._by_flag)

    def close(self) -> None:
        """The server is stopped: what it wrote outside of a capture is of no use."""
        shutil.rmtree(self.folder, ignore_errors=True)


def told(folder: Path, by_flag: bool) -> Extra:
    """Flags and variables that make a server write traces into a folder when told to."""
    if not by_flag:
        variables = {"VLLM_TORCH_PROFILER_WITH_STACK": "0", "VLLM_PROFILER_MAX_ITERS": str(STEPS)}
        return Extra((), {OLD_VARIABLE: str(folder), **variables})
    config = {
        "profiler": "torch",
        "torch_profiler_dir": str(folder),
        # Stacks of Python make a trace ten times as large, and a step longer.
        "torch_profiler_with_stack": False,
        # The API server's own trace holds no step.
        "ignore_frontend": True,
        # The engine counts its steps better than a client that may lag.
        "max_iterations": STEPS,
    }
    return Extra((FLAG, json.dumps(config)))
