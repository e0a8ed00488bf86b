"""The servers of an arm that run: where they answer, whether one has died, how they stop."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from collectors import kv
from collectors.commands import Command
from collectors.errors import Problem
from collectors.kv import Kv
from collectors.process import Process, telling_lines
from collectors.study import Arm


@dataclass(frozen=True, slots=True)
class Engine:
    """One server that runs."""

    name: str
    """ "server", or "replica-0" and so on."""
    url: str
    command: Command
    process: Process | None
    """None: somebody else runs it."""
    log: Path | None
    gpus: tuple[int, ...]
    ready_seconds: float
    kv: Kv | None
    log_ready: int
    """Bytes of its log when it was ready."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """All servers of one arm, and what is in front of them."""

    arm: Arm
    engines: tuple[Engine, ...]
    router: Engine | None = None

    @property
    def fronts(self) -> tuple[str, ...]:
        """Addresses to be driven: one, or one a client."""
        if self.router is not None:
            return (self.router.url,)
        return tuple(engine.url for engine in self.engines)

    @property
    def parts(self) -> tuple[Engine, ...]:
        """The engines, then the router."""
        return (*self.engines, *([self.router] if self.router else []))

    def dead(self) -> Problem | None:
        """What has ended although nobody asked it to."""
        for part in self.parts:
            if part.process is not None and part.process.status is not None:
                return died(self.arm, part.name, part.process, "while it was driven")
        return None

    def ask_to_stop(self) -> None:
        """Ask all of it to end; returns at once."""
        for part in reversed(self.parts):
            if part.process is not None:
                part.process.ask_to_stop()

    def stop(self) -> None:
        """Stop all of it; all are asked before one is waited for."""
        self.ask_to_stop()
        running = [part.process for part in reversed(self.parts) if part.process is not None]
        for process in running:
            process.stop()


def somebody_elses(arm: Arm, url: str) -> Fleet:
    """A server that this collector neither starts nor stops."""
    engine = Engine("server", url, Command((), {}), None, None, (), 0.0, kv.room(None, url), 0)
    return Fleet(arm, (engine,))


def died(arm: Arm, name: str, process: Process, when: str) -> Problem:
    """That a server has ended, with the lines of its log that tell why."""
    lines = telling_lines(process.log)
    return Problem(
        f"arm {arm.name!r}, {name}",
        f"ended with status {process.status} {when}" + (": " + " | ".join(lines) if lines else ""),
        todo=f"its whole log is {process.log.name}",
    )
