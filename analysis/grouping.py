"""Records of a folder -> a study: arms, workloads and cells.

What a result file does not say of itself (arm, workload, GPU) comes from study.toml; without
one, an arm is a group of runs whose server configuration is equal and a workload is a group of
runs that sent the same number of prompts and prompt tokens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from analysis.accounting import Borrowed, ledger
from analysis.dataset import Arm, Cell, Study
from analysis.model import HelpText, Lengths, ModelShape, Quoted, Record, Run, Scalar, Startup
from analysis.model_binding import bind_models
from analysis.study import ArmSpec, Assign, StudySpec, arm_config

CLIENT_KEYS = frozenset(
    {
        "date",
        "backend",
        "endpoint_type",
        "label",
        "tokenizer_id",
        "num_prompts",
        "request_rate",
        "burstiness",
        "max_concurrency",
        "ramp_up_strategy",
        "ramp_up_start_rps",
        "ramp_up_end_rps",
        "request_goodput",
        "seed",
        "max_output_tokens_per_s",
        "max_concurrent_requests",
        "rtfx",
        "run_number",
    }
)
"""Keys of a result file that say nothing about the server."""

_SPEC_KEYS = {
    "model": ("model", "model_id"),
    "gpu": ("gpu",),
    "version": ("version", "vllm_version"),
    "quantization": ("quantization",),
    "tensor_parallel": ("tensor_parallel_size", "tp"),
    "pipeline_parallel": ("pipeline_parallel_size", "pp"),
    "max_num_seqs": ("max_num_seqs",),
    "max_model_len": ("max_model_len",),
    "max_num_batched_tokens": ("max_num_batched_tokens",),
}
"""Field of an arm -> the names it goes by in result files, sweeps and server logs."""


_Config = tuple[tuple[str, Scalar], ...]
"""A server's configuration as sorted pairs, so that equal servers are equal keys."""


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
    startups = [record for record in records if isinstance(record, Startup)]
    runs = [
        _with_server_log(_assigned(record, spec.assign), startups)
        for record in records
        if isinstance(record, Run)
    ]
    runs = _named_arms(runs)
    runs = [run if run.workload else replace(run, workload=_workload(run)) for run in runs]
    spec_file = f"{folder}/study.toml".lstrip("/")
    arms = _arms(name, spec, runs, startups, spec_file)
    shapes = [record for record in records if isinstance(record, ModelShape)]
    own_models, unused = bind_models([arm.spec for arm in arms.values()], runs, shapes, folder)
    arms = {key: replace(arm, own_model=own_models.get(key)) for key, arm in arms.items()}
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
    first_seen = list(dict.fromkeys(run.workload for run in runs))
    cells.sort(key=lambda c: (order[c.arm.name], first_seen.index(c.workload), c.concurrency or 0))
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
        skipped=unused,
    )


def _assigned(run: Run, rules: Iterable[Assign]) -> Run:
    """The run with arm, workload and load as the first matching rule of each gives them."""
    facts: dict[str, Scalar] = {**run.config, "record": run.source.key, "file": run.source.file}
    facts.update({name: figure.value for name, figure in run.figures.items()})
    load: int | None = None
    for rule in rules:
        if all(_same(facts.get(key), value) for key, value in rule.where.items()):
            run = replace(run, arm=run.arm or rule.arm, workload=run.workload or rule.workload)
            load = rule.concurrency if load is None else load
    return run if load is None else replace(run, concurrency=load)


def _same(found: Scalar, wanted: Scalar) -> bool:
    if isinstance(found, str) and isinstance(wanted, str):
        return found == wanted or found.endswith(f"/{wanted}")
    return found == wanted


def _with_server_log(run: Run, startups: Sequence[Startup]) -> Run:
    """The run with what the nearest server log above it says (`server.` keys)."""
    best: Startup | None = None
    for startup in startups:
        if startup.arm:
            continue
        folder = startup.source.file.rpartition("/")[0]
        inside = not folder or run.source.file.startswith(folder + "/")
        if inside and (best is None or len(folder) > len(best.source.file.rpartition("/")[0])):
            best = startup
    if best is None:
        return run
    said = {f"server.{key}": value for key, value in best.config.items()}
    return replace(run, config={**run.config, **said, "server.log": best.source.file})


def _server_config(run: Run) -> _Config:
    skip = {"server.log"}
    return tuple(
        sorted(
            (key, value)
            for key, value in run.config.items()
            if key not in CLIENT_KEYS and key not in skip and not key.startswith("bench.")
        )
    )


_NAME_LENGTH = 80


