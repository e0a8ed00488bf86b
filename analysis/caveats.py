"""What a finding says of its runs beside the verdict: thin tails, requests that may be missing.

Neither makes a run invalid and neither is seen by a kind of claim, which asks for numbers only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from analysis.checks.percentiles import tail_warning
from analysis.dataset import Cell
from analysis.evidence import BadClaim, Evidence, Missing
from analysis.model import Run, Source
from analysis.wording import count_of


def thin_tails(cells: Sequence[Cell], rested_on: Collection[Source]) -> tuple[str, ...]:
    """Percentiles of too few requests among the figures with these sources, with their cells."""
    found: dict[str, list[str]] = {}
    for cell in dict.fromkeys(cells):
        for account in cell.ledgers:
            for name, figure in account.run.figures.items():
                if figure.source not in rested_on:
                    continue
                warning = tail_warning(account.run, name, account.mean_output_tokens)
                if warning and cell.name not in found.setdefault(warning, []):
                    found[warning].append(cell.name)
    return tuple(f"{warning}: {count_of(names, 3)}" for warning, names in found.items())


def possibly_missing(cells: Sequence[Cell], evidence: Evidence) -> tuple[str, ...]:
    """Requests that a server refuses and whose loss a file without a count of failures hides.

    A server refuses a request whose prompt and output together pass its max_model_len; the means
    of the others are then those of an easier workload.
    """
    notes: list[str] = []
    for cell in dict.fromkeys(cells):
        if all(_counts_failures(run) for run in cell.runs):
            continue
        try:
            limit = evidence.fact(cell.arm, "max_model_len").value
            sample = evidence.lengths(cell.workload, cell.arm.study)
        except (BadClaim, Missing):
            continue
        total = sample.prompt + sample.output
        over = int((total > limit).sum())
        if over:
            notes.append(
                f"{over:,} of {len(total):,} requests in the length sample of {cell.workload} pass "
                f"{cell.arm.name}'s max_model_len of {limit:,.0f} and may be missing from its run; "
                "failures are not printed"
            )
    return tuple(dict.fromkeys(notes))


def _counts_failures(run: Run) -> bool:
    return "failed" in run.figures or {"completed", "num_prompts"} <= run.figures.keys()
