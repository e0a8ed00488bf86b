"""Whether models with their KV cache fit a GPU, and whether the GPU supports the number type.

Weights come from a start-up log where an arm is named, else from the model's geometry; KV is so
many tokens of it. vLLM may use `gpu_memory_utilization` of the memory (0.92 by default), and every
model keeps some of that for its own activations; between the two the claim is inconclusive.
"""

from __future__ import annotations

from analysis.claims import ClaimBase
from analysis.claims._common import all_of
from analysis.evidence import BadClaim, Evidence, Judgement
from analysis.hardware import Gpu, find_gpu, gpus
from analysis.hardware import nearest as nearest_gpu
from analysis.model import Estimate, Source, Verdict
from analysis.models import Model, find_model, models
from analysis.reference import stated
from analysis.study import nearest
from analysis.wording import listing, percent, show

UTILISATION = 0.92
"""vLLM's default share of GPU memory (0.9 in versions before 0.20)."""
ACTIVATIONS = 2.3 * 2.0**30
"""Bytes of that share kept for activations and CUDA graphs.

0.92 x memory - weights - KV cache is 2.15 to 2.32 GiB in the start-up logs of a 14B model.
"""

BOX_LESS, BOX_MORE = 0.98, 1.07
"""Of the GiB that a driver shows: the sizes that a box may state for it."""
GB_OFF = 0.02
"""Share by which a size in GB may be off."""


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a fit claim."""

    gpu: str
    models: tuple[str, ...] = ()
    """Models that are to be held at once."""
    kv_tokens: int = 0
    """KV cache wanted, tokens, for each model."""
    fits: bool = True
    """Whether the sentence says that they fit (or that the type is supported)."""
    type: str = ""
    """A number type the GPU must support: fp8, bf16 ..."""
    method: str = ""
    """A quantisation method that vLLM must run there: awq, marlin ..."""
    memory: str = ""
    """GPU memory in GB as the sentence states it."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Memory as stated, sizes against memory, types against the capability."""
    gpu = find_gpu(claim.gpu)
    if gpu is None:
        raise BadClaim(f"names GPU {claim.gpu!r}; nearest: {listing(nearest_gpu(claim.gpu), 'or')}")
    parts: list[tuple[Verdict, str]] = []
    numbers: list[Estimate] = []
    if claim.memory:
        parts.append(_memory(claim, gpu, numbers))
    if claim.models:
        parts.append(_sizes(claim, ev, gpu, numbers))
    if claim.type:
        known = {kind for other in gpus() for kind in other.types}
        if claim.type.strip().lower() not in known:
            raise BadClaim(f"asks for type {claim.type!r}; {nearest(claim.type, known)}")
        has = gpu.supports(claim.type)
        parts.append(
            _yes(
                has == claim.fits,
                f"{gpu.name} (compute capability "
                f"{gpu.compute_capability}) {'has' if has else 'has no'} {claim.type} "
                "arithmetic",
            )
        )
    if claim.method:
        runs = gpu.runs(claim.method)
        if runs is None:
            raise BadClaim(f"asks for method {claim.method!r}, which hardware.toml does not know")
        parts.append(
            _yes(
                runs == claim.fits,
                f"vLLM {'runs' if runs else 'does not run'} {claim.method} on {gpu.name}",
            )
        )
    if not parts:
        raise BadClaim("has no `models`, `type`, `method` or `memory`; add one")
    verdicts = {verdict for verdict, _ in parts}
    worst = all_of(verdicts)
    parts.sort(key=lambda part: ("refuted", "inconclusive", "supported").index(part[0]))
    return Judgement(
        worst,
        tuple(f"{text}." for _, text in parts),
        tuple(numbers),
        assumptions=_allowed(claim),
        flips="another memory size, model size or KV cache",
    )


def _yes(right: bool, text: str) -> tuple[Verdict, str]:
    return ("supported" if right else "refuted"), text


