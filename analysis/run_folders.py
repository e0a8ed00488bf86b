"""Puts the files of a collected run together: run.json, the clients' results, the servers' own.

    records = gathered(records of a folder's files)

A folder with a run.json is one run. Its arm, workload and load are those of the record; the files
bench-0.json, bench-1.json ... in it are the clients of one run, driven at the same time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from analysis.joined_clients import together
from analysis.loose_evidence import attached
from analysis.model import (
    Collected,
    Counters,
    Figure,
    GpuSamples,
    Ignored,
    KernelTrace,
    Level,
    MetricSamples,
    Record,
    Run,
    ServerSide,
    ServerTimes,
    Skipped,
    Source,
    Startup,
    Steps,
)
from analysis.wording import plural

_FOR_PEOPLE = re.compile(r"client(?:-\d+)?\.log|router\.log")
"""Files of a run that no number is taken from."""

_RESULT = re.compile(r"bench(?:-\d+)?\.json(?:\.gz)?")
_LOG = re.compile(r"(?P<server>server|replica-\d+)\.log(?:\.gz)?")
_PUT_ASIDE = re.compile(r"(?P<run>.+)\.(?:half|failed)-\d+")
"""What the collector calls the folder of a try that it put aside to make the run anew."""

Evidence = Steps | ServerTimes | Counters | MetricSamples | GpuSamples
Member = Run | Startup | Evidence


def gathered(records: Iterable[Record]) -> list[Record]:
    """The records, with those of a collected run made one `Run` and the log of its servers.

    A run that did not end well is one line that says so, whatever lies beside it. Evidence beside
    no run.json is that of the result it is named as (`analysis.loose_evidence`), or `Skipped`.
    """
    everything = list(records)
    heads = {_folder(one): one for one in everything if isinstance(one, Collected)}
    profiles = {_folder_of_profile(one, heads) for one in everything} - {""}
    members: dict[str, list[Member]] = {folder: [] for folder in heads}
    found: list[Record] = []
    loose: list[Record] = []
    for record in everything:
        folder = _folder(record)
        if isinstance(record, KernelTrace):
            found.append(_trace(record, heads))
        elif folder not in heads:
            loose.append(record)
        elif isinstance(record, Member):
            members[folder].append(record)
        elif not isinstance(record, Collected):
            found.append(_kept(record))
    found += [_alone(record) for record in attached(loose)]
    for folder, head in heads.items():
        if folder in profiles and not any(isinstance(one, Run) for one in members[folder]):
            found += _profile(head, members[folder])
        else:
            made = _run(head, members[folder], heads)
            found += map(_profiled, made) if folder in profiles else made
    # In the order that the records came in, which is that of a walk.
    places = {_file(record): place for place, record in reversed(list(enumerate(everything)))}
    return sorted(found, key=lambda record: places[_file(record)])


def _file(record: Record) -> str:
    return record.file if isinstance(record, Skipped | Ignored) else record.source.file


def _folder(record: Record) -> str:
    return str(PurePosixPath(_file(record)).parent)


def _name(record: Record) -> str:
    return PurePosixPath(_file(record)).name


def _folder_of_profile(record: Record, heads: Collection[str]) -> str:
    """The run folder that a profiler's trace lies in, at any depth; empty for anything else."""
    if not isinstance(record, KernelTrace):
        return ""
    above = map(str, PurePosixPath(record.source.file).parents)
    return next((folder for folder in above if folder in heads), "")


def _trace(trace: KernelTrace, heads: Mapping[str, Collected]) -> Record:
    """A trace with the arm that the record of its folder names."""
    head = heads.get(_folder_of_profile(trace, heads))
    if head is None:
        return trace
    if head.state != "complete":
        return replace(_not_measured(head, heads), file=trace.source.file)
    return replace(trace, arm=head.arm)


def _profiled(record: Record) -> Record:
    """A run during which a profiler recorded, with a warning."""
    if not isinstance(record, Run):
        return record
    note = "a profiler recorded during this run: its latencies are longer than without"
    return replace(record, warnings=(*record.warnings, note))


def _profile(head: Collected, members: Sequence[Member]) -> list[Record]:
    """The folder of a profile: no run was measured in it, for a profiler slows the host."""
    note = "of a profile, whose traces are read"
    return [Ignored(one.source.file, note) for one in (head, *members)]


def _alone(record: Record) -> Record:
    """A record of no run folder: what a server told means nothing there.

    But for samples of a GPU, which may name the runs beside them.
    """
    if not isinstance(record, Evidence) or isinstance(record, GpuSamples):
        return record
    why = "belongs to no run: no run.json that can be read lies beside it"
    return Skipped(record.source.file, why)


def _kept(record: Record) -> Record:
    """What a collector keeps for people, or for later: no fault of the folder."""
    if not isinstance(record, Skipped) or not _FOR_PEOPLE.fullmatch(_name(record)):
        return record
    return Ignored(record.file, "what a client or a router printed")


