"""When the numbers change so that the truth flips, the verdict flips: one case a kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.pipeline import analyse
from tests.traces import server, write
from tests.whole import (
    PUBLISHED,
    copy_results,
    edit,
    findings,
    published,
    set_cell,
    shipped,
    verdict_after,
)

ONE = "writeup/quantization_l40s.csv"
TWO = "writeup/parallelism_l4.csv"
LOGS = "writeup/startup_logs.csv"
SHAREGPT = {"dataset": "sharegpt"}

Change = Callable[[Path], None]


def figure(table: str, column: str, value: str, **where: str) -> Change:
    return lambda root: set_cell(root / table, where, column, value)


def both(*changes: Change) -> Change:
    def apply(root: Path) -> None:
        for change in changes:
            change(root)

    return apply


def shorter_outputs(root: Path) -> None:
    path = root / "writeup/sharegpt_lengths.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines[1:]]
    short = [",".join([a, b, str(min(int(c), 200))]) for a, b, c in rows]
    path.write_text("\n".join([lines[0], *short]) + "\n", encoding="utf-8")


def traces(fp16: float, awq: float, *, batch: int = 10) -> Change:
    """Profiler traces of both arms whose steps spend so many µs in GEMM."""

    def apply(root: Path) -> None:
        for arm, gemm in (("fp16", fp16), ("awq", awq)):
            path = root / f"writeup/{arm}/trace/rank0.pt.trace.json.gz"
            write(path, server(gemm, batch=batch))

    return apply


# Throughput and latency move together, or Little's law makes the run INVALID.
FASTER_REPLICAS = both(
    figure(TWO, "total_tps", "1600.0", arm="replica2_rr", max_concurrency="32"),
    figure(TWO, "mean_itl_ms", "33.0", arm="replica2_rr", max_concurrency="32"),
)

CASES = [
    # kind, claim, verdict as shipped, change, verdict after
    ("magnitude", "total-2.74x", "supported",
     figure(ONE, "total_tps", "1405.6", arm="awq", dataset="sharegpt"), "refuted"),
    ("gap_attribution", "throughput-by-larger-batch", "refuted",
     both(figure(ONE, "mean_itl_ms", "14.0", arm="fp16", dataset="sharegpt"),
          figure(ONE, "mean_ttft_ms", "74.7", arm="fp16", dataset="sharegpt")), "supported"),
    ("queue_wait", "max-num-seqs-caused-the-wait", "supported",
     figure(ONE, "mean_ttft_ms", "90.0", arm="awq-tuned", dataset="sharegpt"), "refuted"),
    ("load", "sharegpt-sent-at-limited-rate", "refuted",
     both(figure(ONE, "request_rate", "1.1", arm="fp16", dataset="sharegpt"),
          figure(ONE, "request_rate", "3.0", arm="awq", dataset="sharegpt"),
          figure(ONE, "mean_itl_ms", "5.0", **SHAREGPT)), "supported"),
    ("capacity", "fewer-than-two-run", "refuted",
     figure(LOGS, "kv_cache_tokens", "800", arm="fp16"), "supported"),
    ("length", "context-1024-suffices", "refuted", shorter_outputs, "supported"),
    ("token_mix", "prefix-2.37x-by-caching", "refuted",
     figure(ONE, "output_tps", "530.0", arm="fp16", dataset="prefix_repetition"),
     "inconclusive"),
    ("kv_accounting", "tp-pools-14.38-gib", "refuted",
     figure(LOGS, "kv_cache_gib_as_printed", "28.76", arm="tp2"), "supported"),
    ("ordering", "pp-worst-itl", "refuted",
     figure(TWO, "mean_itl_ms", "50.0", arm="single", max_concurrency="32"), "supported"),
    ("crossover", "no-crossing", "supported",
     FASTER_REPLICAS, "refuted"),
    ("equivalence", "router-keeps-itl", "supported",
     both(figure(TWO, "mean_itl_ms", "48.0", arm="replica2_rr", max_concurrency="10"),
          figure(TWO, "total_tps", "400.0", arm="replica2_rr", max_concurrency="10",
                 **SHAREGPT)), "refuted"),
    ("expectation", "tuned-elsewhere-loses-here", "supported",
     both(figure(ONE, "total_tps", "1500.0", arm="awq-tuned", dataset="sharegpt"),
          figure(ONE, "total_tps", "3200.0", arm="awq-tuned", dataset="prefix_repetition")),
     "refuted"),
    ("rule", "choose-tp-over-replicas", "supported",
     FASTER_REPLICAS, "refuted"),
    ("kernel_time", "gemm-time-unchanged", "refuted",
     figure(ONE, "mean_itl_ms", "40.0", arm="awq", dataset="sharegpt"), "untestable"),
    # With traces their times decide, whatever the bound leaves open.
    ("kernel_time_traced_alike", "gemm-time-unchanged", "refuted",
     both(figure(ONE, "mean_itl_ms", "40.0", arm="awq", dataset="sharegpt"),
          traces(33_000, 33_000)), "supported"),
    ("kernel_time_traced_apart", "gemm-time-unchanged", "refuted",
     both(figure(ONE, "mean_itl_ms", "40.0", arm="awq", dataset="sharegpt"),
          traces(33_000, 20_246)), "refuted"),
    ("kernel_time_traced_at_another_batch", "gemm-time-unchanged", "refuted",
     both(figure(ONE, "mean_itl_ms", "40.0", arm="awq", dataset="sharegpt"),
          traces(33_000, 33_000, batch=32)), "untestable"),
    ("roofline", "decode-bound-by-kv-reads", "refuted",
     figure(ONE, "total_tps", "40000.0", arm="fp16", dataset="sharegpt"), "supported"),
    ("composite", "throughput-against-latency", "supported",
     figure(TWO, "total_tps", "300.0", arm="single", max_concurrency="32"), "refuted"),
    ("fit", "a10g-runs-14b-awq", "supported",
     figure(LOGS, "model_gib", "22.4", arm="awq"), "refuted"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("claim", "before", "change", "after"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_verdict_follows_the_numbers(
    tmp_path: Path, claim: str, before: str, change: Change, after: str
) -> None:
    assert findings(published())["writeup", claim].verdict == before
    assert verdict_after(tmp_path / "changed", claim, change) == after


def test_a_run_that_breaks_littles_law_withholds_the_verdict(tmp_path: Path) -> None:
    change = figure(TWO, "total_tps", "1600.0", arm="replica2_rr", max_concurrency="32")
    assert verdict_after(tmp_path, "no-crossing", change) == "inconclusive"


def test_scaling_follows_the_quoted_figure(tmp_path: Path) -> None:
    claim = ("book-ch09", "four-instances-measured")
    assert findings(shipped())[claim].verdict == "refuted"
    root = copy_results(tmp_path / "results", *PUBLISHED)
    for file in ("writeup/quoted_by_the_book.csv", "book-ch09/claims.toml"):
        edit(root / file, "9816", "9100")
    assert findings(analyse(root))[claim].verdict == "inconclusive"


def test_interface_follows_the_help_text(tmp_path: Path) -> None:
    def rename(root: Path) -> None:
        edit(root / "writeup/help/vllm-serve-help-all.txt", "--enable-log-requests", "--log-reqs")
        edit(root / "writeup/help/vllm-serve-help-all.txt", "--no-enable-log-requests", "--no-log")
        edit(root / "writeup/help/vllm-serve-help-all.txt", "--disable-log-stats",
             "--disable-log-requests")  # fmt: skip

    claim = "disable-log-requests-gone"
    assert verdict_after(tmp_path / "a", claim, lambda _: None) == "supported"
    assert verdict_after(tmp_path / "b", claim, rename) == "refuted"
