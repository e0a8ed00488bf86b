"""Study -> the runs to make, in a seeded and interleaved order (pure).

A *session* is one start of the servers of one arm, or of several arms that share a GPU. Repeats
are dealt out to sessions, and the order of arms and of runs is drawn afresh for each, so that a
host that drifts (clocks, neighbours, temperature) does not drift along with an arm.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from collectors.errors import BadInput, Problem
from collectors.flags import given, plain
from collectors.study import DIRECT, MOST_RUNS, Arm, Load, Study, Workload
from collectors.tables import nearest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Selection:
    """What the user wants of a study; empty: all of it."""

    arms: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    concurrency: tuple[int, ...] = ()
    repeats: int | None = None
    prompts: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One run: an arm under a load, once."""

    arm: str
    workload: str
    concurrency: int
    """Requests in flight in all, over the clients of an arm without a router."""
    prompts: int
    repeat: int
    """From 1."""
    seed: int
    """Of the prompts: the same for every arm, another for each repeat."""
    clients: int = 1
    profiled: bool = False
    """Whether steps are recorded by a profiler, at so many requests in flight."""

    @property
    def name(self) -> str:
        """Folder of the run below its arm's."""
        if self.profiled:
            return f"{self.workload}-b{self.concurrency}"
        return f"{self.workload}-c{self.concurrency}-r{self.repeat}"

    @property
    def cap(self) -> int:
        """Requests in flight of one client."""
        return self.concurrency // self.clients


@dataclass(frozen=True, slots=True)
class Session:
    """One start of servers, and the runs they are driven with."""

    start: int
    """Which start of these arms it is, from 1."""
    arms: tuple[str, ...]
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """All sessions of a study, in their order."""

    study: Study
    sessions: tuple[Session, ...]
    seed: int
    notes: tuple[str, ...] = ()
    """What the study asks for and cannot be run as asked, one line each."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All runs, in their order."""
        return tuple(job for session in self.sessions for job in session.jobs)

    @property
    def profiled(self) -> bool:
        """Whether its runs are captures of a profiler."""
        return any(job.profiled for session in self.sessions for job in session.jobs)

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that are run, in the study's order."""
        used = {name for session in self.sessions for name in session.arms}
        return tuple(arm for arm in self.study.arm if arm.name in used)

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """The workloads that are run, in the study's order."""
        used = {job.workload for job in self.jobs}
        return tuple(work for work in self.study.workload if work.name in used)


def plan(study: Study, wanted: Selection = Selection()) -> Plan:
    """The runs of a study, in order.

    A load that no workload asked for lists is run with the number of prompts of the listed load
    nearest to it, no fewer than four times the requests in flight.

    Raises:
        BadInput: an arm or workload that the study has not.
    """
    arms = _named(wanted.arms, study.arms, "arm", study.name)
    workloads = _named(wanted.workloads, study.workloads, "workload", study.name)
    jobs: list[Job] = []
    notes: dict[str, None] = dict.fromkeys(_unmeasured(study, arms))
    listed = {load.concurrency for workload in workloads for load in workload.loads}
    for workload in workloads:
        for load in _loads(workload, wanted, listed):
            for arm in arms:
                if load.arms and arm.name not in load.arms:
                    continue
                jobs += _repeats(study, arm, workload, load, wanted, notes)
                if len(jobs) > MOST_RUNS:
                    raise BadInput(
                        Problem(
                            f"study {study.name!r}",
                            f"has more than {MOST_RUNS:,} runs",
                            todo="ask for fewer repeats, or part of it: --arm, --workload",
                        )
                    )
    # Two loads may become the same one when clients share them.
    unique = list({(job.arm, job.name): job for job in reversed(jobs)}.values())[::-1]
    sessions = tuple(_sessions(study, arms, unique))
    return Plan(study, sessions, study.seed, tuple(notes))


def _named(names: Sequence[str], known: Mapping[str, T], what: str, study: str) -> list[T]:
    for name in names:
        if name not in known:
            raise BadInput(
                Problem(
                    f"{what} {name!r}", f"is not in the study {study!r}", todo=nearest(name, known)
                )
            )
    return [item for name, item in known.items() if not names or name in names]


