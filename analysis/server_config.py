"""What a server was run with, one name a fact: flags, logs, sweeps and result files differ in it.

A fact may stand in a result file (`max_num_seqs`), in a sweep's flags (`serve.max_num_seqs`) and
in the server's log (`server.max_num_seqs`); `canonical` makes one field of the three.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analysis.model import Scalar, Startup

CLIENT_KEYS = frozenset(
    {
        "date",
        "backend",
        "endpoint_type",
        "label",
        "tokenizer_id",
        "num_prompts",
        "request_rate",
        "burstiness",
        "max_concurrency",
        "ramp_up_strategy",
        "ramp_up_start_rps",
        "ramp_up_end_rps",
        "request_goodput",
        "seed",
        "max_output_tokens_per_s",
        "max_concurrent_requests",
        "rtfx",
        "run_number",
        "arm",
        "collect",
        "collector",
        "in_flight_total",
        "order",
        "order_seed",
        "prefix_cache_emptied",
        "repeat",
        "study",
        "workload",
    }
)
"""Keys of a result file that say nothing about the server."""

LOG_FILE = "server.log"
"""Key of a run's configuration under which the file of its server log stands."""

_FROM_SERVER = ("serve.", "server.")
"""Prefixes of what is a server's setting for certain: a sweep's flags, and its log."""

_RESULT = re.compile(r"(?:probe|spec_decode)_.*|rps_change_events|.*(?:_ms|_throughput|goodput)")
"""Names of what a client measured or counted beside the figures that every version writes."""

_NAMES = {
    "model": ("model", "model_tag", "model_id"),
    "version": ("version", "vllm_version"),
    "tensor_parallel": ("tensor_parallel", "tensor_parallel_size", "tp"),
    "pipeline_parallel": ("pipeline_parallel", "pipeline_parallel_size", "pp"),
    # Engines with a KV cache and a sequence limit of their own, as replicas have.
    "replicas": ("replicas", "data_parallel_size", "dp"),
}
"""Field of an arm -> the names it goes by, the most telling first."""

_FIELD = {name: (field, rank) for field, names in _NAMES.items() for rank, name in enumerate(names)}

_TEXTS = frozenset({"model", "gpu", "version", "quantization"})
"""Fields that are text also where they look like a number."""

NO_SETTING = frozenset({"log", "host", "port", "uds", "served_model_name", "api_key",
                        "uvicorn_log_level", "otlp_traces_endpoint"})  # fmt: skip
"""What a server's log says of its address and its names: equal servers differ in it."""

_FORMATS = {
    # vLLM prints how the weights are stored in several ways: by the name of the checkpoint's
    # reader (auto_*, vLLM 0.26 and later) and by the kernel that it picked (*_marlin). The format
    # is the same; which kernel ran is a field of its own (quantization_kernel).
    "auto_awq": "awq",
    "awq_marlin": "awq",
    "auto_gptq": "gptq",
    "gptq_marlin": "gptq",
}

_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
_DECIMAL = re.compile(r"-?\d{1,9}\.\d{1,9}", re.ASCII)


def weight_format(quantization: str) -> str:
    """The format of quantised weights by any of the names that a server prints for it."""
    word = quantization.strip().lower()
    return _FORMATS.get(word, word)


def is_result(key: str, value: Scalar) -> bool:
    """Whether a key of a result file holds what was measured, not what was set.

    By its name, or by its value: a list or an object (kept as JSON), or a fraction of more than
    four digits, which nobody types as a setting. Flags and log lines are settings whatever they
    look like.
    """
    if key.startswith(_FROM_SERVER):
        return False
    if _RESULT.fullmatch(key):
        return True
    if isinstance(value, str):
        return value[:1] in ("[", "{")
    return isinstance(value, float) and not value.is_integer() and float(f"{value:.4g}") != value


def server_side(config: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """What a run's configuration says of its server, by canonical names."""
    return canonical(
        {
            key: value
            for key, value in config.items()
            if not (key in CLIENT_KEYS or key.startswith("bench.") or is_result(key, value))
        }
    )


def canonical(config: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Configuration with one name a fact and one spelling a value; what is not stated left out.

    Where a fact is there twice, a plain key counts before a sweep's flag, and that before the log.
    """
    found: dict[str, Scalar] = {}
    ranks: dict[str, tuple[int, int]] = {}
    for key, value in config.items():
        side = next((n for n, p in enumerate(_FROM_SERVER, start=1) if key.startswith(p)), 0)
        bare = key.removeprefix(_FROM_SERVER[side - 1]) if side else key
        of_log = side == 2
        if value is None or (of_log and (bare in NO_SETTING or bare.endswith("_printed_times"))):
            continue
        name, place = _FIELD.get(bare, (bare, 0))
        if value is True and name.startswith("no_"):
            name, value = name.removeprefix("no_"), False
        rank = (place, side)
        if name not in ranks or rank < ranks[name]:
            found[name], ranks[name] = _plain(name, value), rank
    return found


def said_by(startup: Startup) -> dict[str, Scalar]:
    """What a log or a row of a start-up table says of the configuration, by a run's keys.

    The keys of a log begin with `server.`. The length limit that it prints stands in for a flag.
    """
    said = dict(startup.config)
    limit = startup.figures.get("max_model_len")
    if limit is not None and limit.lo == limit.hi and limit.value.is_integer():
        said.setdefault("max_model_len", int(limit.value))
    prefix = "" if startup.arm else "server."
    return {f"{prefix}{key}": value for key, value in said.items()}


def _plain(name: str, value: Scalar) -> Scalar:
    """A value as every source spells it: text that is a number or a truth value as such."""
    if name == "quantization":
        return weight_format(str(value))
    if name in _TEXTS:
        return str(value)
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    if _INTEGER.fullmatch(value):
        return int(value)
    return float(value) if _DECIMAL.fullmatch(value) else value
