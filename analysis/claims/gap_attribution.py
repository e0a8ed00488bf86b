"""Why a latency or throughput differs between two arms: the cause that the sentence names.

A waiting request has produced no tokens, so a queue acts on TTFT and never on ITL;
ITL rises through waiting only when running requests are preempted. Where both arms' requests show
their engine steps (level R and better) the difference is split exactly: steps in a gap (scheduling)
times time a step, and that into cost and content. From means alone (levels P and S) each cause is
bounded:

- `headroom` or `queue` for ITL: zero while preemption is excluded, i.e. while the KV slots of the
  baseline exceed the requests in flight by a margin;
- `step_cost` for ITL: at least (baseline's floor - treatment's ITL) / fall, the floor being the
  weights over the memory bandwidth; `idle` is at most the rest; `batch` (a smaller one) only where
  nothing else moved;
- `batch` or `headroom` (more requests running at once) and `step_cost` (faster tokens) for
  throughput: X = L_decode / (time per token x (output - 1)), so their shares of ln X are exact.
  Not L: in a closed loop L is the cap, waiting requests included, whatever the batch does. `stay`
  (each request gone sooner, waiting included) is the other split, ln X = ln L - ln stay;
- `kv_pool`: nothing, where neither arm's KV cache limits the running batch;
- `queue` or `headroom` for TTFT: where the slower arm's slots are fewer than its load and the other
  does not queue, the wait is counted ((L - S) / X); where both have room to spare, no request
  waits for a slot; `prefill` needs the server's own times.
"""

from __future__ import annotations

from analysis.claims import ClaimBase
from analysis.claims._causes import Cause, Result, first_token, pool, throughput
from analysis.claims._common import contrast, contrast_text, differences
from analysis.claims._step_level import of_steps, step_level
from analysis.claims._token_gaps import token_gaps
from analysis.claims._waiting import unstated_limits
from analysis.dataset import Cell
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement
from analysis.metrics import label_of, metric_of
from analysis.quantity import Quantity
from analysis.token_times import Refused


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of an attribution."""

    metric: str
    baseline: str
    treatment: str
    workload: str
    concurrency: int
    cause: Cause


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Bound the named cause's share of the difference."""
    base = ev.cell(claim.baseline, claim.workload, claim.concurrency)
    treat = ev.cell(claim.treatment, claim.workload, claim.concurrency)
    metric = metric_of(claim.metric)
    before, after = ev.need(base, claim.metric), ev.need(treat, claim.metric)
    slots_matter = claim.cause == "kv_pool" or (metric is not None and metric.unit == "s")
    if claim.cause == "kv_pool":
        verdict, reasons, numbers = pool(ev, base, treat)
    elif metric is not None and metric.name.endswith("throughput"):
        verdict, reasons, numbers = _throughput(ev, claim.cause, base, treat)
    elif metric is not None and metric.name in ("itl", "tpot"):
        verdict, reasons, numbers = _token_gap(
            ev, claim.cause, base, treat, before, after, metric.name
        )
    elif metric is not None and metric.name == "ttft":
        verdict, reasons, numbers = first_token(claim.cause, base, treat, before, after)
    else:
        raise BadClaim(
            f"attributes {claim.metric}; a cause can be tested for ITL, TPOT, TTFT and throughputs"
        )
    if verdict in ("supported", "refuted") and claim.cause != "kv_pool":
        found = contrast(ev, base, treat, claim.metric)
        if found.direction == "undecided":
            # Nothing follows about the cause of what may not be there.
            words = contrast_text(found, claim.baseline, claim.treatment)
            verdict = "inconclusive"
            reasons = (f"There may be no difference to explain: {words}.", *reasons)
    numbers = (
        *(
            shown
            for cell in (base, treat)
            if (shown := cell.estimate(claim.metric, f"{label_of(claim.metric)}, {cell.arm.name}"))
        ),
        *numbers,
    )
    return Judgement(
        verdict,
        reasons,
        numbers,
        assumptions=unstated_limits(base, treat) if slots_matter else (),
        confounds=differences(base, treat),
        flips=_BY_STEPS if any(of_steps(number) for number in numbers) else _FLIPS[claim.cause],
        cells=(base, treat),
        experiment=Experiment(
            (claim.baseline, claim.treatment), (claim.workload,), (claim.concurrency,)
        ),
    )


def _token_gap(
    ev: Evidence,
    cause: Cause,
    base: Cell,
    treat: Cell,
    before: Quantity,
    after: Quantity,
    name: str,
) -> Result:
    """By engine steps where both arms show them, else from means."""
    by_means = token_gaps(cause, base, treat, before, after, name.upper())
    # TPOT counts each request once, so it is no mean over steps.
    found = step_level(ev, cause, base, treat, "itl") if name == "itl" else Refused(())
    if isinstance(found, Refused):
        return _from_means(by_means, found)
    # The bridge has the difference with the sign of the other numbers.
    known = {"difference", *(number.name for number in found.numbers)}
    kept = tuple(number for number in by_means[2] if number.name not in known)
    return found.verdict, found.reasons, (*found.numbers, *kept)


def _throughput(ev: Evidence, cause: Cause, base: Cell, treat: Cell) -> Result:
    """The identity of means, with the steps of the run beside it where both arms show them."""
    verdict, reasons, numbers = throughput(ev, cause, base, treat)
    found = step_level(ev, cause, base, treat, "duration")
    if isinstance(found, Refused):
        return _from_means((verdict, reasons, numbers), found)
    if found.ramp:
        # The identity holds, but what it splits is how the runs filled and drained.
        kept = tuple(number for number in numbers if not number.name.startswith("share of "))
        return "inconclusive", found.reasons, (*kept, *found.numbers)
    return verdict, (*reasons, *found.reasons[:1]), (*numbers, *found.numbers)


def _from_means(result: Result, why: Refused) -> Result:
    """The result with the words why engine steps do not say more, where there are requests."""
    verdict, reasons, numbers = result
    return verdict, (*reasons, *(f"From means: {r}" for r in why.reasons[:1])), numbers


_BY_STEPS = "a share on the other side of one half in more pairs of runs"
_FLIPS = {
    "headroom": "preemptions in the baseline (a server counter above 0), or KV slots below the "
    "requests in flight",
    "queue": "server queue times that make up most of the difference",
    "step_cost": "equal engine step times in both arms",
    "batch": "requests in flight that differ by most of the throughput ratio",
    "stay": "equal stays in both arms",
    "kv_pool": "KV slots near the requests in flight in either arm",
    "idle": "a profiler trace in which the GPU idles for most of the difference",
    "prefill": "server prefill times that make up most of the difference",
}
