"""Means against totals: figures of one run that must agree, within the rounding of their print.

Throughput x duration = tokens; total = prompt + output; request throughput x duration =
completed; and, where an end-to-end latency is given, TTFT + ITL x (output - 1) near it. A
disagreement means a figure from another run, another unit, or chunks that are not tokens.
"""

from __future__ import annotations

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.model import Outcome, Run, Status
from analysis.quantity import Quantity, quantity
from analysis.wording import percent, show

CODE = "SA106"
NAME = "totals"
EXACT = 0.005
"""Sums of one file agree to 0.5 %."""
LATENCY = 0.05
"""ITL pools gaps, end-to-end averages requests; 5 % apart is more than that explains."""


def check(cell: Cell, account: Ledger) -> Outcome:
    """Every identity that the file's figures allow."""
    run = account.run
    tried = 0
    for words, left, right, tolerance in _identities(run, account):
        tried += 1
        apart = max(left.lo - right.hi, right.lo - left.hi, 0.0)
        if apart > tolerance * abs(right.value):
            reason = (
                f"{words}: {show(left.value, left.unit)} against {show(right.value, right.unit)}"
            )
            if right.value:
                reason += f" ({percent(left.value / right.value - 1)})"
            status: Status = "SUSPECT" if tolerance == LATENCY else "INVALID"
            return Outcome(CODE, NAME, status, reason, run.id)
    if not tried:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "no two figures are bound by a sum", run.id)
    return Outcome(CODE, NAME, "VALID", f"{tried} identities hold", run.id)


def _identities(run: Run, account: Ledger) -> list[tuple[str, Quantity, Quantity, float]]:
    have = {name: quantity(figure) for name, figure in run.figures.items()}
    found: list[tuple[str, Quantity, Quantity, float]] = []

    def bind(words: str, left: tuple[str, ...], right: str, tolerance: float = EXACT) -> None:
        if right in have and all(name in have for name in left):
            product = have[left[0]]
            for name in left[1:]:
                product = product * have[name]
            found.append((words, product.as_unit(have[right].unit), have[right], tolerance))

    bind(
        "request throughput x duration against completed",
        ("request_throughput", "duration"),
        "completed",
    )
    bind(
        "output throughput x duration against output tokens",
        ("output_throughput", "duration"),
        "total_output_tokens",
    )
    if {"total_input_tokens", "total_output_tokens", "total_token_throughput", "duration"} <= set(
        have
    ):
        total = have["total_input_tokens"] + have["total_output_tokens"]
        sent = (have["total_token_throughput"] * have["duration"]).as_unit("tok")
        found.append(("total throughput x duration against all tokens", sent, total, EXACT))
    if {"output_throughput", "total_token_throughput"} <= set(have):
        excess = have["output_throughput"] - have["total_token_throughput"]
        if excess.lo > 0:
            found.append(
                (
                    "output throughput exceeds total throughput",
                    have["output_throughput"],
                    have["total_token_throughput"],
                    0.0,
                )
            )
    if "mean_itl" in have and "mean_e2el" in have and account.mean_output_tokens is not None:
        ttft = have.get("mean_ttft")
        if ttft is not None:
            stay = ttft + (have["mean_itl"] * (account.mean_output_tokens - 1)).as_unit("s")
            found.append(
                (
                    "TTFT + ITL x (output - 1) against end-to-end latency",
                    stay,
                    have["mean_e2el"],
                    LATENCY,
                )
            )
    return found
