"""What killed collectors and keepers left behind: found by its mark, ended with its memory."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from collectors import keeper
from collectors.keeper import MARK, descendants, mapped, remove, send, shared_memory

PATIENCE = 40.0
"""Seconds that a keeper whose collector was killed may take: more than any command's grace."""

_POLL = 0.2


def strays(mark: str) -> list[int]:
    """Processes kept for `mark` that no keeper keeps any more."""
    found, keepers = marked(mark)
    kept = {pid for keeper in keepers for pid in (keeper, *descendants(keeper))}
    return [pid for pid in found if pid not in kept]


def marked(mark: str) -> tuple[list[int], list[int]]:
    """All processes that are kept for `mark`, and those of them that are keepers."""
    wanted = f"{MARK}={mark}".encode()
    found, keepers = [], []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found.append(int(entry.name))
        # The words of a command that is kept stand behind those of its keeper.
        if os.fsencode(keeper.__file__) in words[:4]:
            keepers.append(int(entry.name))
    return found, keepers


def end_strays(mark: str, patience: float = PATIENCE) -> int:
    """End what a killed collector or a killed keeper left behind, with its shared memory.

    A keeper whose collector was killed stops what it keeps in peace, and is waited for; what no
    keeper keeps is killed. When this returns, none of it lives.

    Args:
        mark: Whose; nobody else's collector may be at work for it.
        patience: Seconds a keeper may take.

    Returns:
        How many processes there were.
    """
    ours = {os.getpid(), *descendants(os.getpid())}
    found = [pid for pid in marked(mark)[0] if pid not in ours]
    end = time.monotonic() + patience
    while time.monotonic() < end and any(pid not in ours for pid in marked(mark)[1]):
        time.sleep(_POLL)
    _end_with_memory(lambda: [pid for pid in marked(mark)[0] if pid not in ours])
    return len(found)


def end_orphans(mark: str) -> None:
    """End what killed keepers of a collector that lives left behind, with its shared memory."""
    _end_with_memory(lambda: strays(mark))


def _end_with_memory(living: Callable[[], list[int]]) -> None:
    """Kill processes until there are none, then remove the shared memory that they had mapped."""
    held: set[int] = set()
    for _ in range(100):
        left = living()
        if not left:
            break
        for pid in left:
            held |= mapped(str(pid))
            send(pid, signal.SIGKILL)
        time.sleep(0.05)
    remove({name for name, inode in shared_memory().items() if inode in held})
