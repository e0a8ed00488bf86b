"""Receives a server's OTLP traces and keeps what each request waited for, one line a request.

vLLM sends one span a finished request, `llm_request`. OTLP/HTTP with protobuf needs a web server
and a reader of six kinds of message, so nothing is installed for it here; vLLM 0.26 to 0.32 send
it, with the same exporter packages that they need for gRPC.

A line::

    {"id":"cmpl-seqs4.random-c8-r1.0-3-0","start":1796061447.71,"end":1796061448.26,
     "attributes":{"gen_ai.latency.time_in_queue":0.1,"gen_ai.usage.prompt_tokens":64}}

`start` and `end` are Unix seconds of the server, attributes are as vLLM names them, times in
seconds. Spans of other names (the start of the engine) are counted and not kept.
"""

from __future__ import annotations

import gzip
import json
import math
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KEPT = "llm_request"
ID = "gen_ai.request.id"
DELAY_SECONDS = 0.5
"""How long a server's exporter gathers spans before it sends them."""

_LARGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class Span:
    """What is read of a span."""

    name: str
    start: float
    """Unix time, seconds, to the microsecond."""
    end: float
    attributes: dict[str, object]


@dataclass(frozen=True, slots=True)
class Sending:
    """What a server must be told."""

    endpoint: str
    flags: tuple[str, ...]
    """For `vllm serve`."""
    env: dict[str, str]


class SpanReceiver:
    """A receiver of its own for each server, which appends to one file."""

    def __init__(self, path: Path) -> None:
        """Args: path: of the file that lines are appended to."""
        self._path = path
        self._server: ThreadingHTTPServer | None = None
        self._lock = threading.Lock()
        self.kept = 0
        """Spans written."""
        self.others = 0
        """Spans of other names."""
        self.errors: list[str] = []
        """What could not be read or written, one line each, the first ten."""

    def start(self) -> Sending:
        """Listen on a free port of this host.

        Raises:
            OSError: no port or no file.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                if not 0 <= length <= _LARGEST:
                    self.send_error(413)
                    self.close_connection = True
                    return
                body = self.rfile.read(length)
                receiver.take(body, self.headers.get("Content-Encoding", ""))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing: standard error is the user's."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        threading.Thread(
            target=self._server.serve_forever, args=(0.2,), name="spans", daemon=True
        ).start()
        endpoint = f"http://127.0.0.1:{self._server.server_address[1]}/v1/traces"
        return Sending(
            endpoint,
            ("--otlp-traces-endpoint", endpoint),
            {
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
                "OTEL_BSP_SCHEDULE_DELAY": str(round(DELAY_SECONDS * 1000)),
                # A span more than this is dropped; the default is 2,048 in half a second.
                "OTEL_BSP_MAX_QUEUE_SIZE": "65536",
                # A proxy of the user's is not asked for an address of this host.
                "NO_PROXY": "127.0.0.1,localhost",
                "no_proxy": "127.0.0.1,localhost",
            },
        )

    def stop(self) -> None:
        """Stop listening; takes at most half a second."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def take(self, body: bytes, encoding: str = "") -> None:
        """Append the spans of one message; what is wrong with it becomes an entry of `errors`."""
        try:
            spans = list(read(gzip.decompress(body) if encoding == "gzip" else body))
            kept = [_line(span) for span in spans if span.name == KEPT]
            with self._lock:
                if kept:
                    with self._path.open("a", encoding="utf-8") as file:
                        file.write("".join(kept))
                self.kept += len(kept)
                self.others += len(spans) - len(kept)
        except (OSError, EOFError, ValueError) as error:
            if len(self.errors) < 10:
                self.errors.append(f"spans: {type(error).__name__}: {error}")


def read(body: bytes) -> Iterator[Span]:
    """The spans of an ExportTraceServiceRequest.

    Raises:
        ValueError: it is no such message.
    """
    for resource in _fields(body, 1):
        for scope in _fields(resource, 2):
            for span in _fields(scope, 2):
                yield _span(span)


def _span(body: bytes) -> Span:
    name, start, end = "", 0.0, 0.0
    attributes: dict[str, object] = {}
    for number, value in _parts(body):
        if number == 5 and isinstance(value, bytes):
            name = value.decode("utf-8", "replace")
        elif number == 7 and isinstance(value, int):
            start = round(value / 1e9, 6)
        elif number == 8 and isinstance(value, int):
            end = round(value / 1e9, 6)
        elif number == 9 and isinstance(value, bytes):
            pair = dict(_parts(value))
            key, held = pair.get(1), pair.get(2)
            if isinstance(key, bytes) and isinstance(held, bytes):
                attributes[key.decode("utf-8", "replace")] = _any_value(held)
    return Span(name, start, end, attributes)


def _any_value(body: bytes) -> object:
    """An AnyValue: text, truth, integer or double; None for what JSON or this reader has not."""
    for number, value in _parts(body):
        if number == 1 and isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if number == 2:
            return bool(value)
        if number == 3 and isinstance(value, int):
            return value - (1 << 64) if value >> 63 else value
        if number == 4 and isinstance(value, int):
            number_held = float(struct.unpack("<d", value.to_bytes(8, "little"))[0])
            return number_held if math.isfinite(number_held) else None
    return None


def _fields(body: bytes, wanted: int) -> Iterator[bytes]:
    return (
        value for number, value in _parts(body) if number == wanted and isinstance(value, bytes)
    )


def _parts(body: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of the fields of a protobuf message; fixed values as whole numbers."""
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(body, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            length, at = _varint(body, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"no protobuf: wire type {kind}")
        if at + length > len(body):
            raise ValueError("protobuf message is cut off")
        part = body[at : at + length]
        at += length
        yield tag >> 3, part if kind == 2 else int.from_bytes(part, "little")


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(body):
            raise ValueError("protobuf message is cut off")
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise ValueError("no protobuf: a number longer than ten bytes")


def _line(span: Span) -> str:
    line = {
        "id": str(span.attributes.get(ID, "")),
        "start": span.start,
        "end": span.end,
        "attributes": {key: held for key, held in span.attributes.items() if key != ID},
    }
    return json.dumps(line, separators=(",", ":")) + "\n"
