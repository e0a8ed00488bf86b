"""What a printed KV cache size means: GiB of one GPU or of all, and who really has more tokens.

GiB / tokens is compared with the bytes a token needs: 2 x layers x KV heads x head dimension x
bytes for the whole model, divided by the ranks for one GPU. Sizes of different arms may be
compared only in tokens.
"""

from __future__ import annotations

from typing import Literal

from analysis.claims import ClaimBase
from analysis.claims._common import all_of
from analysis.evidence import BadClaim, Evidence, Judgement, Missing
from analysis.floor import kv_token_bytes
from analysis.model import Estimate, Verdict
from analysis.wording import show, span

CLOSE = 0.02
"""Bytes a token within 2 % of the geometry: pages, rounding of GiB."""


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a KV accounting claim; `printed_as` or `compared_with`, or both."""

    arm: str
    printed_as: Literal["", "total", "per_gpu"] = ""
    """What the sentence takes the printed size for."""
    compared_with: str = ""
    has: Literal["more", "less"] = "more"
    """KV cache in all, against the other arm."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Bytes a token as printed against the geometry; totals in tokens."""
    arm = ev.arm(claim.arm)
    if not claim.printed_as and not claim.compared_with:
        raise BadClaim("has neither `printed_as` nor `compared_with`; add one")
    numbers: list[Estimate] = []
    reasons: list[str] = []
    verdicts: list[Verdict] = []
    if claim.printed_as:
        printed, tokens = ev.fact(arm, "kv_bytes"), ev.fact(arm, "kv_tokens")
        if arm.startup is not None and arm.startup.config.get("num_gpu_blocks_override"):
            raise Missing(
                f"the KV cache size in use by {claim.arm}",
                "the log prints the memory that was free; num_gpu_blocks_override set the tokens",
            )
        each = (printed / tokens).as_unit("B")
        one_gpu = kv_token_bytes(arm)
        if one_gpu is None:
            raise BadClaim(
                f"asks for the KV geometry of {claim.arm}, whose model is not in "
                "models.toml; name the model in study.toml, or put its config.json beside the runs"
            )
        ranks = arm.spec.tensor_parallel * arm.spec.pipeline_parallel
        whole = one_gpu * float(ranks)
        numbers += [
            each.estimate("bytes a token as printed", "printed KV size / KV tokens"),
            one_gpu.estimate(
                "bytes a token on one GPU", "2 x layers x KV heads x head dim x bytes / ranks"
            ),
            whole.estimate("bytes a token on all GPUs"),
        ]
        fits = {
            "per_gpu": _close(each.value, one_gpu.value),
            "total": _close(each.value, whole.value),
        }
        text = f"{show(printed.value, 'B')} for {show(tokens.value, 'tok')} is {span(each)} a token"
        if ranks == 1 and fits["total"]:
            verdicts.append("supported")
            reasons.append(
                f"{text}, the model's own; with one GPU an engine there is no difference."
            )
        elif not any(fits.values()):
            verdicts.append("inconclusive")
            reasons.append(
                f"{text}, neither one GPU's {show(one_gpu.value, 'B')} nor all GPUs' "
                f"{show(whole.value, 'B')}; a figure is off."
            )
        else:
            meaning = "per_gpu" if fits["per_gpu"] else "total"
            verdicts.append("supported" if meaning == claim.printed_as else "refuted")
            in_all = printed.value * arm.spec.replicas * (ranks if meaning == "per_gpu" else 1)
            reasons.append(
                f"{text}, the share of {'one GPU' if meaning == 'per_gpu' else 'all'} "
                f"of {ranks}, so the arm holds {show(in_all, 'B')} in all."
            )
    if claim.compared_with:
        other = ev.arm(claim.compared_with)
        mine, theirs = ev.fact(arm, "kv_tokens_total"), ev.fact(other, "kv_tokens_total")
        ratio = (mine / theirs).as_unit("")
        numbers.append(
            ratio.estimate("KV tokens ratio", f"{claim.arm} / {claim.compared_with}, all engines")
        )
        more = ratio.lo > 1
        less = ratio.hi < 1
        right = more if claim.has == "more" else less
        # Tokens are counted: where no rounding is left, equal is neither more nor less.
        known = more or less or ratio.lo == ratio.hi
        verdicts.append("supported" if right else "refuted" if known else "inconclusive")
        reasons.append(
            f"{claim.arm} holds {show(mine.value, 'tok')} of KV in all, "
            f"{claim.compared_with} {show(theirs.value, 'tok')}: {span(ratio)} x."
        )
    worst = all_of(verdicts)
    return Judgement(
        worst,
        tuple(reasons),
        tuple(numbers),
        flips="another size or token count in the start-up log",
    )


def _close(found: float, expected: float) -> bool:
    return abs(found / expected - 1) <= CLOSE
