"""Arms on GPUs: are there enough, do they run the model, does it fit, what joins them (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from collectors import fit
from collectors.errors import Problem
from collectors.fit import Demand
from collectors.hardware import Gpu, Inventory, NoGpu
from collectors.model_folder import Shape
from collectors.schedule import Plan
from collectors.study import Arm

Shapes = Mapping[str, Shape]
"""Of the models that are on this machine, by the name that the study gives them."""


def words(plan: Plan, arm: Arm) -> tuple[str, ...]:
    """The flags of an arm's servers."""
    return (*plan.study.servers.flags, *arm.flags)


def demands(plan: Plan, utilisation: float) -> Mapping[str, Demand]:
    """What each arm's servers ask of memory."""
    return {arm.name: fit.demand(words(plan, arm), utilisation) for arm in plan.arms}


def without_gpus(plan: Plan, asked: Mapping[str, Demand], shapes: Shapes) -> Iterator[Problem]:
    """What an arm's flags and its model's shape do not let start, on whatever machine."""
    for arm in plan.arms:
        where, demand, shape = f"arm {arm.name!r}", asked[arm.name], shapes.get(arm.model)
        longest = demand.max_len or (shape.max_len if shape else None)
        if demand.kv_tokens and longest and demand.kv_tokens < longest:
            yield Problem(
                where,
                f"--num-gpu-blocks-override holds {demand.kv_tokens:,} tokens",
                f"{longest:,}, one request of the longest context",
                "lower --max-model-len, or take more blocks",
            )
        if shape is None:
            continue
        if shape.heads and shape.heads % demand.tp:
            yield Problem(
                where,
                f"--tensor-parallel-size {demand.tp}, and the model has {shape.heads} heads",
                "a number that divides them",
            )
        if shape.layers and shape.layers < demand.pp:
            yield Problem(
                where,
                f"--pipeline-parallel-size {demand.pp}, and the model has {shape.layers} layers",
                "no more than one GPU a layer",
            )
        if demand.max_len and shape.max_len and demand.max_len > shape.max_len:
            if "--hf-overrides" in words(plan, arm) or "VLLM_ALLOW_LONG_MAX_MODEL_LEN" in arm.env:
                continue
            yield Problem(
                where,
                f"--max-model-len {demand.max_len}",
                f"{shape.max_len:,} at most, the model's own (max_position_embeddings)",
                "lower it",
            )


def on_gpus(
    plan: Plan,
    found: Inventory | NoGpu,
    chosen: Sequence[int],
    asked: Mapping[str, Demand],
    shapes: Shapes,
) -> Iterator[Problem]:
    """Why arms cannot run on the GPUs of this machine.

    Args:
        plan: The arms, in the order in which those that share a GPU start.
        found: What NVML tells.
        chosen: Indices that may be used; none: all.
        asked: By arm, as `demands` gives it.
        shapes: Of models.
    """
    most = max((arm.gpus * arm.replicas for arm in plan.arms), default=0)
    if isinstance(found, NoGpu):
        yield Problem(
            "GPU",
            found.reason,
            f"{most} for the arms chosen",
            "run it on a GPU host, or with the CPU build of vLLM (make collect-smoke)",
        )
        return
    missing = [index for index in chosen if found.gpu(index) is None]
    if missing:
        yield Problem(
            f"GPU {', '.join(map(str, missing))}",
            f"there is none; this machine has {', '.join(str(gpu.index) for gpu in found.gpus)}",
            todo="choose others with --gpus",
        )
        return
    usable = [found.gpu(index) for index in chosen] if chosen else list(found.gpus)
    gpus = [gpu for gpu in usable if gpu is not None]
    for arm in plan.arms:
        yield from _arm(plan, arm, gpus, asked[arm.name], shapes.get(arm.model))
    groups = dict.fromkeys(arm.shares_gpu for arm in plan.arms if arm.shares_gpu)
    for group in groups:
        arms = [arm for arm in plan.arms if arm.shares_gpu == group]
        yield from _together(group, arms, gpus, asked, shapes)


def _together(
    group: str,
    arms: Sequence[Arm],
    gpus: Sequence[Gpu],
    asked: Mapping[str, Demand],
    shapes: Shapes,
) -> Iterator[Problem]:
    """Arms that stay up side by side: each GPU holds a part of one server of every wide arm."""
    told = set()
    for place, gpu in enumerate(gpus):
        here = [arm for arm in arms if place < arm.gpus * arm.replicas]
        servers = [(shapes.get(arm.model), asked[arm.name]) for arm in here]
        if len(here) < 2:
            continue
        where = f"arms that share GPU {gpu.index} ({group})"
        for problem in fit.side_by_side(where, servers, gpu):
            if (problem.found, problem.needed) not in told:
                told.add((problem.found, problem.needed))
                yield problem


def _arm(
    plan: Plan, arm: Arm, gpus: Sequence[Gpu], demand: Demand, shape: Shape | None
) -> Iterator[Problem]:
    where = f"arm {arm.name!r}"
    needed = arm.gpus * arm.replicas
    if needed > len(gpus):
        each = f" ({arm.replicas} servers x {arm.gpus})" if arm.replicas > 1 else ""
        yield Problem(
            where,
            f"{len(gpus)} GPU{'s' if len(gpus) != 1 else ''}",
            f"{needed}{each}",
            "leave the arm out (--arm), or run it on a larger host",
        )
        return
    told = set()
    for gpu in gpus[:needed]:
        for problem in fit.server(f"{where}, GPU {gpu.index}", shape, demand, gpu):
            # Equal GPUs say equal things: once is enough.
            if (problem.found, problem.needed) not in told:
                told.add((problem.found, problem.needed))
                yield problem


def notes(plan: Plan, found: Inventory, chosen: Sequence[int]) -> Iterator[str]:
    """The machine in words: GPUs, driver, and what joins the GPUs of an arm that takes several."""
    gpus = [gpu for gpu in found.gpus if not chosen or gpu.index in chosen]
    names = dict.fromkeys(gpu.name for gpu in gpus)
    counts = ", ".join(f"{sum(gpu.name == name for gpu in gpus)} x {name}" for name in names)
    yield f"{counts}, driver {found.driver or 'not told'}"
    order = [gpu.index for gpu in gpus]
    widest = max((arm.gpus for arm in plan.arms), default=1)
    joined = set(order[:widest])
    if widest > 1:
        for link in found.links:
            if {link.a, link.b} <= joined:
                yield str(link)


def steps(
    plan: Plan, found: Inventory | NoGpu, asked: Mapping[str, Demand], shapes: Shapes
) -> Mapping[str, float]:
    """Least seconds of an engine step by arm: its weights read once at the memory's bandwidth."""
    if isinstance(found, NoGpu) or not found.gpus or not found.gpus[0].bandwidth:
        return {}
    bandwidth = found.gpus[0].bandwidth
    made = {}
    for arm in plan.arms:
        shape = shapes.get(arm.model)
        weights = fit.weights_each(shape, asked[arm.name]) if shape else None
        if weights:
            made[arm.name] = weights / bandwidth
    return made
