"""The few requests that the collector sends to a server of its own."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.request
from typing import Any

# A proxy of the environment must not come between: these addresses are of this host.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(url: str, seconds: float = 5) -> str:
    """The text at an address.

    Raises:
        OSError: it cannot be reached, or answers with an error.
    """
    return _sent(url, seconds).decode("utf-8", "replace")


def get_json(url: str, seconds: float = 5) -> Any:
    """The JSON at an address; None where there is none."""
    try:
        return json.loads(get(url, seconds))
    except (OSError, ValueError, RecursionError):
        return None


def post(url: str, seconds: float = 60) -> None:
    """Send an empty POST.

    Raises:
        OSError: it cannot be reached, or answers with an error.
    """
    request = urllib.request.Request(url, data=b"", method="POST")  # noqa: S310
    _sent(request, seconds)


def _sent(request: str | urllib.request.Request, seconds: float) -> bytes:
    try:
        with _OPENER.open(request, timeout=seconds) as answer:
            return bytes(answer.read())
    except (http.client.HTTPException, ValueError) as error:
        # No address, another protocol, or an answer that was cut off: no kind of OSError.
        raise OSError(f"{type(error).__name__} {error}") from None


def answers(url: str) -> bool:
    """Whether an address answers without an error."""
    try:
        get(url, 3)
    except OSError:
        return False
    return True


def free_port(first: int | None = None) -> int:
    """A port of this host that nothing listens on: the first from `first`, or any."""
    if first is None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])
    for port in range(first, min(first + 1000, 65536)):
        if port_is_free(port):
            return port
    raise OSError(f"no free port from {first} on")


def port_is_free(port: int) -> bool:
    """Whether a server could listen on a port of this host."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
