"""Scrapes of a real HTTP server: what is kept, what fails, how soon it stops."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from collectors import scrape

TEXT = """# HELP vllm:num_requests_running Running.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 4.0
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3"} 2.0
vllm:request_queue_time_seconds_count{engine="0"} 2.0
vllm:request_queue_time_seconds_created{engine="0"} 1.79e+09
python_info{version="3.11"} 1.0
"""


@pytest.fixture
def server() -> Iterator[str]:
    hangs = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/hang":
                hangs.wait(20)
            if self.path == "/metrics":
                self.send_response(200)
                self.end_headers()
                self.wfile.write(TEXT.encode())
            else:
                self.send_error(500)

        def log_message(self, format: str, *args: object) -> None:
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.daemon_threads = True
    threading.Thread(target=web.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{web.server_address[1]}"
    hangs.set()
    web.shutdown()
    web.server_close()


def test_a_snapshot_is_the_whole_text_after_its_time(server: str, tmp_path: Path) -> None:
    began = time.time()
    assert scrape.snapshot(f"{server}/metrics", tmp_path / "before", "engine0") == ""
    head, _, rest = (tmp_path / "before").read_text("utf-8").partition("\n")
    assert rest == TEXT
    assert head.startswith("# scraped_at ")
    assert abs(float(head.split()[2]) - began) < 5
    assert head.split()[3] == "engine0"


def test_a_failed_snapshot_says_so(server: str, tmp_path: Path) -> None:
    why = scrape.snapshot(f"{server}/none", tmp_path / "before")
    assert "HTTPError" in why
    assert (tmp_path / "before").read_text("utf-8") == why + "\n"


def test_samples_leave_out_buckets_and_times_of_creation() -> None:
    assert list(scrape.moving(TEXT)) == [
        'vllm:num_requests_running{engine="0"} 4.0\n',
        'vllm:request_queue_time_seconds_count{engine="0"} 2.0\n',
        'python_info{version="3.11"} 1.0\n',
    ]


def test_a_server_that_fails_or_hangs_holds_up_nothing(server: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics"
    urls = {"good": f"{server}/metrics", "bad": f"{server}/none", "slow": f"{server}/hang"}
    scraper = scrape.Scraper(urls, path, period=0.05)
    scraper.start()
    until = time.monotonic() + 10
    while time.monotonic() < until and (scraper.scrapes < 3 or scraper.failures < 3):
        time.sleep(0.02)
    began = time.monotonic()
    scraper.stop()
    assert time.monotonic() - began < 3
    heads = [line.split() for line in path.read_text("utf-8").splitlines() if line[0] == "#"]
    assert sum(words[1] == "scraped_at" and words[3] == "good" for words in heads) >= 3
    assert sum(words[1] == "scrape_failed" and words[3] == "bad" for words in heads) >= 3


def test_a_file_that_cannot_be_written_is_counted(server: str, tmp_path: Path) -> None:
    scraper = scrape.Scraper({"good": f"{server}/metrics"}, tmp_path / "no" / "m", period=0.05)
    scraper.start()
    until = time.monotonic() + 10
    while not scraper.failures and time.monotonic() < until:
        time.sleep(0.02)
    scraper.stop()
    assert scraper.failures
