"""Why total throughput differs between two workloads: a cache, or which tokens are counted.

Total throughput counts prompt tokens in full, whether computed or served from a cache, so a
workload with more prompt to each output token shows a higher figure at equal work. The split is
exact: total ratio = output throughput ratio x ratio of (total / output) tokens.
"""

from __future__ import annotations

from typing import Literal

from analysis.claims import ClaimBase
from analysis.evidence import Evidence, Experiment, Judgement
from analysis.model import Verdict
from analysis.wording import percent, span


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a token-mix claim."""

    arm: str
    workload: str
    against: str
    """The workload it is compared with."""
    concurrency: int
    cause: Literal["prefix_cache", "mix"]


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Split the ratio of total throughputs into work done and tokens counted."""
    mine = ev.cell(claim.arm, claim.workload, claim.concurrency)
    other = ev.cell(claim.arm, claim.against, claim.concurrency)
    total = ev.need(mine, "total_token_throughput") / ev.need(other, "total_token_throughput")
    output = ev.need(mine, "output_throughput") / ev.need(other, "output_throughput")
    mix = (total / output).as_unit("")
    total, output = total.as_unit(""), output.as_unit("")
    share = (mix.ln() / total.ln()).as_unit("")
    if total.lo <= 1 <= total.hi:
        verdict: Verdict = "inconclusive"
    elif share.lo > 0.5:
        verdict = "supported" if claim.cause == "mix" else "refuted"
    elif share.hi < 0.5:
        verdict = "refuted" if claim.cause == "mix" else "inconclusive"
    else:
        verdict = "inconclusive"
    reasons = [
        f"The mix of counted tokens is {percent(share.value, 0)} of the log ratio: total "
        f"throughput is {span(total)} x, output throughput {span(output)} x, so tokens counted "
        f"for each output token differ {span(mix)} x.",
    ]
    if total.lo <= 1 <= total.hi:
        reasons = [
            f"Total throughput is {span(total)} x, equal within the rounding of the print: there "
            "is no difference to explain."
        ]
    elif verdict == "inconclusive" and claim.cause == "prefix_cache":
        reasons.append(
            "More output is produced too; whether a cache did that needs the server's "
            "prefix-hit counters."
        )
    return Judgement(
        verdict,
        tuple(reasons),
        (
            total.estimate("total throughput ratio", f"{claim.workload} / {claim.against}"),
            output.estimate("output throughput ratio", f"{claim.workload} / {claim.against}"),
            mix.estimate("token mix ratio", "ratio of (total / output) throughput"),
            share.estimate("share of the mix", "ln mix ratio / ln total ratio"),
        ),
        flips="an output throughput ratio near the total throughput ratio",
        cells=(mine, other),
        experiment=Experiment(
            (claim.arm,),
            (claim.workload,),
            (claim.concurrency,),
            note="again with --no-enable-prefix-caching",
        ),
    )
