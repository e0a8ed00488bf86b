"""Starts the servers of an arm: one after another or at once, made equal, known to be ready."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collectors import commands, kv, ports
from collectors.commands import ADDRESS, Command
from collectors.errors import Problem, ServerFailed
from collectors.host import Host
from collectors.http import answers
from collectors.process import Process
from collectors.server import Engine, Fleet, died
from collectors.study import DIRECT, Arm, Study, fixes_kv
from collectors.threads import at_once

READY_SECONDS = 1800.0
"""A first start may download weights and compile kernels."""

FIRST_PORT = 18100
"""Below the range that outgoing connections take their ports from."""

_POLL = 0.25

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Extra:
    """What the collector adds to a server so that it can be watched."""

    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


class Cancelled(Exception):
    """Servers are not wanted any more."""


@dataclass(frozen=True, slots=True)
class Starter:
    """How servers are started here."""

    host: Host
    study: Study
    mark: str
    """Whose they are: see `collectors.strays`."""
    tell: Tell
    ready_seconds: float = READY_SECONDS
    _ports: set[int] = field(default_factory=set)
    """Given away, though nothing may listen there yet."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def close(self) -> None:
        """All that was started has ended: others may have its ports."""
        for port in self._ports:
            ports.give_back(port)

    def cancel(self) -> None:
        """Let go of every server that is still starting."""
        self._cancelled.set()

    def fleet(
        self,
        arm: Arm,
        logs: Path,
        gpus: Sequence[int] = (),
        extra: Callable[[int], Extra] = lambda replica: Extra(),
    ) -> Fleet:
        """Start an arm's servers, make their KV equal, then start its router.

        Replicas start one after another, since each takes what it finds free; at once where a
        flag fixes their room for KV.

        Args:
            arm: What is served.
            logs: Stem of the log files: `<stem>-server.log`.
            gpus: The GPUs it gets; none where there is none.
            extra: What is added to a replica's server.

        Raises:
            ServerFailed: one did not start; all others are stopped.
        """
        engines: list[Engine] = []

        def start(replica: int) -> None:
            engines.append(self._engine(arm, replica, logs, gpus, extra(replica)))

        try:
            fixed = fixes_kv((*self.study.servers.flags, *arm.flags))
            at_once(start, range(arm.replicas), arm.replicas if fixed else 1, self.cancel)
            engines.sort(key=lambda engine: engine.name)
            if arm.replicas > 1:
                engines = self._equal(arm, engines, logs, gpus, extra)
            router = None
            if arm.router not in ("", DIRECT):
                router = self._router(arm, engines, logs)
            return Fleet(arm, tuple(engines), router)
        except BaseException:
            Fleet(arm, tuple(engines)).stop()
            raise

    def _engine(
        self, arm: Arm, replica: int, logs: Path, gpus: Sequence[int], extra: Extra
    ) -> Engine:
        name = "server" if arm.replicas == 1 else f"replica-{replica}"
        mine = tuple(gpus[replica * arm.gpus : (replica + 1) * arm.gpus])
        port = self._port()
        command = commands.server(
            self.host,
            self.study,
            arm,
            port=port,
            replica=replica,
            gpus=mine,
            more=extra.flags,
            env=extra.env,
        )
        log = logs.with_name(f"{logs.name}-{name}.log")
        process, seconds = self._ready(arm, name, command, port, log)
        url = f"http://{ADDRESS}:{port}"
        room, size = kv.room(log, url), log.stat().st_size
        return Engine(name, url, command, process, log, mine, seconds, room, size)

    def _router(self, arm: Arm, engines: Sequence[Engine], logs: Path) -> Engine:
        port = self._port()
        prometheus = self._port()
        command = commands.router(
            self.host,
            arm,
            port=port,
            workers=[engine.url for engine in engines],
            prometheus=prometheus,
        )
        log = logs.with_name(f"{logs.name}-router.log")
        process, seconds = self._ready(arm, "router", command, port, log)
        url, size = f"http://{ADDRESS}:{port}", log.stat().st_size
        return Engine("router", url, command, process, log, (), seconds, None, size)

    def _ready(
        self, arm: Arm, name: str, command: Command, port: int, log: Path
    ) -> tuple[Process, float]:
        """Start one and wait until /health answers, or until it has ended."""
        log.parent.mkdir(parents=True, exist_ok=True)
        self.tell(f"{arm.name}: {name} starts")
        began = time.monotonic()
        process = Process(command, log, self.mark)
        try:
            while not answers(f"http://{ADDRESS}:{port}/health"):
                if self._cancelled.is_set():
                    raise Cancelled
                if process.status is not None:
                    raise ServerFailed(died(arm, name, process, "while it started"))
                if time.monotonic() - began > self.ready_seconds:
                    raise ServerFailed(
                        Problem(
                            f"arm {arm.name!r}, {name}",
                            f"not ready after {self.ready_seconds:.0f} s",
                            todo=f"see {log.name}, or allow more with --ready-timeout",
                        )
                    )
                time.sleep(_POLL)
            if ports.strangers(port, process.pid):
                raise ServerFailed(
                    Problem(
                        f"arm {arm.name!r}, {name}",
                        f"another server listens on its port {port}",
                        todo="stop that one, or name another first port: --port",
                    )
                )
        except BaseException:
            process.stop()
            raise
        seconds = time.monotonic() - began
        self.tell(f"{arm.name}: {name} is ready after {seconds:.0f} s")
        return process, seconds

    def _port(self) -> int:
        with self._lock:
            port = ports.take(max(self._ports, default=(self.host.port or FIRST_PORT) - 1) + 1)
            self._ports.add(port)
            return port

    def _equal(
        self,
        arm: Arm,
        engines: list[Engine],
        logs: Path,
        gpus: Sequence[int],
        extra: Callable[[int], Extra],
    ) -> list[Engine]:
        """Restart the replicas that hold more KV than the smallest, with its number of blocks.

        Raises:
            ServerFailed: they cannot be made equal, or tell nothing of their KV.
        """
        sizes = [engine.kv.tokens if engine.kv else None for engine in engines]
        least = min((size for size in sizes if size is not None), default=None)
        if None in sizes or least is None:
            raise ServerFailed(
                Problem(f"arm {arm.name!r}", "a replica's log tells no KV cache size")
            )
        if len(set(sizes)) == 1:
            return engines
        shown = " and ".join(f"{size:,}" for size in sizes)
        self.tell(f"{arm.name}: replicas hold {shown} tokens of KV; all get {least:,}")
        block = next((engine.kv.block for engine in engines if engine.kv), None)
        if block is None or fixes_kv((*self.study.servers.flags, *arm.flags)):
            raise ServerFailed(
                Problem(
                    f"arm {arm.name!r}",
                    f"replicas hold {shown} tokens of KV",
                    "equal room, or results of a router say nothing",
                    "fix it with --num-gpu-blocks-override in the arm's flags",
                )
            )
        fixed = ("--num-gpu-blocks-override", str(least // block))
        for number, size in enumerate(sizes):
            if size == least:
                continue
            Fleet(arm, (engines[number],)).stop()
            more = extra(number)
            # Its first start has a log of its own, which stays.
            again = logs.with_name(f"{logs.name}-again")
            engines[number] = self._engine(
                arm, number, again, gpus, Extra((*more.flags, *fixed), more.env)
            )
        now = {engine.kv.tokens for engine in engines if engine.kv}
        if len(now) != 1:
            raise ServerFailed(
                Problem(f"arm {arm.name!r}", f"replicas still differ in KV: {sorted(now)} tokens")
            )
        return engines
