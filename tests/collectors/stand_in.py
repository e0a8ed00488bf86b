"""Stands in for `vllm` as a real program: for states that a real server reaches seldom.

    stand_in.py serve MODEL --port N ...
    stand_in.py bench serve --base-url URL ...

Uses the standard library only. What goes wrong is asked for in the environment, where a study
sets it:

    STAND_IN_KV=BLOCKS        room for KV; --num-gpu-blocks-override is heeded
    STAND_IN_DEAF=1           ... or not
    STAND_IN_MUTE=1           tells nothing of its KV
    STAND_IN_GATE=FILE        the server loads until the file is there
    STAND_IN_LOADING=die      the server dies while it loads
    STAND_IN_REQUESTS=N       the server dies at its Nth request
    STAND_IN_LIVES=FILE       ... as long as the file has fewer bytes than STAND_IN_DEATHS (1)
    STAND_IN_STUBBORN=WORD    a child of its own session ignores polite signals; all: it as well
    STAND_IN_MEMORY=NAME      shared memory that the server maps and never removes
    STAND_IN_CLIENT=WORD      fail, exit, silent, garbage or half: how the client goes wrong
    STAND_IN_ONCE=FILE        ... unless the file is there, which the first one makes
    STAND_IN_HOLD=FILE        the client waits while the file is there
    STAND_IN_SLOTS=N          so many streams at once; the others wait
    STAND_IN_PROFILER=WORD    absent or mute: has no profiler, or one that leaves no trace
"""

from __future__ import annotations

import contextlib
import gzip
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

ENV = os.environ
BLOCK = 16


def value_of(words: list[str], flag: str, default: str = "") -> str:
    return words[words.index(flag) + 1] if flag in words else default


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


# ---- server


