"""Records of a folder -> a study: arms, workloads and cells.

What a result file does not say of itself (arm, workload, GPU) comes from study.toml; without
one, an arm is a group of runs whose server configuration is equal and a workload is a group of
runs that sent the same number of prompts and prompt tokens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import msgspec

from analysis.accounting import Borrowed, ledger
from analysis.arm_names import named_arms
from analysis.assigning import assigned, skipped_by_rule
from analysis.dataset import Arm, Cell, Study
from analysis.gpu_binding import with_samples
from analysis.kernel_binding import bind_traces
from analysis.model import (
    GpuSamples,
    HelpText,
    KernelTrace,
    Lengths,
    ModelShape,
    Quoted,
    Record,
    Run,
    Scalar,
    Skipped,
    Startup,
)
from analysis.model_binding import bind_models
from analysis.server_config import LOG_FILE, canonical, said_by, server_side
from analysis.server_logs import logs_of, unused_logs, with_logs
from analysis.spec_check import absent_logs, doubts
from analysis.study import ArmSpec, LeftOut, StudySpec, arm_config, flags_of

_TEXTS = ("model", "gpu", "version", "quantization")
_COUNTS = (
    "tensor_parallel",
    "pipeline_parallel",
    "replicas",
    "max_num_seqs",
    "max_model_len",
    "max_num_batched_tokens",
    "block_size",
)
"""Fields of an arm that a result file, a sweep or a server's log may fill in."""


def build_study(
    name: str,
    spec: StudySpec,
    records: Sequence[Record],
    *,
    folder: str = "",
    claims: Sequence[Mapping[str, object]] = (),
    claims_file: str = "",
) -> Study:
    """Group a study's records into arms and cells."""
    prefix = f"{folder}/" if folder else ""
    spec_file = f"{prefix}study.toml"
    startups = [record for record in records if isinstance(record, Startup)]
    logs = logs_of(startups)
    measured, no_runs = with_samples(
        [record for record in records if isinstance(record, Run)],
        [record for record in records if isinstance(record, GpuSamples)],
    )
    rules = assigned(measured, spec.assign)
    by_arm = {arm.name: arm.log for arm in spec.arm}
    named = {
        run.id: _below(prefix, rules.logs.get(run.id) or by_arm.get(run.arm, ""))
        for run in (*rules.runs, *rules.left_out)
    }
    left_out = with_logs(rules.left_out, logs, named)
    runs = named_arms(with_logs(rules.runs, logs, named))
    runs = [run if run.workload else replace(run, workload=_workload(run)) for run in runs]
    arms = _arms(name, spec, runs, startups, spec_file, prefix)
    shapes = [record for record in records if isinstance(record, ModelShape)]
    own_models, unused = bind_models([arm.spec for arm in arms.values()], runs, shapes, folder)
    traces = [record for record in records if isinstance(record, KernelTrace)]
    bound = bind_traces(traces, arms, runs, prefix)
    arms = {
        key: replace(arm, own_model=own_models.get(key), traces=bound.of_arm.get(key, ()))
        for key, arm in arms.items()
    }
    wanted = {f"arm {arm.name!r}": arm.log for arm in spec.arm if arm.log}
    wanted |= {
        f"[[assign]] number {number}": rule.log
        for number, rule in enumerate(spec.assign, start=1)
        if rule.log
    }
    remarks = [
        *doubts(spec, arms, [*runs, *left_out], startups),
        *rules.unmatched,
        *absent_logs(wanted, logs, prefix),
        *bound.absent,
    ]
    used = [arm.startup.source.file for arm in arms.values() if arm.startup is not None]
    skipped = (
        *unused,
        *no_runs,
        *bound.unused,
        *(skipped_by_rule(run) for run in left_out),
        *unused_logs([*runs, *left_out], logs, used),
        *(Skipped(spec_file, remark) for remark in remarks),
    )
    groups: dict[tuple[str, str, int | None], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.arm, run.workload, run.concurrency), []).append(run)
    borrowed = {
        workload.name: _borrow(
            workload.reference.arm, workload.reference.concurrency, workload.name, groups
        )
        for workload in spec.workload
        if workload.reference is not None
    }
    cells = [
        Cell(arms[arm], workload, load, tuple(ledger(run, borrowed.get(workload)) for run in group))
        for (arm, workload, load), group in groups.items()
    ]
    order = {arm: place for place, arm in enumerate(arms)}
    seen = {name: place for place, name in enumerate(dict.fromkeys(run.workload for run in runs))}
    cells.sort(key=lambda c: (order[c.arm.name], seen[c.workload], c.concurrency or 0))
    return Study(
        name,
        spec,
        arms,
        tuple(cells),
        lengths={r.source.file: r for r in records if isinstance(r, Lengths)},
        quoted=tuple(r for r in records if isinstance(r, Quoted)),
        help_texts=tuple(r for r in records if isinstance(r, HelpText)),
        claims=tuple(claims),
        claims_file=claims_file,
        folder=folder,
        skipped=skipped,
    )


