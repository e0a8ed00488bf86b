"""A server's /metrics as text, before and after a run; their differences are the run's counts.

`metrics-ENGINE.before.txt` and `.after.txt` belong to a collected run; `NAME.before.txt` and
`NAME.after.txt` to the result NAME.json beside them (`analysis.loose_evidence`). The text of any
other moment is recognised and kept out of the way.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Literal

from analysis.formats._exposition import values
from analysis.formats._files import mapped, one_line
from analysis.model import LARGEST, Counters, Record, Skipped, Source

_NAME = re.compile(
    r"(?:metrics-(?P<engine>[\w.-]+)|(?!metrics-\.).+)\.(?P<when>before|after)\.txt(?:\.gz)?"
)
_OF_COLLECTOR = b"# scrape"
"""How the collector's own heading begins, also that of a server that did not answer."""
_MOST_READ = 16 << 20
_MOST_SERIES = 100_000
"""Two hundred times what an engine has."""
ALONE = "server"
"""What a server is called where a file does not name it."""


def sniff(path: Path, head: bytes) -> bool:
    """Prometheus text, which begins with comments of two kinds."""
    if head.startswith(_OF_COLLECTOR):
        return _NAME.fullmatch(path.name) is not None
    return b"# TYPE " in head and b"# HELP " in head


def read(path: Path, file: str) -> list[Record]:
    """One `Counters`, or the reason why it is of no use."""
    name = _NAME.fullmatch(path.name)
    if name is None:
        return [
            Skipped(
                file,
                "metrics of a server at some moment; named metrics-ENGINE.before.txt and "
                "metrics-ENGINE.after.txt beside a run.json, or NAME.before.txt and "
                "NAME.after.txt beside the result NAME.json, their difference is read",
            )
        ]
    data, trouble = mapped(path)
    text = bytes(data[:_MOST_READ]).decode("utf-8", "replace")
    # Half a number at the end would be another number.
    text = text[: text.rfind("\n") + 1]
    held: dict[str, float] = {}
    try:
        for series, value in values(text):
            if len(held) >= _MOST_SERIES:
                trouble = trouble or f"more than {_MOST_SERIES:,} series"
                break
            if math.isfinite(value) and abs(value) < LARGEST:
                held[series] = value
    except ValueError as error:
        trouble = trouble or f"a line is no Prometheus text ({one_line(str(error), 120)})"
    if not held:
        return [Skipped(file, f"{trouble or 'no number in it'}; collect again")]
    when: Literal["before", "after"] = "before" if name["when"] == "before" else "after"
    found: list[Record] = [Counters(Source(file, ""), name["engine"] or ALONE, when, held)]
    if trouble:
        found.append(Skipped(file, f"{trouble}; what came before it was read"))
    return found
