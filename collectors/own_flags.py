"""Flags and variables that the collector sets itself: a study that sets them too contradicts it.

Pure. The later of two settings wins in one command and the earlier in another, so that what was
measured would not be what the study says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from collectors.errors import Problem
from collectors.flags import given, plain
from collectors.study import Study

_PORT = "drop it: `collect --port N` names the first port"
_LOADS = "drop it, and write it in the workload's loads"
_FRONT = "drop it: the collector drives what it has started; another server is `collect --base-url`"
_RESULT = "drop it: results are kept as --results and the run's name say"

SERVE: Mapping[str, str] = {
    "--port": _PORT,
    "--host": "drop it: servers listen on this host alone",
    "--uds": "drop it: the client comes by the server's port",
    "--fd": "drop it: the client comes by the server's port",
    "--served-model-name": "drop it, and write the name as the arm's model",
    "--model": "drop it, and write the arm's model; `collect --model NAME=DIR` names its folder",
    "--api-server-count": "drop it: steps are recorded where one API server has the engine",
    "-asc": "drop it: steps are recorded where one API server has the engine",
    "--headless": "drop it: the client needs an API server",
    "--ssl-keyfile": "drop it: the client comes by http",
    "--ssl-certfile": "drop it: the client comes by http",
    "--profiler-config": "drop it: `collect --profile N` sets it",
}
"""Of `vllm serve`, with what to do."""

ROUTER: Mapping[str, str] = {
    "--worker-urls": "drop it, and write the arm's replicas",
    "--policy": "drop it, and write it as the arm's router",
    "--port": _PORT,
    "--host": "drop it: the router listens on this host alone",
    "--prometheus-port": _PORT,
    "--prometheus-host": "drop it: the router listens on this host alone",
}
"""Of the router."""

BENCH: Mapping[str, str] = {
    "--num-prompts": _LOADS + ": prompts",
    "--max-concurrency": _LOADS + ": concurrency",
    "--request-rate": "drop it, and write request_rate in the workload",
    "--ramp-up-strategy": "drop it: a workload has one request_rate",
    "--ramp-up-start-rps": "drop it: a workload has one request_rate",
    "--ramp-up-end-rps": "drop it: a workload has one request_rate",
    "--seed": "drop it, and write seed in the study: each repeat has another",
    "--base-url": _FRONT,
    "--host": _FRONT,
    "--port": _FRONT,
    "--model": "drop it, and write the arm's model",
    "--served-model-name": "drop it, and write the name as the arm's model",
    "--tokenizer": "drop it: the arm's model has one; `collect --model NAME=DIR` names its folder",
    "--save-result": _RESULT,
    "--save-detailed": _RESULT,
    "--append-result": _RESULT,
    "--result-dir": _RESULT,
    "--result-filename": _RESULT,
    "--request-id-prefix": "drop it: servers' records are joined to requests by it",
    "--metadata": "drop it: the collector says study, arm, workload and repeat there",
    "--percentile-metrics": "drop it: every latency is kept",
    "--metric-percentiles": "drop it: every request is kept",
    "--profile": "drop it: `collect --profile N` does it, on servers that are not timed",
}
"""Of `vllm bench serve`."""

_DATASET = "drop it, or the workload's dataset"
_VARIABLES: Mapping[str, str] = {
    "CUDA_VISIBLE_DEVICES": "drop it: `collect --gpus` and the arm's gpus say it",
    "CUDA_DEVICE_ORDER": "drop it: GPUs are counted as NVML does",
    "VLLM_SERVER_DEV_MODE": "drop it: the prefix cache is emptied by it between runs",
    "VLLM_TORCH_PROFILER_DIR": "drop it: `collect --profile N` sets it",
}


def problems(study: Study, file: str) -> Iterator[Problem]:
    """What a study sets although the collector does.

    Args:
        study: Read, of right types.
        file: How a message calls it.
    """
    yield from _flags(study.servers.flags, SERVE, f"{file}, servers")
    yield from _variables(study.servers.env, f"{file}, servers")
    loaded = {"--load-format": "drop it, or random_weights"} if study.random_weights else {}
    yield from _flags(study.servers.flags, loaded, f"{file}, servers")
    for arm in study.arm:
        at = f"{file}, arm {arm.name!r}"
        traced = {"--otlp-traces-endpoint": "drop it, or spans"} if arm.spans else {}
        yield from _flags(arm.flags, {**SERVE, **loaded, **traced}, at)
        yield from _flags(arm.router_flags, ROUTER, f"{at}, router_flags")
        for variables in (arm.env, *arm.replica_env):
            yield from _variables(variables, at)
    for workload in study.workload:
        own = {**BENCH, **({"--dataset-path": _DATASET} if workload.dataset else {})}
        yield from _flags(workload.flags, own, f"{file}, workload {workload.name!r}")


def _flags(words: Sequence[str], own: Mapping[str, str], at: str) -> Iterator[Problem]:
    for flag in given(words)[1]:
        name = plain(flag.said).partition(".")[0]
        # argparse takes the beginning of a name for the name.
        long = (each for each in own if each.startswith(name) and len(name) > 5)
        if todo := own.get(name) or own.get(next(long, "")):
            said = " ".join([flag.said, *flag.values[:1]])
            yield Problem(at, f"its flags set {said}, which the collector sets itself", todo=todo)


def _variables(variables: Mapping[str, str], at: str) -> Iterator[Problem]:
    for name in variables:
        if name in _VARIABLES:
            yield Problem(
                at,
                f"its env sets {name}, which the collector sets itself",
                todo=_VARIABLES[name],
            )
