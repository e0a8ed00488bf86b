"""A study: the arms to compare, the workloads that drive them, the loads of each workload (frozen).

Flags are written as on the command line, so that a line of a write-up can be pasted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

DIRECT = "direct"
"""Pseudo-policy: no router; every replica is driven by a client of its own at the same time."""

MOST_REPEATS, MOST_GPUS, MOST_LISTED = 1000, 64, 1000
MOST_CONCURRENCY, MOST_PROMPTS = 100_000, 1_000_000
MOST_RUNS, MOST_BATCH = 10_000, 4096
"""More is a slip of a finger: of repeats and starts, of GPUs and replicas of an arm, of arms,
workloads and loads; of requests in flight and prompts; of runs of a plan."""

FIXES_KV = ("--kv-cache-memory-bytes", "--num-gpu-blocks-override")
"""Flags of `vllm serve` that say how much room there is for KV."""


class MadeModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small model that the collector writes itself: a config, a tokenizer and no weights."""

    hidden: int = 512
    layers: int = 12
    heads: int = 8
    kv_heads: int = 4
    vocab: int = 16384
    max_len: int = 4096


class Load(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How hard a workload drives a server."""

    concurrency: int
    """Requests in flight in all."""
    prompts: int
    repeats: int | None = None
    """Where this load is repeated more or less often than the study says."""
    arms: tuple[str, ...] = ()
    """The arms that are driven so; all where empty."""


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is sent."""

    name: str
    loads: tuple[Load, ...]
    flags: tuple[str, ...] = ()
    """For `vllm bench serve`, as on its command line."""
    dataset: str = ""
    """A file that `--dataset-path` names; looked for by `--dataset NAME=PATH`, then here."""
    request_rate: float | None = None
    """Requests a second; None: as fast as the cap lets them."""
    about: str = ""


class Servers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every server of a study is started with, before an arm's own flags."""

    flags: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)


class Arm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to serve: a model, flags and how many servers."""

    name: str
    model: str
    flags: tuple[str, ...] = ()
    """For `vllm serve`, as on its command line."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    gpus: int = 1
    """GPUs of one server."""
    replicas: int = 1
    replica_env: tuple[dict[str, str], ...] = ()
    """One table a replica: cores of a CPU build, say."""
    router: str = ""
    """A policy of the router in front of the replicas, or "direct"."""
    router_flags: tuple[str, ...] = ()
    shares_gpu: str = ""
    """Arms with the same word stay up together on the same GPUs and are driven in turn, which
    interleaves them without restarts; each must fix its room for KV by a flag."""
    telemetry: bool = True
    """Whether anything watches the servers while they are driven."""
    spans: bool = False
    """Whether OTLP spans are received as well: one for each request, which the server exports."""
    profile: tuple[int, ...] = ()
    """Requests that decode at once, for each capture of `collect --profile`."""
    about: str = ""


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A comparison of arms under workloads."""

    name: str
    arm: tuple[Arm, ...]
    workload: tuple[Workload, ...]
    title: str = ""
    about: str = ""
    repeats: int = 3
    starts: int | None = None
    """How often each server is started; None: for every repeat."""
    seed: int = 20261130
    """Of the order of arms and repeats, and of the prompts."""
    random_weights: bool = False
    """Serve shapes with random weights (`--load-format dummy`): timings are real, texts are not."""
    servers: Servers = Servers()
    made_model: dict[str, MadeModel] = msgspec.field(default_factory=dict)

    @property
    def arms(self) -> Mapping[str, Arm]:
        """The arms by name, in the file's order."""
        return {arm.name: arm for arm in self.arm}

    @property
    def workloads(self) -> Mapping[str, Workload]:
        """The workloads by name, in the file's order."""
        return {workload.name: workload for workload in self.workload}


def fixes_kv(flags: Iterable[str]) -> bool:
    """Whether flags of a server say how much room there is for KV."""
    return any(word.partition("=")[0] in FIXES_KV for word in flags)
