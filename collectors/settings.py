"""How a campaign goes about its runs, whatever they are."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.client import Start
from collectors.starting import READY_SECONDS


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user and the machine say of all runs of one call."""

    start: Start
    """How a client is started."""
    deadline: float | None = None
    """`time.monotonic()` after which no run begins."""
    ready_seconds: float = READY_SECONDS
    keep_texts: bool = False
    base_url: str = ""
    """A server that somebody else runs; empty: the arms' servers are started."""
    gpus: tuple[int, ...] = ()
    """GPUs that may be used, by index; none on a host without."""
    profiler_flag: bool = True
    """Whether the installed servers are told of their profiler by a flag; else by a variable."""