def _memory(claim: Claim, gpu: Gpu, numbers: list[Estimate]) -> tuple[Verdict, str]:
    """The size as stated against the card's, read as GB or as GiB."""
    target = stated(claim.memory)
    gib = gpu.memory_bytes / 2.0**30
    numbers.append(
        Estimate(
            "GPU memory",
            gpu.memory_bytes,
            gpu.memory_bytes,
            gpu.memory_bytes,
            "B",
            "datasheet",
            gpu.name,
            (Source("hardware.toml", f"{gpu.name}, memory"),),
        )
    )
    # Cards are sold in rounded sizes: a driver shows up to 7 % fewer GiB than the box says GB.
    gb = gpu.memory_bytes / 1e9
    as_gib = BOX_LESS * gib <= target.value <= BOX_MORE * gib
    as_gb = 1 - GB_OFF <= target.value / gb <= 1 + GB_OFF
    return _yes(
        as_gib or as_gb,
        f"{gpu.name} has {show(gpu.memory_bytes, 'B')}, which is {gb:.1f} GB; the sentence says "
        f"{claim.memory} GB, {percent(abs(target.value / gib - 1))} "
        f"{'more' if target.value >= gib else 'less'} than the GiB",
    )


def _allowed(claim: Claim) -> tuple[str, ...]:
    """What the verdict takes for granted."""
    found = []
    if claim.models:
        found.append(
            f"vLLM uses {percent(UTILISATION, 0)} of the memory and keeps "
            f"{show(ACTIVATIONS, 'B')} of it for activations"
            + (f", once for each of the {len(claim.models)} models" if claim.models[1:] else "")
        )
    if claim.memory:
        less, more, off = (percent(share, 0) for share in (1 - BOX_LESS, BOX_MORE - 1, GB_OFF))
        found.append(
            f"a stated size may lie {less} below to {more} above the card's GiB, since cards are "
            f"sold in rounded sizes, or within {off} of its GB (1 GiB is 1.0737 GB)"
        )
    return tuple(found)


def _sizes(claim: Claim, ev: Evidence, gpu: Gpu, numbers: list[Estimate]) -> tuple[Verdict, str]:
    need = 0.0
    for name in claim.models:
        model = find_model(name)
        if model is None:
            known = [m.name for m in models()]
            raise BadClaim(
                f"names model {name!r}, which models.toml does not have; {nearest(name, known)}"
            )
        weights, source = _weights(ev, name, model)
        kv = float(claim.kv_tokens * model.kv_bytes_per_token())
        need += weights + kv
        numbers.append(
            Estimate(
                f"weights of {name}",
                weights,
                weights,
                weights,
                "B",
                "exact",
                "weights held",
                (source,),
            )
        )
        if kv:
            numbers.append(
                Estimate(f"KV of {name}", kv, kv, kv, "B", "exact", f"{claim.kv_tokens:,} tokens")
            )
    # Every model is a server of its own, with its own activations and CUDA graphs.
    room = UTILISATION * gpu.memory_bytes - ACTIVATIONS * len(claim.models)
    numbers.append(
        Estimate(
            "room",
            room,
            room,
            room,
            "B",
            "assumed",
            f"{UTILISATION} x memory - activations"
            + (f" of {len(claim.models)} models" if claim.models[1:] else ""),
            (Source("hardware.toml", f"{gpu.name}, memory"),),
        )
    )
    what = listing(claim.models)
    tokens = f" with {claim.kv_tokens:,} tokens of KV" if claim.kv_tokens else ""
    verb = "need" if claim.models[1:] else "needs"
    text = (
        f"{what}{tokens} {verb} {show(need, 'B')}; {gpu.name} has {show(gpu.memory_bytes, 'B')}, "
        f"of which about {show(room, 'B')} is usable"
    )
    if need <= room:
        return _yes(claim.fits, text)
    if need > gpu.memory_bytes:
        return _yes(not claim.fits, text)
    return "inconclusive", text


def _weights(ev: Evidence, name: str, model: Model) -> tuple[float, Source]:
    """Size as a one-GPU start-up log prints it, else from the geometry."""
    for study in (ev.study, *ev.dataset.studies):
        for arm in study.arms.values():
            alone = arm.spec.tensor_parallel * arm.spec.pipeline_parallel == 1
            if find_model(arm.spec.model) is model and alone and arm.startup is not None:
                figure = arm.startup.figures.get("model_bytes")
                if figure is not None:
                    return figure.value, figure.source
    return float(model.weight_bytes()), Source("models.toml", f"{model.name}, weights")
