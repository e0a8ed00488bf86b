"""What the user sees while runs are made: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

_WIDTH = 24


def clock(seconds: float) -> str:
    """Hours, minutes and seconds: 1:02:03."""
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


@dataclass(slots=True)
class Progress:
    """How far a campaign is."""

    runs: int
    """To be made in all."""
    stream: TextIO
    estimate: float | None = None
    """Seconds all of it may take, guessed beforehand."""
    now: Callable[[], float] = time.monotonic
    _began: float = 0.0
    _done: int = 0
    _at: str = ""
    _run_began: float = 0.0
    _in_runs: float = 0.0

    def __post_init__(self) -> None:
        """Start the clock."""
        self._began = self.now()

    @property
    def left(self) -> float | None:
        """Seconds that the rest may take: the more of the runs so far and of the estimate.

        Runs alone count: servers that start before the first of many would be counted for each.
        """
        guessed = None
        if self.estimate is not None:
            guessed = max(self.estimate - (self.now() - self._began), 0.0)
        if not self._done:
            return guessed
        return max(self._in_runs / self._done * (self.runs - self._done), guessed or 0.0)

    def tell(self, line: str) -> None:
        """A line that stays."""
        self._clear()
        self._write(f"{line}\n")
        self._draw()

    def begins(self, at: str) -> None:
        """A run begins: "arm awq (2 of 3), sharegpt-c10-r1"."""
        self._run_began = self.now()
        self._at = f"run {self._done + 1} of {self.runs}: {at}"
        if self.stream.isatty():
            self._draw()
        else:
            self.tell(f"{self._at}; {self._times()}")

    def ends(self, line: str) -> None:
        """The run is over."""
        self._done += 1
        self._in_runs += self.now() - self._run_began
        self.tell(line)

    def close(self) -> None:
        """Leave the terminal clean."""
        self._clear()
        self._at = ""

    def _times(self) -> str:
        spent = f"{clock(self.now() - self._began)} elapsed"
        return spent if self.left is None else f"{spent}, about {clock(self.left)} left"

    def _draw(self) -> None:
        if self._at and self.stream.isatty():
            full = _WIDTH * self._done // max(self.runs, 1)
            bar = "█" * full + "░" * (_WIDTH - full)
            self._write(f"\r\033[K{bar} {self._at}; {self._times()}")

    def _clear(self) -> None:
        if self._at and self.stream.isatty():
            self._write("\r\033[K")

    def _write(self, text: str) -> None:
        # A terminal that was closed must neither end a run nor keep servers from being stopped.
        with suppress(OSError):
            self.stream.write(text)
            self.stream.flush()
