"""What watches an arm's servers while they are driven, and what each run gets of it.

Every source may be missing in some version or on some host. Then the run's record says why, and
the run is made all the same.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from collectors import commands, cut, plugin_path, scrape, stat_logger
from collectors.gpu_sampler import GpuSampler
from collectors.schedule import Job
from collectors.scrape import Scraper
from collectors.server import Fleet
from collectors.spans import SpanReceiver
from collectors.starting import Extra
from collectors.study import Arm, Study

FLUSHED = 2 * stat_logger.FLUSH_SECONDS
"""Seconds after which a server's records of a run are in their files."""

OFF = "off: the arm is not watched"


class Watcher:
    """All sources of evidence of one start of an arm's servers."""

    def __init__(self, stem: Path, study: Study, arm: Arm) -> None:
        """Nothing is started yet.

        Args:
            stem: Of the files of this start: whole records of the servers' lives.
            study: The arm's study.
            arm: What is watched; not at all where it says so.
        """
        self._stem = stem
        self._arm = arm
        self._env = {**study.servers.env, **arm.env}
        self._spans: dict[int, SpanReceiver] = {}
        self._samplers = ExitStack()
        self._gpus = ""

    def extra(self, replica: int) -> Extra:
        """What a replica's server is started with so that it can be watched."""
        if not self._arm.telemetry:
            return Extra()
        steps = self._file("steps", replica)
        steps.mkdir(parents=True, exist_ok=True)
        inherited = {**os.environ, **self._env}
        env = plugin_path.environment(self._file("plugin", replica), steps, inherited)
        if not self._arm.spans:
            return Extra((), env)
        receiver = self._spans[replica] = SpanReceiver(self._file("spans.jsonl", replica))
        sending = receiver.start()
        return Extra(sending.flags, {**env, **sending.env})

    def begin(self, part: Path, fleet: Fleet) -> None:
        """A run begins: note the counters and start to sample."""
        for engine in fleet.engines:
            target = part / f"metrics-{engine.name}.before.txt"
            scrape.snapshot(f"{engine.url}/metrics", target, engine.name)
        if not self._arm.telemetry:
            return
        urls = {engine.name: f"{engine.url}/metrics" for engine in fleet.engines}
        scraper = Scraper(urls, part / "metrics-samples.txt")
        scraper.start()
        self._samplers.callback(scraper.stop)
        gpus = GpuSampler(part / "gpu.jsonl", sorted({g for e in fleet.engines for g in e.gpus}))
        self._gpus = gpus.start()
        self._samplers.callback(gpus.stop)

    def end(self, part: Path, fleet: Fleet, job: Job, began: float, ended: float) -> dict[str, str]:
        """The run is over: put its evidence into its folder.

        Args:
            part: The run's folder.
            fleet: Its servers.
            job: The run.
            began, ended: Unix time, seconds.

        Returns:
            What became of each source: "ok", or why there is nothing of it.
        """
        self._samplers.close()
        told = {"metrics": _metrics(part, fleet)}
        if not self._arm.telemetry:
            return told | dict.fromkeys(("steps", "requests", "spans", "gpu"), OFF)
        # Records are written by another process, every half second.
        time.sleep(max(0.0, ended + FLUSHED - time.time()))
        told["gpu"] = self._gpus or "ok"
        told["steps"] = self._of_plugin("steps", part, fleet, job, began, ended)
        told["requests"] = self._of_plugin("requests", part, fleet, job, began, ended)
        told["spans"] = self._of_spans(part, job) if self._arm.spans else "not asked for"
        return told

    def close(self) -> None:
        """The servers are stopped."""
        self._samplers.close()
        for receiver in self._spans.values():
            receiver.stop()
        for replica in range(self._arm.replicas):
            shutil.rmtree(self._file("plugin", replica), ignore_errors=True)

    def _file(self, kind: str, replica: int) -> Path:
        return self._stem.with_name(f"{self._stem.name}-{replica}-{kind}")

    def _of_plugin(
        self, kind: str, part: Path, fleet: Fleet, job: Job, began: float, ended: float
    ) -> str:
        """Cut the plugin's files of each engine to the run; one file an engine."""
        found = 0
        for replica, engine in enumerate(fleet.engines):
            files = sorted(self._file("steps", replica).glob(f"{kind}-*.jsonl"))
            for number, file in enumerate(files):
                suffix = f".{number}" if len(files) > 1 else ""
                with file.open(encoding="utf-8", errors="replace") as lines:
                    window = list(cut.lines(lines, began, ended + FLUSHED))
                if kind == "requests":
                    mine = list(cut.requests(window, _prefixes(job)))
                    # A router gives requests ids of its own; the window holds no others.
                    window = mine or window
                if window:
                    (part / f"{kind}-{engine.name}{suffix}.jsonl").write_text("".join(window))
                    found += 1
        return "ok" if found else f"no {kind}: the server wrote none (see its log)"

    def _of_spans(self, part: Path, job: Job) -> str:
        """Cut the spans of each server to the run's requests."""
        found = 0
        for replica in self._spans:
            file = self._file("spans.jsonl", replica)
            mine = list(cut.requests(_lines(file), _prefixes(job)))
            if mine:
                name = "spans.jsonl" if self._arm.replicas == 1 else f"spans-{replica}.jsonl"
                (part / name).write_text("".join(mine))
                found += len(mine)
        return "ok" if found else "no spans arrived (see the server's log)"


def _lines(file: Path) -> Iterator[str]:
    if file.is_file():
        with file.open(encoding="utf-8", errors="replace") as lines:
            yield from lines


def _prefixes(job: Job) -> Iterable[str]:
    return [commands.request_prefix(job, number) for number in range(job.clients)]


def _metrics(part: Path, fleet: Fleet) -> str:
    """The counters after a run."""
    problems = []
    for engine in fleet.engines:
        file = part / f"metrics-{engine.name}.after.txt"
        problem = scrape.snapshot(f"{engine.url}/metrics", file, engine.name)
        if not problem and "\nvllm:" not in file.read_text("utf-8", "replace"):
            problem = f"{engine.name}: no counter of an engine (--disable-log-stats?)"
        problems.append(problem)
    return "; ".join(filter(None, problems)) or "ok"
