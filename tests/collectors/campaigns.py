"""Campaigns on the stand-in server: in this process, or in one of their own that can be killed.

python -m tests.collectors.campaigns STUDY RESULTS PORT
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from collectors.campaign import Campaign
from collectors.cli import _heed_signals
from collectors.client import own_process
from collectors.host import Host
from collectors.http import port_is_free
from collectors.keeper import MARK
from collectors.progress import Progress
from collectors.record import Identity
from collectors.schedule import Selection, plan
from collectors.settings import Settings
from collectors.study import Study
from collectors.study_file import parse_study, read_study
from collectors.summary import Summary

ROOT = Path(__file__).parents[2]
STAND_IN = (sys.executable, str(Path(__file__).with_name("stand_in.py")))
WAIT = 60.0
"""Seconds after which something that must happen has not."""


def port() -> int:
    """The first of some ports that no test beside this one uses."""
    first = 20000 + os.getpid() % 120 * 100
    return next(each for each in range(first, first + 100) if port_is_free(each))


def arm(name: str = "one", **more: object) -> dict[str, object]:
    # What watches servers has tests of its own.
    return {"name": name, "model": "some/model", "telemetry": False, **more}


def study(
    *arms: dict[str, object],
    env: Mapping[str, str] | None = None,
    prompts: int = 4,
    concurrency: int = 2,
    repeats: int = 1,
    **more: object,
) -> dict[str, Any]:
    """A study's table: the given arms under one workload."""
    return {
        "name": "tried",
        "repeats": repeats,
        "starts": 1,
        "arm": list(arms) or [arm()],
        "servers": {"env": dict(env or {})},
        "workload": [
            {
                "name": "work",
                "flags": ["--dataset-name", "random"],
                "loads": [{"concurrency": concurrency, "prompts": prompts}],
            }
        ],
        **more,
    }


def campaign(
    table: dict[str, Any] | Study,
    results: Path,
    *,
    settings: Mapping[str, Any] | None = None,
    wanted: Selection | None = None,
    stream: io.StringIO | None = None,
    **host: Any,
) -> Campaign:
    told = table if isinstance(table, Study) else parse_study(table, "study.toml")
    made = plan(told, wanted or Selection())
    where = Host(**{"vllm": STAND_IN, "results": results, "port": port(), **host})
    start = own_process(str((results / told.name).resolve()))
    return Campaign(
        made,
        where,
        Identity("serving-assay tests", "collect", {"vllm": "stand-in"}),
        Settings(**{"start": start, "ready_seconds": WAIT, **(settings or {})}),
        Progress(0, stream=stream or io.StringIO()),
    )


def run(table: dict[str, Any], results: Path, **more: Any) -> Summary:
    return campaign(table, results, **more).run()


def record(results: Path, run: str = "one/work-c2-r1") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((results / "tried" / run / "run.json").read_text())
    return found


def runs(results: Path) -> dict[str, str]:
    """State of every run's folder, by its path below the study's."""
    study = results / "tried"
    return {
        path.parent.relative_to(study).as_posix(): json.loads(path.read_text())["state"]
        for path in sorted(study.glob("*/*/run.json"))
        if not path.parent.parent.name.startswith(".")
    }


def toml(table: Mapping[str, Any], path: Path) -> Path:
    """Write a study as the file that a user would write."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items() if _plain(value)]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += [f"[{key}]", *_pairs(value)]
        elif not _plain(value):
            for each in value:
                lines += [f"[[{key}]]", *_pairs(each)]
    path.write_text("\n".join(lines) + "\n")
    return path


def _plain(value: object) -> bool:
    return not isinstance(value, dict | list)


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_inline(value)}" for key, value in table.items()]


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(_pairs(value)) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


# ---- processes


def until(true: Callable[[], object], what: str = "") -> None:
    """Wait until something holds."""
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end, what or true
        time.sleep(0.02)


def kept_for(results: Path) -> list[int]:
    """Every process that lives for a campaign into these results."""
    wanted = f"{MARK}={(results / 'tried').resolve()}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@contextmanager
def another(file: Path, results: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A campaign in a process of its own; killed at the end, if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, str(file), str(results), str(port()), *more],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As a terminal's foreground job: Ctrl-C reaches the whole group.
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        until(lambda: not kept_for(results), "processes are left")


def _main(file: str, results: str, first_port: str) -> None:
    _heed_signals()
    made = campaign(read_study(file), Path(results), port=int(first_port))
    sys.stdout.write(json.dumps(dataclasses.asdict(made.run())))


if __name__ == "__main__":
    _main(*sys.argv[1:4])
