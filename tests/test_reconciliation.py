"""analysis.reconciliation: what both ends counted, of engines that are known and of real runs."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.model import Run
from analysis.reconciliation import OUTPUT, PROMPT, REQUESTS, Reconciled, in_words, reconciled
from analysis.scan import scan
from analysis.simulate import Delivery
from analysis.simulated_file import result
from analysis.token_times import Refused
from tests.builders import run
from tests.simulated import simulated
from tests.simulated_metrics import texts, truth, write
from tests.whole import RESULTS

SIM = simulated(n=60)


def of(
    folder: Path,
    client: Callable[[dict[str, Any]], None] = lambda told: None,
    server: Callable[[str], str] = lambda text: text,
) -> Reconciled:
    """SIM after a change of what the client wrote, or of the servers' text after the run."""
    told = result(SIM)
    client(told)
    before, after = texts(SIM)
    for end, text in (("json", json.dumps(told)), ("before.txt", before),
                      ("after.txt", server(after))):  # fmt: skip
        (folder / f"a.{end}").write_text(text)
    (found,) = [one for one in scan(folder) if isinstance(one, Run)]
    both = reconciled(found)
    assert isinstance(both, Reconciled), both
    return both


def more(series: str, count: int) -> Callable[[str], str]:
    """The text with `count` added to a counter."""

    def change(text: str) -> str:
        pattern = re.compile(rf"^({re.escape(series)}\{{[^}}]*\}}) (\S+)$", re.MULTILINE)
        first = pattern.search(text)
        assert first is not None
        return text.replace(first[0], f"{first[1]} {float(first[2]) + count}", 1)

    return change


def all_of(*changes: Callable[[str], str]) -> Callable[[str], str]:
    def change(text: str) -> str:
        for one in changes:
            text = one(text)
        return text

    return change


def requests(count: int, prompt: int, output: int) -> Callable[[str], str]:
    """The text of a server that answered so many more requests."""
    return all_of(
        more("vllm:request_success_total", count),
        more("vllm:prompt_tokens_total", count * prompt),
        more("vllm:generation_tokens_total", count * output),
    )


def test_both_ends_of_a_simulated_run_count_the_same(tmp_path: Path) -> None:
    found = of(tmp_path)
    assert (found.faults, found.own, found.strangers) == ((), 0, 0)
    assert [found.pair(what).difference for what in (REQUESTS, PROMPT, OUTPUT)] == [0, 0, 0]  # type: ignore[union-attr]
    prompt, output = int(SIM.workload.prompt.sum()), int(SIM.workload.output.sum())
    assert in_words(found) == (
        f"60 requests, {prompt:,} prompt tokens, {output:,} output tokens by both"
    )


def test_times_differ_by_the_way_between_them(tmp_path: Path) -> None:
    way = Delivery(to_server=2e-3, to_client=3e-3)
    sim = simulated(n=60, delivery=way)
    write(tmp_path / "a", sim, delivery=way)
    (one,) = [one for one in scan(tmp_path) if isinstance(one, Run)]
    found = reconciled(one)
    assert isinstance(found, Reconciled)
    for what, apart in (("TTFT", 5e-3), ("stay", 5e-3), ("stages", 5e-3), ("ITL", 0.0)):
        pair = found.pair(what)
        assert pair is not None
        assert pair.difference == pytest.approx(apart, abs=1e-9), what
    ttft = found.pair("TTFT")
    assert ttft is not None
    assert ttft.server == pytest.approx(truth(sim, way).ttft.mean())


def test_the_clients_own_tries_are_known_by_their_tokens(tmp_path: Path) -> None:
    first = int(SIM.workload.prompt[0]), int(SIM.workload.output[0])
    found = of(tmp_path, server=requests(3, *first))
    assert (found.own, found.strangers, found.faults) == (3, 0, ())
    assert in_words(found).endswith("3 more of its first prompt, tried before its clock started")