def _below(prefix: str, file: str) -> str:
    """A file that study.toml names, as records name it."""
    return prefix + PurePosixPath(file).as_posix() if file else ""


def _workload(run: Run) -> str:
    """A name for what was sent, from the prompts' count and tokens.

    The tokens of all prompts where they are recorded one by one: the total of a result file leaves
    out requests that failed, so that a run with failures would be another workload than its twin.
    """
    for key in ("bench.dataset_name", "dataset_name", "dataset"):
        if run.config.get(key):
            return str(run.config[key])
    sent = run.figures.get("num_prompts") or run.figures.get("completed")
    total = run.figures.get("total_input_tokens")
    tokens = None if total is None else total.value
    if run.requests is not None:
        tokens = float(run.requests.input_tokens.sum())
    if sent is None or tokens is None:
        return "unnamed workload"
    return f"{sent.value:,.0f} prompts of {tokens:,.0f} tokens"


def _arms(
    study: str,
    spec: StudySpec,
    runs: Sequence[Run],
    startups: Sequence[Startup],
    spec_file: str,
    prefix: str,
) -> dict[str, Arm]:
    """The arms that study.toml describes, in its order, then those that only files name."""
    arms: dict[str, Arm] = {}
    logs = logs_of(startups)
    of_arm: dict[str, list[Run]] = {}
    for run in runs:
        of_arm.setdefault(run.arm, []).append(run)
    for arm_spec in spec.arm:
        named = logs.get(_below(prefix, arm_spec.log))
        log = named or _log_of(of_arm.get(arm_spec.name, []), logs)
        table = _row_of(arm_spec.startup or arm_spec.name, startups)
        facts = {
            **_said(log),
            **_recorded(of_arm.get(arm_spec.name, [])),
            **_said(table),
            **flags_of(arm_spec),
        }
        filled = _filled(arm_spec, facts)
        config = arm_config(filled)
        config |= {key: value for key, value in facts.items() if key not in config}
        arms[arm_spec.name] = Arm(study, filled, config, named or table or log, spec_file)
    for name, own in of_arm.items():
        if name not in arms:
            log, table = _log_of(own[:1], logs), _row_of(name, startups)
            facts = {**_said(table), **server_side(own[0].config)}
            filled = _filled(ArmSpec(name=name), facts)
            arms[name] = Arm(study, filled, facts, table or log, spec_file)
    return arms


def _row_of(name: str, startups: Sequence[Startup]) -> Startup | None:
    """The row of a start-up table that belongs to an arm."""
    return next((startup for startup in startups if startup.arm == name), None)


def _log_of(runs: Sequence[Run], logs: Mapping[str, Startup]) -> Startup | None:
    """The log of the first run that has one."""
    files = (str(run.config[LOG_FILE]) for run in runs if LOG_FILE in run.config)
    return next((logs[file] for file in files if file in logs), None)


def _recorded(runs: Sequence[Run]) -> dict[str, Scalar]:
    """What a collector recorded of the arm's servers; nothing where it did not make the runs."""
    return server_side(runs[0].config) if runs and "collector" in runs[0].config else {}


def _said(startup: Startup | None) -> dict[str, Scalar]:
    return {} if startup is None else canonical(said_by(startup))


def _filled(spec: ArmSpec, facts: Mapping[str, Scalar]) -> ArmSpec:
    """An arm with the fields that its description leaves out as its files and its log say them."""
    fields: dict[str, object] = {
        name: str(facts[name]) for name in _TEXTS if name in facts and not getattr(spec, name)
    }
    for name in _COUNTS:
        known = getattr(spec, name)
        count = _count(facts.get(name))
        if count is not None and (known is None or isinstance(known, LeftOut)):
            fields[name] = count
    caching = facts.get("enable_prefix_caching")
    if spec.enable_prefix_caching is None and isinstance(caching, bool):
        fields["enable_prefix_caching"] = caching
    share = facts.get("gpu_memory_utilization")
    if spec.gpu_memory_utilization is None and isinstance(share, float) and math.isfinite(share):
        fields["gpu_memory_utilization"] = share
    found: ArmSpec = msgspec.structs.replace(spec, **fields)
    ranks = found.tensor_parallel * found.pipeline_parallel * found.replicas
    if isinstance(spec.gpus, LeftOut) and ranks > 1:
        found = msgspec.structs.replace(found, gpus=ranks)
    return found


def _count(value: Scalar) -> int | None:
    """A count of one at least, as a number or as text; None for anything else."""
    text = str(value)
    return int(text) if re.fullmatch(r"0*[1-9]\d{0,8}", text, re.ASCII) else None


def _borrow(
    arm: str,
    load: int | None,
    workload: str,
    groups: Mapping[tuple[str, str, int | None], Sequence[Run]],
) -> Borrowed | None:
    """Token counts of the reference cell's first run."""
    for (name, on, at), runs in groups.items():
        if name == arm and on == workload and (load is None or at == load):
            account = ledger(runs[0])
            of = f"{arm} on {workload}" + ("" if at is None else f" at {at} in flight")
            return Borrowed(account.mean_output_tokens, account.mean_tokens, of)
    return None