def _named_arms(runs: Sequence[Run]) -> list[Run]:
    """Name the arms of runs that have none.

    By the folder that holds all runs of one server and none of another, where there is one; else
    by what differs between the servers.
    """
    files: dict[_Config, list[str]] = {}
    for run in runs:
        if not run.arm:
            files.setdefault(_server_config(run), []).append(run.source.file)
    varying = _varying([dict(config) for config in files])
    taken = {run.arm for run in runs if run.arm}
    names: dict[_Config, str] = {}
    for config in files:
        name = _own_folder(config, files) or _server_name(dict(config), varying)
        name = name[:_NAME_LENGTH]
        while name in taken:
            name += "'"
        taken.add(name)
        names[config] = name
    return [run if run.arm else replace(run, arm=names[_server_config(run)]) for run in runs]


def _varying(configs: Sequence[Mapping[str, Scalar]]) -> frozenset[str]:
    """Fields that are not equal in all servers."""
    keys = {key for config in configs for key in config}
    return frozenset(key for key in keys if len({config.get(key) for config in configs}) > 1)


def _own_folder(config: _Config, files: Mapping[_Config, Sequence[str]]) -> str:
    """Name of the deepest folder with all runs of this server, if it has no others."""
    parts = [file.split("/")[:-1] for file in files[config]]
    common: list[str] = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    prefix = "/".join(common) + "/"
    if not common or any(
        file.startswith(prefix)
        for other, theirs in files.items()
        if other != config
        for file in theirs
    ):
        return ""
    return common[-1]


def _server_name(facts: Mapping[str, Scalar], varying: Collection[str]) -> str:
    """The model's name and every field that is not equal in all servers."""
    model = str(facts.get("model_id") or facts.get("model") or "server").rstrip("/")
    differing: dict[str, Scalar] = {}
    for key, value in facts.items():
        if key in varying and key not in ("model_id", "model") and value is not None:
            # A sweep records a flag twice: in the result and in the folder's name.
            differing.setdefault(key.rpartition(".")[2], value)
    parts = [model.rpartition("/")[2], *(f"{key}={value}" for key, value in differing.items())]
    return " ".join(parts)


def _workload(run: Run) -> str:
    """A name for what was sent, from the prompts' count and tokens."""
    for key in ("bench.dataset_name", "dataset_name", "dataset"):
        if run.config.get(key):
            return str(run.config[key])
    sent = run.figures.get("num_prompts") or run.figures.get("completed")
    tokens = run.figures.get("total_input_tokens")
    if sent is None or tokens is None:
        return "unnamed workload"
    return f"{sent.value:,.0f} prompts of {tokens.value:,.0f} tokens"


def _arms(
    study: str,
    spec: StudySpec,
    runs: Sequence[Run],
    startups: Sequence[Startup],
    spec_file: str,
) -> dict[str, Arm]:
    arms: dict[str, Arm] = {}
    for arm_spec in spec.arm:
        wanted = arm_spec.startup or arm_spec.name
        startup = next((s for s in startups if s.arm == wanted), None)
        if startup is None:
            startup = _log_of([run for run in runs if run.arm == arm_spec.name], startups)
        config = arm_config(arm_spec)
        arms[arm_spec.name] = Arm(study, arm_spec, config, startup, spec_file)
    for run in runs:
        if run.arm not in arms:
            config = dict(_server_config(run))
            startup = next((s for s in startups if s.arm == run.arm), None)
            startup = startup or _log_of([run], startups)
            arms[run.arm] = Arm(study, _spec_from(run.arm, config), config, startup, spec_file)
    return arms


def _log_of(runs: Sequence[Run], startups: Sequence[Startup]) -> Startup | None:
    files = {run.config.get("server.log") for run in runs}
    return next((s for s in startups if s.source.file in files), None)


def _spec_from(name: str, config: Mapping[str, Scalar]) -> ArmSpec:
    """An arm described by whatever its result files and server log say."""
    found: dict[str, Scalar] = {}
    for spec_key, aliases in _SPEC_KEYS.items():
        for alias in aliases:
            for key in (alias, f"serve.{alias}", f"server.{alias}"):
                value = config.get(key)
                if value is not None and spec_key not in found:
                    found[spec_key] = value
    fields: dict[str, object] = {}
    for key, value in found.items():
        if key in ("model", "gpu", "version", "quantization"):
            fields[key] = str(value)
        elif re.fullmatch(r"0*[1-9]\d{0,8}", str(value), re.ASCII):
            fields[key] = int(str(value))
    gpus = int(str(fields.get("tensor_parallel", 1))) * int(str(fields.get("pipeline_parallel", 1)))
    return ArmSpec(name=name, gpus=gpus, **fields)  # type: ignore[arg-type]


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
