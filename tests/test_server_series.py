"""analysis.server_series: series by their labels, and names of both generations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.server_series import SERIES, labels_of, series_of, split

NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True)


@given(NAMES, st.dictionaries(NAMES, st.text(max_size=12), max_size=4))
def test_a_series_is_split_into_what_it_was_made_of(name: str, labels: dict[str, str]) -> None:
    assert split(series_of(name, labels)) == (name, labels)


def test_labels_stand_in_the_order_of_their_names() -> None:
    assert series_of("a", {"z": "1", "b": 'q"\\\n'}) == 'a{b="q\\"\\\\\\n",z="1"}'
    assert series_of("a", {}) == "a"


@pytest.mark.parametrize("text", ['a="1', "a=1", 'a="1"b="2"', 'a="1",,b="2"', "{", '="1"'])
def test_what_is_no_list_of_labels_is_none(text: str) -> None:
    assert labels_of(text) == {}


def test_every_thing_has_a_unit_in_seconds_or_tokens_a_definition_and_a_source() -> None:
    for thing, series in SERIES.items():
        assert series.unit in ("", "s", "tok"), thing
        assert series.definition, thing
        assert series.source.endswith(".py"), thing
        assert all(name.startswith("vllm:") for name in series.names), thing
        assert (series.unit == "s") == all(n.endswith("_seconds") for n in series.names), thing


def test_no_name_stands_for_two_things() -> None:
    names = [name for series in SERIES.values() for name in series.names]
    assert len(names) == len(set(names))
