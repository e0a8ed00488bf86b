"""Plans of small studies, for the tests of a check."""

from __future__ import annotations

from typing import Any

from collectors.schedule import Plan, Selection, plan
from collectors.study_file import parse_study


def arm(name: str = "a", **more: Any) -> dict[str, Any]:
    """The table of an arm."""
    return {"name": name, "model": "m", **more}


def workload(name: str = "w", prompts: int = 20, **more: Any) -> dict[str, Any]:
    """The table of a workload, of random prompts unless it says otherwise."""
    loads = [{"concurrency": 4, "prompts": prompts}]
    return {"name": name, "loads": loads, "flags": ["--dataset-name", "random"], **more}


def planned(*arms: dict[str, Any], work: Any = (), **more: Any) -> Plan:
    """The plan of a study."""
    table = {"name": "s", "arm": list(arms) or [arm()], "workload": list(work) or [workload()]}
    return plan(parse_study({**table, "repeats": 2, **more}, "s.toml"), Selection())
