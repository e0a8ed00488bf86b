"""A server's /metrics as text: metrics-ENGINE.before.txt and .after.txt of a collected run.

Read by Prometheus' own parser. Differences of the two give exact counts and means of the run; the
text of any other server is recognised and kept out of the way.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Literal

from prometheus_client.parser import text_string_to_metric_families

from analysis.formats._files import mapped, one_line
from analysis.model import LARGEST, Counters, Record, Skipped, Source

_NAME = re.compile(r"metrics-(?P<engine>[\w.-]+)\.(?P<when>before|after)\.txt(?:\.gz)?")
_OF_COLLECTOR = b"# scrape"
"""How the collector's own heading begins, also that of a server that did not answer."""
_MOST_READ = 16 << 20


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
                "metrics-ENGINE.after.txt beside a run.json, their difference is read",
            )
        ]
    data, trouble = mapped(path)
    text = bytes(data[:_MOST_READ]).decode("utf-8", "replace")
    # Half a number at the end would be another number.
    text = text[: text.rfind("\n") + 1]
    values: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                value = float(sample.value)
                if not (math.isfinite(value) and abs(value) < LARGEST):
                    continue
                values[_series(sample.name, sample.labels)] = value
    except (ValueError, KeyError, IndexError) as error:
        trouble = trouble or f"a line is no Prometheus text ({one_line(str(error), 120)})"
    if not values:
        return [Skipped(file, f"{trouble or 'no number in it'}; collect again")]
    when: Literal["before", "after"] = "before" if name["when"] == "before" else "after"
    found: list[Record] = [Counters(Source(file, ""), name["engine"], when, values)]
    if trouble:
        found.append(Skipped(file, f"{trouble}; what came before it was read"))
    return found


def _series(name: str, labels: dict[str, str]) -> str:
    told = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
    return f"{name}{{{told}}}" if told else name
