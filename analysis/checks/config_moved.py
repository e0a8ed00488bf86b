"""Repeats of one cell must be repeats: every configuration field that differs between them.

Their spread is used as run-to-run noise. If a flag, a version or the number of prompts moved
between them, the spread holds an effect too. Where nothing is seen to have moved, but the mean
stay of a request differs more than 1.5-fold, they are probably runs of different servers.
"""

from __future__ import annotations

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.model import Outcome, Run
from analysis.server_config import CLIENT_KEYS, NO_SETTING, is_result
from analysis.wording import plural

CODE = "SA108"
NAME = "config-moved"
MOST_APART = 1.5
"""Mean stays of repeats further apart than this are no run-to-run noise."""
_MAY_DIFFER = (
    CLIENT_KEYS - {"num_prompts", "request_rate", "burstiness", "max_concurrency"}
    | {"seed"}
    | {f"server.{key}" for key in NO_SETTING}
)


def check(cell: Cell, account: Ledger) -> Outcome:
    """This run's configuration against the first repeat's, and the stays of all repeats."""
    run, first = account.run, cell.runs[0]
    if len(cell.runs) < 2:
        return Outcome(CODE, NAME, "NOT APPLICABLE", "one run only", run.id)
    found = []
    if moved := _moved(run, first):
        found.append(f"differs from {first.id} in {', '.join(moved[:5])}")
    stays = cell.stays
    if stays and (apart := stays[-1] / stays[0]) > MOST_APART:
        found.append(
            f"{plural(len(stays), 'run')} differ {apart:.1f}-fold in stay: probably not one server"
        )
    if found:
        return Outcome(CODE, NAME, "SUSPECT", "; ".join(found), run.id)
    return Outcome(CODE, NAME, "VALID", f"equal to {first.id}", run.id)


def _moved(run: Run, first: Run) -> list[str]:
    """The settings, and the amount of work, in which a run differs from the first repeat."""
    moved = []
    for key in sorted((run.config.keys() & first.config.keys()) - _MAY_DIFFER):
        values = run.config[key], first.config[key]
        if values[0] != values[1] and not any(is_result(key, value) for value in values):
            moved.append(key)
    seeds = run.config.get("seed"), first.config.get("seed")
    # Another seed samples other prompts, and that is what it is for.
    sampled_anew = None not in seeds and seeds[0] != seeds[1]
    for name in ("num_prompts",) if sampled_anew else ("num_prompts", "total_input_tokens"):
        a, b = run.figures.get(name), first.figures.get(name)
        if a is not None and b is not None and a.value != b.value:
            moved.append(name)
    if run.requested_rate != first.requested_rate:
        moved.append("request_rate")
    return moved
