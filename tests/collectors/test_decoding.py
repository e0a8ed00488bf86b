"""Requests that decode at once: counted, told of failures, let go."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from collectors.decoding import Decoding, prompts
from tests.collectors.campaigns import until


class Server(ThreadingHTTPServer):
    daemon_threads = True
    lines: tuple[bytes, ...] = ()
    status = 200
    left = 0


@pytest.fixture
def server() -> Iterator[Server]:
    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(made.status)
            self.end_headers()
            for line in made.lines:
                self.wfile.write(line)
            try:
                while made.lines and not made.lines[-1].startswith(b"data: [DONE]"):
                    self.wfile.write(b'data: {"x": 1}\n\n')
                    time.sleep(0.002)
            except OSError:
                made.left += 1

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with Server(("127.0.0.1", 0), Answers) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def decoding(server: Server, count: int = 3) -> Decoding:
    url = f"http://127.0.0.1:{server.server_address[1]}"
    return Decoding(url, "m", prompts(count, 4, 1), 100)


def test_tokens_are_counted_until_they_are_let_go(server: Server) -> None:
    server.lines = (b": a comment\n", b"\n", b"data: x\n")
    found = decoding(server)
    until(lambda: found.least > 20)
    assert (found.decoding, found.ended, found.problem) == (3, 0, "")
    found.stop()
    assert found.ended == 3
    assert found.problem == ""
    until(lambda: server.left == 3)


def test_an_answer_that_ends(server: Server) -> None:
    server.lines = (b'data: {"a": 1}\n\n', b'data: {"a": 2}\n\n', b"data: [DONE]\n\n")
    found = decoding(server)
    found.wait(10)
    assert (found.least, found.decoding, found.ended, found.problem) == (2, 3, 3, "")


@pytest.mark.parametrize(
    ("status", "lines", "told"),
    [
        (400, (b"too long\nindeed", b"data: [DONE]"), "400 too long indeed"),
        (500, (), "500"),
        (200, (b'data: {"error": "no"}\n\n', b"data: [DONE]\n\n"), '{"error": "no"}'),
    ],
)
def test_a_failure_is_told(
    server: Server, status: int, lines: tuple[bytes, ...], told: str
) -> None:
    server.status, server.lines = status, lines
    found = decoding(server, 1)
    found.wait(10)
    assert found.problem.startswith(told)
    assert "\n" not in found.problem
    assert found.ended == 1


def test_nobody_listens() -> None:
    found = Decoding("http://127.0.0.1:9", "m", prompts(2, 4, 1), 5)
    found.wait(10)
    assert "refused" in found.problem
    assert found.ended == 2


def test_prompts_share_no_beginning_and_follow_from_the_seed() -> None:
    made = prompts(200, 16, 7)
    assert prompts(200, 16, 7) == made
    assert prompts(200, 16, 8) != made
    assert len({tuple(prompt[:8]) for prompt in made}) == 200
    assert {len(prompt) for prompt in made} == {16}
