"""Ports for servers that take long to listen: kept from other collectors, and asked whose they are.

vLLM listens half a minute after its start, and shares its port with any other vLLM that was given
the same: until then the port looks free, and after that answers come from either of them.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from pathlib import Path
from typing import IO

from collectors.http import port_is_free
from collectors.keeper import descendants

_LISTENS = "0A"
_taken: dict[int, IO[str]] = {}
"""Locks of this process; they go with it, however it ends."""
_lock = threading.Lock()


def take(first: int) -> int:
    """The first port from `first` that nothing listens on and no collector has taken.

    Raises:
        OSError: there is none.
    """
    folder = Path(tempfile.gettempdir()) / f"serving-assay-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with _lock:
        for port in range(first, min(first + 1000, 65536)):
            if port not in _taken and port_is_free(port) and _locked(folder / str(port), port):
                return port
    raise OSError(f"no free port from {first} on")


def _locked(path: Path, port: int) -> bool:
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return False
    _taken[port] = file
    return True


def give_back(port: int) -> None:
    """Let others have a port again."""
    with _lock:
        if port in _taken:
            _taken.pop(port).close()


def strangers(port: int, keeper: int) -> bool:
    """Whether something listens on a port of this host that does not come of a server's keeper."""
    listening = _listening(port)
    return bool(listening) and not listening <= _sockets([keeper, *descendants(keeper)])


def _listening(port: int) -> set[str]:
    """Inodes of the sockets that listen on a port of this host."""
    try:
        lines = Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]
    except OSError:
        return set()
    fields = [line.split() for line in lines]
    return {
        each[9]
        for each in fields
        if each[3] == _LISTENS and int(each[1].rpartition(":")[2], 16) == port
    }


def _sockets(pids: list[int]) -> set[str]:
    """Inodes of the sockets that processes have open."""
    found = set()
    for pid in pids:
        try:
            for link in Path(f"/proc/{pid}/fd").iterdir():
                name = str(link.readlink())
                if name.startswith("socket:["):
                    found.add(name[8:-1])
        except OSError:
            continue
    return found
