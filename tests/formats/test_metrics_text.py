"""analysis.formats.metrics_text: a server's counters at one moment, or why they are of no use."""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.formats import format_of, metrics_text
from analysis.formats._files import head_of
from analysis.model import Counters, Record, Skipped, Source
from tests.formats.found import only, refused

TEXT = """# scraped_at 1796061447.714 server 0.007
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m",engine="0"} 4.0
# HELP vllm:request_success_total Count of successfully processed requests.
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="length"} 64.0
# HELP vllm:request_queue_time_seconds Histogram of time spent in WAITING phase.
# TYPE vllm:request_queue_time_seconds histogram
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3"} 1.0
vllm:request_queue_time_seconds_bucket{engine="0",le="+Inf"} 2.0
vllm:request_queue_time_seconds_sum{engine="0"} 0.9
vllm:request_queue_time_seconds_count{engine="0"} 2.0
"""


def read(
    tmp_path: Path, text: str | bytes = TEXT, name: str = "metrics-replica-0.before.txt"
) -> list[Record]:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return metrics_text.read(path, f"a/{name}")


def counters(found: list[Record]) -> Counters:
    return only(found, Counters)


@pytest.mark.parametrize("when", ["before", "after"])
def test_every_series_with_its_labels_in_order(tmp_path: Path, when: str) -> None:
    found = counters(read(tmp_path, name=f"metrics-replica-0.{when}.txt"))
    assert (found.engine, found.when) == ("replica-0", when)
    assert found.source == Source(f"a/metrics-replica-0.{when}.txt", "")
    assert found.values['vllm:num_requests_running{engine="0",model_name="m"}'] == 4
    assert found.values['vllm:request_success_total{engine="0",finished_reason="length"}'] == 64
    assert found.values['vllm:request_queue_time_seconds_sum{engine="0"}'] == 0.9
    assert len(found.values) == 6


def test_a_text_beside_a_result_is_of_its_server(tmp_path: Path) -> None:
    found = counters(read(tmp_path, name="sharegpt-c10.after.txt"))
    assert (found.engine, found.when) == ("server", "after")


def test_a_compressed_text(tmp_path: Path) -> None:
    name = "metrics-server.after.txt.gz"
    found = counters(read(tmp_path, gzip.compress(TEXT.encode()), name))
    assert (found.engine, found.when) == ("server", "after")


def test_no_more_series_than_can_be_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_text, "_MOST_SERIES", 3)
    found, trouble = read(tmp_path)
    assert isinstance(found, Counters)
    assert len(found.values) == 3
    assert isinstance(trouble, Skipped)
    assert "more than 3 series" in trouble.reason


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e300", "-1e18"])
def test_endless_numbers_are_left_out(tmp_path: Path, value: str) -> None:
    found = counters(read(tmp_path, TEXT.replace("64.0", value)))
    assert len(found.values) == 5


@pytest.mark.parametrize("line", ["vllm:x{", "vllm:x{a=b} 1", "x y z", 'a{b="c} 1'])
def test_a_line_that_is_no_metric_ends_the_text(tmp_path: Path, line: str) -> None:
    found, trouble = read(tmp_path, f"{TEXT}# HELP y y\n# TYPE y gauge\ny 1\n{line}\n")
    assert isinstance(found, Counters)
    assert isinstance(trouble, Skipped)
    assert "what came before it was read" in trouble.reason


def test_of_a_text_cut_short_the_whole_lines_are_read(tmp_path: Path) -> None:
    found = counters(read(tmp_path, TEXT[: TEXT.index("64.0") + 1]))
    assert list(found.values.values()) == [4.0]


@pytest.mark.parametrize(
    "text",
    ["", "# HELP x y\n# TYPE x gauge\n", "# scrape_failed 1.0 server URLError: refused\n"],
)
def test_without_a_number_it_is_of_no_use(tmp_path: Path, text: str) -> None:
    assert refused(read(tmp_path, text)).startswith("no number in it")


@pytest.mark.parametrize("name", ["metrics.txt", "before.txt", "metrics-.before.txt"])
def test_a_text_of_some_other_moment_says_how_it_would_be_read(tmp_path: Path, name: str) -> None:
    assert "their difference is read" in refused(read(tmp_path, name=name))


def test_it_is_known_by_its_comments(tmp_path: Path) -> None:
    read(tmp_path)
    path = tmp_path / "metrics-replica-0.before.txt"
    assert format_of(path, head_of(path)) is metrics_text
    assert metrics_text.sniff(path, b"# scraped_at 1.0 server 0.1\na 1\n")
    assert not metrics_text.sniff(tmp_path / "metrics-samples.txt", head_of(path)[:40])
    failed = b"# scrape_failed 1.0 server URLError: refused\n"
    assert metrics_text.sniff(path, failed)
    assert not metrics_text.sniff(tmp_path / "notes.txt", failed)


LINES = st.sampled_from(TEXT.splitlines()) | st.text(max_size=40)


@given(st.lists(LINES, max_size=12), st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_lines_and_any_bytes(lines: list[str], data: bytes) -> None:
    text = "\n".join(lines).encode("utf-8", "replace")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "metrics-0.before.txt"
        for content in (text, data, TEXT.encode() + data):
            path.write_bytes(content)
            for found in metrics_text.read(path, "x"):
                assert isinstance(found, Counters | Skipped)
