"""Requests to servers that answer, answer badly, or are not there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from collectors.http import answers, free_port, get, get_json, port_is_free, post


@contextmanager
def answering(content: bytes) -> Iterator[str]:
    """A server whose every answer is these bytes, then the end."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(10)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(content)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"


def test_an_answer() -> None:
    with answering(OK % (9, b'{"a": 1}\xff')) as url:
        assert get(url) == '{"a": 1}\ufffd'
        assert answers(url)
        assert get_json(url) is None
        post(url)
    with answering(OK % (8, b'{"a": 1}')) as url:
        assert get_json(url) == {"a": 1}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"SSH-2.0-OpenSSH_9\r\n",
        OK % (100, b"cut off"),
        b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_an_answer_that_is_none(content: bytes) -> None:
    with answering(content) as url:
        for ask in (get, post):
            with pytest.raises(OSError, match=r"."):
                ask(url)
        assert not answers(url)
        assert get_json(url) is None


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9", "http://host:port", "nonsense", "http://a:b@127.0.0.1:9/", ""]
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(OSError, match=r"."):
        get(url)
    assert not answers(url)


def test_a_proxy_of_the_environment_stays_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with answering(OK % (0, b"")) as url:
        assert answers(url)


def test_ports() -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))  # noqa: S104 - others may listen everywhere
        taken.listen()
        port = taken.getsockname()[1]
        assert not port_is_free(port)
        assert free_port(port) > port
    assert free_port() > 1023
    with pytest.raises(OSError, match="no free port from 70000 on"):
        free_port(70000)
