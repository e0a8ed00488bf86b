"""analysis.formats.metric_samples: scrapes over time, of one engine or several; hostile ones."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from analysis.formats import format_of, metric_samples, metrics_text
from analysis.formats._files import head_of
from analysis.model import MetricSamples, Record, Skipped
from tests.formats.found import only, refused

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "results/cpu-smoke/seqs4/random-c8-r1/metrics-samples.txt.gz"
RECORDED = ROOT / "results/h200-recorded/bf16-kv2560/sharegpt-c10-s42.metrics.txt.gz"


def scrape(at: float, engine: str = "0", **figures: object) -> str:
    names = {
        "running": "num_requests_running", "waiting": "num_requests_waiting",
        "kv": "kv_cache_usage_perc", "old_kv": "gpu_cache_usage_perc",
        "preempted": "num_preemptions_total", "steps": "iteration_tokens_total_count",
        "prompt": "prompt_tokens_total", "output": "generation_tokens_total",
        "by_reason": "num_requests_waiting_by_reason", "created": "num_preemptions_created",
    }  # fmt: skip
    lines = [f"# scraped_at {at}"]
    lines += [
        f'vllm:{names[k]}{{engine="{engine}",model_name="m"}} {v}' for k, v in figures.items()
    ]
    return "\n".join(lines) + "\n"


def read(tmp_path: Path, text: str | bytes, name: str = "a.metrics.txt") -> list[Record]:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return metric_samples.read(path, name)


def samples(found: list[Record]) -> MetricSamples:
    return only(found, MetricSamples)


def test_every_figure_of_every_scrape(tmp_path: Path) -> None:
    text = scrape(10.5, running=4, waiting=2, kv=0.25, preempted=1, steps=7, prompt=90, output=30)
    found = samples(read(tmp_path, text + scrape(11.5, running=3.0, waiting=0, kv=1.0)))
    assert found.engine == "server"
    assert found.clock.tolist() == [10.5, 11.5]
    assert found.running.tolist() == [4, 3]
    assert found.waiting.tolist() == [2, 0]
    assert found.kv_use.tolist() == [0.25, 1.0]
    columns = (found.preemptions, found.iterations, found.prompt_tokens, found.output_tokens)
    assert [column[0] for column in columns] == [1, 7, 90, 30]
    # What a scrape lacks is not known.
    assert all(math.isnan(column[1]) for column in columns)


def test_names_of_both_generations_and_the_newest_of_two(tmp_path: Path) -> None:
    assert samples(read(tmp_path, scrape(1, old_kv=0.5))).kv_use.tolist() == [0.5]
    both = scrape(1, old_kv=0.5, kv=0.25) + scrape(2, kv=0.75, old_kv=0.5)
    assert samples(read(tmp_path, both)).kv_use.tolist() == [0.25, 0.75]


def test_series_that_only_begin_alike_are_others(tmp_path: Path) -> None:
    found = samples(read(tmp_path, scrape(1, waiting=5, by_reason=9, created=1.7e9)))
    assert found.waiting.tolist() == [5]
    assert math.isnan(found.preemptions[0])


def test_label_sets_of_one_engine_add_up_and_engines_stand_apart(tmp_path: Path) -> None:
    text = scrape(1, running=2) + 'vllm:num_requests_running{engine="0",model_name="lora"} 3\n'
    text += 'vllm:num_requests_running{engine="1",model_name="m"} 7\n'
    one, two = read(tmp_path, text)
    assert isinstance(one, MetricSamples)
    assert isinstance(two, MetricSamples)
    assert (one.engine, two.engine) == ("server, engine 0", "server, engine 1")
    assert (one.running.tolist(), two.running.tolist()) == ([5], [7])


def test_servers_of_one_file_by_their_headings(tmp_path: Path) -> None:
    text = ("# scraped_at 1.0 replica-0 0.01\nvllm:num_requests_running 1\n"
            "# scraped_at 1.1 replica-1 0.01\nvllm:num_requests_running 2\n"
            "# scrape_failed 2.0 replica-1 URLError: refused\n"
            "# scraped_at 2.1 replica-0 0.01\nvllm:num_requests_running 3\n")  # fmt: skip
    one, two = read(tmp_path, text, "metrics-samples.txt")
    assert isinstance(one, MetricSamples)
    assert isinstance(two, MetricSamples)
    assert (one.engine, one.clock.tolist(), one.failures) == ("replica-0", [1.0, 2.1], 0)
    assert (two.engine, two.clock.tolist(), two.failures) == ("replica-1", [1.1], 1)


@pytest.mark.parametrize("value", ["NaN", "-1", "+Inf", "1e300", "x", "0x10"])
def test_a_figure_that_no_server_has_is_not_known(tmp_path: Path, value: str) -> None:
    found = samples(read(tmp_path, scrape(1, running=value, waiting=1)))
    assert math.isnan(found.running[0])
    assert found.waiting[0] == 1


def test_a_last_line_cut_short_is_left_out(tmp_path: Path) -> None:
    text = scrape(1, running=4, output=123)
    assert math.isnan(samples(read(tmp_path, text[:-2])).output_tokens[0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# scraped_at 1\n", "no sample in it"),
        ("# scrape_failed 1.0 server x\n", "no sample in it"),
        ("# scraped_at soon\nvllm:num_requests_running 1\n", "a scrape has no time"),
        (scrape(2, running=1) + scrape(1, running=1), "the clock of server goes back"),
        ("vllm:num_requests_running 1\n", "no sample in it"),
    ],
)
def test_samples_of_no_use(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(read(tmp_path, text))


def test_damaged_gzip_gives_what_came_before(tmp_path: Path) -> None:
    text = "".join(scrape(n, running=n % 7, output=n * n) for n in range(4000))
    packed = gzip.compress(text.encode())
    found, trouble = read(tmp_path, packed[: len(packed) // 2], "a.samples.txt.gz")
    assert isinstance(found, MetricSamples)
    assert 100 < len(found.clock) < 4000
    assert isinstance(trouble, Skipped)
    assert "damaged" in trouble.reason


def test_no_more_rows_than_can_be_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_samples, "_MOST_ROWS", 3)
    series = "".join(f'vllm:num_requests_running{{engine="{n}"}} 1\n' for n in range(9))
    *found, trouble = read(tmp_path, f"# scraped_at 1\n{series}")
    assert len(found) == 3
    assert isinstance(trouble, Skipped)
    assert "more than 3 samples" in trouble.reason


def test_no_more_engines_than_a_run_has(tmp_path: Path) -> None:
    series = "".join(f'vllm:num_requests_running{{engine="{n}"}} 1\n' for n in range(30_000))
    *found, trouble = read(tmp_path, f"# scraped_at 1\n{series}")
    assert len(found) == 1000
    assert isinstance(trouble, Skipped)
    assert "more than 1,000 engines" in trouble.reason


def test_no_more_headings_than_scrapes_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric_samples, "_MOST_ROWS", 3)
    assert "more than 3 scrapes" in refused(read(tmp_path, "# scraped_at 1\n" * 9))


def test_it_is_known_by_name_and_heading(tmp_path: Path) -> None:
    for name in ("metrics-samples.txt", "a.metrics.txt", "a.samples.txt"):
        read(tmp_path, scrape(1, running=1), name)
        assert format_of(tmp_path / name, head_of(tmp_path / name)) is metric_samples
    path = tmp_path / "a.before.txt"
    path.write_text("# scraped_at 1\nvllm:num_requests_running 1\n")
    assert format_of(path, head_of(path)) is metrics_text


def by_the_library(text: str) -> list[tuple[float, float, float]]:
    """Time, running and steps of each scrape, by Prometheus' own parser."""
    rows = []
    for part in text.split("# scraped_at ")[1:]:
        at, _, rest = part.partition("\n")
        figures = {
            sample.name: float(sample.value)
            for family in text_string_to_metric_families(rest)
            for sample in family.samples
        }
        rows.append(
            (
                float(at.split()[0]),
                figures["vllm:num_requests_running"],
                figures["vllm:iteration_tokens_total_count"],
            )
        )
    return rows


@pytest.mark.parametrize("path", [SHIPPED, RECORDED], ids=["collected", "loose"])
def test_real_samples_are_what_the_clients_library_reads(path: Path) -> None:
    found = samples(metric_samples.read(path, path.name))
    mine = np.column_stack([found.clock, found.running, found.iterations]).tolist()
    assert len(mine) > 20
    assert [tuple(row) for row in mine] == by_the_library(
        gzip.decompress(path.read_bytes()).decode()
    )


PIECES = st.sampled_from([scrape(1, running=1), scrape(2, waiting=3), "# scraped_at 3 a 1\n"])


@given(st.lists(PIECES | st.text(max_size=30), max_size=8), st.binary(max_size=100))
@settings(max_examples=200, deadline=None)
def test_any_lines_and_any_bytes(pieces: list[str], data: bytes) -> None:
    text = "\n".join(pieces).encode("utf-8", "replace")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.metrics.txt"
        for content in (text, data, text + data):
            path.write_bytes(content)
            for found in metric_samples.read(path, "x"):
                assert isinstance(found, MetricSamples | Skipped)
                if isinstance(found, MetricSamples):
                    assert found.clock.shape == found.running.shape == found.output_tokens.shape
