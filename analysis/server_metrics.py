"""What a run added to its servers' counters: differences of /metrics after and before it.

    found = server_metrics(run)     # None without counters, Refused where a server was restarted
    found.histogram("queue").mean   # s, exact: the sum's difference over the count's

A histogram's mean is exact. Of a percentile only the bucket that holds it is known, so it is given
as two bounds and never as a point within. By engine: the file's, and its label `engine`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from weakref import WeakKeyDictionary

from analysis.model import Counters, Run, Source
from analysis.server_series import PARTS, SERIES, Kind, split
from analysis.token_times import Refused
from analysis.wording import listing, show

STARTED = "process_start_time_seconds"
"""When the server's process began, where the text has it."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """What was observed between two moments."""

    count: float
    total: float
    """Sum of the observations; NaN where the texts do not tell it."""
    buckets: tuple[tuple[float, float], ...] = ()
    """(upper edge, observations up to it), from the lowest edge to infinity."""

    @property
    def mean(self) -> float:
        """Exact; NaN where nothing was observed."""
        return self.total / self.count if self.count else math.nan

    def percentile(self, percent: float) -> tuple[float, float] | None:
        """The edges of the bucket in which the percentile lies; None without buckets.

        The percentile is the least observation that `percent` % of all do not exceed. Above the
        last finite edge its upper bound is infinity.
        """
        if not self.count or not self.buckets:
            return None
        # Rounded first: 99.9 % of 1,000 is 999, and a float makes a little more of it.
        rank, low = max(math.ceil(round(percent / 100 * self.count, 9)), 1), 0.0
        for edge, so_far in self.buckets:
            if so_far >= rank:
                return min(low, edge), edge
            low = edge
        return low, math.inf


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """One engine's part. What its texts do not tell, or not at both moments, is left out."""

    engine: str
    source: Source
    """The text after the run."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """By the names of `SERIES`."""
    finished: Mapping[str, float] = field(default_factory=dict)
    """Requests that ended, by reason."""
    histograms: Mapping[str, Histogram] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerMetrics:
    """All engines of a run."""

    engines: tuple[EngineMetrics, ...]

    @property
    def source(self) -> Source:
        """The first engine's text after the run."""
        return self.engines[0].source

    def cite(self, name: str, part: str = "") -> Source:
        """Where a figure stands: the newest name of its series, in the text after the run."""
        of_all = ", of all engines" if len(self.engines) > 1 else ""
        return Source(self.source.file, f"{SERIES[name].names[0]}{part}{of_all}")

    def counter(self, name: str) -> float | None:
        """A counter's difference over all engines; None unless each tells it."""
        found = [one.counters.get(name) for one in self.engines]
        known = [value for value in found if value is not None]
        return sum(known) if len(known) == len(found) else None

    def histogram(self, name: str) -> Histogram | None:
        """The observations of all engines together; None unless each tells of them."""
        found = [one.histograms.get(name) for one in self.engines]
        known = [one for one in found if one is not None]
        return _together(known) if len(known) == len(found) else None

    @property
    def iterations(self) -> float | None:
        """Engine steps, of all engines."""
        steps = self.histogram("iteration_tokens")
        return None if steps is None else steps.count

    @property
    def finished(self) -> Mapping[str, float]:
        """Requests that ended, by reason, over all engines."""
        found: dict[str, float] = {}
        for one in self.engines:
            for reason, count in one.finished.items():
                found[reason] = found.get(reason, 0.0) + count
        return found


_FOUND: WeakKeyDictionary[Run, ServerMetrics | Refused | None] = WeakKeyDictionary()
"""Kept as long as the run is: checks, claims and pages ask again."""


def server_metrics(run: Run) -> ServerMetrics | Refused | None:
    """What the run added to the counters of all its servers; None where none were kept."""
    if run not in _FOUND:
        _FOUND[run] = _of_run(run)
    return _FOUND[run]


def _of_run(run: Run) -> ServerMetrics | Refused | None:
    counters = () if run.server is None else run.server.counters
    before = {one.engine: one for one in counters if one.when == "before"}
    after = {one.engine: one for one in counters if one.when == "after"}
    if not after or before.keys() != after.keys():
        return None
    engines: list[EngineMetrics] = []
    for name, end in after.items():
        found = _of_file(before[name], end)
        if isinstance(found, str):
            return Refused((f"The counters of {name} are of no use: {found}.",))
        engines += found
    return ServerMetrics(tuple(engines)) if engines else None


Values = dict[str, dict[str, dict[tuple[tuple[str, str], ...], float]]]
"""engine label -> name of a series -> its other labels -> value."""


def _of_file(before: Counters, after: Counters) -> list[EngineMetrics] | str:
    """Its engines, or why there are none."""
    started = [one.values.get(STARTED) for one in (before, after)]
    if None not in started and started[0] != started[1]:
        return "the server was restarted between the two, and they began anew"
    a, b = _by_engine(before), _by_engine(after)
    found = []
    for label, end in b.items():
        name = after.engine if len(b) == 1 else f"{after.engine}, engine {label or '?'}"
        one = _engine(name, after.source, a.get(label, {}), end)
        if isinstance(one, str):
            return one
        found.append(one)
    return found


