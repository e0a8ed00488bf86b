"""analysis.claims.configuration: what the runs were made with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analysis.dataset import Cell
from analysis.evidence import BadClaim, Judgement, Missing
from tests.builders import cell, run, study
from tests.claims.helpers import arm, figure_of, judge


def recorded(*values: object, name: str = "a", **spec: Any) -> Cell:
    """A run for each value of the record's key `model_id`; None for a record without it."""
    runs = [
        run(arm=name, id=f"{name}{place}", config={} if value is None else {"model_id": value})  # type: ignore[dict-item]
        for place, value in enumerate(values)
    ]
    return cell(arm(name, **spec), *runs)


def configured(*cells: Cell, field: str = "model_id", stated: str = "m", **keys: Any) -> Judgement:
    arms = tuple(one.arm.name for one in cells)
    return judge(
        study(*cells), "configuration", **{"arms": arms, **keys}, field=field, stated=stated
    )


def test_every_record_must_agree() -> None:
    assert configured(recorded("m", "M")).verdict == "supported"
    found = configured(recorded("m", "other"))
    assert found.verdict == "refuted"
    assert figure_of(found, "records that agree") == 1
    assert found.reasons == ("model_id is m and other in 2 records of a; the sentence says m.",)


def test_records_come_before_study_toml() -> None:
    assert configured(recorded("m", model="m2"), field="model", stated="m2").verdict == "supported"
    both = cell(arm("a", version="2"), run(config={"version": "1"}, arm="a"))
    assert configured(both, field="version", stated="1").verdict == "supported"


def test_the_log_comes_before_study_toml() -> None:
    known = arm("a", log={}, version="2")
    assert known.startup is not None
    of = replace(known, startup=replace(known.startup, config={"version": "3"}))
    found = configured(cell(of, run(arm="a")), field="version", stated="3")
    assert found.verdict == "supported"
    assert found.numbers[0].sources[0].file == "logs/a.log"
    silent = configured(cell(known, run(arm="a")), field="version", stated="2")
    assert silent.numbers[0].sources[0].key == "arm a, version"


@pytest.mark.parametrize(
    ("value", "stated"),
    [(0.9, "0.90"), (8, "8"), (8.0, "8"), (40960, "40,960"), (True, "true"), ("L40S", "l40s")],
)
def test_a_number_is_a_number_however_it_is_written(value: object, stated: str) -> None:
    assert configured(recorded(value), stated=stated).verdict == "supported"


@pytest.mark.parametrize(("value", "stated"), [(0.9, "0.95"), (8, "80"), ("m", "8"), (False, "0")])
def test_other_values_are_others(value: object, stated: str) -> None:
    assert configured(recorded(value), stated=stated).verdict == "refuted"


def test_an_arm_that_says_nothing_bars_support_and_not_refutation() -> None:
    silent = recorded(None, name="b")
    found = configured(recorded("m"), silent)
    assert found.verdict == "inconclusive"
    assert found.reasons == (
        "model_id is m in 1 record of a; the sentence says m.",
        "Nothing says it of b.",
    )
    assert configured(recorded("other"), silent).verdict == "refuted"


def served_at(*loads: tuple[int | None, int], name: str = "a", **config: Any) -> tuple[Cell, ...]:
    """A cell for each number in flight in all, of clients with a cap of their own."""
    of = arm(name)
    return tuple(
        cell(of, run(arm=name, concurrency=n, config={"max_concurrency": cap, **config}))
        for n, cap in loads
    )


def test_requests_in_flight_in_all_of_the_records_meant() -> None:
    cells = served_at((2, 1), (20, 10))
    keys = {"field": "concurrency", "arms": ("a",)}
    found = configured(*cells, **keys, stated="2", where={"max_concurrency": 1})
    assert found.verdict == "supported"
    assert found.reasons == (
        "The number of requests in flight in all is 2 in 1 record of a with max_concurrency = 1; "
        "the sentence says 2.",
    )
    assert [one.concurrency for one in found.cells] == [2]
    assert found.numbers[0].sources[0].key == "concurrency"
    wrong = configured(*cells, **keys, stated="2", where={"max_concurrency": 10})
    assert wrong.verdict == "refuted"
    both = configured(*cells, **keys, stated="2")
    assert both.verdict == "refuted"
    assert "is 2 and 20 in 2 records of a;" in both.reasons[0]


def test_a_run_without_a_cap_is_at_no_number_in_flight() -> None:
    found = configured(*served_at((None, 1)), arms=("a",), field="concurrency", stated="2")
    assert found.verdict == "refuted"
    assert "in all is without a cap in 1 record" in found.reasons[0]


def test_no_record_that_meets_the_condition_is_untestable() -> None:
    with pytest.raises(Missing) as missing:
        configured(*served_at((2, 1)), arms=("a",), stated="2", field="concurrency",
                   where={"max_concurrency": 7})  # fmt: skip
    assert missing.value.what == "concurrency of a with max_concurrency = 7"
    assert missing.value.tried == "no such record"


def test_a_condition_that_one_arm_never_meets_leaves_its_description_aside() -> None:
    # b's study.toml has a version too, but no record of it is meant.
    known = [
        cell(arm("a", version="1"), run(arm="a", config={"seed": 1})),
        cell(arm("b", version="2"), run(arm="b", config={"seed": 2})),
    ]
    found = configured(*known, field="version", stated="1", where={"seed": 1})
    assert found.verdict == "inconclusive"
    assert found.reasons[1] == "Nothing says it of b."
    met = configured(known[1], field="version", stated="2", where={"seed": 2})
    assert met.verdict == "supported"


def test_a_condition_on_a_key_that_no_record_has_names_the_nearest() -> None:
    with pytest.raises(BadClaim, match="selects records by 'max_concurency'; did you mean 'max_c"):
        configured(*served_at((2, 1)), arms=("a",), field="concurrency", stated="2",
                   where={"max_concurency": 1})  # fmt: skip


def test_a_field_that_no_file_has_is_untestable() -> None:
    with pytest.raises(Missing, match="model_id of a and b"):
        configured(recorded(None), recorded(None, name="b"))


@pytest.mark.parametrize(("arms", "message"), [(("aa",), "names arm 'aa'"), ((), "names no arms")])
def test_what_is_not_there_is_the_authors_mistake(arms: tuple[str, ...], message: str) -> None:
    with pytest.raises(BadClaim, match=message):
        configured(recorded("m"), arms=arms)
