"""Whether a sample of requests fits a context limit, and how many of it would be refused.

A server refuses a request whose prompt and asked-for output together pass max_model_len, so the
longest prompt alone does not say whether a workload fits.
"""

from __future__ import annotations

from analysis.claims import ClaimBase
from analysis.evidence import BadClaim, Evidence, Judgement
from analysis.model import Figure, Source, Verdict
from analysis.quantity import quantity
from analysis.wording import percent, plural


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a length claim."""

    workload: str
    """A workload with a length sample in study.toml."""
    fits: bool
    """Whether the sentence says that every request fits."""
    limit: int | None = None
    """Tokens; or the max_model_len of `arm`."""
    arm: str = ""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Count prompts, and prompt + output, beyond the limit."""
    limit = claim.limit
    if limit is None:
        if not claim.arm:
            raise BadClaim("has neither `limit` nor `arm`; say which context length is meant")
        limit = round(ev.fact(ev.arm(claim.arm), "max_model_len").value)
    sample = ev.lengths(claim.workload)
    total = sample.prompt + sample.output
    n = len(total)
    over, prompts_over = int((total > limit).sum()), int((sample.prompt > limit).sum())
    verdict: Verdict = "supported" if (over == 0) == claim.fits else "refuted"
    share = over / n
    # Clopper-Pearson would be the interval for the population; the sample itself is exact.
    source = Source(sample.source.file, f"rows with prompt + output > {limit:,}")
    counted = quantity(Figure("refused", float(over), float(over), float(over), "", source))
    return Judgement(
        verdict,
        (
            f"{over} of {plural(n, 'request')} pass {limit:,} tokens with their output "
            f"({percent(share)}) and would be refused, although the longest prompt is "
            f"{int(sample.prompt.max()):,} and {prompts_over} prompts alone pass it."
            if over
            else f"All {plural(n, 'request')} fit {limit:,} tokens: the longest prompt with its "
            f"output is {int(total.max()):,}.",
        ),
        (counted.estimate("requests refused", "prompt + output tokens > limit"),),
        assumptions=(f"the sample of {plural(n, 'request')} stands for the workload",),
        flips="requests whose prompt and output together lie on the other side of the limit",
    )
