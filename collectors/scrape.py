"""A server's /metrics as it says them: in full before and after, and once a second in between.

The sampled file holds what moves: gauges, counters, and the sums and counts of histograms, but no
buckets (the full texts have them) and no times of creation. All of it is Prometheus text with
comments, one file for all servers of a run::

    # scraped_at 1796061447.714 engine0 0.007
    vllm:num_requests_running{engine="0",model_name="m"} 4.0
    # scrape_failed 1796061448.716 engine0 URLError: <urlopen error timed out>

The comment has Unix time in seconds when the scrape began, the name of the server and the seconds
that it took.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from collectors import http

AT = "# scraped_at"
FAILED = "# scrape_failed"
TIMEOUT = 1.5
"""Seconds that one scrape may take."""


def snapshot(url: str, path: Path, name: str = "server") -> str:
    """Write a server's full metrics to a file, after a comment with the time.

    Args:
        url: of the metrics, `http://127.0.0.1:8000/metrics`.
        path: of the file, written over.
        name: of the server, for the comment.

    Returns:
        What went wrong, one line (the file has it too); empty where nothing did.
    """
    began = time.time()
    try:
        text = http.get(url)
    except (OSError, ValueError) as error:
        why = _failure(began, name, error)
        path.write_text(why + "\n", "utf-8")
        return why
    path.write_text(_heading(began, name) + text, "utf-8")
    return ""


class Scraper:
    """A thread that samples servers into one file until it is stopped."""

    def __init__(self, urls: Mapping[str, str], path: Path, period: float = 1.0) -> None:
        """Set up, start nothing.

        Args:
            urls: of each server's metrics, by its name.
            path: of the file that is appended to.
            period: seconds from one round to the next.
        """
        self._urls = dict(urls)
        self._path = path
        self._period = period
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self.scrapes = 0
        """Scrapes that went well."""
        self.failures = 0
        """Scrapes that failed, or that could not be written."""

    def start(self) -> None:
        """Begin; a thread a server, so that one that hangs keeps no other waiting."""
        self._over.clear()
        self._threads = [
            threading.Thread(target=self._watch, args=(name, url), name="scrape", daemon=True)
            for name, url in self._urls.items()
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End; waits for a scrape under way, two seconds at most."""
        self._over.set()
        until = time.monotonic() + 2
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._threads = []

    def _watch(self, name: str, url: str) -> None:
        # By the clock and not by the end of the last scrape, so that the period holds.
        due = time.monotonic()
        while not self._over.is_set():
            self._once(name, url)
            due = max(due + self._period, time.monotonic() - self._period)
            self._over.wait(max(0.0, due - time.monotonic()))

    def _once(self, name: str, url: str) -> None:
        began = time.time()
        try:
            text = _heading(began, name) + "".join(moving(http.get(url, TIMEOUT)))
            well = True
        except (OSError, ValueError) as error:
            text = _failure(began, name, error) + "\n"
            well = False
        try:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError:
            well = False  # A full disk is seen by whoever writes what must be written.
        if well:
            self.scrapes += 1
        else:
            self.failures += 1


def moving(text: str) -> Iterator[str]:
    """The lines of a metrics text that are worth a sample each second, with their ends."""
    for line in text.splitlines():
        series = line.partition("{")[0].partition(" ")[0]
        if series and series[0] != "#" and not series.endswith(("_bucket", "_created")):
            yield line + "\n"


def _heading(began: float, name: str) -> str:
    return f"{AT} {began:.3f} {name} {time.time() - began:.3f}\n"


def _failure(began: float, name: str, error: Exception) -> str:
    told = " ".join(str(error).split())[:200]
    return f"{FAILED} {began:.3f} {name} {type(error).__name__}: {told}"
