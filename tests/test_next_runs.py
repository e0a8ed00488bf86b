"""Suggested runs: each once, narrower ones under the wider, by the arms that they compare."""

from __future__ import annotations

from analysis.model import Finding
from analysis.next_runs import suggestions
from tests.reports import finding

BOTH = "collect --study s --arm a --arm b --workload w --concurrency 1 --concurrency 2 --repeats 6"


def open_claim(ident: str, line: str, **more: str) -> Finding:
    return finding(ident, verdict="inconclusive", next_experiment=line, **more)


def test_runs_that_others_hold_are_joined_to_them_in_any_order_of_arms() -> None:
    found = suggestions(
        [
            open_claim("narrow", "collect --study s --arm b --arm a --workload w --repeats 1"),
            open_claim("wide", BOTH),
            open_claim("wide-too", BOTH),
        ]
    )
    [(arms, [one])] = found
    assert arms == "a, b"
    assert one.line == BOTH
    assert [f.id for f in one.settles] == ["wide", "wide-too", "narrow"]


def test_more_repeats_another_study_or_a_note_stand_alone() -> None:
    plain = "collect --study s --arm a --workload w --repeats 1"
    lines = [plain, plain.replace(" s ", " t "), f"{plain}  # --profile", plain.replace("a", "c")]
    found = suggestions([open_claim(str(n), line) for n, line in enumerate(lines)])
    assert sum(len(group) for _, group in found) == len(lines)


def test_what_is_supported_or_repeated_needs_no_run() -> None:
    supported = finding("s", next_experiment=BOTH)
    assert suggestions([supported, open_claim("again", BOTH, repeats="s")]) == []


def test_a_line_that_is_no_command_is_kept_as_it_is() -> None:
    [(arms, [one])] = suggestions([open_claim("odd", "say 'what")])
    assert (arms, one.line) == ("", "say 'what")
