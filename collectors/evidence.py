"""What watches an arm's servers while they are driven, and what each run gets of it.

Every source may be missing in some version or on some host. Then the run's record says why, and
the run is made all the same.
"""

from __future__ import annotations

from pathlib import Path

from collectors.server import Extra, Fleet


class Watcher:
    """All sources of evidence of one start of an arm's servers."""

    def __init__(self, stem: Path, on: bool) -> None:
        """Nothing is started yet."""
        self._stem = stem
        self._on = on

    def extra(self, replica: int) -> Extra:
        """What a replica's server is started with so that it can be watched."""
        return Extra()

    def begin(self, part: Path, fleet: Fleet) -> None:
        """A run begins."""

    def end(self, part: Path, fleet: Fleet, began: float, ended: float) -> dict[str, str]:
        """The run is over: put its evidence into its folder; what became of each source."""
        return {}

    def close(self) -> None:
        """The servers are stopped."""
