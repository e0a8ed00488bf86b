"""How many requests run at once, and what limits them.

The "maximum concurrency" of a start-up log is KV tokens / max_model_len, a worst case. What
counts at a workload is min(max_num_seqs, KV tokens / (prompt + output tokens)), and whether the
requests in flight reach it at all.
"""

from __future__ import annotations

from typing import Literal

from analysis.capacity import binds as what_binds
from analysis.capacity import capacity
from analysis.claims import ClaimBase
from analysis.claims._common import all_of
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing
from analysis.model import Verdict
from analysis.quantity import Quantity
from analysis.reference import stated
from analysis.wording import percent, show, span


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a capacity claim; one of `slots`, `binds`, `reported_is_slots` at least."""

    arm: str
    workload: str
    concurrency: int
    slots: str = ""
    """Slots the sentence states."""
    relation: Literal["equals", "at_most", "at_least"] = "equals"
    binds: Literal["", "client cap", "request rate", "max_num_seqs", "KV cache"] = ""
    reported_is_slots: bool | None = None
    """Whether the sentence takes the log's maximum concurrency for the batch width."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Compare each thing the sentence says with the slots of the cell."""
    cell = ev.cell(claim.arm, claim.workload, claim.concurrency)
    found = capacity(cell)
    if found.slots is None:
        raise Missing(
            f"the start-up log of {claim.arm} or its max_num_seqs",
            "slots = min(max_num_seqs, KV tokens / (prompt + output tokens))",
        )
    numbers = [found.slots.estimate("slots", "min(max_num_seqs, KV slots)")]
    for name, q in (
        ("max_num_seqs", found.sequence_limit),
        ("KV slots", found.kv_slots),
        ("KV slots, mean residency", found.kv_slots_mean),
        ("maximum concurrency as reported", found.reported),
    ):
        if q is not None:
            numbers.append(q.estimate(name))
    parts: list[tuple[Verdict, str]] = []
    if claim.slots:
        parts.append(_stated_slots(claim, found.slots))
    if claim.binds:
        binding = what_binds(cell)
        if binding.limit == "not identified":
            parts.append(("inconclusive", f"What limits is not identified: {binding.reason}"))
        else:
            right = binding.limit == claim.binds
            parts.append(
                (
                    "supported" if right else "refuted",
                    f"The {binding.limit} limits the running batch: {binding.reason}",
                )
            )
    if claim.reported_is_slots is not None:
        if found.reported is None:
            raise Missing(
                f"the start-up log of {claim.arm} (maximum concurrency)",
                "KV tokens / max_model_len needs both",
            )
        ratio = (found.slots / found.reported).value
        same = 0.8 <= ratio <= 1.25
        text = (
            f"The log reports {span(found.reported)} (KV tokens / max_model_len); at this "
            f"workload {span(found.slots)} fit, {_times(ratio)} that"
        )
        verdict: Verdict = "supported" if same == claim.reported_is_slots else "refuted"
        parts.append((verdict, text))
    if not parts:
        raise BadClaim("states no `slots`, no `binds` and no `reported_is_slots`; add one")
    verdicts = {verdict for verdict, _ in parts}
    worst = all_of(verdicts)
    return Judgement(
        worst,
        tuple(f"{text}." for _, text in parts),
        tuple(numbers),
        flips="another KV cache size, sequence limit or length of requests",
        cells=(cell,),
        experiment=Experiment((claim.arm,), (claim.workload,), (claim.concurrency,), repeats=1),
    )


def _times(ratio: float) -> str:
    """ "94.7 times" or "4.0 % of"."""
    return f"{percent(ratio)} of" if ratio < 1 else f"{show(ratio)} times"


def _stated_slots(claim: Claim, slots: Quantity) -> tuple[Verdict, str]:
    target = stated(claim.slots)
    words = {"equals": "", "at_most": "at most ", "at_least": "at least "}[claim.relation]
    text = f"{span(slots)} requests fit at once; the sentence says {words}{claim.slots}"
    if claim.relation == "at_most":
        right, wrong = slots.hi <= target.hi, slots.lo > target.hi
    elif claim.relation == "at_least":
        right, wrong = slots.lo >= target.lo, slots.hi < target.lo
    else:
        right = target.lo <= slots.value <= target.hi
        wrong = slots.hi < target.lo or slots.lo > target.hi
    return ("supported" if right else "refuted" if wrong else "inconclusive"), text
