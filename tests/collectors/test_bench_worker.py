"""The worker that forks clients; a package in vLLM's place says what it was called with."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors import bench_worker
from tests.collectors.campaigns import until

SERVE = """
import os, sys, time
def add_cli_args(parser):
    parser.add_argument("--exit", type=int, default=0)
    parser.add_argument("--hang", default="")
    parser.add_argument("--raises", action="store_true")
    parser.add_argument("--quits", action="store_true")
    parser.add_argument("--says", action="store_true")
def main(args):
    print("called with", sys.argv[1:] if args.says else WORDS)
    if args.hang:
        with open(args.hang + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(args.hang + ".new", args.hang)
        time.sleep(600)
    if args.raises:
        raise ValueError("wrong")
    if args.quits:
        sys.exit()
    if args.says:
        sys.exit("a reason")
    if args.exit < 0:
        os.kill(os.getpid(), -args.exit)
    sys.exit(args.exit)
WORDS = []
"""
PARSER = """
import argparse
class FlexibleArgumentParser(argparse.ArgumentParser):
    def parse_args(self, argv):
        from vllm.benchmarks import serve
        serve.WORDS = argv
        return super().parse_args(argv)
"""


def vllm(folder: Path) -> dict[str, str]:
    """The environment that finds the package."""
    for name, text in (("benchmarks/serve.py", SERVE), ("utils/argparse_utils.py", PARSER)):
        path = folder / "packages" / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)
    (folder / "packages/vllm/__init__.py").touch()
    return {"PYTHONPATH": str(folder / "packages")}


@pytest.fixture
def address(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "socket"
    worker = subprocess.Popen(
        [sys.executable, "-P", bench_worker.__file__, str(path)],
        env={**os.environ, **vllm(tmp_path)},
    )
    # Who sees it may connect.
    until(path.exists)
    yield path
    worker.kill()
    worker.wait()


def ask(address: Path, *argv: str, log: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(str(address))
    connection.sendall(json.dumps({"argv": argv, "log": str(log)}).encode() + b"\n")
    return connection


def status(address: Path, *argv: str, log: Path) -> Any:
    with ask(address, *argv, log=log) as connection:
        return json.loads(connection.recv(4096))["status"]


def test_statuses(tmp_path: Path, address: Path) -> None:
    log = tmp_path / "log"
    for words, wanted in (
        (("--exit", "0"), 0),
        (("--exit", "7"), 7),
        (("--quits",), 0),
        (("--says",), 1),
        (("--raises",), 1),
        (("--nonesuch",), 2),
        (("--exit", "-15"), 143),
        (("--exit", "-9"), 137),
    ):
        assert status(address, *words, log=log) == wanted, words
    assert status(address, "--exit", "0", log=tmp_path / "none" / "log") == 1


def test_a_log_holds_what_one_client_printed(tmp_path: Path, address: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier try, and longer than what comes\n" * 9)
    status(address, "--raises", log=log)
    assert log.read_text().startswith("called with ['--raises']\nTraceback")
    assert log.read_text().endswith("ValueError: wrong\n")


def test_clients_at_once(tmp_path: Path, address: Path) -> None:
    hanging = ask(address, "--hang", str(tmp_path / "pid"), log=tmp_path / "1")
    until((tmp_path / "pid").exists)
    assert status(address, "--exit", "4", log=tmp_path / "2") == 4
    pid = int((tmp_path / "pid").read_text())
    hanging.close()
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_client_that_is_killed(tmp_path: Path, address: Path) -> None:
    with ask(address, "--hang", str(tmp_path / "pid"), log=tmp_path / "log") as connection:
        until((tmp_path / "pid").exists)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        assert json.loads(connection.recv(4096)) == {"status": 137}
