"""The command lines of a run: server, router, client (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collectors.host import Host
from collectors.schedule import Job
from collectors.study import Arm, Study, Workload

ADDRESS = "127.0.0.1"
PERCENTILES = "1,5,10,25,50,75,90,95,99"
METRICS = "ttft,tpot,itl,e2el"
_QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True, slots=True)
class Command:
    """Words of a command line, and what is set in its environment beside the inherited."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


def server(
    host: Host,
    study: Study,
    arm: Arm,
    *,
    port: int,
    replica: int = 0,
    gpus: Sequence[int] = (),
    more: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Command:
    """`vllm serve` of one engine of an arm.

    Args:
        host: Where it runs.
        study: The arm's study.
        arm: What is served.
        port: Its own.
        replica: Which of the arm's servers, from 0.
        gpus: Indices of the GPUs it gets; none where there is none.
        more: Flags that the collector adds: where spans go, a number of KV blocks.
        env: Variables that the collector adds.
    """
    # Development mode has the address that empties the prefix cache between runs.
    variables = {**_QUIET, "VLLM_SERVER_DEV_MODE": "1", **study.servers.env, **arm.env}
    if arm.replica_env:
        variables.update(arm.replica_env[replica])
    if gpus:
        # NVML, which found them, counts in this order; CUDA's own may differ.
        variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
    variables.update(env or {})
    words = [*host.vllm, "serve", host.model(arm.model), "--served-model-name", arm.model]
    words += ["--host", ADDRESS, "--port", str(port)]
    if random_weights(host, study):
        words += ["--load-format", "dummy"]
    return Command((*words, *study.servers.flags, *arm.flags, *more), variables)


def router(host: Host, arm: Arm, *, port: int, workers: Sequence[str], prometheus: int) -> Command:
    """`vllm-router` in front of an arm's replicas.

    Args:
        host: Where it runs.
        arm: Its policy and flags.
        port: Where it listens.
        workers: Addresses of the replicas.
        prometheus: Port of its own counters.
    """
    words = [*host.router, "--worker-urls", *workers, "--policy", arm.router]
    words += ["--host", ADDRESS, "--port", str(port)]
    words += ["--prometheus-host", ADDRESS, "--prometheus-port", str(prometheus)]
    # The replicas are ready before it starts; it would look again only after half a minute.
    words += ["--worker-startup-check-interval", "1"]
    return Command((*words, *arm.router_flags), dict(_QUIET))


def client(
    host: Host,
    study: Study,
    arm: Arm,
    workload: Workload,
    job: Job,
    *,
    url: str,
    folder: str,
    file: str = "bench.json",
    number: int = 0,
) -> Command:
    """`vllm bench serve` of one run, or of one of the clients of a run.

    Args:
        host: Where it runs.
        study: The arm's study.
        arm: What is driven.
        workload: What is sent.
        job: How hard, and with which seed.
        url: What is driven.
        folder: Where the result is written.
        file: The result's name.
        number: Which of the run's clients, from 0: each sends other prompts.
    """
    words = [*host.vllm, "bench", "serve", "--backend", "openai", "--base-url", url]
    words += ["--endpoint", "/v1/completions"]
    words += ["--model", arm.model, "--tokenizer", host.model(arm.model), *workload.flags]
    dataset = host.dataset(workload)
    if dataset is not None:
        words += ["--dataset-path", str(dataset)]
    words += ["--num-prompts", str(share(job.prompts, job.clients, number))]
    words += ["--max-concurrency", str(job.cap)]
    words += ["--request-rate", _rate(workload, job.clients)]
    # A factor far above any number of repeats, so that no client repeats another's prompts.
    words += ["--seed", str(job.seed + 1000 * number)]
    if random_weights(host, study):
        # Random weights end a text anywhere; the lengths asked for are kept instead.
        words += ["--ignore-eos", "--temperature", "0"]
    words += ["--percentile-metrics", METRICS, "--metric-percentiles", PERCENTILES]
    words += ["--request-id-prefix", request_prefix(job, number), "--disable-tqdm"]
    words += ["--save-result", "--save-detailed", "--result-dir", folder, "--result-filename", file]
    words += ["--metadata", f"study={study.name}", f"arm={arm.name}", f"workload={workload.name}"]
    words += [f"repeat={job.repeat}", f"in_flight_total={job.concurrency}"]
    return Command(tuple(words), {**_QUIET, **study.servers.env})


def clients(
    host: Host, study: Study, job: Job, *, fronts: Sequence[str], folder: str
) -> list[tuple[str, Command]]:
    """Every `vllm bench serve` of a run, each with the name of its result.

    Args:
        host: Where it runs.
        study: The run's study.
        job: The run.
        fronts: Addresses to drive: one, or one a client.
        folder: Where the results are written.
    """
    names = [f"bench-{n}.json" if job.clients > 1 else "bench.json" for n in range(job.clients)]
    return [
        (
            name,
            client(
                host,
                study,
                study.arms[job.arm],
                study.workloads[job.workload],
                job,
                url=fronts[number % len(fronts)],
                folder=folder,
                file=name,
                number=number,
            ),
        )
        for number, name in enumerate(names)
    ]


def request_prefix(job: Job, number: int = 0) -> str:
    """What the ids of a run's requests begin with, so that a server's records can be joined."""
    return f"{job.arm}.{job.name}.{number}-"


def share(prompts: int, clients: int, number: int) -> int:
    """Prompts of one of several clients."""
    return prompts // clients + (number < prompts % clients)


def random_weights(host: Host, study: Study) -> bool:
    """Whether shapes are served without their weights."""
    return host.random_weights or study.random_weights


def _rate(workload: Workload, clients: int) -> str:
    return "inf" if workload.request_rate is None else f"{workload.request_rate / clients:g}"
