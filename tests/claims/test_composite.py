"""analysis.claims.composite: as true as its parts."""

from __future__ import annotations

from typing import get_args

import pytest

from analysis.evidence import BadClaim, Judgement
from analysis.model import Finding, Verdict
from tests.builders import study
from tests.claims.helpers import judge, measured

AWAY = study(measured("a", "mean_itl", 1.0))


def joined(*parts: str, **verdicts: Verdict) -> Judgement:
    findings = {
        name: Finding(name, "s", "magnitude", f"says {name}.", "text", verdict, ("because",), None)
        for name, verdict in verdicts.items()
    }
    return judge(AWAY, "composite", findings=findings, parts=parts)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ("supported", "supported", "supported"),
        ("supported", "refuted", "refuted"),
        ("refuted", "untestable", "refuted"),
        ("supported", "inconclusive", "inconclusive"),
        ("supported", "untestable", "untestable"),
        ("inconclusive", "untestable", "untestable"),
        ("inconclusive", "refuted", "refuted"),
    ],
)
def test_it_is_as_true_as_its_weakest_part(
    first: Verdict, second: Verdict, verdict: Verdict
) -> None:
    assert joined("x", "y", x=first, y=second).verdict == verdict
    assert joined("y", "x", x=first, y=second).verdict == verdict
    assert {first, second, verdict} <= set(get_args(Verdict))


def test_the_parts_are_named_by_verdict_and_kept() -> None:
    found = joined("x", "y", "z", x="supported", y="refuted", z="supported")
    assert found.reasons == (
        "Refuted with “says y”: because",
        "Supported with “says x”: because",
        "Supported with “says z”: because",
    )
    assert found.flips == "another verdict on “says y”"
    assert [part.id for part in found.parts] == ["x", "y", "z"]


def test_long_sentences_are_cut_to_about_45_words() -> None:
    def part(name: str, says: int, because: int) -> Finding:
        words = " ".join(["word"] * says), (" ".join(["reason"] * because),)
        return Finding(name, "s", "magnitude", words[0], "text", "refuted", words[1], None)

    findings = {"x": part("x", 30, 60), "y": part("y", 3, 39)}
    found = judge(AWAY, "composite", findings=findings, parts=["x", "y"])
    assert found.reasons[0].count("word") == 16
    assert found.reasons[0].count("reason") == 42 - 17  # the sign of the cut counts as a word
    assert found.reasons[0].endswith("reason …")
    assert len(found.reasons[0].split()) <= 45
    # A short sentence leaves the room to the reason.
    assert found.reasons[1].count("reason") == 39
    assert "…" not in found.reasons[1]


def test_fewer_than_two_parts_join_nothing() -> None:
    with pytest.raises(BadClaim, match="fewer than two parts"):
        joined("x", x="supported")


def test_a_part_that_was_not_judged_names_the_nearest() -> None:
    with pytest.raises(BadClaim, match="names part 'frist', which was not judged; did you mean"):
        joined("frist", "second", first="supported", second="supported")
