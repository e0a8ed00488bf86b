"""Ports that collectors keep from each other."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from collectors import ports
from tests.collectors.campaigns import port as some_port

ROOT = Path(__file__).parents[2]
TAKE = "import sys; from collectors import ports; print(ports.take(int(sys.argv[1])), flush=True)"


def test_a_port_is_taken_once() -> None:
    first = ports.take(some_port())
    other = ports.take(first)
    assert other > first
    done = subprocess.run(
        [sys.executable, "-c", TAKE, str(first)], capture_output=True, text=True, cwd=ROOT
    )
    assert int(done.stdout) > other
    ports.give_back(other)
    ports.give_back(first)
    ports.give_back(first)
    assert ports.take(first) == first
    ports.give_back(first)


def test_a_port_goes_with_the_process_that_took_it() -> None:
    first = some_port()
    taking = subprocess.Popen(
        [sys.executable, "-c", f"{TAKE}; sys.stdin.read()", str(first)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert taking.stdout is not None
    told = int(taking.stdout.readline())
    assert ports.take(told) > told
    ports.give_back(told + 1)
    taking.kill()
    taking.communicate()
    assert ports.take(told) == told
    ports.give_back(told)


def test_no_port_is_left() -> None:
    with pytest.raises(OSError, match="no free port"):
        ports.take(70000)


def test_who_listens_on_a_port() -> None:
    with socket.socket() as mine:
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        mine.bind(("127.0.0.1", 0))
        port = mine.getsockname()[1]
        assert not ports.strangers(port, os.getpid())
        mine.listen()
        assert not ports.strangers(port, os.getpid())
        script = (
            "import socket, sys; s = socket.socket()\n"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n"
            "s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); print(1, flush=True)\n"
            "sys.stdin.read()"
        )
        other = subprocess.Popen(
            [sys.executable, "-c", script, str(port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline()
        # It shares the port, as two servers of vLLM would.
        assert ports.strangers(port, other.pid)
        assert not ports.strangers(port, os.getpid())
        other.communicate()
