"""Datasets of a plan: present, long enough, and how much of them a server's limit would reject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collectors import datasets, inspection, tokenizer, workload_lengths
from collectors.errors import Problem
from collectors.flags import values
from collectors.host import Host
from collectors.schedule import Job, Plan
from collectors.study import Workload
from collectors.workload_lengths import Lengths

_LARGE = 50_000_000
"""Bytes from which a file is read whole only where its prompts are counted as well."""
_FROM_FILE = ("sharegpt", "custom")


@dataclass(slots=True)
class Looked:
    """What was found of all workloads."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lengths: dict[str, Lengths] = field(default_factory=dict)
    """By workload, where they are known."""


def look(
    plan: Plan, host: Host, folders: Mapping[str, Path], *, deep: bool, python: str = ""
) -> Looked:
    """Read the datasets and count their prompts as the client will draw them.

    Args:
        plan: Its workloads and jobs.
        host: Where the files are.
        folders: Of models, by the study's name for them: whose tokenizer counts.
        deep: Whether prompts are counted; else files are only looked at.
        python: An interpreter that has `tokenizers`, where this one has not.
    """
    found = Looked()
    loaded: dict[Path, tuple[datasets.Pair, ...] | Problem] = {}
    for workload in plan.workloads:
        jobs = [job for job in plan.jobs if job.workload == workload.name]
        path = host.dataset(workload)
        if path is None:
            _made(workload, found)
            continue
        problem = datasets.quick_look(path)
        if problem is not None:
            found.problems.append(problem)
            continue
        if not deep and path.stat().st_size > _LARGE:
            continue
        if path not in loaded:
            loaded[path] = datasets.load(path)
        pairs = loaded[path]
        if isinstance(pairs, Problem):
            found.problems.append(pairs)
            continue
        count = _counter(plan, jobs, folders, python) if deep else None
        _read(workload, jobs, path, pairs, count, found)
    found.problems[:] = dict.fromkeys(found.problems)
    return found


def _made(workload: Workload, found: Looked) -> None:
    """Prompts that the client makes by its flags."""
    lengths = workload_lengths.of_flags(workload.flags)
    if lengths is not None:
        found.lengths[workload.name] = lengths
    name = values(workload.flags, "--dataset-name") or "random"
    if name in _FROM_FILE and values(workload.flags, "--dataset-path") is None:
        found.problems.append(
            Problem(
                f"workload {workload.name!r}",
                f"--dataset-name {name} and no file",
                todo='write dataset = "FILE" in the study',
            )
        )


def _counter(
    plan: Plan, jobs: Sequence[Job], folders: Mapping[str, Path], python: str
) -> datasets.Count | Problem | None:
    """By the tokenizer of the first model that has one; None: no model is on this machine."""
    models = dict.fromkeys(plan.study.arms[job.arm].model for job in jobs)
    failed: Problem | None = None
    for model in models:
        if model in folders:
            count = tokenizer.counter(folders[model], python)
            if not isinstance(count, Problem):
                return count
            failed = count
    return failed


def _read(
    workload: Workload,
    jobs: Sequence[Job],
    path: Path,
    pairs: Sequence[datasets.Pair],
    count: datasets.Count | Problem | None,
    found: Looked,
) -> None:
    """Prompts of a file."""
    most = max(jobs, key=lambda job: job.prompts)
    where = f"workload {workload.name!r}"
    if len(pairs) < most.prompts:
        found.problems.append(_short(where, path, len(pairs), most.prompts))
        return
    if count is None or isinstance(count, Problem):
        if count is not None:
            found.notes.append(f"{where}: lengths are not known: {count}")
        return
    name = values(workload.flags, "--dataset-name")
    try:
        drawn = datasets.sample(
            pairs,
            most.prompts,
            most.seed,
            count,
            output_len=workload_lengths.output_len(workload.flags),
            filtered=name == "sharegpt",
            shuffled="--disable-shuffle" not in workload.flags,
        )
    except tokenizer.TokenizerFailed as error:
        found.notes.append(f"{where}: lengths are not known: {error}")
        return
    if len(drawn.requests) < most.prompts:
        found.problems.append(_short(where, path, len(drawn.requests), most.prompts))
    lengths = workload_lengths.of_requests(drawn.requests)
    if lengths is not None:
        found.lengths[workload.name] = lengths
        told = inspection.summary(drawn.requests)
        found.notes += [f"{where}: {told[0]}", f"{where}: {told[1]}", f"{where}: {told[2]}"]


def _short(where: str, path: Path, there: int, asked: int) -> Problem:
    return Problem(
        where,
        f"{path.name} has {there:,} prompts that can be sent, and the client would repeat some",
        f"{asked:,}",
        f"ask for no more than {there} (--prompts {there})" if there else "name another file",
    )


def rejected(
    plan: Plan, limits: Mapping[str, int], lengths: Mapping[str, Lengths]
) -> tuple[list[Problem], list[str]]:
    """What servers would refuse: everything of a workload is a problem, some of it a note.

    Args:
        plan: Its jobs.
        limits: Longest request of an arm, tokens.
        lengths: By workload.
    """
    found: list[Problem] = []
    notes: list[str] = []
    for arm, name in dict.fromkeys((job.arm, job.workload) for job in plan.jobs):
        if arm not in limits or name not in lengths:
            continue
        known, limit = lengths[name], limits[arm]
        over = inspection.rejected(known.totals, limit)
        where = f"arm {arm!r}, workload {name!r}"
        if over and known.drawn and over < len(known.totals):
            notes.append(
                f"{where}: max_model_len {limit:,} rejects {_share(over, known.totals)} requests; "
                "they count as failed"
            )
        elif over and min(known.totals) > limit and (known.drawn or _mean(known) > limit):
            found.append(
                Problem(
                    where,
                    f"max_model_len {limit:,} rejects every request",
                    f"{max(known.totals):,} tokens",
                    "raise --max-model-len, or shorten the prompts",
                )
            )
        elif over:
            notes.append(f"{where}: max_model_len {limit:,} rejects the longest requests")
    return found, notes


def _mean(known: Lengths) -> float:
    return known.mean_input + known.mean_output


def _share(over: int, totals: Iterable[int]) -> str:
    return f"{over:,} of {sum(1 for _ in totals):,}"