def _loads(workload: Workload, wanted: Selection, listed: Collection[int]) -> list[Load]:
    """The loads asked for: one that some workload lists is that one's alone."""
    if not wanted.concurrency:
        return list(workload.loads)
    found = []
    for concurrency in dict.fromkeys(wanted.concurrency):
        same = [load for load in workload.loads if load.concurrency == concurrency]
        near = min(workload.loads, key=lambda load: abs(load.concurrency - concurrency))
        new = Load(concurrency, max(near.prompts, 4 * concurrency))
        found += same or ([] if concurrency in listed else [new])
    return found


def _repeats(
    study: Study,
    arm: Arm,
    workload: Workload,
    load: Load,
    wanted: Selection,
    notes: dict[str, None],
) -> list[Job]:
    clients = arm.replicas if arm.router == DIRECT else 1
    total = clients * -(-load.concurrency // clients)
    prompts = max(wanted.prompts or load.prompts, clients)
    if prompts < total:
        notes[
            f"workload {workload.name!r}: {prompts} prompts never make {total} requests in flight"
        ] = None
    if total != load.concurrency:
        notes[
            f"arm {arm.name!r}: {load.concurrency} in flight cannot be shared by {clients} "
            f"clients; {total} are run, and recorded as {total}"
        ] = None
    repeats = wanted.repeats or load.repeats or study.repeats
    return [
        Job(
            arm=arm.name,
            workload=workload.name,
            concurrency=total,
            prompts=prompts,
            repeat=repeat,
            seed=study.seed % 1_000_000 + repeat,
            clients=clients,
        )
        for repeat in range(1, repeats + 1)
    ]


def _unmeasured(study: Study, arms: Sequence[Arm]) -> Iterable[str]:
    """Arms whose flags switch off what they are measured by."""
    for arm in arms:
        said = [plain(flag.said) for flag in given((*study.servers.flags, *arm.flags))[1]]
        if not any("--disable-log-stats".startswith(flag) and len(flag) > 11 for flag in said):
            continue
        if arm.telemetry:
            # vLLM takes a stat logger that is there for a wish for statistics.
            yield (
                f"arm {arm.name!r}: --disable-log-stats is undone by what records its steps: its "
                "servers count, and are measured as if the flag were not there; drop it"
            )
        else:
            yield (
                f"arm {arm.name!r}: --disable-log-stats without telemetry leaves no counter of its "
                "servers: no queue, no preemptions, no KV use; its waiting can only be reckoned "
                "from the client's side"
            )


def _sessions(study: Study, arms: Sequence[Arm], jobs: Sequence[Job]) -> Iterable[Session]:
    groups: dict[tuple[str, str], list[str]] = {}
    for arm in arms:
        alone = "" if arm.shares_gpu else arm.name
        groups.setdefault((arm.shares_gpu, alone), []).append(arm.name)
    most = max((job.repeat for job in jobs), default=0)
    starts = min(study.starts or most, most)
    firsts: Counter[object] = Counter()
    for start in range(1, starts + 1):
        draw = random.Random(f"{study.seed}:{start}")  # noqa: S311 - an order, no secret
        order = [tuple(members) for members in groups.values()]
        for members in _drawn(order, draw, firsts, ""):
            mine = [
                job for job in jobs if job.arm in members and (job.repeat - 1) % starts == start - 1
            ]
            if mine:
                yield Session(start, members, tuple(_interleaved(mine, draw, firsts)))


def _drawn(
    items: Sequence[T], draw: random.Random, firsts: Counter[object], place: object
) -> list[T]:
    """A random order; the first is one that has been first least often in this place.

    What comes first meets the host as the last pause left it, so no arm may always be that.
    """
    order = list(items)
    draw.shuffle(order)
    first = min(order, key=lambda item: firsts[place, item])
    firsts[place, first] += 1
    return [first, *(item for item in order if item != first)]


def _interleaved(
    jobs: Sequence[Job], draw: random.Random, firsts: Counter[object]
) -> Iterable[Job]:
    """Repeat by repeat; within one, the loads in a drawn order, and the arms in one for each."""
    cells: dict[tuple[int, str, int], list[Job]] = {}
    for job in jobs:
        cells.setdefault((job.repeat, job.workload, job.concurrency), []).append(job)
    for repeat in sorted({job.repeat for job in jobs}):
        mine = [key for key in cells if key[0] == repeat]
        draw.shuffle(mine)
        for key in mine:
            by_arm = {job.arm: job for job in cells[key]}
            for arm in _drawn(list(by_arm), draw, firsts, key[1:]):
                yield by_arm[arm]
