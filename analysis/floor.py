"""The least time a decode step can take: the bytes it must move over the memory bandwidth.

A step reads the weights held by one GPU once, without the input embedding table (looked up, not
read), and the KV cache of its running requests once. Tensor parallelism adds an all-reduce after
attention and after the MLP of each layer; a pipeline makes a token pass all its stages, so the
times of the stages add up. An observed step below its floor means a wrong input.
The difference of two floors is no attribution; what is valid is the least share of a fall that
must be step cost: (floor of the baseline - latency of the treatment) / fall.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.dataset import Arm, Cell
from analysis.model import Figure
from analysis.models import Model
from analysis.quantity import Quantity, constant, maximum, quantity


@dataclass(frozen=True, eq=False, slots=True)
class Floor:
    """Bytes a decode step moves on one GPU, and the time that takes at full bandwidth."""

    weight_bytes: Quantity
    kv_bytes: Quantity | None
    """KV of the running requests at their mean length; None where lengths are unknown."""
    bandwidth: Quantity
    """Bytes a second, data sheet."""
    stages: int = 1
    """Pipeline stages: a token passes all of them, one after another."""

    @property
    def weights(self) -> Quantity:
        """Time to read the weights alone, s: a lower bound that needs no workload."""
        return (self.weight_bytes / self.bandwidth * float(self.stages)).as_unit("s")

    @property
    def total(self) -> Quantity:
        """Time to read weights and KV, s."""
        if self.kv_bytes is None:
            return self.weights
        both = self.weight_bytes + self.kv_bytes
        return (both / self.bandwidth * float(self.stages)).as_unit("s")


def read_bytes(arm: Arm) -> Quantity | None:
    """Weight bytes that one GPU reads in a decode step.

    From the start-up log's model size where printed (it is per GPU), else from the model's
    geometry divided over tensor and pipeline ranks; minus the unread embedding table's share.
    """
    tp, pp = arm.spec.tensor_parallel, arm.spec.pipeline_parallel
    if arm.startup is not None and "model_bytes" in arm.startup.figures:
        held = quantity(arm.startup.figures["model_bytes"])
    elif arm.model is not None:
        held = _of_model(arm.model, "weights", float(arm.model.weight_bytes()), "B") * (
            1 / (tp * pp)
        )
    else:
        return None
    if arm.model is None:
        return held
    # The first pipeline rank holds the embedding; a later one would read a little more.
    unread = _of_model(arm.model, "input embedding", float(arm.model.unread_embedding_bytes()), "B")
    return held - unread * (1 / (tp * pp))


def kv_token_bytes(arm: Arm) -> Quantity | None:
    """KV bytes a token takes on one GPU: 2 x layers x KV heads x head dim x bytes / ranks.

    None where the model is unknown, or its KV heads do not divide over the tensor ranks.
    """
    if arm.model is None:
        return None
    try:
        size = arm.model.kv_bytes_per_token(
            tensor_parallel=arm.spec.tensor_parallel, pipeline_parallel=arm.spec.pipeline_parallel
        )
    except ValueError:
        return None
    return _of_model(arm.model, "KV bytes a token on one GPU", float(size), "B")


def step_floor(cell: Cell) -> Floor | None:
    """Floor of a decode step of this cell; None where GPU or model size is unknown."""
    arm = cell.arm
    weights = read_bytes(arm)
    if weights is None or arm.gpu is None:
        return None
    bandwidth = quantity(arm.gpu.figure("bandwidth"))
    per_token, resident = kv_token_bytes(arm), cell.account("resident_tokens")
    running = cell.account("l_decode")
    kv = None
    if per_token is not None and resident is not None and running is not None:
        kv = (per_token * resident * running * (1 / arm.spec.replicas)).as_unit("B")
    return Floor(weights, kv, bandwidth, arm.spec.pipeline_parallel)


def prefill_times(arm: Arm, tokens: Quantity) -> tuple[Quantity, Quantity] | None:
    """Least time of a prefill of so many prompt tokens: (reading weights, computing), s.

    Computing = 2 x parameters x tokens / dense FLOP/s of 16-bit types; 4-bit weights are
    expanded before the multiplication, so their arithmetic is the same.
    """
    weights = read_bytes(arm)
    if weights is None or arm.gpu is None or arm.model is None:
        return None
    ranks = arm.spec.tensor_parallel * arm.spec.pipeline_parallel
    each = _of_model(arm.model, "FLOP a token", float(arm.model.flops_per_token()), "FLOP")
    flops = each * (1 / ranks)
    reading = (weights / quantity(arm.gpu.figure("bandwidth"))).as_unit("s")
    computing = (flops * tokens / quantity(arm.gpu.figure("flops"))).as_unit("s")
    return reading, computing


def least_step_cost_share(
    baseline: Floor, observed_baseline: Quantity, observed_treatment: Quantity
) -> Quantity:
    """Least share of a fall in step time that must be cheaper steps.

    Even with no request waiting, the baseline's step cannot be shorter than its floor, so
    (floor - treatment) of the fall (baseline - treatment) needs no other cause. The weights-only
    floor is used: it rests on no workload. Never below 0.
    """
    fall = observed_baseline - observed_treatment
    return maximum(constant(0.0), ((baseline.weights - observed_treatment) / fall).as_unit(""))


def _of_model(model: Model, what: str, value: float, unit: str) -> Quantity:
    return quantity(Figure(what, value, value, value, unit, model.cite(what)))
