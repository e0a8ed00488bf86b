"""Spans over HTTP, from messages written by hand as the protobuf specification says."""

from __future__ import annotations

import contextlib
import gzip
import json
import struct
import urllib.request
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from collectors import spans
from collectors.spans import Span, SpanReceiver


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def block(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def attribute(key: str, value: str | bool | int | float) -> bytes:
    if isinstance(value, str):
        held = block(1, value.encode())
    elif isinstance(value, bool):
        held = varint(2 << 3) + varint(value)
    elif isinstance(value, int):
        held = varint(3 << 3) + varint(value % (1 << 64))
    else:
        held = varint(4 << 3 | 1) + struct.pack("<d", value)
    return block(9, block(1, key.encode()) + block(2, held))


def span(name: str, attributes: dict[str, str | bool | int | float]) -> bytes:
    times = b"".join(
        varint(number << 3 | 1) + struct.pack("<Q", at)
        for number, at in ((7, 1796061447_500000000), (8, 1796061448_250000000))
    )
    flags = varint(16 << 3 | 5) + struct.pack("<I", 256)
    body = block(1, b"t" * 16) + block(5, name.encode()) + times + flags
    return body + b"".join(attribute(key, value) for key, value in attributes.items())


def message(*bodies: bytes) -> bytes:
    return block(1, block(1, b"") + block(2, b"".join(block(2, body) for body in bodies)))


FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.one_of(st.text(), st.booleans(), st.integers(-(1 << 63), (1 << 63) - 1), FINITE)


@given(st.dictionaries(st.text(), VALUES))
def test_a_span_is_read_as_it_was_written(
    attributes: dict[str, str | bool | int | float],
) -> None:
    (read,) = spans.read(message(span("llm_request", attributes)))
    assert read.name == "llm_request"
    assert (read.start, read.end) == (1796061447.5, 1796061448.25)
    assert repr(read.attributes) == repr(attributes)


@given(st.binary())
def test_no_bytes_do_more_than_a_value_error(body: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert all(isinstance(found, Span) for found in spans.read(body))


def test_a_request_becomes_a_line(tmp_path: Path) -> None:
    receiver = SpanReceiver(tmp_path / "new" / "spans.jsonl")
    sending = receiver.start()
    try:
        assert sending.flags == ("--otlp-traces-endpoint", sending.endpoint)
        assert sending.env["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] == "http/protobuf"
        told = {"gen_ai.request.id": "cmpl-a-0-0", "gen_ai.latency.time_in_queue": 0.25}
        body = message(span("llm_request", told), span("Overall Loading", {}))
        for data, encoding in ((body, "identity"), (gzip.compress(body), "gzip"), (b"\x0b", "")):
            request = urllib.request.Request(  # noqa: S310
                sending.endpoint, data=data, headers={"Content-Encoding": encoding}
            )
            with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
                assert answer.status == 200
    finally:
        receiver.stop()
        receiver.stop()
    lines = [json.loads(line) for line in (tmp_path / "new" / "spans.jsonl").open()]
    assert lines == 2 * [
        {
            "id": "cmpl-a-0-0",
            "start": 1796061447.5,
            "end": 1796061448.25,
            "attributes": {"gen_ai.latency.time_in_queue": 0.25},
        }
    ]
    assert (receiver.kept, receiver.others) == (2, 2)
    assert receiver.errors == ["spans: ValueError: no protobuf: wire type 3"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "spans.jsonl").mkdir()
    receiver = SpanReceiver(tmp_path / "spans.jsonl")
    receiver.take(message(span("llm_request", {})))
    assert "IsADirectoryError" in receiver.errors[0]


def test_what_json_has_not_is_null(tmp_path: Path) -> None:
    receiver = SpanReceiver(tmp_path / "spans.jsonl")
    receiver.take(message(span("llm_request", {"x": float("nan"), "y": float("inf")})))
    line = json.loads((tmp_path / "spans.jsonl").read_text())
    assert line["id"] == ""
    assert line["attributes"] == {"x": None, "y": None}
