"""The arms of one session that are up: started with what watches them, and stopped with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from collectors.evidence import Watcher
from collectors.host import Host
from collectors.profiler import Profiler
from collectors.schedule import Plan, Session
from collectors.server import Fleet, somebody_elses
from collectors.settings import Settings
from collectors.starting import Starter
from collectors.study import Arm


@dataclass(frozen=True, slots=True)
class Up:
    """An arm that is up."""

    fleet: Fleet
    watcher: Watcher | Profiler
    """What is told by its servers from inside."""
    stem: Path
    """Of the files of this start: the whole logs, what watches it, the warm-up."""


@dataclass(slots=True)
class Arms:
    """The arms of one session, by name, while they are up."""

    plan: Plan
    session: Session
    settings: Settings
    folder: Path
    """Of the study's results."""
    tell: Callable[[str], None]
    starter: Starter
    up: dict[str, Up] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        plan: Plan,
        host: Host,
        session: Session,
        settings: Settings,
        mark: str,
        tell: Callable[[str], None],
    ) -> Arms:
        """None of them is up yet; `mark` says whose they are: see `collectors.strays`."""
        starter = Starter(host, plan.study, mark, tell, settings.ready_seconds)
        return cls(plan, session, settings, host.results / plan.study.name, tell, starter)

    def start(self, name: str) -> Up:
        """Start an arm.

        Raises:
            ServerFailed: one of its servers did not start.
        """
        arm = self.plan.study.arms[name]
        stem = self._stem(arm)
        watcher: Watcher | Profiler
        if self.plan.profiled:
            watcher = Profiler(stem, self.settings.profiler_flag)
        else:
            watcher = Watcher(stem, self.plan.study, arm)
        try:
            if self.settings.base_url:
                fleet = somebody_elses(arm, self.settings.base_url)
            else:
                fleet = self.starter.fleet(arm, stem, self.settings.gpus, watcher.extra)
        except BaseException:
            watcher.close()
            raise
        self.up[name] = Up(fleet, watcher, stem)
        return self.up[name]

    def stop(self, name: str) -> None:
        """Stop an arm, and what watches it."""
        self.tell(f"{name}: stops")
        one = self.up.pop(name)
        try:
            one.fleet.stop()
        finally:
            one.watcher.close()

    def close(self) -> None:
        """Stop all; all are asked before one is waited for."""
        for one in self.up.values():
            one.fleet.ask_to_stop()
        for name in list(self.up):
            self.stop(name)
        self.starter.close()

    def _stem(self, arm: Arm) -> Path:
        folder = self.folder / arm.name / ".servers"
        folder.mkdir(parents=True, exist_ok=True)
        kind, tries = "p" if self.plan.profiled else "", 1
        while list(folder.glob(f"{kind}{self.session.start}.{tries}-*")):
            tries += 1
        return folder / f"{kind}{self.session.start}.{tries}"
