"""run.json: what the collector says of a run, beside the files that the run left.

Its schema is told in `collectors.rundir`. What it names (study, arm, workload, load, repeat, seed)
need no study.toml; `analysis.run_folders` puts it and the files beside it together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from analysis.formats._files import mapped, one_line
from analysis.formats._printed import scalar_of
from analysis.formats._secrets import MASK, is_secret
from analysis.model import LARGEST, Collected, Record, Scalar, Skipped, Source

NEWEST = 1
"""The newest schema that is understood; newer ones are read as far as they go, with a warning."""

_MOST_READ = 4 << 20
_MOST_TEXT = 500
_KEYS = (b'"collector"', b'"schema"')
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What the collector takes for a name; a path is none."""
_NAMED = ("state", "study", "arm", "workload")
_PLAIN = ("study", "collector", "collect", "repeat", "order", "order_seed", "prefix_cache_emptied")
_OF_ARM = ("model", "router", "random_weights", "telemetry", "spans", "seed")
_NO_ROUTER = "direct"
"""What stands in a router's place where each server has a client of its own."""
_FLAG = re.compile(r"--[A-Za-z][\w.-]*")
_SHORT = {
    "-tp": "tensor_parallel_size",
    "-pp": "pipeline_parallel_size",
    "-dp": "data_parallel_size",
}


def sniff(path: Path, head: bytes) -> bool:
    """By its name, and one of the keys that every schema has near its beginning."""
    return (
        path.name == "run.json" and head.lstrip()[:1] == b"{" and any(key in head for key in _KEYS)
    )


def read(path: Path, file: str) -> list[Record]:
    """One `Collected`, or the reason why there is none."""
    data, trouble = mapped(path)
    try:
        record = msgspec.json.decode(data[:_MOST_READ])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return [Skipped(file, f"not valid JSON: {trouble or one_line(str(error))}; collect again")]
    wrong = _wrong(record)
    if wrong:
        return [Skipped(file, f"no record of a collector's run: {wrong}; collect again")]
    schema = record["schema"]
    definition = _table(record.get("definition"))
    reason = record.get("reason")
    return [
        Collected(
            source=Source(file, ""),
            state=record["state"],
            reason=one_line(reason) if isinstance(reason, str) else "",
            arm=record["arm"],
            workload=record["workload"],
            concurrency=record["concurrency"],
            clients=_count(definition.get("clients")),
            engines=_engines(definition),
            config=_config(record, definition),
            served=_counts(record.get("requests_by_server")),
            kv_tokens=_counts(
                {
                    str(server.get("name")): server.get("kv_tokens")
                    for server in map(_table, _list(record.get("servers")))
                }
            ),
            warnings=(
                (f"run.json has schema {schema}, newer than {NEWEST}; update serving-assay",)
                if schema > NEWEST
                else ()
            ),
        )
    ]


def _wrong(record: object) -> str:
    """What is missing or of a wrong type among the keys that are relied on."""
    if not isinstance(record, dict):
        return "it is no object"
    for key in _NAMED:
        value = record.get(key)
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            return f"its {key!r} is no name"
    for key in ("schema", "concurrency"):
        if _count(record.get(key)) is None:
            return f"its {key!r} is no count"
    return ""


def _config(record: Mapping[str, object], definition: Mapping[str, object]) -> dict[str, Scalar]:
    """Settings of server and client, and what happened, by a run's keys."""
    found = flags_of(definition.get("server_flags"))
    found |= _settings(definition, _OF_ARM)
    engines, gpus = _engines(definition), _count(definition.get("gpus"))
    replicas = _count(definition.get("replicas")) or 1
    if engines > 1:
        found["replicas"] = engines
    if gpus is not None:
        found["gpus"] = gpus * replicas
    clients = _count(definition.get("clients")) or 1
    if found.get("router") == _NO_ROUTER:
        del found["router"]
    if clients > 1:
        found["clients"] = clients
    if name := _gpu(record):
        found["gpu"] = name
    version = _table(record.get("versions")).get("vllm")
    if isinstance(version, str) and version[:1].isdigit():
        found["version"] = one_line(version, _MOST_TEXT)
    return found | _settings(record, _PLAIN)


def _settings(table: Mapping[str, object], keys: Sequence[str]) -> dict[str, Scalar]:
    """Plain values under these keys that say something, bounded and without secrets."""
    found: dict[str, Scalar] = {}
    for key in keys:
        value = table.get(key)
        if isinstance(value, str) and value:
            found[key] = one_line(value, _MOST_TEXT)
        elif isinstance(value, int | float) and abs(value) < LARGEST:
            found[key] = value
    return found


def _engines(definition: Mapping[str, object]) -> int:
    """Engines with a KV cache of their own: servers, times the data-parallel ones of each."""
    flags = flags_of(definition.get("server_flags"))
    return (_count(definition.get("replicas")) or 1) * (
        _count(flags.get("data_parallel_size")) or 1
    )


def _gpu(record: Mapping[str, object]) -> str:
    """The name of the GPUs that served; empty where there are none, or of two kinds."""
    servers = map(_table, _list(record.get("servers")))
    used = [index for server in servers for index in _list(server.get("gpus"))]
    names = {
        str(gpu.get("name"))
        for gpu in map(_table, _list(_table(record.get("machine")).get("gpus")))
        if gpu.get("index") in used
    }
    return one_line(names.pop(), 60) if len(names) == 1 else ""


def _count(value: object) -> int | None:
    """A whole number from 1; None for anything else."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if isinstance(value, int) and whole and 0 < value < 1_000_000_000 else None


def _counts(table: object) -> dict[str, int]:
    """Whole numbers from 0, by the names of servers."""
    return {
        one_line(str(name), 64): value
        for name, value in _table(table).items()
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST
    }


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def flags_of(words: object) -> dict[str, Scalar]:
    """Flags of a command line by name, as a server's log names them.

    A flag that the next word follows has that as its value; `--no-x` and a bare `--x` are truths.
    """
    found: dict[str, Scalar] = {}
    texts = [str(word) for word in _list(words)]
    for word, following in zip(texts, [*texts[1:], "--"], strict=False):
        flag, equals, text = word.partition("=")
        name = _SHORT.get(flag) or (flag[2:].replace("-", "_") if _FLAG.fullmatch(flag) else "")
        if not name:
            continue
        if not equals and (not following.startswith("-") or _is_number(following)):
            equals, text = "=", following
        if not equals:
            found[name.removeprefix("no_")] = not name.startswith("no_")
        else:
            value = scalar_of(one_line(text, _MOST_TEXT))
            # A number under such a name is a count of tokens, and no secret.
            secret = is_secret(name) and isinstance(value, str)
            found[name] = MASK if secret else value
    return found


def _is_number(word: str) -> bool:
    return re.fullmatch(r"-\d+(?:\.\d+)?", word) is not None
