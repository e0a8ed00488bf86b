"""Keeps one command and everything it starts, and ends all of it for certain.

    python keeper.py LOG GRACE COMMAND...

The collector holds this process's standard input. When it says so there, or when that closes since
the collector was killed, the command is asked to stop, given GRACE seconds, then killed with all
that came of it, and the shared memory it left is removed. Uses the standard library only: it
starts at once.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MARK = "SERVING_ASSAY_KEPT_FOR"
"""Set in the environment of whatever is kept, so that strays can be told from others' processes."""

STOP, KILL = b"s", b"k"
"""What may be written to standard input: end the command in peace, or at once."""

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
    with Path(log).open("ab", buffering=0) as output:
        try:
            child = subprocess.Popen(  # noqa: S603 - the words of a study, no shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # Should this process itself be killed, the command goes with it.
                preexec_fn=lambda: libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
            )
        except OSError as error:
            output.write(f"cannot be started: {command[0]}: {error.strerror}\n".encode())
            return 127
        code = _until_over(child)
        if code is None:
            code = _ask_to_stop(child, grace)
    end_all()
    remove_shared_memory(before)
    return code if code >= 0 else 128 - code


def _until_over(child: subprocess.Popen[bytes]) -> int | None:
    """The exit status; None where the command is to be stopped."""
    while True:
        if _told(_POLL):
            return child.poll()
        if child.poll() is not None:
            return child.returncode
        _bury_the_dead(child.pid)


def _told(seconds: float) -> bytes:
    """What the holder of standard input says within so many seconds: stop when it lets go."""
    readable, _, _ = select.select([0], [], [], seconds)
    return (os.read(0, 64) or STOP) if readable else b""


def _ask_to_stop(child: subprocess.Popen[bytes], grace: float) -> int:
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
        if child.poll() is not None:
            return child.returncode
    child.kill()
    return child.wait()


def end_all() -> None:
    """Kill every descendant of this process and wait until none is left."""
    for _ in range(50):
        found = list(descendants(os.getpid()))
        for pid in found:
            _signal(pid, signal.SIGKILL)
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


def strays(mark: str) -> list[int]:
    """Processes kept for `mark` that no keeper keeps any more."""
    wanted = f"{MARK}={mark}".encode()
    found, kept = [], set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found.append(int(entry.name))
        if os.fsencode(__file__) in words:
            kept |= {int(entry.name), *descendants(int(entry.name))}
    return [pid for pid in found if pid not in kept]


def end_strays(mark: str) -> int:
    """Kill what a killed keeper left behind; returns how many processes."""
    found = strays(mark)
    for pid in found:
        _signal(pid, signal.SIGKILL)
    return len(found)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def shared_memory() -> list[str]:
    """Names of shared memory of the kinds that servers make, owned by this user."""
    try:
        entries = list(SHARED_MEMORY.iterdir())
    except OSError:
        return []
    found = []
    for entry in entries:
        try:
            if entry.name.startswith(_OURS) and entry.stat().st_uid == os.getuid():
                found.append(entry.name)
        except OSError:
            continue
    return found


def remove_shared_memory(before: set[str]) -> list[str]:
    """Remove what was made since `before` and no living process uses; returns the names."""
    new = set(shared_memory()) - before
    if not new:
        return []
    used = _mapped()
    gone = []
    for name in sorted(new):
        path = SHARED_MEMORY / name
        try:
            if path.stat().st_ino not in used:
                path.unlink()
                gone.append(name)
        except OSError:
            continue
    return gone


def _mapped() -> set[int]:
    """Inodes of the shared memory that some process has mapped.

    Not names: a semaphore is mapped under a name that is gone once it has its own.
    """
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            lines = maps.read_text("utf-8", "replace").splitlines()
        except OSError:
            continue
        found |= {int(line.split()[4]) for line in lines if f"{SHARED_MEMORY}/" in line}
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
