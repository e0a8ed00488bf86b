"""A folder through all steps: what comes out, of which studies, and what was left aside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from analysis import standing
from analysis.checks import checks
from analysis.model import Outcome
from analysis.pipeline import analyse
from analysis.study import BadInput
from tests import reports
from tests.builders import cell, run, study
from tests.test_load import CLAIM, result, text

QUESTIONS = ["standing.valid", "standing.binds", "standing.slots", "standing.time"]


def folder(root: Path) -> Path:
    """Two studies: `a` with two arms and a claim that can be judged, `b` with one that cannot."""
    words = '[[arm]]\nname = "base"\n[[arm]]\nname = "other"\n' + "".join(
        f'[[assign]]\nwhere = {{ label = "{arm}" }}\narm = "{arm}"\nworkload = "chat"\n'
        for arm in ("base", "other")
    )
    text(root / "a" / "study.toml", words)
    result(root / "a" / "1.json", label="base")
    result(root / "a" / "2.json", label="other", mean_itl_ms=100.0)
    keys = 'arms = ["base"]\nworkload = "chat"\nconcurrency = 10\nlimited_by = "cap"\n'
    text(root / "a" / "claims.toml", CLAIM + keys)
    result(root / "b" / "1.json")
    text(root / "b" / "claims.toml", CLAIM)
    text(root / "b" / "bad.json", "{")
    return root


def test_every_run_is_checked_every_cell_asked_and_every_claim_judged(tmp_path: Path) -> None:
    found = analyse(folder(tmp_path))
    a, b = found.studies
    assert (a.study.name, b.study.name) == ("a", "b")
    assert [(f.id, f.verdict) for f in a.findings] == [("c", "supported")]
    assert [cell.arm.name for cell, _ in a.cells] == ["base", "other"]
    assert all([f.kind for f in answers] == QUESTIONS for _, answers in a.cells)
    assert [f.kind for f in a.pairs] == ["standing.differ"]
    assert [f.kind for f in a.answers] == [*QUESTIONS, *QUESTIONS, "standing.differ"]
    assert len(a.outcomes) == 2 * len(checks())
    assert b.pairs == ()


def test_what_could_not_be_read_or_judged_is_kept_with_its_reason(tmp_path: Path) -> None:
    found = analyse(folder(tmp_path))
    assert [item.file for item in found.skipped] == ["b/bad.json", "b/claims.toml"]
    assert found.skipped[1].reason.startswith("claim 'c': has no ")
    assert [item.file for item in found.dataset.skipped] == ["b/bad.json"]


def test_one_study_may_be_chosen_and_the_others_data_stay_in_reach(tmp_path: Path) -> None:
    found = analyse(folder(tmp_path), only=["a"])
    assert [report.study.name for report in found.studies] == ["a"]
    assert [one.name for one in found.dataset.studies] == ["a", "b"]
    # Files are read before a study is chosen; claims of other studies are not judged.
    assert [item.file for item in found.skipped] == ["b/bad.json"]


def test_a_study_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no study 'c'"):
        analyse(folder(tmp_path), only=["c"])


def test_a_single_file(tmp_path: Path) -> None:
    (report,) = analyse(result(tmp_path / "1.json")).studies
    assert len(report.study.runs) == 1
    assert report.findings == ()


def test_more_processes_give_the_same(tmp_path: Path) -> None:
    root = folder(tmp_path)
    one, two = analyse(root), analyse(root, jobs=2)
    assert one.skipped == two.skipped
    assert [r.findings for r in one.studies] == [r.findings for r in two.studies]
    assert [r.answers for r in one.studies] == [r.answers for r in two.studies]


def test_a_run_is_as_valid_as_its_worst_check() -> None:
    bad = run({"failed": 90}, id="bad", arm="other")
    found = reports.report(study(cell("base", run(id="good")), cell("other", bad)))
    assert found.validity("good") == "VALID"
    assert found.validity("bad") == "INVALID"
    assert found.validity("nobody's") == "NOT CHECKED"


class Counted(tuple[Outcome, ...]):
    """Outcomes that count how often they are gone through."""

    times = 0

    def __iter__(self) -> Iterator[Outcome]:
        type(self).times += 1
        return super().__iter__()


def test_the_checks_of_all_runs_are_gone_through_once() -> None:
    ids = [f"r{n}" for n in range(50)]
    report = reports.report(study(cell("base", *(run(id=name) for name in ids))))
    counted = replace(report, outcomes=Counted(report.outcomes))
    for name in ids:
        assert counted.checks(name) == tuple(o for o in report.outcomes if o.run == name)
        assert counted.validity(name) == report.validity(name)
    assert counted.checks("another") == ()
    assert Counted.times == 1


def test_of_too_many_arms_at_one_load_each_is_compared_with_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arm in "abcd":
        result(tmp_path / arm / "1.json", max_num_seqs=ord(arm))
    assert len(analyse(tmp_path).studies[0].pairs) == 6
    monkeypatch.setattr(standing, "MOST_ARMS", 3)
    found = analyse(tmp_path)
    assert len(found.studies[0].pairs) == 3
    assert len({finding.says.split(" and ")[0] for finding in found.studies[0].pairs}) == 1
    (item,) = found.skipped
    assert item.file == "study.toml"
    assert item.reason.startswith("4 arms on ")
    assert "at most 3 are compared two by two" in item.reason
    assert item.wanted
