"""Client against server: what the servers counted during the run must be the client's requests.

Their counters before and after a run count every request, whoever sent it. More requests or tokens
than the client's mean that others used the servers, and latencies are those of a load that nobody
set; fewer mean that some server was not asked, or that the counters are of another run.
"""

from __future__ import annotations

from analysis.accounting import Ledger
from analysis.dataset import Cell
from analysis.model import Outcome
from analysis.reconciliation import in_words, reconciled
from analysis.token_times import Refused

CODE = "SA112"
NAME = "server-agrees"


def check(cell: Cell, account: Ledger) -> Outcome:
    """Requests, prompt and output tokens by both; tolerances are those of `reconciliation`."""
    run = account.run
    found = reconciled(run)
    if found is None:
        reason = "no counters of each server before and after"
        return Outcome(CODE, NAME, "NOT APPLICABLE", reason, run.id)
    if isinstance(found, Refused):
        # The requests themselves may be fine; that a server was restarted under them is not.
        return Outcome(CODE, NAME, "SUSPECT", found.reasons[0].rstrip("."), run.id)
    if found.faults:
        return Outcome(CODE, NAME, "SUSPECT", "; ".join(found.faults), run.id)
    return Outcome(CODE, NAME, "VALID", in_words(found), run.id)
