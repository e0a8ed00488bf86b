"""run.json: what the collector says of a run, beside the files that the run left.

Its schema is told in `collectors.rundir`. What it names (study, arm, workload, load, repeat, seed)
need no study.toml; `analysis.run_folders` puts it and the files beside it together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from analysis.formats._files import mapped, one_line
from analysis.formats._printed import scalar_of
from analysis.formats._secrets import MASK, is_secret, masked
from analysis.model import LARGEST, Collected, Record, Scalar, Skipped, Source

NEWEST = 1
"""The newest schema that is understood; newer ones are read as far as they go, with a warning."""

_MOST_READ = 4 << 20
_KEYS = (b'"schema"', b'"collector"', b'"state"')
_TEXTS = ("state", "study", "arm", "workload")
_PLAIN = ("study", "collector", "collect", "repeat", "order", "order_seed", "prefix_cache_emptied")
_FLAG = re.compile(r"--(?P<name>[A-Za-z][\w.-]*)(?:=(?P<value>.*))?", re.DOTALL)
_SHORT = {
    "-tp": "tensor_parallel_size",
    "-pp": "pipeline_parallel_size",
    "-dp": "data_parallel_size",
}


def sniff(path: Path, head: bytes) -> bool:
    """By its name, and the keys that every schema has."""
    return path.name == "run.json" and head.lstrip()[:1] == b"{"


def read(path: Path, file: str) -> list[Record]:
    """One `Collected`, or the reason why there is none."""
    data, trouble = mapped(path)
    try:
        record = msgspec.json.decode(data[:_MOST_READ])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return [Skipped(file, f"not valid JSON: {trouble or one_line(str(error))}; collect again")]
    if not isinstance(record, dict):
        return [Skipped(file, "expected an object of the collector's; collect again")]
    wrong = _wrong(record)
    if wrong:
        return [Skipped(file, f"no record of a collector's run: {wrong}; collect again")]
    schema = record["schema"]
    warnings = (
        (f"run.json has schema {schema}, newer than {NEWEST}; update serving-assay",)
        if schema > NEWEST
        else ()
    )
    return [
        Collected(
            source=Source(file, ""),
            state=record["state"],
            reason=one_line(str(record.get("reason", ""))),
            arm=record["arm"],
            workload=record["workload"],
            concurrency=record["concurrency"],
            config=_config(record),
            warnings=warnings,
        )
    ]


def _wrong(record: Mapping[str, object]) -> str:
    """What is missing or of a wrong type among the keys that are relied on."""
    for key in _TEXTS:
        if not isinstance(record.get(key), str) or not record[key]:
            return f"its {key!r} is no text"
    for key in ("schema", "concurrency"):
        value = record.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < LARGEST:
            return f"its {key!r} is no count"
    return ""


def _config(record: Mapping[str, object]) -> dict[str, Scalar]:
    """Settings of server and client, and what happened, by a run's keys."""
    found: dict[str, Scalar] = {
        key: masked(value) if isinstance(value, str) else value
        for key in _PLAIN
        if isinstance(value := record.get(key), str | int | float | bool)
    }
    definition = record.get("definition")
    if isinstance(definition, Mapping):
        found |= flags_of(definition.get("server_flags"))
        for key in ("model", "gpus", "replicas", "router", "random_weights", "telemetry", "seed"):
            value = definition.get(key)
            if isinstance(value, str | int | bool) and value != "":
                found[key] = masked(value) if isinstance(value, str) else value
    versions = record.get("versions")
    if isinstance(versions, Mapping) and isinstance(versions.get("vllm"), str):
        found["version"] = versions["vllm"]
    served = record.get("requests_by_server")
    if isinstance(served, Mapping) and len(served) > 1:
        for name, count in served.items():
            if isinstance(count, int):
                found[f"bench.requests_of_{name}"] = count
    return found


def flags_of(words: object) -> dict[str, Scalar]:
    """Flags of a command line by name, as a server's log names them.

    A flag that the next word follows has that as its value; `--no-x` and a bare `--x` are truths.
    """
    if not isinstance(words, list):
        return {}
    found: dict[str, Scalar] = {}
    texts = [str(word) for word in words]
    for place, word in enumerate(texts):
        flag = _FLAG.fullmatch(word)
        name = flag["name"].replace("-", "_") if flag else _SHORT.get(word, "")
        if not name:
            continue
        following = texts[place + 1] if place + 1 < len(texts) else "--"
        value: Scalar = flag["value"] if flag and flag["value"] is not None else None
        if value is None and not (following.startswith("-") and not _is_number(following)):
            value = following
        if is_secret(name):
            found[name] = MASK
        elif value is None:
            found[name.removeprefix("no_")] = not name.startswith("no_")
        else:
            found[name] = scalar_of(masked(str(value)))
    return found


def _is_number(word: str) -> bool:
    return re.fullmatch(r"-\d+(?:\.\d+)?", word) is not None