def test_requests_of_others_are_none_of_the_clients(tmp_path: Path) -> None:
    found = of(tmp_path, server=requests(3, 9, 9))
    assert (found.own, found.strangers) == (0, 3)
    assert "3 requests beside the 60 of the client" in found.faults[0]


def test_few_requests_of_others_among_many_are_let_pass(tmp_path: Path) -> None:
    sim = simulated(n=150, seed=5)
    write(tmp_path / "a", sim)
    path = tmp_path / "a.after.txt.gz"
    text = requests(1, 9, 9)(gzip.decompress(path.read_bytes()).decode())
    path.write_bytes(gzip.compress(text.encode()))
    (one,) = [one for one in scan(tmp_path) if isinstance(one, Run)]
    found = reconciled(one)
    assert isinstance(found, Reconciled)
    assert (found.strangers, found.faults) == (1, ())


def test_a_server_that_was_not_asked_is_missed(tmp_path: Path) -> None:
    found = of(tmp_path, server=requests(-20, 9, 9))
    assert found.strangers == -20
    assert "some of the servers only" in found.faults[0]


def test_a_request_that_failed_at_the_client_may_have_ended_at_the_server(tmp_path: Path) -> None:
    def fail(told: dict[str, Any]) -> None:
        told["completed"], told["failed"] = 58, 2
        told["errors"][:2] = ["timeout", "timeout"]

    found = of(tmp_path, client=fail)
    assert (found.strangers, found.faults) == (0, ())


@pytest.mark.parametrize(
    ("series", "what"),
    [("vllm:prompt_tokens_total", "prompt tokens"), ("vllm:generation_tokens_total", "output")],
)
def test_tokens_that_disagree_of_the_same_requests(tmp_path: Path, series: str, what: str) -> None:
    assert of(tmp_path, server=more(series, 10)).faults == ()
    (fault,) = of(tmp_path, server=more(series, 5000)).faults
    assert what in fault


@pytest.mark.parametrize(
    ("factor", "said"), [(0.5, "counters of another run"), (1.5, "lies outside the servers")]
)
def test_stays_of_the_same_requests_that_cannot_be_one(
    tmp_path: Path, factor: float, said: str
) -> None:
    def slow(told: dict[str, Any]) -> None:
        told["ttfts"] = [factor * t for t in told["ttfts"]]
        told["itls"] = [[factor * gap for gap in row] for row in told["itls"]]

    (fault,) = of(tmp_path, client=slow).faults
    assert said in fault


def test_without_counters_there_is_nothing_and_of_a_restart_a_reason(tmp_path: Path) -> None:
    assert reconciled(run()) is None
    write(tmp_path / "a", SIM)
    (one,) = [one for one in scan(tmp_path) if isinstance(one, Run)]
    assert one.server is not None
    a, b = one.server.counters
    swapped = (replace(a, when=b.when), replace(b, when=a.when))
    found = reconciled(replace(one, server=replace(one.server, counters=swapped)))
    assert isinstance(found, Refused)
    for series in ("vllm:x", "vllm:num_preemptions_total"):
        little = tuple(replace(text, values={series: 1.0}) for text in one.server.counters)
        assert reconciled(replace(one, server=replace(one.server, counters=little))) is None


def test_all_shipped_runs_with_counters_agree_to_the_token() -> None:
    found = [
        (one.id, both)
        for study in ("cpu-smoke", "cpu-parallelism", "h200-recorded", "h200-parallelism")
        for one in scan(RESULTS / study)
        if isinstance(one, Run) and isinstance(both := reconciled(one), Reconciled)
    ]
    assert len(found) == 69
    assert [(id, both.faults) for id, both in found if both.faults] == []
    counts = [both.pair(what) for _, both in found for what in (REQUESTS, PROMPT, OUTPUT)]
    assert {pair.difference for pair in counts if pair is not None} == {0}
    ways = [pair.difference for _, both in found if (pair := both.pair("TTFT")) is not None]
    assert len(ways) == 69
    # The client sees each token later than the server, by 0.1 s at most in these runs.
    assert 0 < min(ways) < max(ways) < 0.11