def _engine(
    name: str,
    source: Source,
    start: Mapping[str, Mapping[tuple[tuple[str, str], ...], float]],
    end: Mapping[str, Mapping[tuple[tuple[str, str], ...], float]],
) -> EngineMetrics | str:
    counters: dict[str, float] = {}
    finished: dict[str, float] = {}
    histograms: dict[str, Histogram] = {}
    for thing, series in SERIES.items():
        # Buckets and sums may have been left out of a text; a count is one all the same.
        ends, needed = _ENDS[series.kind]
        told = next(
            (n for n in series.names if all(n + e in start and n + e in end for e in needed)), None
        )
        if told is None or series.kind == "gauge":
            continue
        moved = {e: _moved(start.get(told + e, {}), end.get(told + e, {})) for e in ends}
        fell = [told + e for e, by_label in moved.items() if min(by_label.values(), default=0) < 0]
        if fell:
            return f"{fell[0]} fell, which it does only when a server is started anew"
        if series.kind == "counter":
            counters[thing] = sum(moved[""].values())
            if thing == "finished":
                for labels, value in moved[""].items():
                    reason = dict(labels).get("finished_reason", "?")
                    finished[reason] = finished.get(reason, 0.0) + value
        else:
            histograms[thing] = Histogram(
                sum(moved["_count"].values()),
                sum(moved["_sum"].values()) if moved["_sum"] else math.nan,
                _buckets(moved["_bucket"]),
            )
    return EngineMetrics(name, source, counters, finished, histograms)


def _moved(
    start: Mapping[tuple[tuple[str, str], ...], float],
    end: Mapping[tuple[tuple[str, str], ...], float],
) -> dict[tuple[tuple[str, str], ...], float]:
    """How far each went. A set of labels that came up during the run began at 0."""
    return {
        labels: end.get(labels, -math.inf) - start.get(labels, 0.0)
        for labels in dict.fromkeys((*start, *end))
    }


def _buckets(
    moved: Mapping[tuple[tuple[str, str], ...], float],
) -> tuple[tuple[float, float], ...]:
    """Cumulative counts by upper edge; empty where they are none (an edge is missing or falls)."""
    edges: dict[float, float] = {}
    for labels, value in moved.items():
        try:
            edge = float(dict(labels)["le"])
        except (KeyError, ValueError):
            return ()
        edges[edge] = edges.get(edge, 0.0) + value
    rows = tuple(sorted(edges.items()))
    counts = [count for _, count in rows]
    sound = bool(rows) and math.isinf(rows[-1][0]) and counts == sorted(counts)
    return rows if sound else ()


def _together(parts: Iterable[Histogram]) -> Histogram:
    known = list(parts)
    edges = [tuple(edge for edge, _ in one.buckets) for one in known]
    buckets: tuple[tuple[float, float], ...] = ()
    if len(set(edges)) == 1:
        columns = zip(*(one.buckets for one in known), strict=True)
        buckets = tuple((column[0][0], sum(n for _, n in column)) for column in columns)
    return Histogram(sum(one.count for one in known), sum(one.total for one in known), buckets)


def _by_engine(counters: Counters) -> Values:
    found: Values = {}
    for series, value in counters.values.items():
        place = _place(series)
        if place is not None:
            engine, name, labels = place
            by_name = found.setdefault(engine, {})
            by_label = by_name.setdefault(name, {})
            by_label[labels] = by_label.get(labels, 0.0) + value
    return found


_ENDS: Mapping[Kind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gauge": ((), ()),
    "counter": (("",), ("",)),
    "histogram": (PARTS, ("_count",)),
}
"""What the series of each kind end in, and those of them that must be there."""

_WANTED = frozenset(
    name + end for one in SERIES.values() for name in one.names for end in _ENDS[one.kind][0]
)


@lru_cache(maxsize=65536)
def _place(series: str) -> tuple[str, str, tuple[tuple[str, str], ...]] | None:
    """Engine, name and the labels that tell apart; None for a series that is not looked at."""
    name, _, rest = series.partition("{")
    if name not in _WANTED:
        return None
    labels = split(series)[1] if rest else {}
    told = tuple((k, v) for k, v in labels.items() if k in ("le", "finished_reason"))
    return labels.get("engine", ""), name, told


def bounds(histogram: Histogram, percent: float, unit: str = "s") -> str:
    """A percentile in words: "p99 between 80 ms and 100 ms"."""
    found = histogram.percentile(percent)
    if found is None:
        return f"p{percent:g} not known"
    low, high = found
    if math.isinf(high):
        return f"p{percent:g} above {show(low, unit)}"
    return f"p{percent:g} between {listing((show(low, unit), show(high, unit)))}"