class Served(BaseHTTPRequestHandler):
    done = 0
    blocks = 0
    model = ""
    lock = threading.Lock()
    slots = threading.Semaphore(int(ENV.get("STAND_IN_SLOTS", "1000")))
    streams: ClassVar[list[int]] = []
    steps = 0
    traces = ""
    """Folder that a profiler writes to."""

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self.answer(metrics())
        elif self.path == "/v1/models":
            self.answer(json.dumps({"data": [{"id": Served.model, "max_model_len": 512}]}))
        else:
            self.answer("")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("_profile"):
            profile(self)
            return
        if b'"stream": true' in body:
            self.stream(json.loads(body))
            return
        if self.path == "/v1/completions":
            with Served.lock:
                Served.done += 1
                if Served.done == int(ENV.get("STAND_IN_REQUESTS", "0")) and lives():
                    say("RuntimeError: the engine died")
                    os._exit(3)
        say(f"POST {self.path}")
        self.answer("{}")

    def stream(self, asked: dict[str, object]) -> None:
        """A token each few milliseconds, until the client leaves or has all it asked for."""
        if len(asked["prompt"]) + asked["max_tokens"] > 512:  # type: ignore[arg-type, operator]
            self.send_response(400)
            self.end_headers()
            self.wfile.write(b'{"error": "longer than the longest context"}')
            return
        self.send_response(200)
        self.end_headers()
        with Served.slots, contextlib.suppress(OSError):
            Served.streams.append(1)
            try:
                for _ in range(int(asked["max_tokens"])):  # type: ignore[call-overload]
                    self.wfile.write(b'data: {"choices": []}\n\n')
                    Served.steps += 1
                    time.sleep(0.004)
                self.wfile.write(b"data: [DONE]\n\n")
            finally:
                Served.streams.pop()

    def answer(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


def profile(request: Served) -> None:
    """Start and stop a profiler, as vLLM does; what it saw are the steps in between."""
    if not Served.traces or ENV.get("STAND_IN_PROFILER") == "absent":
        request.send_response(404)
        request.end_headers()
        return
    if request.path == "/stop_profile" and ENV.get("STAND_IN_PROFILER") != "mute":
        name = f"{time.time_ns()}-rank-0.{time.time_ns()}.pt.trace.json.gz"
        text = '{\n"schemaVersion": 1,\n  "host_name": "secret-host",\n"traceEvents": []\n}\n'
        Path(Served.traces, name).write_bytes(gzip.compress(text.encode()))
        Path(Served.traces, "profiler_out_0.txt").write_text("Self CPU %\n")
    request.answer("")


def metrics() -> str:
    lines = [f'vllm:num_requests_running{{engine="0"}} {len(Served.streams)}.0']
    lines += [f'vllm:generation_tokens_total{{engine="0"}} {Served.steps}.0']
    lines += [f'vllm:request_success_total{{engine="0",finished_reason="length"}} {Served.done}.0']
    if not ENV.get("STAND_IN_MUTE"):
        sizes = f'block_size="{BLOCK}",engine="0",num_gpu_blocks="{Served.blocks}"'
        lines.append(f"vllm:cache_config_info{{{sizes}}} 1.0")
    return "\n".join(lines) + "\n"


def lives() -> bool:
    """Whether it may die once more; counts."""
    if "STAND_IN_LIVES" not in ENV:
        return True
    file = Path(ENV["STAND_IN_LIVES"])
    deaths = file.stat().st_size if file.exists() else 0
    if deaths >= int(ENV.get("STAND_IN_DEATHS", 1)):
        return False
    file.write_bytes(b"." * (deaths + 1))
    return True


def serve(words: list[str]) -> None:
    say(f"non-default args: {words}")
    if ENV.get("STAND_IN_STUBBORN"):
        if ENV["STAND_IN_STUBBORN"] == "all":
            ignore()
        subprocess.Popen([sys.executable, __file__, "child"], start_new_session=True)
    if "STAND_IN_MEMORY" in ENV:
        hold_memory(ENV["STAND_IN_MEMORY"])
    if ENV.get("STAND_IN_LOADING") == "die":
        say("INFO all is well")
        say("ValueError: No available memory for the cache blocks")
        sys.exit(1)
    while "STAND_IN_GATE" in ENV and not Path(ENV["STAND_IN_GATE"]).exists():
        time.sleep(0.05)
    Served.model = value_of(words, "--served-model-name")
    told = json.loads(value_of(words, "--profiler-config", "{}"))
    Served.traces = told.get("torch_profiler_dir") or ENV.get("VLLM_TORCH_PROFILER_DIR", "")
    fixed = "" if ENV.get("STAND_IN_DEAF") else value_of(words, "--num-gpu-blocks-override")
    Served.blocks = int(fixed or ENV.get("STAND_IN_KV", "100"))
    if not ENV.get("STAND_IN_MUTE"):
        say(f"INFO GPU KV cache size: {Served.blocks * BLOCK:,} tokens")
    address = value_of(words, "--host", "127.0.0.1"), int(value_of(words, "--port"))
    ThreadingHTTPServer(address, Served).serve_forever()


def ignore() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def hold_memory(name: str) -> None:
    with Path("/dev/shm", name).open("w+b") as file:  # noqa: S108
        file.truncate(4096)
        Served.memory = mmap.mmap(file.fileno(), 4096)  # type: ignore[attr-defined]


# ---- client


def bench(words: list[str]) -> None:
    say(f"Namespace({words})")
    held = Path(ENV.get("STAND_IN_HOLD", "/nonexistent"))
    while held.exists():
        say("holding")
        time.sleep(0.05)
    wrong = ENV.get("STAND_IN_CLIENT", "")
    once = Path(ENV.get("STAND_IN_ONCE", "/nonexistent"))
    if wrong and "STAND_IN_ONCE" in ENV:
        wrong = "" if once.exists() else wrong
        once.touch()
    if wrong == "exit":
        say("ValueError: no such dataset")
        sys.exit(2)
    folder, name = value_of(words, "--result-dir"), value_of(words, "--result-filename")
    prompts = int(value_of(words, "--num-prompts"))
    ok = [False] * prompts
    url = f"{value_of(words, '--base-url')}{value_of(words, '--endpoint')}"
    began = time.perf_counter()
    for number in range(prompts):
        bad = wrong == "fail" or (wrong == "half" and number % 2)
        ok[number] = not bad and sent(url)
    if wrong == "silent":
        return
    result = json.dumps(told(words, ok, time.perf_counter() - began))
    Path(folder, name).write_text("{" if wrong == "garbage" else result)


def sent(url: str) -> bool:
    request = urllib.request.Request(url, data=b"{}", method="POST")  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            answer.read()
    except OSError:
        return False
    return True


def told(words: list[str], ok: list[bool], seconds: float) -> dict[str, object]:
    """As `vllm bench serve --save-result --save-detailed` tells it."""
    done, tokens = sum(ok), 4
    result: dict[str, object] = {
        "date": "20260101-000000",
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": value_of(words, "--model"),
        "tokenizer_id": value_of(words, "--tokenizer"),
        "num_prompts": len(ok),
        "request_rate": value_of(words, "--request-rate"),
        "burstiness": 1.0,
        "max_concurrency": int(value_of(words, "--max-concurrency")),
        "duration": max(seconds, 0.1),
        "completed": done,
        "failed": len(ok) - done,
        "total_input_tokens": 8 * done,
        "total_output_tokens": tokens * done,
        "request_throughput": done / max(seconds, 0.1),
        "output_throughput": tokens * done / max(seconds, 0.1),
        "total_token_throughput": (8 + tokens) * done / max(seconds, 0.1),
        "input_lens": [8] * len(ok),
        "output_lens": [tokens if each else 0 for each in ok],
        "ttfts": [0.01 if each else 0.0 for each in ok],
        "itls": [[0.01] * (tokens - 1) if each else [] for each in ok],
        "start_times": [100.0 + 0.1 * number for number in range(len(ok))],
        "generated_texts": ["a b c d" if each else "" for each in ok],
        "errors": ["" if each else "refused" for each in ok],
    }
    for metric in ("ttft", "tpot", "itl", "e2el"):
        for kind in ("mean", "median", "std", "p50", "p99"):
            result[f"{kind}_{metric}_ms"] = 0.0 if kind == "std" else 10.0
    return result


def main(words: list[str]) -> None:
    if words[:1] == ["serve"]:
        serve(words[1:])
    elif words[:2] == ["bench", "serve"]:
        bench(words[2:])
    elif words == ["child"]:
        ignore()
        time.sleep(600)
    else:
        sys.exit(f"stand_in: cannot {words}")


if __name__ == "__main__":
    main(sys.argv[1:])
