"""Evidence that lies beside a result by its name, where no collector made a folder of the run.

    NAME.json            the client's result
    NAME.before.txt      the server's /metrics before the run, and NAME.after.txt after it
    NAME.metrics.txt     the same sampled during the run, each scrape under "# scraped_at UNIX-TIME"

Each may be gzip. `NAME.samples.txt` is another word for the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from analysis.model import (
    Counters,
    Ignored,
    Level,
    MetricSamples,
    Record,
    Run,
    ServerSide,
    Skipped,
)
from analysis.wording import plural

Loose = Counters | MetricSamples
"""What may lie beside a result."""

_EVIDENCE = re.compile(r"(?P<name>.+)\.(?P<kind>before|after|metrics|samples)\.txt(?:\.gz)?")
_RESULT = re.compile(r"(?P<name>.+)\.jsonl?(?:\.gz)?")


def attached(records: Iterable[Record]) -> list[Record]:
    """The records of no run folder, with evidence made part of the run that it is named as.

    A run with requests of the client and the counters of both moments is of level E. Evidence that
    is of no use becomes `Skipped`. The order is that of the records.
    """
    everything = list(records)
    runs: dict[str, list[Run]] = {}
    evidence: dict[str, list[Loose]] = {}
    ignored: dict[str, Ignored] = {}
    for record in everything:
        if isinstance(record, Run) and record.server is None:
            runs.setdefault(_name(_RESULT, record), []).append(record)
        elif isinstance(record, Loose):
            evidence.setdefault(_name(_EVIDENCE, record), []).append(record)
        elif isinstance(record, Ignored):
            ignored[_name(_RESULT, record)] = record
    said: dict[int, Record | None] = {}
    for name, found in evidence.items():
        if name and name in ignored:
            said.update({id(one): replace(ignored[name], file=one.source.file) for one in found})
        else:
            said.update(_of_one(name, found, runs.get(name, [])))
    # The records themselves are held by `everything`, so that no id is used twice.
    now = [said.get(id(record), record) for record in everything]
    return [record for record in now if record is not None]


def _name(pattern: re.Pattern[str], record: Run | Loose | Ignored) -> str:
    """Folder and name that a result shares with its evidence; empty for a name of neither form."""
    path = PurePosixPath(record.file if isinstance(record, Ignored) else record.source.file)
    found = pattern.fullmatch(path.name)
    return str(path.parent / found["name"]) if found else ""


def _of_one(name: str, evidence: Sequence[Loose], runs: Sequence[Run]) -> dict[int, Record | None]:
    """What becomes of the evidence of one name and of its run, by the id of each record.

    None for what is part of its run now.
    """
    result = PurePosixPath(name).name
    if not name or len(runs) != 1:
        why = _of_no_run(result, len(runs))
        return {id(one): Skipped(one.source.file, why) for one in evidence}
    (run,) = runs
    said: dict[int, Record | None] = {}
    counters = [one for one in evidence if isinstance(one, Counters)]
    samples = [one for one in evidence if isinstance(one, MetricSamples)]
    pair: list[Counters] = []
    for when, other in (("before", "after"), ("after", "before")):
        own = [one for one in counters if one.when == when]
        both = bool(own) and any(one.when == other for one in counters)
        for place, one in enumerate(own):
            if both and place == 0:
                pair.append(one)
                continue
            why = (
                f"{result}.{when}.txt is there twice, packed and not; keep one"
                if both
                else f"counters {when} the run, and none that can be read {other} it: no "
                f"difference to form; keep {result}.{other}.txt as well"
            )
            said[id(one)] = Skipped(one.source.file, why)
    if pair or samples:
        said[id(run)] = replace(
            run,
            level=Level.ENGINE if pair and run.requests is not None else run.level,
            server=ServerSide(counters=tuple(pair), samples=tuple(samples)),
        )
    said.update({id(one): None for one in (*pair, *samples)})
    return said


def _of_no_run(result: str, runs: int) -> str:
    if not result:
        return "belongs to no run: no run.json that can be read lies beside it"
    if not runs:
        return (
            f"belongs to no run: beside it lies no run.json and no result {result}.json that can "
            "be read; put it beside its result, named as that is"
        )
    return (
        f"is of one run, and {result}.json holds {plural(runs, 'run')}; keep each run's result in "
        "a file of its own"
    )