def _run(
    head: Collected, members: Sequence[Member], heads: Mapping[str, Collected]
) -> list[Record]:
    """The run of a folder and what else is said of its files."""
    if head.state != "complete":
        return [_not_measured(head, heads)]
    results = [one for one in members if isinstance(one, Run)]
    clients = [one for one in results if _RESULT.fullmatch(_name(one))]
    logs, more = _logs(head, [one for one in members if isinstance(one, Startup)])
    more += [
        Skipped(one.source.file, "no result of this folder's run, whose are bench*.json; move it")
        for one in results
        if one not in clients
    ]
    wrong = _mismatch(head, clients)
    if wrong:
        return [Skipped(head.source.file, wrong), *more]
    server, warnings = _server(head, [one for one in members if isinstance(one, Evidence)])
    run = clients[0] if len(clients) == 1 else together(clients)
    watched = bool(server.steps or server.times or server.counters)
    told = watched or bool(server.samples or server.served) or server.gpu is not None
    found = replace(
        run,
        level=Level.ENGINE if watched and run.requests is not None else run.level,
        server=server if told else None,
        config={**run.config, **head.config},
        arm=head.arm,
        workload=head.workload,
        concurrency=head.concurrency,
        warnings=(*run.warnings, *head.warnings, *warnings, *_unequal(logs)),
    )
    return [found, *logs[:1], *more]


def _not_measured(head: Collected, heads: Mapping[str, Collected]) -> Skipped:
    """The line for a run that did not end well; nothing is wrong where it was made anew."""
    aside = _PUT_ASIDE.fullmatch(_folder(head))
    anew = heads.get(aside["run"]) if aside else None
    made = anew is not None and anew.state == "complete"
    reason = f" ({head.reason})" if head.reason else ""
    next_ = "it was made anew" if made else "`collect` again makes it anew"
    said = f"the collector's run is {head.state}{reason}; {next_}"
    return Skipped(head.source.file, said, wanted=made or head.state == "interrupted")


def _mismatch(head: Collected, clients: Sequence[Run]) -> str:
    """Why the results beside a record are not those of its run; empty where they are."""
    if not clients:
        return "no result that can be read lies beside it"
    if head.clients is not None and len(clients) != head.clients:
        read = f"{plural(len(clients), 'result')} of theirs can be read"
        return f"{plural(head.clients, 'client')} drove it, and {read}; collect again"
    said = {
        "study": head.config.get("study"),
        "arm": head.arm,
        "workload": head.workload,
        "repeat": head.config.get("repeat"),
        "in_flight_total": head.concurrency,
    }
    for client in clients:
        for key, wanted in said.items():
            held = client.config.get(key)
            # The client keeps its metadata as text.
            if held is not None and wanted is not None and str(held) != str(wanted):
                return (
                    f"says {key} {wanted}, and {_name(client)} beside it says {held}: files of "
                    "two runs; keep each run's in its own folder"
                )
    return ""


def _logs(head: Collected, startups: Sequence[Startup]) -> tuple[list[Startup], list[Record]]:
    """Logs of the run's servers with the KV that they had when driven, and all else."""
    mine: list[Startup] = []
    others: list[Record] = []
    for startup in startups:
        server = _LOG.fullmatch(_name(startup))
        if server is None:
            others.append(startup)
            continue
        if mine:
            note = f"a replica of the server that {_name(mine[0])} is of"
            others.append(Ignored(startup.source.file, note))
        mine.append(_as_driven(startup, head, server["server"]))
    return mine, others


def _as_driven(startup: Startup, head: Collected, server: str) -> Startup:
    """A log whose first start was another one (replicas are made equal) tells of that one."""
    tokens, printed = head.kv_tokens.get(server), startup.figures.get("kv_tokens")
    if tokens is None or (printed is not None and printed.value == tokens):
        return startup
    n, source = float(tokens), Source(head.source.file, f"servers, {server}: kv_tokens")
    figures = {
        name: figure
        for name, figure in startup.figures.items()
        if name not in ("kv_bytes", "reported_max_concurrency")
    }
    figures["kv_tokens"] = Figure("kv_tokens", n, n, n, "tok", source)
    return replace(startup, figures=figures)


def _unequal(logs: Sequence[Startup]) -> tuple[str, ...]:
    """A warning where replicas do not hold equal KV, so that a router's results say little."""
    sizes = {log.figures["kv_tokens"].value for log in logs if "kv_tokens" in log.figures}
    if len(sizes) < 2:
        return ()
    return (f"replicas hold between {min(sizes):,.0f} and {max(sizes):,.0f} tokens of KV",)


def _server(head: Collected, evidence: Sequence[Evidence]) -> tuple[ServerSide, tuple[str, ...]]:
    """What the servers told, and warnings: of some engines only, it tells too little of the run."""
    steps = [one for one in evidence if isinstance(one, Steps)]
    warnings: tuple[str, ...] = ()
    if 0 < len(steps) < head.engines:
        warnings = (f"steps of {len(steps)} of {head.engines} engines: not used",)
        steps = []
    counters = [one for one in evidence if isinstance(one, Counters)]
    moments = Counter(one.engine for one in counters)
    server = ServerSide(
        steps=tuple(steps),
        times=tuple(one for one in evidence if isinstance(one, ServerTimes)),
        # A difference needs both moments.
        counters=tuple(one for one in counters if moments[one.engine] == 2),
        samples=tuple(one for one in evidence if isinstance(one, MetricSamples)),
        served=head.served,
        gpu=next((one for one in evidence if isinstance(one, GpuSamples)), None),
    )
    return server, warnings
