"""Makes the runs of a plan: starts servers, drives them, and goes on where it was stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from collectors import profiling, rundir, uploading
from collectors.errors import BadInput, CollectError, Problem, ServerFailed
from collectors.host import Host
from collectors.profiler import Profiler
from collectors.progress import Progress, clock
from collectors.record import Identity, definition
from collectors.run import Made, make
from collectors.schedule import Job, Plan, Session
from collectors.sessions import Arms, Up
from collectors.settings import Settings
from collectors.strays import end_strays
from collectors.summary import Summary
from collectors.threads import at_once


class OutOfTime(Exception):
    """The deadline is near."""


class Campaign:
    """One call of `collect` over one plan."""

    def __init__(
        self, plan: Plan, host: Host, identity: Identity, settings: Settings, progress: Progress
    ) -> None:
        """Nothing is started yet.

        Args:
            plan: What to run.
            host: Where.
            identity: What goes into every record.
            settings: How.
            progress: Told how far it is.
        """
        self._plan = plan
        self._host = host
        self._identity = identity
        self._settings = settings
        self._progress = progress
        self._study = host.results / plan.study.name
        self._mark = str(self._study.resolve())
        self._longest: dict[tuple[str, int], float] = {}
        self.summary = Summary()

    def run(self) -> Summary:
        """Make every run that is not complete.

        Raises:
            BadInput: another collector is at work, or complete runs were made another way.
        """
        try:
            with rundir.locked(self._study):
                self._all()
        except OutOfTime:
            self.summary.stopped = "no time was left for another run (--deadline)"
        except KeyboardInterrupt:
            self.summary.stopped = "interrupted"
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            self.summary.stopped = f"{error.strerror or error}{where}"
        finally:
            self._progress.close()
        return self.summary

    def _all(self) -> None:
        end_strays(self._mark)
        for arm in self._plan.arms:
            halves = rundir.mark_halves(self._study / arm.name)
            self.summary.halves += [self._name(path) for path in halves]
        todo = self._todo()
        self.summary.left = [self._key(job) for job in self._plan.jobs if job in todo]
        self._progress.runs = len(todo)
        for session in self._plan.sessions:
            jobs = [job for job in session.jobs if job in todo]
            if jobs:
                self._session(session, jobs)
            self._upload(session.jobs)

    def _todo(self) -> set[Job]:
        """The runs that are not complete; complete ones must be of the same definition."""
        todo = set()
        for job in self._plan.jobs:
            folder = self._folder(job)
            if rundir.whole(folder):
                todo.add(job)
                continue
            before = (rundir.read_record(folder) or {}).get("definition")
            now = definition(self._plan.study, self._host, job)
            if before != now:
                keys = _differing(before, now)
                raise BadInput(
                    Problem(
                        self._name(folder),
                        f"was made in another way ({', '.join(keys)} differ)",
                        "runs of one study made alike",
                        "give another folder with --results, or rename this one",
                    )
                )
            self.summary.whole.append(self._key(job))
        return todo

    def _session(self, session: Session, jobs: Sequence[Job]) -> None:
        """Start the arms that still have runs, make them, stop the arms."""
        # Arms that share a GPU stay up together even if only one has runs left: the other's
        # memory is a condition of the measurement.
        self._in_time(None)
        arms = Arms.of(
            self._plan, self._host, session, self._settings, self._mark, self._progress.tell
        )
        try:
            # Arms that share a GPU fix their room for KV, so that they cannot take it from each
            # other: they start at the same time.
            at_once(
                lambda name: self._start(arms, name, jobs),
                session.arms,
                len(session.arms),
                arms.starter.cancel,
            )
            for name in sorted(arms.up):
                self._warm_up(name, jobs, arms.up[name])
            again = set(arms.up)
            for job in jobs:
                if job.arm in again and job.arm in arms.up and arms.up[job.arm].fleet.dead():
                    again.discard(job.arm)
                    arms.stop(job.arm)
                    rest = [other for other in jobs if self._key(other) in self.summary.left]
                    self._start(arms, job.arm, rest)
                    if job.arm in arms.up:
                        self._warm_up(job.arm, rest, arms.up[job.arm])
                if job.arm in arms.up and not arms.up[job.arm].fleet.dead():
                    self._in_time(job)
                    self._one(job, arms.up[job.arm])
        finally:
            arms.close()

    def _start(self, arms: Arms, name: str, jobs: Sequence[Job]) -> None:
        """Start an arm; if it does not start, its runs of this session have failed."""
        try:
            arms.start(name)
        except ServerFailed as error:
            for job in jobs:
                if job.arm == name:
                    self._failed(job, str(error))
            self._progress.tell(str(error))

    def _warm_up(self, name: str, jobs: Sequence[Job], up: Up) -> None:
        """Drive a fresh server with other prompts than any that are measured."""
        mine = [job for job in jobs if job.arm == name]
        if not mine or self._plan.profiled:
            # A capture warms up its own batch.
            return
        job = max(mine, key=lambda job: job.concurrency)
        self._progress.tell(f"{job.arm}: warm-up with {job.concurrency} prompts")
        make(
            self._plan,
            self._host,
            self._identity,
            _warm(job),
            up.fleet,
            None,
            self._settings.start,
            up.stem.parent / f"{up.stem.name}-warmup",
        )

    def _one(self, job: Job, up: Up) -> Made:
        arms = [arm.name for arm in self._plan.arms]
        self._progress.begins(
            f"arm {job.arm} ({arms.index(job.arm) + 1} of {len(arms)}), {job.name}"
        )
        began = time.monotonic()
        made = self._make(job, up)
        took = time.monotonic() - began
        key = (job.workload, job.concurrency)
        self._longest[key] = max(self._longest.get(key, 0.0), took)
        if made.outcome.state == "complete":
            self.summary.left.remove(self._key(job))
            self.summary.made.append(self._key(job))
        else:
            self._failed(job, made.outcome.reason)
        note = f": {made.outcome.reason}" if made.outcome.reason else ""
        self._progress.ends(f"{self._key(job)}: {made.outcome.state} after {clock(took)}{note}")
        return made

    def _make(self, job: Job, up: Up) -> Made:
        plan, folder = self._plan, self._folder(job)
        if isinstance(up.watcher, Profiler):
            return profiling.make(
                plan, self._host, self._identity, job, up.fleet, up.watcher, folder
            )
        return make(
            plan,
            self._host,
            self._identity,
            job,
            up.fleet,
            up.watcher,
            self._settings.start,
            folder,
            keep_texts=self._settings.keep_texts,
        )

    def _failed(self, job: Job, reason: str) -> None:
        key = self._key(job)
        if key in self.summary.left:
            self.summary.left.remove(key)
        self.summary.failed[key] = reason

    def _in_time(self, job: Job | None) -> None:
        """Raises OutOfTime: the deadline would come before the run's end, as far as is known."""
        if self._settings.deadline is None:
            return
        longest = 0.0 if job is None else self._longest.get((job.workload, job.concurrency), 0.0)
        if time.monotonic() + longest > self._settings.deadline:
            raise OutOfTime

    def _upload(self, jobs: Sequence[Job]) -> None:
        """Copy a session's runs to where the user wants them, those of earlier calls too."""
        if not self._host.upload:
            return
        for job in jobs:
            folder = self._folder(job)
            if not rundir.whole(folder):
                try:
                    uploading.send(folder, self._host.upload, self._key(job))
                except CollectError as error:
                    self.summary.failed[f"upload of {self._key(job)}"] = str(error)
                    self._progress.tell(str(error))

    def _folder(self, job: Job) -> Path:
        return self._study / job.arm / job.name

    def _key(self, job: Job) -> str:
        return f"{self._plan.study.name}/{job.arm}/{job.name}"

    def _name(self, folder: Path) -> str:
        return folder.relative_to(self._host.results).as_posix()


def _warm(job: Job) -> Job:
    """A run of a server that has just started: one wave of prompts that no measured run sends."""
    return Job(
        arm=job.arm,
        workload=job.workload,
        concurrency=job.concurrency,
        prompts=job.concurrency,
        repeat=0,
        seed=job.seed + 500_000,
        clients=job.clients,
    )


def _differing(before: object, now: Mapping[str, object]) -> list[str]:
    if not isinstance(before, dict):
        return ["its definition"]
    return sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
