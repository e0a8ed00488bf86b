"""Did a run happen? What its clients left behind is counted, and nothing more is made of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collectors.client import Driven

TEXTS = "generated_texts"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    state: str
    """ "complete" or "failed"."""
    reason: str = ""
    completed: int = 0
    failed: int = 0


def outcome(driven: Driven, results: Sequence[Path], prompts: int) -> Outcome:
    """Whether requests were answered: a client exits with 0 even if none was.

    Args:
        driven: How the clients ended.
        results: Where each client's result should be.
        prompts: How many were to be sent in all.
    """
    if driven.problem is not None:
        return Outcome("failed", str(driven.problem))
    for number, status in enumerate(driven.statuses):
        if status:
            which = f" {number}" if len(driven.statuses) > 1 else ""
            return Outcome("failed", f"the client{which} ended with status {status}")
    counts = []
    for path in results:
        try:
            told = json.loads(path.read_text("utf-8"))
            counts.append((int(told["completed"]), int(told.get("failed", 0))))
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return Outcome("failed", f"the client ended with status 0 and left no {path.name}")
    completed = sum(done for done, _ in counts)
    failed = sum(bad for _, bad in counts)
    if not completed:
        return Outcome("failed", f"every request failed: {failed} of {prompts}", 0, failed)
    reason = f"{prompts - completed} of {prompts} requests failed" if completed < prompts else ""
    return Outcome("complete", reason, completed, failed)


def drop_texts(path: Path) -> int:
    """Remove the generated texts from a result; returns how many there were.

    Texts of random weights are noise and most of the file's size. All else stays as it was.
    """
    try:
        told: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return 0
    texts = told.pop(TEXTS, None) if isinstance(told, dict) else None
    if not isinstance(texts, list):
        return 0
    path.write_text(json.dumps(told), "utf-8")
    return len(texts)
