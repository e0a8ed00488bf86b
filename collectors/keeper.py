"""Keeps one command and everything it starts, and ends all of it for certain.

    python keeper.py LOG GRACE COMMAND...

The collector holds this process's standard input. Its first line there is a JSON list of what must
not reach LOG: the secrets that the command is given. When it says so there, or when that closes
since the collector was killed, the command is asked to stop, given GRACE seconds, then killed with
all that came of it, and the shared memory it left is removed. Uses the standard library only: it
starts at once, and the command's Python never finds this package.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

MARK = "SERVING_ASSAY_KEPT_FOR"
"""Set in the environment of whatever is kept, so that strays can be told from others' processes."""

STOP, KILL = b"s", b"k"
"""What may be written to standard input: end the command in peace, or at once."""

MASK = b"***"

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX shared memory lies
_OURS = ("psm_", "vllm", "sem.mp-", "sem.loky", "nccl-", "torch_", "gloo")
_SET_PDEATHSIG, _SET_SUBREAPER = 1, 36
_POLL = 0.2


def main(arguments: list[str]) -> int:
    """Run the command until it ends or nobody holds standard input any more.

    Returns:
        The command's exit status; 128 + n when signal n ended it.
    """
    log, grace, command = arguments[0], float(arguments[1]), arguments[2:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    libc = ctypes.CDLL(None, use_errno=True)
    # Children whose parent dies come to this process, so that none can slip away.
    libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    before = set(shared_memory())
    hidden = [secret.encode() for secret in json.loads(_first_line() or b"[]")]
    with Path(log).open("ab", buffering=0) as output:
        try:
            child = subprocess.Popen(  # noqa: S603 - the words of a study, no shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if hidden else output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: _begin(libc),
            )
        except OSError as error:
            output.write(f"cannot be started: {command[0]}: {error.strerror}\n".encode())
            return 127
        writer = threading.Thread(target=_copy, args=(child.stdout, output, hidden), daemon=True)
        if hidden:
            writer.start()
        told = _until_over(child)
        if told and KILL not in told:
            _ask_to_stop(child, grace)
        child.kill()
        child.wait()
        end_all()
        if hidden:
            writer.join(5)
    remove_shared_memory(before)
    code = child.returncode
    return code if code >= 0 else 128 - code


def _begin(libc: ctypes.CDLL) -> None:
    """What the command's process does before it becomes the command."""
    # Should the keeper itself be killed, the command goes with it.
    libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # What a process ignores, its command would ignore as well, and could not be asked to stop.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


def _first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return line


def _copy(printed: IO[bytes], output: IO[bytes], hidden: Sequence[bytes]) -> None:
    for line in printed:
        for secret in hidden:
            line = line.replace(secret, MASK)
        # On a full disk the rest is lost; the command must not wait for it.
        with suppress(OSError):
            output.write(line)


def _until_over(child: subprocess.Popen[bytes]) -> bytes:
    """What the holder said to stop it; nothing where the command has ended by itself."""
    ended = os.pidfd_open(child.pid)
    try:
        while child.poll() is None:
            told = _told(_POLL, ended)
            if told:
                return told
            _bury_the_dead(child.pid)
    finally:
        os.close(ended)
    return b""


def _told(seconds: float, *ended: int) -> bytes:
    """What the holder of standard input says within so many seconds: stop when it lets go.

    Returns at once when something else can be read: a process has ended.
    """
    readable, _, _ = select.select([0, *ended], [], [], seconds)
    return (os.read(0, 64) or STOP) if 0 in readable else b""


def _ask_to_stop(child: subprocess.Popen[bytes], grace: float) -> None:
    # Servers and clients of vLLM end their own children on an interrupt.
    for ask, share in ((signal.SIGINT, 0.7), (signal.SIGTERM, 0.3)):
        if child.poll() is None:
            child.send_signal(ask)
        end = time.monotonic() + grace * share
        while child.poll() is None and time.monotonic() < end:
            began = time.monotonic()
            if KILL in _told(_POLL):
                child.kill()
            # Where the holder is gone, every look returns at once.
            time.sleep(max(0, _POLL - (time.monotonic() - began)) if child.poll() is None else 0)


def end_all() -> None:
    """Kill every descendant of this process and wait until none is left."""
    for _ in range(50):
        found = list(descendants(os.getpid()))
        for pid in found:
            send(pid, signal.SIGKILL)
        _bury_the_dead(None)
        if not found:
            return
        time.sleep(0.05)


def _bury_the_dead(spare: int | None) -> None:
    """Collect children that ended, but for the one whose status is wanted."""
    for pid in list(_children().get(os.getpid(), ())):
        if pid != spare:
            try:
                os.waitpid(pid, os.WNOHANG)
            except OSError:
                continue


def descendants(of: int) -> Iterator[int]:
    """Processes that come of one, without itself."""
    children = _children()
    waiting = list(children.get(of, ()))
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, ())
        yield pid


def _children() -> dict[int, list[int]]:
    """The processes of each parent."""
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name stands in brackets and may hold anything; after it: state, parent.
            fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        found.setdefault(int(fields[1]), []).append(int(entry.name))
    return found


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal, if the process lives and is ours."""
    try:
        os.kill(pid, number)
    except OSError:
        return


def shared_memory() -> dict[str, int]:
    """Inodes of shared memory of the kinds that servers make, owned by this user, by name."""
    try:
        entries = list(SHARED_MEMORY.iterdir())
    except OSError:
        return {}
    found = {}
    for entry in entries:
        try:
            told = entry.stat()
        except OSError:
            continue
        if entry.name.startswith(_OURS) and told.st_uid == os.getuid():
            found[entry.name] = told.st_ino
    return found


def remove_shared_memory(before: set[str]) -> list[str]:
    """Remove what was made since `before` and no living process uses; returns the names."""
    return remove(set(shared_memory()) - before)


def remove(names: set[str]) -> list[str]:
    """Remove shared memory that no living process uses; returns the names of what is gone."""
    used = mapped() if names else set()
    now = shared_memory()
    gone = sorted(name for name in names if name in now and now[name] not in used)
    for name in gone:
        (SHARED_MEMORY / name).unlink(missing_ok=True)
    return gone


def mapped(pid: str = "[0-9]*") -> set[int]:
    """Inodes of the shared memory that some process, or this one, has mapped.

    Not names: a semaphore is mapped under a name that is gone once it has its own.
    """
    found = set()
    for maps in Path("/proc").glob(f"{pid}/maps"):
        try:
            lines = maps.read_text("utf-8", "replace").splitlines()
        except OSError:
            continue
        found |= {int(line.split()[4]) for line in lines if f"{SHARED_MEMORY}/" in line}
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
