"""The servers of an arm: started one after another, made equal, known to be ready, stopped."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from collectors import commands, ports
from collectors.commands import ADDRESS, Command
from collectors.errors import Problem, ServerFailed
from collectors.host import Host
from collectors.http import answers, get
from collectors.process import Process, telling_lines
from collectors.study import DIRECT, Arm, Study, fixes_kv

READY_SECONDS = 1800.0
"""A first start may download weights and compile kernels."""

FIRST_PORT = 18100
"""Below the range that outgoing connections take their ports from."""

_POLL = 0.25
_KV_IN_LOG = re.compile(r"KV cache size: ([\d,]+) tokens")
_KV_IN_METRICS = re.compile(r"^vllm:cache_config_info\{(?P<labels>.*)\}", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')

T = TypeVar("T")
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Extra:
    """What the collector adds to a server so that it can be watched."""

    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kv:
    """Room for KV of one engine."""

    tokens: int
    block: int | None
    """Tokens of a block; None where only the log tells."""
    said_in: str
    """ "log" or "metrics"."""


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
                return _died(self.arm, part.name, part.process, "while it was driven")
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


class Cancelled(Exception):
    """Servers are not wanted any more."""


@dataclass(frozen=True, slots=True)
class Starter:
    """How servers are started here."""

    host: Host
    study: Study
    mark: str
    """Whose they are: see `keeper.strays`."""
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
        kv, size = _kv(log, url), log.stat().st_size
        return Engine(name, url, command, process, log, mine, seconds, kv, size)

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
                    raise ServerFailed(_died(arm, name, process, "while it started"))
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


def at_once(
    work: Callable[[T], None], items: Iterable[T], most: int, cancel: Callable[[], None]
) -> None:
    """Do the work for all items, at most so many at a time.

    A failure leaves the others alone; an interruption cancels them.

    Raises:
        Whatever the first failure raised, when no work goes on any more.
    """
    waiting: list[Future[None]] = []
    with ThreadPoolExecutor(max(most, 1)) as pool:
        try:
            # An interruption while a thread starts leaves it without anybody who waits for it.
            waiting.extend(pool.submit(work, item) for item in items)
            wait(waiting)
        except BaseException:
            for one in waiting:
                one.cancel()
            cancel()
            raise
    for one in waiting:
        one.result()


def somebody_elses(arm: Arm, url: str) -> Fleet:
    """A server that this collector neither starts nor stops."""
    engine = Engine("server", url, Command((), {}), None, None, (), 0.0, _kv(None, url), 0)
    return Fleet(arm, (engine,))


def _kv(log: Path | None, url: str) -> Kv | None:
    """Room for KV as the log says it, else as the counters do."""
    blocks, block = _blocks(url)
    said = _KV_IN_LOG.findall(log.read_text("utf-8", "replace")) if log is not None else []
    if said:
        return Kv(int(said[-1].replace(",", "")), block, "log")
    if blocks is not None and block is not None:
        return Kv(blocks * block, block, "metrics")
    return None


def _blocks(url: str) -> tuple[int | None, int | None]:
    """Number of KV blocks and tokens of one, from `vllm:cache_config_info`."""
    try:
        found = _KV_IN_METRICS.search(get(f"{url}/metrics"))
    except OSError:
        return None, None
    labels = dict(_LABEL.findall(found["labels"])) if found else {}

    def number(key: str) -> int | None:
        return int(labels[key]) if labels.get(key, "").isdigit() else None

    return number("num_gpu_blocks"), number("block_size")


def _died(arm: Arm, name: str, process: Process, when: str) -> Problem:
    lines = telling_lines(process.log)
    return Problem(
        f"arm {arm.name!r}, {name}",
        f"ended with status {process.status} {when}" + (": " + " | ".join(lines) if lines else ""),
        todo=f"its whole log is {process.log.name}",
    )
