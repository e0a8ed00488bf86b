"""analysis.formats._exposition against the parser of Prometheus' own client library."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from analysis.formats._exposition import values
from analysis.server_series import series_of

ROOT = Path(__file__).parents[2]
REAL = [
    *sorted((ROOT / "tests/data/metrics").glob("*.after.txt.gz")),
    *sorted((ROOT / "results").rglob("*.before.txt.gz"))[::12],
]


def by_the_library(text: str) -> dict[str, float]:
    return {
        series_of(sample.name, sample.labels): float(sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_both_read_the_same_of_real_texts(path: Path) -> None:
    text = gzip.decompress(path.read_bytes()).decode()
    found = dict(values(text))
    assert len(found) > 100
    assert found == by_the_library(text)


NUMBERS = st.floats(allow_nan=False).map(repr) | st.sampled_from(["+Inf", "-Inf", "1e9", "7"])
LABELS = st.dictionaries(
    st.from_regex(r"[a-z][a-z_]{0,5}", fullmatch=True),  # two underscores at first are reserved
    # The library takes braces in values for the end of the labels.
    st.text(st.characters(codec="utf-8", exclude_characters="{}#\x85  \r\x0b\x0c\x1c\x1d\x1e")),
    max_size=3,
)


@given(st.lists(st.tuples(LABELS, NUMBERS, st.booleans()), min_size=1, max_size=6))
def test_both_read_the_same_of_any_labels(rows: list[tuple[dict[str, str], str, bool]]) -> None:
    lines = [f"{series_of(f'vllm:x{n}', labels)} {number}{' 1700000000000' if stamp else ''}"
             for n, (labels, number, stamp) in enumerate(rows)]  # fmt: skip
    text = "\n".join(lines) + "\n"
    assert dict(values(text)) == by_the_library(text)


@pytest.mark.parametrize("line", ["x{", "x{a=b} 1", "x y z", 'x{a="c} 1', "x", "1x 2", "x one"])
def test_a_line_of_another_form_is_an_error(line: str) -> None:
    found = values(f"good 1\n{line}\n")
    assert next(found) == ("good", 1.0)
    with pytest.raises(ValueError, match=r"."):
        next(found)


def test_comments_and_empty_lines_say_nothing() -> None:
    assert list(values("# HELP a b\n\n  \n#\na 1\r\n")) == [("a", 1.0)]
