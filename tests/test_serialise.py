"""findings.json: what it holds, that its schema describes all of it, and that it is repeatable."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model import STATUSES, VERDICTS, Level, Skipped, Source
from analysis.pipeline import Analysis
from analysis.serialise import SCHEMA_VERSION, document, dumps, plain, round_significant
from tests import reports, whole
from tests.builders import arm, cell, run, startup, study

ROOT = Path(__file__).parents[1]
SCHEMA = json.loads((ROOT / "analysis/schema/findings.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture(scope="module")
def shipped() -> Any:
    return json.loads(dumps(whole.shipped()))


def lean() -> dict[str, Any]:
    """The same with few answers: enough to break each field once."""
    data = document(small())
    (one,) = data["studies"]
    one["answers"] = [a for a in one["answers"] if a["kind"] == "standing.slots"][:1]
    one["runs"] = one["runs"][:1]
    for node in one["runs"]:
        node["checks"] = node["checks"][:1]
    return data


def small() -> Analysis:
    """One study of two arms, with one thing of everything the document can hold."""
    base = arm("base", startup({"kv_tokens": 1000}, file="s/base.log"), max_num_seqs=8)
    cells = (
        cell(base, run(id="a", warnings=("odd",)), run(id="b")),
        cell("other", run({"failed": 90}, id="c", arm="other", rate=50.0)),
        cell("other", run(id="d", arm="other", concurrency=None), concurrency=None),
    )
    number = reports.estimate(1.5, -math.inf, math.inf, unit="s", warnings=("weak",))
    finding = reports.finding(
        numbers=(number, reports.estimate(math.nan)),
        assumptions=("one",),
        confounds=("two",),
        flips="another figure",
        next_experiment="collect --study s.toml",
        p_value=0.01,
        level=None,
    )
    known = study(*cells, title="A title", warnings=("random weights",))
    first = reports.report(known)
    refused = first.outcomes[2]
    findings = (
        reports.finding("x", checks=(refused,), repeats="c", verdict="untestable"),
        finding,
    )
    return reports.analysis(
        reports.report(known, findings), skipped=(Skipped("bad.json", "not JSON"),)
    )


def errors(data: object) -> list[str]:
    return [f"{list(e.absolute_path)}: {e.message[:120]}" for e in VALIDATOR.iter_errors(data)]


def schema_nodes(node: object = SCHEMA, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every part of the schema that says something of a value."""
    if isinstance(node, dict):
        if {"type", "$ref", "anyOf", "enum", "const"} & set(node):
            yield path, node
        for key, item in node.items():
            if key in ("properties", "$defs"):
                for name, inner in item.items():
                    yield from schema_nodes(inner, f"{path}/{name}")
            elif key in ("items", "additionalProperties"):
                yield from schema_nodes(item, f"{path}/*")


def objects(
    node: object, path: tuple[object, ...] = (), most: int = 2
) -> Iterator[tuple[object, ...]]:
    """Paths of every object of a document whose keys are fixed; of lists, the first `most`."""
    if isinstance(node, dict):
        if path[-1:] != ("config",):
            yield path
        for key, item in node.items():
            yield from objects(item, (*path, key), most)
    elif isinstance(node, list):
        for number, item in enumerate(node[:most]):
            yield from objects(item, (*path, number), most)


def at(node: Any, path: tuple[object, ...]) -> Any:
    for step in path:
        node = node[step]
    return node


# ---- the schema


def test_the_schema_is_valid_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"].endswith("2020-12/schema")
    assert SCHEMA["properties"]["schema"]["const"] == SCHEMA_VERSION


def test_every_field_is_described() -> None:
    bare = [
        path
        for path, node in schema_nodes()
        if not node.get("description") and not path.endswith("/*") and "$ref" not in node
    ]
    assert bare == []
    assert SCHEMA["description"]


def test_every_object_is_closed_and_all_its_fields_are_required() -> None:
    for path, node in schema_nodes():
        if "properties" in node:
            assert node["additionalProperties"] is False, path
            assert node["required"] == list(node["properties"]), path


def test_the_words_of_the_schema_are_those_of_the_model() -> None:
    defs = SCHEMA["$defs"]
    assert defs["level"]["enum"] == [level.value for level in Level]
    assert defs["outcome"]["properties"]["status"]["enum"] == list(STATUSES)
    verdicts = defs["finding"]["properties"]["verdict"]["enum"]
    assert [*verdicts, defs["answer"]["properties"]["verdict"]["const"]] == list(VERDICTS)


def test_the_shipped_results_fit_the_schema(shipped: Any) -> None:
    assert errors(shipped) == []
    assert len(shipped["studies"]) >= 2
    assert all(one["findings"] and one["answers"] and one["runs"] for one in shipped["studies"])


def test_a_document_with_everything_in_it_fits_the_schema() -> None:
    assert errors(document(small())) == []


def test_no_studies_and_nothing_skipped_fit_the_schema() -> None:
    assert errors(document(reports.analysis())) == []


def test_a_document_without_any_one_field_does_not_fit() -> None:
    data = lean()
    for path in objects(data):
        for key in at(data, path):
            broken = copy.deepcopy(data)
            del at(broken, path)[key]
            assert not VALIDATOR.is_valid(broken), (path, key)


def test_a_document_with_a_further_field_does_not_fit() -> None:
    data = lean()
    for path in objects(data):
        broken = copy.deepcopy(data)
        at(broken, path)["further"] = 1
        assert not VALIDATOR.is_valid(broken), path


