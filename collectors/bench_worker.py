"""A process that has imported vLLM's benchmark client once, and forks a child for each run.

    python bench_worker.py SOCKET

`vllm bench serve` spends most of a short run on imports. The child that is forked here calls the
same function with the same words. One JSON line in over a Unix socket ({"argv", "log"}), one out
({"status"}); the child is killed when the connection closes before it has ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def main(path: str) -> None:
    """Serve until the process is ended."""
    # Imported here, not above: this package is also used where vLLM is not installed.
    from vllm.benchmarks.serve import add_cli_args
    from vllm.benchmarks.serve import main as bench
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    def call(argv: list[str]) -> None:
        parser = FlexibleArgumentParser(prog="vllm bench serve")
        add_cli_args(parser)
        bench(parser.parse_args(argv))

    with socket.socket(socket.AF_UNIX) as listener:
        # Who sees the path may connect at once.
        listener.bind(f"{path}.new")
        listener.listen()
        os.rename(f"{path}.new", path)  # noqa: PTH104 - a socket, no file to be read
        while True:
            connection, _ = listener.accept()
            # A fork before the answering thread starts: the child has this thread alone.
            line = connection.makefile("rb").readline()
            child = _fork(json.loads(line), call, (listener, connection))
            threading.Thread(target=_answer, args=(connection, child), daemon=True).start()


def _fork(
    job: Mapping[str, Any], call: Callable[[list[str]], None], close: Sequence[socket.socket]
) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        for held in close:
            held.close()
        os.setsid()
        log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        call(job["argv"])
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _answer(connection: socket.socket, child: int) -> None:
    descriptor = os.pidfd_open(child)
    ready, _, _ = select.select([descriptor, connection.fileno()], [], [])
    if descriptor not in ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with connection, contextlib.suppress(OSError):
        answer = {"status": code if code >= 0 else 128 - code}
        connection.sendall(json.dumps(answer).encode() + b"\n")
    os.close(descriptor)


if __name__ == "__main__":
    main(sys.argv[1])
