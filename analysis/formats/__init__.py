"""One module a file format; the folder is the registry.

To read a new kind of file, add a module here whose name does not begin with an underscore, with

`sniff(path, head) -> bool`
    Whether the file is of this format. `head` is the first 64 KiB after blanks, or 16 MiB where
    these tell no format anything, decompressed where the file is gzip; `path` is there for the
    suffix and for neighbours (a table's sidecar). Must be quick, must not read the whole file, and
    must say no to what another format owns: the first module in the order of names that says yes
    reads the file.

`read(path, file) -> list[Record]`
    Everything the file holds, in its own order, in seconds, bytes and tokens. `file` is the POSIX
    path below the results folder, and goes into every `Source`; an absolute path never does.
    What cannot be used becomes `Skipped(file, reason)`: what was found, what was expected, what
    to do, in one line. A reader raises nothing over bad content; it may let `OSError` pass.

A test proves that each module exports both and has a file of cases.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Protocol, cast

from analysis.model import Record


class Format(Protocol):
    """What a module of this package exports."""

    __name__: str

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether the file is of this format."""

    def read(self, path: Path, file: str) -> list[Record]:
        """All records of the file."""


@cache
def formats() -> tuple[Format, ...]:
    """Every format of this folder, sorted by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return tuple(
        cast(Format, importlib.import_module(f"{__name__}.{name}"))
        for name in names
        if not name.startswith("_")
    )


def format_of(path: Path, head: bytes) -> Format | None:
    """The first format that owns the file, or None."""
    return next((module for module in formats() if module.sniff(path, head)), None)
