"""A plugin for vLLM that writes one line an engine step and one a finished request.

It runs inside the server under test, so it imports nothing of ours and nothing that the server
has not loaded already. `collectors.plugin_path` puts it on a server's path; without
`SERVING_ASSAY_STEPS`, which names the folder to write to, it does nothing.

vLLM calls `record` from the event loop of its API server, once for each message of an engine: a
step, or a step without tokens (a part of a long prompt), or tokens without the scheduler's state
(where several API servers share an engine). What is not in the message is null. A call appends
one tuple to a queue; a thread writes the queue twice a second, so that no disk ever holds up the
event loop and a kill -9 loses what half a second brought. An error switches the plugin off, with
one line in the server's log.

Files, one each for an engine and a process::

    steps-0-4711.jsonl
    {"t":1796061447.714268,"mono":5234.113377,"prompt":64,"computed":64,"gen":3,"running":4,
     "waiting":4,"skipped":0,"kv":0.0123,"preempted":0,"finished":1}
    requests-0-4711.jsonl
    {"t":1796061447.713101,"id":"cmpl-a-0-0","queue":0.1,"prefill":0.02,"decode":0.4,
     "inference":0.42,"e2e":0.53,"prompt":64,"cached":0,"gen":48,"reason":"length"}

`t` is Unix time in seconds, `mono` CLOCK_MONOTONIC of the host in seconds. Of a step: tokens of
prompts that it finished, those of them that it computed, tokens that it generated; requests
running and waiting after it was scheduled, waiting but not schedulable (`skipped`); the share of
the KV cache in use; requests preempted and finished. Of a request: seconds by the engine's
monotonic clock, `e2e` by the API server's clock, which `t - e2e` gives the arrival by.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys
import threading
import time
from collections import deque
from typing import Any

VARIABLE = "SERVING_ASSAY_STEPS"
"""Environment variable with the folder to write to."""

FLUSH_SECONDS = 0.5
"""How long a record can wait for its file."""

_MOST = 1_000_000
"""Records kept for a disk that does not take them; the oldest are dropped beyond it."""

_STEP = (
    '{"t":%.6f,"mono":%.6f,"prompt":%s,"computed":%s,"gen":%s,"running":%s,"waiting":%s,'
    '"skipped":%s,"kv":%s,"preempted":%s,"finished":%s}\n'
)
_NO_TOKENS = ("null", "null", "null")
_NO_EVENTS = ("null", "null")
_NO_STATE = ("null", "null", "null", "null")

# vLLM loads its plugins from the module that defines the base class; where that module is not
# loaded, this one was imported by something else, and importing vLLM would cost it seconds.
_loggers = sys.modules.get("vllm.v1.metrics.loggers")
_Base: Any = getattr(_loggers, "StatLoggerBase", object)


class StepLogger(_Base):  # type: ignore[misc]
    """Writes what vLLM tells its stat loggers, for one engine."""

    def __init__(self, vllm_config: Any = None, engine_index: int = 0) -> None:
        """Open the files, if the variable names a folder; never raises."""
        self._on = False
        self._queue: deque[tuple[str, tuple[Any, ...]]] = deque(maxlen=_MOST)
        folder = os.environ.get(VARIABLE)
        if not folder:
            return
        try:
            name = f"{engine_index}-{os.getpid()}.jsonl"
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
            self._files = {kind: _appending(folder, kind, name) for kind in ("steps", "requests")}
            self._lock = threading.Lock()
            threading.Thread(target=self._write_on, name=VARIABLE, daemon=True).start()
            atexit.register(self.flush)
            self._on = True
        except Exception as error:
            self._switch_off(error)

    def record(
        self,
        scheduler_stats: Any = None,
        iteration_stats: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Take one message of the engine; never raises."""
        if not self._on:
            return
        try:
            self._take(scheduler_stats, iteration_stats)
        except Exception as error:
            self._switch_off(error)

    def log_engine_initialized(self) -> None:
        """Nothing to say when an engine is up."""

    def log(self) -> None:
        """Nothing to say every ten seconds."""

    def record_sleep_state(self, is_awake: int = 0, level: int = 0) -> None:
        """Sleep is not recorded."""

    def flush(self) -> None:
        """Write what is queued; never raises."""
        try:
            with self._lock:
                lines: dict[str, list[str]] = {"steps": [], "requests": []}
                while self._queue:
                    kind, values = self._queue.popleft()
                    lines[kind].append(_STEP % values if kind == "steps" else _request(values))
                for kind, texts in lines.items():
                    if texts:
                        _write(self._files[kind], "".join(texts).encode())
        except Exception as error:
            self._switch_off(error)

    def _take(self, state: Any, tokens: Any) -> None:
        counts: tuple[Any, ...] = _NO_TOKENS
        events: tuple[Any, ...] = _NO_EVENTS
        queue: tuple[Any, ...] = _NO_STATE
        if tokens is not None:
            by_source = getattr(tokens, "prompt_token_stats", None)
            counts = (
                tokens.num_prompt_tokens,
                getattr(by_source, "computed", "null"),
                tokens.num_generation_tokens,
            )
            events = (tokens.num_preempted_reqs, len(tokens.finished_requests))
            if tokens.finished_requests:
                at = tokens.iteration_timestamp
                for request in tokens.finished_requests:
                    self._queue.append(("requests", (at, request)))
        if state is not None:
            queue = (
                state.num_running_reqs,
                state.num_waiting_reqs,
                getattr(state, "num_skipped_waiting_reqs", "null"),
                round(state.kv_cache_usage, 6),
            )
        self._queue.append(("steps", (time.time(), time.monotonic(), *counts, *queue, *events)))

    def _write_on(self) -> None:
        while True:
            time.sleep(FLUSH_SECONDS)
            if self._queue:
                self.flush()

    def _switch_off(self, error: Exception) -> None:
        if self._on or not hasattr(self, "_lock"):
            logging.getLogger("vllm.serving_assay").warning(
                "No steps are recorded: %s: %s", type(error).__name__, error
            )
        self._on = False
        self._queue.clear()


def _appending(folder: str, kind: str, name: str) -> int:
    path = os.path.join(folder, f"{kind}-{name}")  # noqa: PTH118
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _request(values: tuple[Any, ...]) -> str:
    """The line of a finished request; a figure that the version lacks is null."""
    at, request = values
    reason = getattr(request, "finish_reason", None)
    line = {
        "t": round(at, 6),
        "id": str(getattr(request, "request_id", None) or ""),
        "queue": _seconds(request, "queued_time"),
        "prefill": _seconds(request, "prefill_time"),
        "decode": _seconds(request, "decode_time"),
        "inference": _seconds(request, "inference_time"),
        "e2e": _seconds(request, "e2e_latency"),
        "prompt": getattr(request, "num_prompt_tokens", None),
        "cached": getattr(request, "num_cached_tokens", None),
        "gen": getattr(request, "num_generation_tokens", None),
        "reason": None if reason is None else str(reason),
    }
    return json.dumps(line, separators=(",", ":")) + "\n"


def _seconds(request: Any, name: str) -> float | None:
    # A moment that an aborted request never came to is 0, which makes what ends there negative.
    value = getattr(request, name, None)
    return value if value is not None and value >= 0 else None
