"""What every finding carries, whatever its kind: validity, level, assumptions, correction."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats as sps

from analysis import judge
from analysis.claims import Kind
from analysis.dataset import Cell, Dataset, Study
from analysis.evidence import Experiment, Judgement
from analysis.judge import Judged, command, failed_checks, judge_study
from analysis.model import Finding, Lengths, Level, Source
from analysis.study import WorkloadSpec
from tests.builders import arm, cell, dataset, run, study
from tests.reports import SENTENCE

TTFT = {"arm": "base", "workload": "chat", "concurrency": 10, "metric": "mean_ttft"}


def value(id: str = "c", stated: str = "100", **more: Any) -> dict[str, Any]:
    """A claim of the mean TTFT of the arm `base`, 100 ms unless the cell says otherwise."""
    return {
        "id": id, "kind": "magnitude", "of": TTFT, "stated": stated, "unit": "ms",
        **SENTENCE, **more,
    }  # fmt: skip


def judged(
    claims: Sequence[Mapping[str, Any]], *cells: Cell, others: Sequence[Study] = ()
) -> Judged:
    known = replace(study(*(cells or (cell(),)), claims=claims), claims_file="s/claims.toml")
    return judge_study(Dataset((known, *others)), known)


def only(claims: Sequence[Mapping[str, Any]], *cells: Cell, **more: Any) -> Finding:
    found = judged(claims, *cells, **more)
    assert found.skipped == ()
    return found.findings[-1]


def by_id(found: Judged) -> dict[str, Finding]:
    return {finding.id: finding for finding in found.findings}


def why(found: Judged) -> list[str]:
    assert all(item.file == "s/claims.toml" for item in found.skipped)
    assert all("\n" not in item.reason for item in found.skipped)
    return [item.reason for item in found.skipped]


# ---- what a finding carries


def test_a_claim_becomes_a_finding_with_its_sentence_and_source() -> None:
    found = only([value(says="TTFT is 100 ms.", source="text, page 1")])
    assert (found.id, found.study, found.kind) == ("c", "s", "magnitude")
    assert (found.says, found.said_in) == ("TTFT is 100 ms.", "text, page 1")
    assert (found.verdict, found.level) == ("supported", Level.SUMMARY)
    assert found.numbers[0].sources
    assert found.p_value is None
    assert found.repeats == ""


def test_how_a_vague_word_is_read_is_the_first_assumption() -> None:
    found = only([value(stated="99", relation="about", reads="“fast” is read as 99 ms")])
    assert found.assumptions == ("“fast” is read as 99 ms", "“about” is read as within 5 %")


def test_what_an_account_takes_for_granted_is_said_where_a_number_rests_on_it() -> None:
    # Requests sent stand for requests completed: a throughput rests on it, a TTFT does not.
    sent = cell("base", run({"completed": None, "failed": None, "request_throughput": None}))
    rate = {**TTFT, "metric": "request_throughput"}
    found = by_id(judged([value("a"), value("b", "1", of=rate, unit="1/s")], sent))
    assert found["a"].assumptions == ()
    assert found["b"].assumptions[0].startswith("completed requests: not printed for")


def test_the_level_is_the_weakest_of_the_runs() -> None:
    left = cell("base", run(level=Level.REQUESTS))
    right = cell("other", run(arm="other", level=Level.PUBLISHED))
    claim = value(stated="1", measure="ratio", against={**TTFT, "arm": "other"}, unit="")
    assert only([claim], left, right).level == Level.PUBLISHED
    assert only([value()], left, right).level == Level.REQUESTS


def test_a_sentence_about_no_run_is_at_the_level_of_publication() -> None:
    of = {"value": "5", "unit": "ms"}
    assert only([value(stated="5", of=of)]).level == Level.PUBLISHED


# ---- runs that are not valid


def test_a_suspect_run_is_named_and_the_verdict_stands() -> None:
    found = only([value()], cell("base", run({"failed": 1}, id="r")))
    assert found.verdict == "supported"
    assert [(o.run, o.code, o.status) for o in found.checks] == [("r", "SA103", "SUSPECT")]


@pytest.mark.parametrize(("stated", "withheld"), [("100", "supported"), ("900", "refuted")])
def test_an_invalid_run_withholds_a_verdict_either_way(stated: str, withheld: str) -> None:
    found = only([value(stated=stated)], cell("base", run({"failed": 90})))
    assert found.verdict == "inconclusive"
    assert found.reasons[0] == (
        f"A run this rests on is INVALID, so the verdict “{withheld}” is withheld."
    )
    assert len(found.reasons) > 1


def test_an_invalid_run_of_another_cell_changes_nothing() -> None:
    bad = cell("other", run({"failed": 90}, arm="other"))
    assert only([value()], cell(), bad).verdict == "supported"


def test_checks_that_passed_or_did_not_apply_are_left_out() -> None:
    repeats = cell("base", run(id="a"), run({"failed": 1}, id="b"))
    assert [o.run for o in failed_checks((repeats, repeats), "magnitude")] == ["b"]


def test_a_rate_that_was_not_delivered_concerns_a_claim_of_the_load_alone() -> None:
    # 1/s of the 10/s asked, and one request failed.
    late = cell("base", run({"failed": 1}, rate=10.0))
    load = {
        "id": "l", "kind": "load", "arms": ["base"], "workload": "chat", "concurrency": 10,
        "limited_by": "cap", **SENTENCE,
    }  # fmt: skip
    both = {"id": "both", "kind": "composite", "parts": ["c", "l"], **SENTENCE}
    found = by_id(judged([value(), load, both], late))
    assert [o.code for o in found["c"].checks] == ["SA103"]
    assert [o.code for o in found["l"].checks] == ["SA102", "SA103"]
    assert {o.code for o in found["both"].checks} == {"SA102", "SA103"}
    assert [o.code for o in failed_checks((late,), "standing.valid")] == ["SA102", "SA103"]
    assert [o.code for o in failed_checks((late,), "standing.time")] == ["SA103"]
    assert {finding.verdict for finding in found.values()} == {"supported"}


# ---- what weakens a number without making its run invalid


def test_a_number_that_rests_on_a_thin_tail_carries_the_warning() -> None:
    few = cell("base", run({"p99_ttft": 0.3}))
    claims = [value("tail", "300", of={**TTFT, "metric": "p99_ttft"}), value("mean")]
    found = by_id(judged(claims, few))
    assert (found["tail"].verdict, found["tail"].checks) == ("supported", ())
    assert found["tail"].assumptions == (
        "p99 of ttft from 100 requests is near its maximum (299 needed): "
        "base on chat, 10 in flight",
    )
    assert found["mean"].assumptions == ()


def test_requests_that_may_be_missing_are_named_where_the_cell_is_used() -> None:
    row = run({"completed": None, "failed": None})
    cut = cell(arm("base", max_model_len=1000), row)
    other = cell("other", run(arm="other"))
    sample = Lengths(Source("lengths.csv", ""), np.array([10, 900]), np.array([10, 101]))
    known = study(
        cut, other,
        claims=[value("cut"), value("other", of={**TTFT, "arm": "other"})],
        workloads=[WorkloadSpec(name="chat", lengths="lengths.csv")],
        lengths={"lengths.csv": sample},
    )  # fmt: skip
    found = by_id(judge_study(dataset(known), known))
    assert found["cut"].assumptions == (
        "1 of 2 requests in the length sample of chat pass base's max_model_len of 1,000 and may "
        "be missing from its run; failures are not printed",
    )
    assert found["other"].assumptions == ()


# ---- what is missing


def test_a_cell_that_was_not_measured_makes_a_claim_untestable() -> None:
    found = only([value(of={**TTFT, "concurrency": 99})])
    assert found.verdict == "untestable"
    assert found.level is None
    assert found.reasons[0] == (
        "Missing: a result file of base on chat at 99 in flight; measured at 10."
    )
    assert found.reasons[1].startswith("Tried: no other load")
    assert found.flips.startswith("the missing file: ")
    assert shlex.split(found.next_experiment) == [
        "collect", "--study", "s.toml", "--arm", "base", "--workload", "chat",
        "--concurrency", "99", "--repeats", "1",
    ]  # fmt: skip


def test_a_study_that_is_not_there_makes_a_claim_untestable() -> None:
    found = only([value(study="elsewhere")])
    assert found.verdict == "untestable"
    assert "the study 'elsewhere'" in found.reasons[0]


def test_a_claim_about_another_study_is_judged_on_its_data_and_stays_a_claim_of_its_own() -> None:
    served = replace(arm("base"), study="far")
    far = study(
        cell(served, run({"mean_ttft": 0.05}, level=Level.PUBLISHED)), name="far",
        collect_study="far-away.toml",
    )  # fmt: skip
    found = only([value(stated="50", study="far")], others=[far])
    assert (found.verdict, found.study, found.level) == ("supported", "s", Level.PUBLISHED)


# ---- claims that cannot be read


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ({"id": "x"}, "claim 'x': has no kind"),
        ({**value("x"), "kind": "magnitud"}, "has the unknown kind 'magnitud'; did you mean"),
        ({**value("x"), "sttated": "1"}, "claim 'x': unknown key 'sttated'"),
        ({**value("x"), "stated": 100}, "claim 'x': stated is 100; text is expected, in quotes"),
        (
            {"kind": "magnitude", **SENTENCE},
            "claim 2: has no `id`, `of` and `stated`; a magnitude needs id, ",
        ),
        ({**value("x"), "id": 7}, "claim 2: id is 7; text is expected, in quotes"),
        ({**value(""), "id": ""}, "claim '': has an empty id"),
        (value("c"), "claim 'c': has the id of an earlier claim; ids must be unique"),
        (value("x", of={**TTFT, "arm": "bas"}), "claim 'x': names arm 'bas', which is not there"),
        (value("x", stated="fast"), "claim 'x': states 'fast', which is no plain number"),
        ({"id": "x", "repeats": "d", **SENTENCE}, "repeats 'd', which was not judged"),
        ({"id": "x", "repeats": "c", "kind": "load", **SENTENCE}, "claim 'x': unknown key 'kind'"),
    ],
)
def test_a_claim_that_cannot_be_read_costs_itself_only(
    claim: dict[str, Any], expected: str
) -> None:
    found = judged([value("c"), claim, value("z")])
    assert [finding.id for finding in found.findings] == ["c", "z"]
    (reason,) = why(found)
    assert expected in reason


def test_references_nested_beyond_reason_cost_one_claim() -> None:
    of: dict[str, Any] = dict(TTFT)
    for _ in range(3000):
        of = {"value": "1", "unit": "ms", "plus": of}
    found = judged([value("deep", of=of), value("c")])
    assert [finding.id for finding in found.findings] == ["c"]
    assert why(found) == ["claim 'deep': nests tables too deeply; give fewer levels"]


def test_references_that_can_be_read_but_not_followed_cost_one_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def judge(claim: object, evidence: object) -> Judgement:
        return judge(claim, evidence)

    kind = Kind("magnitude", object, judge, "")
    monkeypatch.setattr("analysis.judge.kinds", lambda: {"magnitude": kind})
    assert why(judged([value()])) == ["claim 'c': nests references too deeply; give fewer levels"]


# ---- sentences that rest on others


def test_findings_come_in_the_order_of_the_file() -> None:
    both = {"id": "both", "kind": "composite", "parts": ["a", "b"], **SENTENCE}
    again = {"id": "again", "repeats": "both", **SENTENCE}
    found = judged([again, both, value("b"), value("a", stated="900")])
    assert [(f.id, f.verdict) for f in found.findings] == [
        ("again", "refuted"), ("both", "refuted"), ("b", "supported"), ("a", "refuted"),
    ]  # fmt: skip


def test_a_repeat_takes_everything_but_its_words_from_the_first() -> None:
    again = {"id": "again", "repeats": "c", "says": "once more", "source": "page 2"}
    found = by_id(judged([value(), again]))
    first = found["c"]
    assert found["again"] == replace(
        first, id="again", says="once more", said_in="page 2", repeats="c"
    )


def test_a_repeat_of_a_claim_that_could_not_be_read_is_skipped_too() -> None:
    found = judged([value("c", stated="?"), {"id": "again", "repeats": "c", **SENTENCE}])
    assert found.findings == ()
    assert len(why(found)) == 2
    assert "there are none" in why(found)[1]


def test_a_composite_carries_checks_assumptions_confounds_and_level_of_its_parts() -> None:
    left = cell("base", run({"failed": 1}, id="r", level=Level.PUBLISHED))
    right = cell(arm("other", max_num_seqs=4), run(arm="other", id="o"))
    ratio = value("b", "1", measure="ratio", against={**TTFT, "arm": "other"}, unit="")
    both = {"id": "both", "kind": "composite", "parts": ["a", "b"], **SENTENCE}
    found = by_id(judged([value("a", reads="a reading"), ratio, both], left, right))["both"]
    assert found.verdict == "supported"
    assert [o.run for o in found.checks] == ["r"]
    assert found.assumptions == ("a reading",)
    assert found.confounds == ("max_num_seqs: not stated against 4",) or found.confounds == (
        "max_num_seqs: 4 against not stated",
    )
    assert found.level == Level.PUBLISHED


def test_composites_and_repeats_may_rest_on_each_other_in_any_order() -> None:
    claims = [
        {"id": "outer", "kind": "composite", "parts": ["inner", "again"], **SENTENCE},
        {"id": "again", "repeats": "inner", **SENTENCE},
        {"id": "inner", "kind": "composite", "parts": ["a", "b"], **SENTENCE},
        value("a"),
        value("b"),
    ]
    found = judged(claims)
    assert [f.id for f in found.findings] == ["outer", "again", "inner", "a", "b"]
    assert {f.verdict for f in found.findings} == {"supported"}


def test_composites_and_repeats_that_rest_on_themselves_are_skipped() -> None:
    claims = [
        {"id": "x", "kind": "composite", "parts": ["y", "a"], **SENTENCE},
        {"id": "y", "repeats": "x", **SENTENCE},
        {"id": "z", "kind": "composite", "parts": ["z", "a"], **SENTENCE},
        value("a"),
    ]
    found = judged(claims)
    assert [f.id for f in found.findings] == ["a"]
    assert [reason.split(":")[0] for reason in why(found)] == [
        "claim 'x'",
        "claim 'y'",
        "claim 'z'",
    ]


def test_a_composite_with_an_untestable_part_is_untestable() -> None:
    both = {"id": "both", "kind": "composite", "parts": ["a", "b"], **SENTENCE}
    missing = value("b", of={**TTFT, "concurrency": 3})
    found = by_id(judged([value("a"), missing, both]))["both"]
    assert (found.verdict, found.level) == ("untestable", None)


# ---- Holm's correction


def noisy(distance: float, name: str, k: float = 0.141) -> Cell:
    """Four repeats whose logs scatter by k about `distance`, equally in TTFT and ITL."""
    factors = [math.exp(distance + sign * k) for sign in (-1, 1, -1, 1)]
    # An open loop at a delivered rate: latencies may differ without breaking Little's law.
    runs = [
        run(
            {"mean_ttft": 0.1 * f, "mean_itl": 0.01 * f},
            id=f"{name}{n}", arm=name, file=f"{name}{n}.json", rate=1.0,
        )
        for n, f in enumerate(factors)
    ]  # fmt: skip
    return cell(name, *runs)


def same(id: str, metric: str, margin: float = 1.0) -> dict[str, Any]:
    return {
        "id": id, "kind": "equivalence", "margin": margin, **SENTENCE,
        "of": {**TTFT, "arm": "other", "metric": metric}, "against": {**TTFT, "metric": metric},
    }  # fmt: skip


def logs(*cells: Cell) -> list[Any]:
    return [np.log([q.value for q in one.each("mean_ttft")]) for one in cells]


def p_beyond(left: Cell, right: Cell, margin: float) -> float:
    """Of "no more than the margin above", by scipy."""
    a, b = logs(left, right)
    return float(sps.ttest_ind(a + math.log(1 + margin), b, equal_var=False).pvalue)


def p_within(left: Cell, right: Cell, margin: float) -> float:
    """The greater of two one-sided tests, by scipy."""
    a, b = logs(left, right)
    above = sps.ttest_ind(b, a + math.log(1 - margin), equal_var=False, alternative="greater")
    below = sps.ttest_ind(b, a + math.log(1 + margin), equal_var=False, alternative="less")
    return float(max(above.pvalue, below.pvalue))


def test_one_test_alone_needs_no_correction() -> None:
    left, right = noisy(0.0, "base"), noisy(0.3, "other")
    p = p_beyond(left, right, 0.01)
    assert 0.03 < p < 0.05
    found = only([same("a", "mean_ttft")], left, right)
    assert found.verdict == "refuted"
    assert found.p_value == pytest.approx(p)
    assert found.reasons[-1].startswith(f"p = {p:.2g} after Holm's correction over 1 test")


def test_two_tests_are_corrected_and_a_refutation_that_falls_is_inconclusive() -> None:
    left, right = noisy(0.0, "base"), noisy(0.3, "other")
    p = p_beyond(left, right, 0.01)
    found = judged([same("a", "mean_ttft"), same("b", "mean_itl"), value("c", "900")], left, right)
    by = by_id(found)
    # Holm: the smallest p times 2, the next times 1 but no less than the first.
    for name in "ab":
        assert by[name].p_value == pytest.approx(2 * p)
        assert by[name].verdict == "inconclusive"
        assert by[name].reasons[-1].endswith("over 2 tests of this study.")
    assert (by["c"].verdict, by["c"].p_value) == ("refuted", None)


def test_two_tests_are_corrected_and_a_support_that_falls_is_inconclusive() -> None:
    left, right = noisy(0.0, "base", k=0.0285), noisy(0.0, "other", k=0.0285)
    p = p_within(left, right, 0.05)
    assert 0.03 < p < 0.05
    claims = [same(name, "mean_ttft", margin=5.0) for name in "ab"]
    alone = only(claims[:1], left, right)
    assert (alone.verdict, alone.p_value) == ("supported", pytest.approx(p))
    by = by_id(judged(claims, left, right))
    assert [(by[n].verdict, by[n].p_value) for n in "ab"] == [
        ("inconclusive", pytest.approx(2 * p)),
    ] * 2  # fmt: skip


def test_a_small_p_survives_the_correction() -> None:
    left, right = noisy(0.0, "base"), noisy(0.3, "other")
    sure = noisy(1.2, "third")
    claims = [
        same("weak", "mean_ttft"),
        {**same("sure", "mean_ttft"), "of": {**TTFT, "arm": "third"}},
    ]
    found = by_id(judged(claims, left, right, sure))
    assert found["sure"].verdict == "refuted"
    assert found["sure"].p_value == pytest.approx(2 * p_beyond(left, sure, 0.01))
    # The last in order is multiplied by one.
    assert found["weak"].verdict == "refuted"
    assert found["weak"].p_value == pytest.approx(p_beyond(left, right, 0.01))


def test_repeats_and_composites_take_the_corrected_verdict() -> None:
    left, right = noisy(0.0, "base"), noisy(0.3, "other")
    again = {"id": "again", "repeats": "a", **SENTENCE}
    both = {"id": "both", "kind": "composite", "parts": ["a", "b"], **SENTENCE}
    claims = [same("a", "mean_ttft"), same("b", "mean_itl"), again, both]
    found = by_id(judged(claims, left, right))
    assert found["a"].verdict == "inconclusive"
    assert found["again"].verdict == "inconclusive"
    assert found["again"].reasons == found["a"].reasons
    assert found["both"].verdict == "inconclusive"


def test_a_repeated_sentence_is_not_tested_twice() -> None:
    left, right = noisy(0.0, "base"), noisy(0.3, "other")
    again = {"id": "again", "repeats": "a", **SENTENCE}
    found = by_id(judged([same("a", "mean_ttft"), again], left, right))
    assert found["a"].p_value == pytest.approx(p_beyond(left, right, 0.01))
    assert found["again"].p_value is None


# ---- the next experiment


def test_the_command_names_study_arms_workload_loads_and_repeats() -> None:
    known = study(cell(), name="mine")
    line = command(known, Experiment(("base", "other"), ("chat", "long"), (1, 10), 5))
    assert line == (
        "collect --study mine.toml --arm base --arm other --workload chat "
        "--workload long --concurrency 1 --concurrency 10 --repeats 5"
    )


def test_a_note_follows_as_a_comment() -> None:
    line = command(study(cell()), Experiment(("base",), repeats=5, note="with the router"))
    assert line == "collect --study s.toml --arm base --repeats 5  # with the router"


def test_the_collectors_study_is_the_arms_own_else_the_studys() -> None:
    owned = cell(arm("base", collect_study="of-the-arm"))
    plain = cell("other", run(arm="other"))
    known = study(owned, plain, collect_study="of-the-study")
    assert "--study of-the-arm " in command(known, Experiment(("other", "base")))
    assert "--study of-the-study " in command(known, Experiment(("other", "not there")))


def test_names_with_spaces_or_shell_characters_are_quoted() -> None:
    line = command(study(cell(), name="a; rm -rf x"), Experiment(("b $(x)",), ("c d",), repeats=5))
    assert shlex.split(line) == [
        "collect", "--study", "a; rm -rf x.toml", "--arm", "b $(x)", "--workload", "c d",
        "--repeats", "5",
    ]  # fmt: skip


def test_a_study_without_claims_has_no_findings() -> None:
    known = study(cell())
    assert judge_study(dataset(known), known) == Judged((), ())


def test_a_chain_of_repeats_from_its_end_asks_each_claim_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    needs = judge._needs

    def counted(claim: Any) -> set[str]:
        asked.append(claim.id)
        return needs(claim)

    monkeypatch.setattr(judge, "_needs", counted)
    chain = [{"id": f"c{n}", "repeats": f"c{n - 1}", **SENTENCE} for n in range(500, 0, -1)]
    found = judged([*chain, value("c0")])
    assert [finding.id for finding in found.findings] == [f"c{n}" for n in range(500, -1, -1)]
    assert len({finding.verdict for finding in found.findings}) == 1
    assert len(asked) == 500


def test_of_a_ring_of_repeats_and_what_rests_on_it_each_is_named() -> None:
    ring = [{"id": a, "repeats": b, **SENTENCE} for a, b in (("a", "b"), ("b", "a"), ("d", "a"))]
    found = judged([*ring, value("c")])
    assert [finding.id for finding in found.findings] == ["c"]
    assert [reason[:9] for reason in why(found)] == ["claim 'a'", "claim 'b'", "claim 'd'"]


# ---- what stands beside a finding


def test_a_claim_names_those_that_belong_beside_it() -> None:
    found = judged([value("a", see=["b"]), value("b", "99")])
    assert by_id(found)["a"].see == ("b",)
    assert found.skipped == ()
    lost = judged([value("a", see=["bb"]), value("b", "99")])
    assert "names 'bb' in `see`, which is no claim; did you mean 'b'" in why(lost)[0]


def test_a_check_that_does_not_bear_on_the_kind_is_set_aside_and_shown() -> None:
    slow = cell("base", replace(run(arm="base"), requested_rate=1000.0))
    [aside] = {o.code for o in failed_checks([slow], "magnitude", concerned=False)}
    found = only([value()], slow)
    assert {o.code for o in found.set_aside} == {aside}
    assert aside not in {o.code for o in found.checks}
