"""What a decode step or a prefill must read or compute, and which of them dominates.

Decode: weights once a step, KV of every running request once, 2 FLOP a parameter and request.
Prefill: weights once, 2 FLOP a parameter and prompt token. Bytes over memory bandwidth and FLOP
over dense 16-bit FLOP/s are least times; the larger is what binds in principle. A data sheet's
numbers are peaks, so a near tie is left open.
"""

from __future__ import annotations

from typing import Literal

from analysis.claims import ClaimBase
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing
from analysis.floor import prefill_times, step_floor
from analysis.model import Estimate, Verdict
from analysis.quantity import Quantity
from analysis.wording import percent, show, span

TIE = 1.25
"""Least times within this factor do not say which binds: neither peak is reached in practice."""


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a roofline claim."""

    arm: str
    workload: str
    concurrency: int
    phase: Literal["decode", "prefill"]
    dominates: Literal["weights", "kv", "reading", "computing"]
    """decode: weights, kv, computing, or reading (weights and KV together); prefill: reading
    (weights) or computing."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Least times of each part, the greatest against the named one."""
    cell = ev.cell(claim.arm, claim.workload, claim.concurrency)
    arm = cell.arm
    if arm.gpu is None or arm.model is None:
        raise Missing(
            f"GPU and model of {claim.arm} in study.toml",
            "a floor is bytes / bandwidth and needs both",
        )
    parts = _decode(ev, claim) if claim.phase == "decode" else _prefill(ev, claim)
    if claim.dominates not in parts:
        raise BadClaim(
            f"says {claim.dominates!r} dominates a {claim.phase}; expected {', '.join(parts)}"
        )
    if any(q.value <= 0 for q in parts.values()):
        raise Missing(
            f"a model size, lengths and load above 0 of {cell.name}",
            "least times of 0 cannot be compared",
        )
    named = parts[claim.dominates]
    rival_name, rival = max(
        ((name, q) for name, q in parts.items() if name != claim.dominates),
        key=lambda item: item[1].value,
    )
    ratio = (named / rival).as_unit("")
    if ratio.lo > TIE:
        verdict: Verdict = "supported"
    elif ratio.hi < 1 / TIE:
        verdict = "refuted"
    else:
        verdict = "inconclusive"
    what = "a decode step" if claim.phase == "decode" else "a prefill"
    labels = {
        "weights": "reading the weights",
        "kv": "reading the KV cache",
        "reading": "reading weights" + (" and KV" if claim.phase == "decode" else ""),
        "computing": "computing",
    }
    listing = ", ".join(f"{labels[name]} {show(q.value, 's')}" for name, q in parts.items())
    head = (
        f"{labels[claim.dominates][0].upper()}{labels[claim.dominates][1:]} takes {span(ratio)}"
        f" x the time of {labels[rival_name]} in {what} at least ({listing})."
    )
    reasons = [head]
    if claim.phase == "decode" and "kv" in parts:
        reasons.append(
            f"KV read a step is {percent(parts['kv'].value / parts['weights'].value)} "
            "of the weights read."
        )
    numbers: list[Estimate] = [
        q.estimate(f"least time of {labels[name]}", f"{what} of {cell.name}")
        for name, q in parts.items()
    ]
    numbers.append(ratio.estimate(f"{labels[claim.dominates]} / {labels[rival_name]}"))
    return Judgement(
        verdict,
        tuple(reasons),
        tuple(numbers),
        assumptions=(
            "data-sheet bandwidth and dense 16-bit FLOP/s",
            f"the prefill of one prompt of {show(_prompt(ev, claim).value)} tokens"
            if claim.phase == "prefill"
            else "running requests are at the middle of their output on average",
        ),
        flips="longer prompts or more requests at once"
        if claim.phase == "prefill"
        else "many more requests at once, or much longer ones",
        cells=(cell,),
        experiment=Experiment((claim.arm,), (claim.workload,), (claim.concurrency,), repeats=1),
    )


def _decode(ev: Evidence, claim: Claim) -> dict[str, Quantity]:
    cell = ev.cell(claim.arm, claim.workload, claim.concurrency)
    floor = step_floor(cell)
    # Each engine steps for its own share of the running requests, as in the KV it reads.
    each = ev.account(cell, "l_decode") * (1 / cell.arm.spec.replicas)
    times = prefill_times(cell.arm, each)
    if floor is None or floor.kv_bytes is None or times is None:
        raise Missing(
            f"mean token counts, model size or GPU of {cell.name}",
            "KV read = bytes a token x resident tokens x running requests",
        )
    if claim.dominates == "reading":
        return {"reading": floor.total, "computing": times[1]}
    return {
        "weights": floor.weights,
        "kv": (floor.kv_bytes / floor.bandwidth).as_unit("s"),
        "computing": times[1],
    }


def _prompt(ev: Evidence, claim: Claim) -> Quantity:
    cell = ev.cell(claim.arm, claim.workload, claim.concurrency)
    return ev.need(cell, "mean_input_tokens")


def _prefill(ev: Evidence, claim: Claim) -> dict[str, Quantity]:
    times = prefill_times(ev.arm(claim.arm), _prompt(ev, claim))
    if times is None:  # pragma: no cover - GPU and model were checked before
        raise AssertionError
    return {"reading": times[0], "computing": times[1]}
