"""analysis.formats.request_log: times of requests by the plugin and by spans, odd ones too."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.formats import format_of, request_log
from analysis.formats._files import head_of
from analysis.model import Record, ServerTimes, Skipped, Source
from tests.formats.found import only, refused

PLUGIN = {
    "t": 1.0, "id": "cmpl-a-0-0", "queue": 0.1, "prefill": 0.02, "decode": 0.4, "inference": 0.42,
    "e2e": 0.53, "prompt": 64, "cached": 0, "gen": 48, "reason": "length",
}  # fmt: skip
SPAN = {
    "id": "cmpl-b-1-0", "start": 1.0, "end": 2.0,
    "attributes": {
        "gen_ai.latency.time_in_queue": 0.3, "gen_ai.latency.time_in_model_prefill": 0.04,
        "gen_ai.latency.time_in_model_decode": 0.5, "gen_ai.usage.prompt_tokens": 64,
    },
}  # fmt: skip


def read(tmp_path: Path, *lines: object, end: str = "\n") -> list[Record]:
    path = tmp_path / "requests-server.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + end)
    return request_log.read(path, "a/requests-server.jsonl")


def times(found: list[Record]) -> ServerTimes:
    return only(found, ServerTimes)


def test_the_plugins_lines_and_spans(tmp_path: Path) -> None:
    found = times(read(tmp_path, PLUGIN, SPAN))
    assert found.source == Source("a/requests-server.jsonl", "")
    assert found.request == ("cmpl-a-0-0", "cmpl-b-1-0")
    assert found.queue.tolist() == [0.1, 0.3]
    assert found.prefill.tolist() == [0.02, 0.04]
    assert found.decode.tolist() == [0.4, 0.5]


@pytest.mark.parametrize("value", [None, -1796061447.7, 1e18, True, "0.1"])
def test_a_time_that_is_none_is_not_told(tmp_path: Path, value: object) -> None:
    """vLLM writes a negative queue time where a request was aborted before it was scheduled."""
    odd = {**SPAN, "attributes": {**SPAN["attributes"], "gen_ai.latency.time_in_queue": value}}  # type: ignore[dict-item]
    found = times(read(tmp_path, PLUGIN, odd))
    assert found.queue[0] == 0.1
    assert np.isnan(found.queue[1])
    assert found.decode.tolist() == [0.4, 0.5]


def test_half_a_line_at_the_end_is_left_out(tmp_path: Path) -> None:
    assert len(times(read(tmp_path, PLUGIN, json.dumps(SPAN)[:50], end="")).queue) == 1
    assert refused(read(tmp_path, json.dumps(SPAN)[:50], end="")).startswith("no whole line")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({**PLUGIN, "id": None}, "no log of requests"),
        ({**PLUGIN, "queue": "0.1"}, "no log of requests"),
        ({**PLUGIN, "queue": 10**400}, "no log of requests"),
        (json.dumps(PLUGIN).replace("0.1", "NaN"), "no log of requests"),
        ("[]", "no log of requests"),
        ("{" * 100_000, "no log of requests"),
        ({**SPAN, "attributes": {}}, "no line tells a time"),
        ({**SPAN, "attributes": {"gen_ai.latency.time_in_queue": 10**400}}, "no line tells a time"),
    ],
)
def test_what_is_no_log_of_requests(tmp_path: Path, line: object, expected: str) -> None:
    assert expected in refused(read(tmp_path, line))


def test_ids_are_shown_on_one_line_and_bounded(tmp_path: Path) -> None:
    (name,) = times(read(tmp_path, {**PLUGIN, "id": "a\n\x1b[31m" + "x" * 500})).request
    assert name.isprintable()
    assert len(name) == 120


@pytest.mark.parametrize("line", [PLUGIN, SPAN])
def test_it_is_known_by_its_first_line(tmp_path: Path, line: object) -> None:
    read(tmp_path, line)
    path = tmp_path / "requests-server.jsonl"
    assert format_of(path, head_of(path)) is request_log


VALUE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@given(st.lists(st.dictionaries(st.sampled_from(sorted(PLUGIN)), VALUE), max_size=5),
       st.lists(st.dictionaries(st.sampled_from(sorted(SPAN["attributes"])), VALUE), max_size=5),
       st.binary())  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_any_values_and_any_bytes(
    lines: list[dict[str, Any]], spans: list[dict[str, Any]], data: bytes
) -> None:
    all_ = [{**PLUGIN, **line} for line in lines] + [{**SPAN, "attributes": a} for a in spans]
    text = "".join(json.dumps(line) + "\n" for line in all_).encode()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "requests-0.jsonl"
        for content in (text, data, text + data, data + b"\n" + text):
            path.write_bytes(content)
            for found in request_log.read(path, "x"):
                assert isinstance(found, ServerTimes | Skipped)
