"""All sources of evidence on a real vLLM server: they agree with each other and with the client.

COLLECT_VLLM names the `vllm` command of an environment, on a CPU or a GPU.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from collectors import cut, http, made_model, plugin_path, scrape
from collectors.spans import SpanReceiver
from collectors.stat_logger import FLUSH_SECONDS
from collectors.study import MadeModel
from tests.server.commands import vllm

pytestmark = pytest.mark.server

FLAGS = (
    "--load-format dummy --dtype bfloat16 --max-model-len 512 --max-num-seqs 2 "
    "--kv-cache-memory-bytes 64M --enforce-eager --host 127.0.0.1"
)
REQUESTS, TOKENS = 6, 24


@dataclass(frozen=True)
class Served:
    """A server that was started, driven and stopped, and all that was written of it."""

    folder: Path
    chunks: int
    spans: list[dict[str, Any]]
    receiver: SpanReceiver

    def lines(self, kind: str) -> list[dict[str, Any]]:
        paths = (self.folder / "steps").glob(f"{kind}-0-*.jsonl")
        return [json.loads(line) for path in paths for line in path.open()]

    def grown(self, series: str) -> float:
        """How much a counter grew over the run."""
        before, after = (
            sum(
                sample.value
                for family in text_string_to_metric_families((self.folder / name).read_text())
                for sample in family.samples
                if sample.name == f"vllm:{series}"
            )
            for name in ("before.txt", "after.txt")
        )
        return float(after - before)


def stream(url: str, number: int) -> int:
    """The chunks with text of one streamed completion."""
    body = {
        "model": "made", "prompt": "babib babok", "max_tokens": TOKENS, "stream": True,
        "ignore_eos": True, "seed": number,
    }  # fmt: skip
    request = urllib.request.Request(  # noqa: S310
        f"{url}/v1/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "X-Request-Id": f"arm.run.0-{number}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        lines = [line[6:] for line in answer if line.startswith(b"data: {")]
    return sum(bool(choice["text"]) for line in lines for choice in json.loads(line)["choices"])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    command = vllm()
    folder = tmp_path_factory.mktemp("served")
    made_model.write(MadeModel(vocab=2048, max_len=512), folder / "model")
    receiver = SpanReceiver(folder / "spans.jsonl")
    sending = receiver.start()
    port = http.free_port()
    url = f"http://127.0.0.1:{port}"
    env = {
        **os.environ, "HF_HUB_OFFLINE": "1", "TORCHDYNAMO_DISABLE": "1", **sending.env,
        **plugin_path.environment(folder / "plugin", folder / "steps", os.environ),
    }  # fmt: skip
    words = [*command, "serve", str(folder / "model"), "--served-model-name", "made"]
    words += [*shlex.split(FLAGS), "--port", str(port), *sending.flags]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            words, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        until = time.monotonic() + 180
        while not http.answers(f"{url}/health"):
            assert server.poll() is None, (folder / "server.log").read_text()[-2000:]
            assert time.monotonic() < until
            time.sleep(0.5)
        scrape.snapshot(f"{url}/metrics", folder / "before.txt")
        scraper = scrape.Scraper({"engine": f"{url}/metrics"}, folder / "metrics.prom", 0.2)
        scraper.start()
        with ThreadPoolExecutor(REQUESTS) as pool:
            chunks = sum(pool.map(lambda number: stream(url, number), range(REQUESTS)))
        scraper.stop()
        scrape.snapshot(f"{url}/metrics", folder / "after.txt")
        until = time.monotonic() + 10
        while receiver.kept < REQUESTS and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(2 * FLUSH_SECONDS)
        # Not asked but killed: what is read must be there all the same.
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        spans = [json.loads(line) for line in (folder / "spans.jsonl").open()]
        yield Served(folder, chunks, spans, receiver)
    finally:
        receiver.stop()
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def test_a_chunk_is_a_token(served: Served) -> None:
    # A tokenizer that holds tokens back is far below; a busy machine merges a chunk or two.
    assert 0.9 * REQUESTS * TOKENS <= served.chunks <= REQUESTS * TOKENS


def test_the_steps_are_the_servers_own_count(served: Served) -> None:
    steps = [line for line in served.lines("steps") if line["gen"] is not None]
    assert len(steps) == served.grown("iteration_tokens_total_count")
    assert sum(line["gen"] for line in steps) == REQUESTS * TOKENS
    assert sum(line["prompt"] for line in steps) == served.grown("prompt_tokens_total")
    assert sum(line["finished"] for line in steps) == REQUESTS
    assert max(line["running"] for line in steps) == 2
    assert max(line["waiting"] for line in steps) >= REQUESTS - 3


@pytest.mark.parametrize(
    ("series", "key", "attribute"),
    [
        ("request_queue_time_seconds_sum", "queue", "time_in_queue"),
        ("request_prefill_time_seconds_sum", "prefill", "time_in_model_prefill"),
        ("request_decode_time_seconds_sum", "decode", "time_in_model_decode"),
        ("request_inference_time_seconds_sum", "inference", "time_in_model_inference"),
    ],
)
def test_three_sources_tell_the_same_times(
    served: Served, series: str, key: str, attribute: str
) -> None:
    counted = served.grown(series)
    assert counted > 0
    assert sum(line[key] for line in served.lines("requests")) == pytest.approx(counted)
    told = [span["attributes"][f"gen_ai.latency.{attribute}"] for span in served.spans]
    assert sum(told) == pytest.approx(counted)


def test_requests_are_found_by_their_ids(served: Served) -> None:
    path = served.folder / "spans.jsonl"
    with path.open() as file:
        assert len(list(cut.requests(file, ["arm.run.0-"]))) == REQUESTS
    assert {line["id"] for line in served.lines("requests")} == {
        span["id"] for span in served.spans
    }
    assert served.receiver.errors == []


def test_samples_were_taken_while_it_ran(served: Served) -> None:
    text = (served.folder / "metrics.prom").read_text()
    assert "# scraped_at " in text
    assert "vllm:num_requests_waiting{" in text
    assert "_bucket{" not in text
