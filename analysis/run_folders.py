"""Puts the files of a collected run together: run.json, the clients' results, the servers' own.

    records = gathered(scan(root))

A folder with a run.json is one run. Its arm, workload and load are those of the record; several
results in it are the clients of one run, driven at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np

from analysis.model import (
    Collected,
    Counters,
    Figure,
    Ignored,
    Ints,
    Level,
    Record,
    Requests,
    Run,
    ServerSide,
    ServerTimes,
    Skipped,
    Source,
    Steps,
)

_SUMS = ("completed", "failed", "num_prompts", "total_input_tokens", "total_output_tokens")
"""Figures of clients that add up."""

_FOR_PEOPLE = re.compile(r"client(?:-\d+)?\.log|router\.log|metrics-samples\.txt|gpu\.jsonl")
"""Files of a run that no number is taken from."""

Evidence = Steps | ServerTimes | Counters


def gathered(records: Iterable[Record]) -> list[Record]:
    """The records, with those of a collected run made one `Run`.

    What lies beside no run.json, or beside one of a run that did not end well, becomes `Skipped`.
    """
    everything = list(records)
    heads = {_folder(one): one for one in everything if isinstance(one, Collected)}
    members: dict[str, list[Run | Evidence]] = {}
    found: list[Record] = []
    for record in everything:
        if isinstance(record, Collected):
            continue
        if not isinstance(record, Run | Steps | ServerTimes | Counters):
            found.append(_kept(record, heads))
            continue
        head = heads.get(_folder(record))
        if head is not None:
            members.setdefault(_folder(record), []).append(record)
        elif isinstance(record, Run):
            found.append(record)
        else:
            found.append(
                Skipped(record.source.file, "belongs to no run: no run.json lies beside it")
            )
    for folder, head in heads.items():
        found += _run(head, members.get(folder, []))
    return sorted(found, key=_place)


def _kept(record: Record, heads: Mapping[str, Collected]) -> Record:
    """What a collector keeps for people, or for later: no fault of the folder."""
    if not isinstance(record, Skipped):
        return record
    path = PurePosixPath(record.file)
    if str(path.parent) in heads and _FOR_PEOPLE.fullmatch(path.name):
        return Ignored(record.file, "what a client or a router printed, and samples of the run")
    return record


def _folder(record: Collected | Run | Evidence) -> str:
    return str(PurePosixPath(record.source.file).parent)


def _place(record: Record) -> str:
    source = getattr(record, "source", None)
    return source.file if source is not None else getattr(record, "file", "")


def _run(head: Collected, members: Sequence[Run | Evidence]) -> list[Record]:
    """The run of a folder; of one that did not end well, why."""
    if head.state != "complete":
        reason = f" ({head.reason})" if head.reason else ""
        said = f"the collector's run is {head.state}{reason}; `collect` again makes it anew"
        return [Skipped(head.source.file, said, wanted=head.state == "interrupted")]
    clients = [one for one in members if isinstance(one, Run)]
    if not clients:
        return [Skipped(head.source.file, "no result that can be read lies beside it")]
    run = clients[0] if len(clients) == 1 else together(clients)
    server = ServerSide(
        steps=tuple(one for one in members if isinstance(one, Steps)),
        times=tuple(one for one in members if isinstance(one, ServerTimes)),
        counters=tuple(one for one in members if isinstance(one, Counters)),
    )
    watched = bool(server.steps or server.times or server.counters)
    level = Level.ENGINE if watched and run.requests is not None else run.level
    return [
        replace(
            run,
            level=level,
            server=server if watched else None,
            config={**run.config, **head.config},
            arm=head.arm,
            workload=head.workload,
            concurrency=head.concurrency,
            warnings=(*run.warnings, *head.warnings),
        )
    ]


def together(clients: Sequence[Run]) -> Run:
    """Clients that ran at the same time as one run: counts add up, the longest counts as duration.

    Means are over all requests. Percentiles and spreads of parts give none of the whole: they are
    left out.
    """
    first = clients[0]
    source = Source(first.source.file, f"and {len(clients) - 1} more clients beside it")

    def figure(name: str, value: float, unit: str) -> Figure:
        return Figure(name, value, value, value, unit, source)

    figures: dict[str, Figure] = {}
    for name in _SUMS:
        parts = [run.figures[name] for run in clients if name in run.figures]
        if len(parts) == len(clients):
            figures[name] = figure(name, sum(part.value for part in parts), parts[0].unit)
    duration = max(run.figures["duration"].value for run in clients)
    figures["duration"] = figure("duration", duration, "s")
    for name, count in (
        ("request_throughput", "completed"),
        ("output_throughput", "total_output_tokens"),
    ):
        if count in figures and name in first.figures:
            unit = first.figures[name].unit
            figures[name] = figure(name, figures[count].value / duration, unit)
    if {"total_input_tokens", "total_output_tokens"} <= figures.keys():
        tokens = figures["total_input_tokens"].value + figures["total_output_tokens"].value
        figures["total_token_throughput"] = figure(
            "total_token_throughput", tokens / duration, "tok/s"
        )
    for name, value in _means(clients).items():
        figures[name] = figure(name, value, "s")
    rates = {run.requested_rate for run in clients}
    return replace(
        first,
        id=f"{first.id} and {len(clients) - 1} more",
        source=source,
        level=min((run.level for run in clients), key=list(Level).index),
        figures=figures,
        requests=_requests([run.requests for run in clients]),
        also_in=tuple(run.source for run in clients[1:]),
        requested_rate=sum(run.requested_rate for run in clients)
        if len(rates) == 1
        else min(rates),
        warnings=tuple(dict.fromkeys(note for run in clients for note in run.warnings)),
    )


def _means(clients: Sequence[Run]) -> Mapping[str, float]:
    """Means over all requests, weighted by what each client averaged over."""
    weights = {
        "mean_ttft": [run.figures["completed"].value for run in clients],
        "mean_e2el": [run.figures["completed"].value for run in clients],
        "mean_tpot": [run.figures["completed"].value for run in clients],
        "mean_itl": [
            run.figures["total_output_tokens"].value - run.figures["completed"].value
            for run in clients
        ],
    }
    found = {}
    for name, weight in weights.items():
        values = [run.figures[name].value for run in clients if name in run.figures]
        if len(values) == len(clients) and sum(weight) > 0:
            found[name] = float(np.average(values, weights=weight))
    return found


def _requests(parts: Sequence[Requests | None]) -> Requests | None:
    """All requests of all clients; None where one has none."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    starts = [part.start for part in known if part.start is not None]
    return Requests(
        ttft=np.concatenate([part.ttft for part in known]),
        gaps=np.concatenate([part.gaps for part in known]),
        offsets=_joined([part.offsets for part in known]),
        input_tokens=np.concatenate([part.input_tokens for part in known]),
        output_tokens=np.concatenate([part.output_tokens for part in known]),
        failed=np.concatenate([part.failed for part in known]),
        # Clients of one host read one monotonic clock.
        start=np.concatenate(starts) if len(starts) == len(known) else None,
    )


def _joined(offsets: Sequence[Ints]) -> Ints:
    ends = np.cumsum([0, *(int(part[-1]) for part in offsets)])
    parts = [part[:-1] + end for part, end in zip(offsets, ends[:-1], strict=True)]
    return np.concatenate([*parts, ends[-1:]]).astype(np.int64)
