"""analysis.ragged: the same values as the standard library, whatever the layout and chunk."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import ragged
from analysis.formats._files import mapped

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**50), 2**50)
ROWS = st.lists(st.lists(NUMBERS, max_size=6), max_size=30)
LAYOUTS = st.sampled_from([None, 1])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=8)
OBJECTS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.text(max_size=3), inner, max_size=3), max_leaves=6),
    max_size=4,
)  # fmt: skip


def view(value: object, indent: int | None = None) -> memoryview:
    return memoryview(json.dumps(value, indent=indent).encode())


@pytest.fixture(params=[1, 7, 64, ragged.CHUNK], ids=lambda size: f"chunk{size}")
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(ragged, "CHUNK", request.param)
    return int(request.param)


class TestArrays:
    @given(rows=ROWS, indent=LAYOUTS, size=st.integers(1, 200))
    def test_rows_equal_json(self, rows: list[list[float]], indent: int | None, size: int) -> None:
        before, ragged.CHUNK = ragged.CHUNK, size
        try:
            flat, offsets = ragged.rows(view(rows, indent))
        finally:
            ragged.CHUNK = before
        assert flat.dtype == np.float64
        assert offsets.dtype == np.int64
        assert len(offsets) == len(rows) + 1
        parts = [flat[a:b].tolist() for a, b in pairwise(offsets)]
        assert parts == [[float(x) for x in row] for row in rows]

    @given(values=st.lists(NUMBERS, max_size=50), indent=LAYOUTS, size=st.integers(1, 99))
    def test_floats_equal_json(self, values: list[float], indent: int | None, size: int) -> None:
        before, ragged.CHUNK = ragged.CHUNK, size
        try:
            found = ragged.floats(view(values, indent))
        finally:
            ragged.CHUNK = before
        assert found.tolist() == [float(value) for value in values]

    def test_integers_equal_json(self, chunk: int) -> None:
        values = [0, 5, -7, 2**62, *range(100)]
        found = ragged.integers(view(values))
        assert found.dtype == np.int64
        assert found.tolist() == values

    def test_a_row_longer_than_a_chunk(self, chunk: int) -> None:
        rows = [[0.125] * 500, [], [1.5], [0.25] * 40]
        flat, offsets = ragged.rows(view(rows))
        assert offsets.tolist() == [0, 500, 500, 501, 541]
        assert flat.sum() == 62.5 + 1.5 + 10

    @pytest.mark.parametrize("text", [b"[]", b"[ ]", b"[\n]"])
    def test_an_empty_array(self, text: bytes) -> None:
        assert ragged.floats(memoryview(text)).size == 0
        flat, offsets = ragged.rows(memoryview(text))
        assert flat.size == 0
        assert offsets.tolist() == [0]

    @pytest.mark.parametrize(
        "text", ['{"a": 1}', "null", "3", '["x"]', "[null]", "[NaN]", "[[1]]", "[true]"]
    )
    def test_floats_refuse_what_is_no_array_of_numbers(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"Expected|malformed"):
            ragged.floats(memoryview(text.encode()))

    @pytest.mark.parametrize("text", ["[1]", "[[1], 2]", "[[[1]]]", '[["a"]]', "[[NaN]]", "7"])
    def test_rows_refuse_what_is_no_array_of_arrays(self, text: str, chunk: int) -> None:
        with pytest.raises(ValueError, match=r"Expected|malformed|truncated"):
            ragged.rows(memoryview(text.encode()))

    @pytest.mark.parametrize("text", ["[1.5]", '["1"]', "[9223372036854775808]"])
    def test_integers_refuse_fractions_and_what_64_bits_cannot_hold(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"Expected `int`|out of range"):
            ragged.integers(memoryview(text.encode()))

    def test_items_are_spans(self) -> None:
        found = list(ragged.items(memoryview(b'["", "a, b", {"c": [1]}]')))
        assert [bytes(item) for item in found] == [b'""', b'"a, b"', b'{"c": [1]}']
        with pytest.raises(ValueError, match="array"):
            ragged.items(memoryview(b"{}"))


class TestValues:
    @given(objects=st.lists(OBJECTS, min_size=1, max_size=5), indent=LAYOUTS,
           between=st.sampled_from(["\n", "", " ", "\r\n", "\n\n"]))  # fmt: skip
    def test_every_layout_gives_the_same_objects(
        self, objects: list[dict[str, object]], indent: int | None, between: str
    ) -> None:
        text = between.join(json.dumps(value, indent=indent) for value in objects)
        spans = ragged.values(memoryview(text.encode()))
        assert all(span.complete for span in spans)
        assert [json.loads(bytes(span.data)) for span in spans] == objects

    @given(objects=st.lists(OBJECTS, min_size=1, max_size=5), indent=LAYOUTS,
           between=st.sampled_from(["\n", "", " ", "\r\n"]))  # fmt: skip
    def test_the_scanner_finds_the_same_ends_as_the_parser(
        self, objects: list[dict[str, object]], indent: int | None, between: str
    ) -> None:
        text = between.join(json.dumps(value, indent=indent) for value in objects)
        spans = list(ragged._spans(memoryview(text.encode())))
        assert [json.loads(bytes(span.data)) for span in spans] == objects

    @given(objects=st.lists(OBJECTS, min_size=1, max_size=4), cut=st.integers(1, 40))
    def test_what_is_complete_before_a_cut_is_kept(
        self, objects: list[dict[str, object]], cut: int
    ) -> None:
        last = json.dumps({"duration": 1.5, "itls": [[0.5, 0.25]], "errors": ["{", "}"]})
        text = "\n".join([*(json.dumps(value) for value in objects), last[:cut]])
        *kept, tail = ragged.values(memoryview(text.encode()))
        assert [json.loads(bytes(span.data)) for span in kept] == objects
        assert not tail.complete
        assert bytes(tail.data).decode() == last[:cut]

    def test_a_broken_record_in_the_middle_costs_only_itself(self) -> None:
        text = b'{"a": 1}\n{"b": [2, \n{"c": 3}\n{"d": "never closed\n{"e": NaN}\nnoise\n{"f": 6}'
        spans = ragged.values(memoryview(text))
        told = [(bytes(span.data), span.complete) for span in spans]
        assert [data for data, complete in told if complete] == [
            b'{"a": 1}', b'{"c": 3}', b'{"e": NaN}', b'{"f": 6}',
        ]  # fmt: skip
        assert [data.split(b"\n")[0] for data, complete in told if not complete] == [
            b'{"b": [2, ', b'{"d": "never closed', b"noise",
        ]  # fmt: skip

    def test_many_broken_records_are_read_in_linear_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ragged, "MOST_VALUES", 30_000)
        spans = ragged.values(memoryview(b'{"a": [1,\n' * 20_000 + b'{"b": 2}'))
        assert len(spans) == 20_001
        assert [bytes(span.data) for span in spans if span.complete] == [b'{"b": 2}']

    @pytest.mark.parametrize("text", [b"{}\n", b"1\n", b"[{},", b'{"a": 1,}\n', b"[1,"])
    def test_of_very_many_values_one_more_than_are_read(self, text: bytes) -> None:
        spans = ragged.values(memoryview(text * 100_000))
        assert len(spans) in (1, 2, ragged.MOST_VALUES + 1)

    def test_a_list_gives_its_objects_whatever_is_broken(self) -> None:
        spans = ragged.values(memoryview(b' [ {"a": [1]} , {"b": NaN},{"c": 3\n{"d": 4} ]\n'))
        assert [(bytes(span.data), span.complete) for span in spans] == [
            (b'{"a": [1]}', True), (b'{"b": NaN}', True), (b'{"c": 3\n', False),
            (b'{"d": 4}', True),
        ]  # fmt: skip

    def test_nothing(self) -> None:
        assert ragged.values(memoryview(b"")) == []
        assert ragged.values(memoryview(b" \n\n")) == []

    def test_text_that_is_no_json(self) -> None:
        (span,) = ragged.values(memoryview(b"hello } there"))
        assert not span.complete


class TestFields:
    @given(value=OBJECTS, indent=LAYOUTS)
    def test_spans_by_key(self, value: dict[str, object], indent: int | None) -> None:
        found = ragged.fields(view(value, indent))
        assert {key: json.loads(bytes(raw)) for key, raw in found.items()} == value

    @pytest.mark.parametrize(
        "text",
        [
            '{"b": 1, "a": [1, 2], "c": "x", "a": null}',
            '{"a": NaN, "a": 1, "b": {"a": 2}}',
            '{"a": "\\"a\\": 2", "a": 1}',
        ],
    )
    def test_a_key_that_stands_twice_is_named(self, text: str) -> None:
        with pytest.raises(ValueError, match='the key "a" stands twice; keep the right one'):
            ragged.fields(memoryview(text.encode()))

    def test_nan_is_passed_on_for_the_caller_to_name(self) -> None:
        found = ragged.fields(memoryview(b'{"a": NaN, "b": [1, -Infinity]}'))
        assert bytes(found["a"]) == b"NaN"
        assert bytes(found["b"]) == b"[1, -Infinity]"

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            (b'{"a": 1,}', "trailing comma"),
            (b'{"a" 1}', "malformed"),
            (b"[1]", "Expected `object`"),
            (b"[NaN]", "malformed|Expected"),
            (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "recursion"),
        ],
        ids=["trailing-comma", "no-colon", "list", "list-of-nan", "deep"],
    )
    def test_what_is_no_object_says_why(self, text: bytes, told: str) -> None:
        with pytest.raises(ValueError, match=told):
            ragged.fields(memoryview(text))

    def test_nan_is_passed_on_in_twice_the_memory_of_the_record(self) -> None:
        data = memoryview(b'{"NaN": "NaN", "a": [' + b"NaN, " * 400_000 + b"-Infinity]}")
        tracemalloc.start()
        found = ragged.fields(data)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert bytes(found["NaN"]) == b'"NaN"'
        assert bytes(found["a"][:9]) == b"[NaN, NaN"
        assert peak < 2.1 * len(data)

    @pytest.mark.parametrize("text", [b'{"a": NaNNaN}', b'{"a": NaN,}', b'{"a": xNaN}'])
    def test_nan_in_what_is_no_json(self, text: bytes) -> None:
        with pytest.raises(ValueError, match="malformed"):
            ragged.fields(memoryview(text))


def test_a_large_file_is_read_in_the_memory_of_its_result(tmp_path: Path) -> None:
    """Texts and floats never become Python objects all at once: 24 MB read, little more kept."""
    gaps = (np.random.default_rng(5).random((4_000, 100)) / 37).tolist()
    record = {"itls": gaps, "generated_texts": ['word "q" {b} ' * 300] * 4_000}
    path = tmp_path / "large.json"
    path.write_text(json.dumps(record))
    buffer, trouble = mapped(path)
    assert trouble == ""
    tracemalloc.start()
    (span,) = ragged.values(buffer)
    flat, _ = ragged.rows(ragged.fields(span.data)["itls"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert flat.tolist() == [gap for row in gaps for gap in row]
    assert peak < flat.nbytes + 4 * 2**20
