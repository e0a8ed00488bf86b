"""`collect` on a real server, in a process of its own, and whatever it starts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from collectors import keeper, rundir, strays
from collectors.http import free_port, get

ROOT = Path(__file__).parents[2]
WAIT = 240.0
"""Seconds after which something that must happen has not."""

FIRST_PORT = 19400
"""Where no other server is looked for."""

_RUNNING = re.compile(r"^vllm:num_requests_running\{[^}]*\} ([0-9.]+)$", re.MULTILINE)


def until(true: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def words_of(pid: int) -> list[str]:
    """A process's command line; none of one that has ended."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return raw.decode("utf-8", "replace").split("\0")


def born(pid: int) -> str:
    """When a process began, in ticks; empty where it has ended: tells a number's next owner."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def is_engine(pid: int) -> bool:
    return words_of(pid)[:1] != [] and words_of(pid)[0].startswith("VLLM::EngineCore")


def is_keeper(pid: int) -> bool:
    return keeper.__file__ in words_of(pid)[:4]


def is_server(pid: int) -> bool:
    return "serve" in words_of(pid) and not is_keeper(pid) and "bench" not in words_of(pid)


def is_router(pid: int) -> bool:
    # It gives itself another title; its keeper has its words.
    keeping = _parent(pid)
    return is_keeper(keeping) and "--worker-urls" in words_of(keeping)


def is_client(pid: int) -> bool:
    """A fork of the process that has imported vLLM's client."""
    return _is_worker(pid) and _is_worker(_parent(pid))


def _is_worker(pid: int) -> bool:
    return any(word.endswith("bench_worker.py") for word in words_of(pid)) and not is_keeper(pid)


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


@dataclass
class Collecting:
    """One `collect` that runs."""

    process: subprocess.Popen[str]
    study: Path
    """Folder of its results."""
    family: dict[int, str] = field(default_factory=dict)
    """Every process that was seen to come of it, and when it began."""

    def look(self) -> list[int]:
        """Descendants that live; each is remembered."""
        found = list(keeper.descendants(self.process.pid))
        self.family |= {pid: when for pid in found if (when := born(pid))}
        return found

    def find(self, which: Callable[[int], bool]) -> list[int]:
        return [pid for pid in self.look() if which(pid)]

    def wait_for(self, which: Callable[[int], bool], count: int = 1) -> list[int]:
        """The processes of one kind, once there are so many."""
        until(lambda: self._going() and len(self.find(which)) >= count, which.__name__)
        return self.find(which)

    def wait_until_serving(self, but: set[str] = frozenset()) -> str:  # type: ignore[assignment]
        """Wait until a server answers requests of a measured run; returns the run's name.

        Args:
            but: runs that are not meant.
        """
        found: list[str] = []

        def serving() -> bool:
            assert self._going()
            for part in self.study.glob(f"*/*{rundir.PART}"):
                name = part.name.removesuffix(rundir.PART)
                urls = [words for words in map(_url, self.find(is_server)) if words]
                if name not in but and sum(map(_running, urls)) > 0:
                    found.append(name)
            return bool(found)

        until(serving, "no run is driven")
        return found[0]

    def _going(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()
        return True

    def kill(self, *pids: int) -> None:
        self.look()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def ended(self) -> tuple[int, str]:
        """Exit code and what was said, once it has ended by itself."""
        while self.process.poll() is None:
            self.look()
            time.sleep(0.2)
        out, err = self.process.communicate()
        return self.process.returncode, out + err

    def alive(self) -> dict[int, list[str]]:
        """Those of the family that live."""
        return {
            pid: words_of(pid)[:6] for pid, when in self.family.items() if when == born(pid) != ""
        }


def _url(pid: int) -> str:
    words = words_of(pid)
    return f"http://127.0.0.1:{words[words.index('--port') + 1]}" if "--port" in words else ""


def _running(url: str) -> float:
    try:
        return sum(map(float, _RUNNING.findall(get(f"{url}/metrics", 2))))
    except OSError:
        return 0.0


@dataclass
class Place:
    """A results folder that one `collect` after the other works on."""

    results: Path
    file: Path
    """The study."""
    name: str
    vllm: str
    router: str = ""

    @property
    def study(self) -> Path:
        return self.results / self.name

    @contextmanager
    def collect(self, *more: str) -> Iterator[Collecting]:
        """Start it; what was complete before is unchanged after, and nothing of it is left."""
        before, memory = self.complete(), set(keeper.shared_memory())
        words = [sys.executable, "-m", "collectors.cli", "--study", str(self.file)]
        words += ["--results", str(self.results), "--vllm", self.vllm]
        words += ["--router", self.router] if self.router else []
        words += [] if "--port" in more else ["--port", str(free_port(FIRST_PORT))]
        process = subprocess.Popen(
            [*words, *more],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # As a terminal's foreground job: Ctrl-C reaches the whole group.
            start_new_session=True,
        )
        running = Collecting(process, self.study)
        try:
            yield running
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        until(lambda: not running.alive() and not self.marked(), f"left: {running.alive()}")
        used = keeper.mapped()
        left = {
            name
            for name, inode in keeper.shared_memory().items()
            if name not in memory and inode not in used
        }
        assert left == set()
        self.check_folders()
        now = self.complete()
        assert {name: now.get(name) for name in before} == before

    def marked(self) -> list[int]:
        """What lives for these results, whoever its parent is."""
        return strays.marked(str(self.study.resolve()))[0]

    def starts(self) -> list[Path]:
        """The whole log of each start of a server."""
        return list(self.study.glob("*/.servers/*-server.log"))

    def complete(self) -> dict[str, dict[str, int]]:
        """When each file of each complete run was written."""
        return {
            folder.relative_to(self.study).as_posix(): {
                path.name: path.stat().st_mtime_ns for path in folder.iterdir()
            }
            for folder in self.study.glob("*/*")
            if (rundir.read_record(folder) or {}).get("state") == "complete"
        }

    def check_folders(self) -> None:
        """A folder that says it is complete is so, and one with a run's own name says its state."""
        for folder in self.study.glob("*/*"):
            if folder.name.startswith(".") or not folder.is_dir():
                continue
            state = (rundir.read_record(folder) or {}).get("state")
            if state == "complete":
                assert rundir.whole(folder) == "", folder
            elif folder.suffix != rundir.PART:
                assert state in ("failed", "interrupted", "changed"), folder

    def states(self) -> dict[str, str]:
        """State of each run's folder."""
        return {
            folder.name: str((rundir.read_record(folder) or {}).get("state"))
            for folder in sorted(self.study.glob("*/*"))
            if folder.is_dir() and not folder.name.startswith(".")
        }