def test_a_field_of_another_type_does_not_fit() -> None:
    data = lean()
    for path in objects(data):
        for key in at(data, path):
            broken = copy.deepcopy(data)
            at(broken, path)[key] = {"no": ["such", "thing"]}
            # `config` takes any key, but no list.
            assert not VALIDATOR.is_valid(broken), (path, key)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 2),
        (("studies", 0, "name"), ""),
        (("studies", 0, "runs", 0, "level"), "Z"),
        (("studies", 0, "runs", 0, "concurrency"), -1),
        (("studies", 0, "runs", 0, "concurrency"), 1.5),
        (("studies", 0, "runs", 0, "validity"), "NOT APPLICABLE"),
        (("studies", 0, "runs", 0, "checks", 0, "status"), "valid"),
        (("studies", 0, "runs", 0, "checks", 0, "code"), "101"),
        (("studies", 0, "findings", 0, "verdict"), "answered"),
        (("studies", 0, "findings", 0, "kind"), "standing.valid"),
        (("studies", 0, "findings", 0, "reasons"), []),
        (("studies", 0, "findings", 1, "p_value"), 1.5),
        (("studies", 0, "findings", 1, "numbers", 0, "value"), "1.5"),
        (("studies", 0, "findings", 1, "numbers", 0, "unit"), None),
        (("studies", 0, "answers", 0, "verdict"), "supported"),
        (("studies", 0, "answers", 0, "kind"), "standing.other"),
        (("studies", 0, "arms", 0, "config", "nested"), {"a": 1}),
        (("studies", 0, "arms", 0, "startup"), "base.log"),
        (("skipped", 0, "reason"), ""),
    ],
)
def test_a_wrong_value_does_not_fit(path: tuple[object, ...], value: object) -> None:
    data = lean()
    at(data, path[:-1])[path[-1]] = value
    assert not VALIDATOR.is_valid(data)


def test_every_number_of_the_shipped_results_lies_in_its_interval(shipped: Any) -> None:
    seen = 0
    for path in objects(shipped, most=10**9):
        node = at(shipped, path)
        if "interval" in node and None not in (node["value"], node["lo"], node["hi"]):
            slack = 1e-9 * abs(node["value"])
            assert node["lo"] - slack <= node["value"] <= node["hi"] + slack, path
            seen += 1
    assert seen > 500


# ---- what the document says


def test_a_run_carries_its_checks_and_the_worst_of_them() -> None:
    runs = document(small())["studies"][0]["runs"]
    assert [one["id"] for one in runs] == ["a", "b", "c", "d"]
    # 90 of 190 requests failed; and 1/s of 50/s asked.
    assert [one["validity"] for one in runs] == ["VALID", "VALID", "INVALID", "VALID"]
    assert {check["run"] for check in runs[2]["checks"]} == {"c"}
    failed = {check["name"]: check["status"] for check in runs[2]["checks"]}
    assert failed["failures"] == "INVALID"
    assert failed["delivered-load"] == "SUSPECT"
    assert runs[3]["concurrency"] is None
    assert runs[0]["warnings"] == ["odd"]


def test_an_arm_says_where_its_log_is() -> None:
    arms = document(small())["studies"][0]["arms"]
    assert arms[0]["startup"] == {"file": "s/base.log", "key": ""}
    assert arms[0]["config"]["max_num_seqs"] == 8
    assert arms[1]["startup"] is None


def test_what_is_no_number_in_json_is_null() -> None:
    numbers = document(small())["studies"][0]["findings"][1]["numbers"]
    assert [numbers[0][key] for key in ("value", "lo", "hi")] == [1.5, None, None]
    assert numbers[1]["value"] is None


def test_equal_input_gives_equal_bytes_and_text_that_ends_in_a_newline() -> None:
    assert dumps(small()) == dumps(small())
    assert dumps(small()).endswith("}\n")


def test_no_character_that_a_terminal_would_obey() -> None:
    title = "a\x1b[2J\x9b2J\u202e\ud800"
    text = dumps(reports.analysis(study(cell(), title=title)))
    assert text.replace("\n", "").isprintable()
    assert json.loads(text)["studies"][0]["title"] == title


def test_letters_stand_as_they_are() -> None:
    text = dumps(reports.analysis(study(cell(), title="Größe 漢")))
    assert "Größe 漢" in text


# ---- plain types


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, 0.0),
        (1 / 3, 0.3333333333),
        (123456789012.0, 123456789000.0),
        (-2.00000000005, -2.0),
        (1e-300 / 3, 3.333333333e-301),
        (math.inf, None),
        (-math.inf, None),
        (math.nan, None),
        (1.7976931348623157e308, None),
    ],
)
def test_ten_significant_digits(value: float, expected: float | None) -> None:
    assert round_significant(value) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_is_close_and_settled(value: float) -> None:
    rounded = round_significant(value)
    if rounded is None:
        assert abs(value) > 1.7e308  # rounds beyond the greatest float
        return
    assert rounded == pytest.approx(value, rel=5.1e-10, abs=1e-320)
    assert round_significant(rounded) == rounded


class Colour(Enum):
    RED = "red"


def test_everything_becomes_a_type_of_json() -> None:
    found = plain(
        {
            1: (np.float64(0.1), Colour.RED, Level.SUMMARY),
            "s": Source("a", "b"),
            "k": Skipped("f", "r"),
            "n": [None, True, 3, "x"],
        }
    )
    assert found == {
        "1": [0.1, "red", "S"],
        "s": {"file": "a", "key": "b"},
        "k": {"file": "f", "reason": "r", "wanted": False},
        "n": [None, True, 3, "x"],
    }
    assert json.loads(json.dumps(found)) == found


def test_a_class_is_not_taken_for_its_instance() -> None:
    assert plain(Skipped) is Skipped
