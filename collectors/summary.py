"""What became of each run of a plan."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Summary:
    """What became of each run of a plan, by its folder below the study's."""

    whole: list[str] = field(default_factory=list)
    """Complete before."""
    made: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """With the reason."""
    left: list[str] = field(default_factory=list)
    """Not begun: interrupted, or out of time."""
    halves: list[str] = field(default_factory=list)
    """Put aside: begun by a collector that was killed."""
    stopped: str = ""
    """Why the campaign ended early."""
