"""Arms that nobody named: which runs are of one server, and what it is called."""

from __future__ import annotations

import time

import pytest

from analysis.dataset import Study
from analysis.grouping import build_study
from analysis.model import Record, Run, Scalar
from analysis.study import StudySpec
from tests.builders import run


def raw(file: str = "runs/a.json", **config: Scalar) -> Run:
    """A run as a format reader leaves it: no arm, no workload."""
    return run(arm="", workload="", file=file, id=file, config=config)


def built(*records: Record) -> Study:
    return build_study("s", StudySpec(), records)


def test_runs_of_one_server_are_one_arm_named_after_their_folder():
    study = built(
        raw("fast/a.json", model_id="m", quantization="x"),
        raw("fast/b.json", model_id="m", quantization="x"),
        raw("slow/a.json", model_id="m"),
    )
    assert list(study.arms) == ["fast", "slow"]
    assert [len(cell.runs) for cell in study.cells] == [2, 1]


def test_the_deepest_folder_that_holds_one_server_alone_names_it():
    study = built(
        raw("all/fast/1/a.json", tp=1), raw("all/fast/2/a.json", tp=1), raw("all/slow/a.json", tp=2)
    )
    assert list(study.arms) == ["fast", "slow"]


def test_servers_in_one_folder_are_named_by_what_differs():
    study = built(
        raw("runs/a.json", model_id="org/m", max_num_seqs=8, version="1"),
        raw("runs/b.json", model_id="org/m", max_num_seqs=256, version="1"),
        raw("runs/c.json", model_id="org/m", version="1"),
    )
    assert list(study.arms) == ["m max_num_seqs=8", "m max_num_seqs=256", "m"]


def test_servers_above_and_below_one_another_are_named_by_what_differs():
    study = built(raw("runs/a.json", model="m", tp=1), raw("runs/deep/b.json", model="m", tp=2))
    assert list(study.arms) == ["m tensor_parallel=1", "deep"]


def test_a_flag_that_is_recorded_twice_is_named_once():
    study = built(
        raw("a.json", **{"model": "m/", "serve.tp": 1, "server.tp": 1}),
        raw("b.json", **{"model": "m/", "serve.tp": 2, "server.tp": 2}),
    )
    assert list(study.arms) == ["m tensor_parallel=1", "m tensor_parallel=2"]


def test_servers_that_say_nothing_of_themselves():
    study = built(raw("a.json", x=1), raw("b.json", x=2))
    assert list(study.arms) == ["server x=1", "server x=2"]
    assert list(built(raw("a.json")).arms) == ["server"]


def test_arms_of_the_same_name_are_told_apart():
    study = built(raw("one/fast/a.json", x=1), raw("two/fast/a.json", x=2), run(arm="fast"))
    assert list(study.arms) == ["fast (2)", "fast (3)", "fast"]
    assert all(len(cell.runs) == 1 for cell in study.cells)


def test_a_long_list_of_settings_gives_way_to_the_name_of_the_file():
    study = built(
        raw("chat-fast.json.gz", x="v" * 60 + "1"), raw("chat-slow.json", x="v" * 60 + "2")
    )
    assert list(study.arms) == ["chat-fast", "chat-slow"]


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (("fast-c1.json", "fast-c10.json"), "fast"),
        (("fast-c1.json", "fast.json"), "fast"),
        (("fast c=1.json", "fast c=16.json.gz"), "fast c"),
        (("fast2.5-a.json", "fast2.5-b.json"), "fast2.5"),
        (("run/1.json", "run/2.json", "run/deep/3.json"), "run"),
        (("first/1.json", "second/2.json"), "first"),
        (("one.json", "two.json"), "server x=" + "v" * 51),
    ],
)
def test_what_files_have_in_common_names_their_server(files, name):
    others = (raw("run/other.json", x="w" * 80), raw("first/x.json", x="u" * 80))
    study = built(*(raw(file, x="v" * 80) for file in files), *others)
    assert next(iter(study.arms)) == name
    assert len(study.cells[0].runs) == len(files)


def test_a_name_is_at_most_sixty_characters_and_stays_unique():
    study = built(
        raw("f" * 70 + "1/a.json", x=1), raw("f" * 70 + "2/a.json", x=2), raw("g/a.json", x=3)
    )
    assert list(study.arms) == ["f" * 60, "f" * 56 + " (2)", "g"]


def test_a_number_that_is_taken_is_passed_over():
    study = built(
        raw("one/fast/a.json", x=1), raw("two/fast/a.json", x=2),
        run(arm="fast"), run(arm="fast (2)"),
    )  # fmt: skip
    assert list(study.arms) == ["fast (3)", "fast (4)", "fast", "fast (2)"]


def test_what_was_measured_makes_no_other_arm():
    study = built(
        *(
            raw(
                f"runs/{n}.json",
                model="m",
                probe_completed=n,
                spec_decode_acceptance_rate=n,
                rps_change_events=n,
                p99_gap_ms=n,
                peak_output_throughput=n,
                slo_goodput=n,
                gpu_power=412.3456 + n,
                events=f'[{{"t": {n}}}]',
                details=f'{{"t": {n}}}',
            )
            for n in (1, 2)
        )
    )
    assert list(study.arms) == ["runs"]
    assert study.arms["runs"].config == {"model": "m"}


def test_a_servers_address_makes_no_other_arm():
    study = built(
        raw("runs/a.json", **{"server.port": 8000, "server.max_num_seqs": 8}),
        raw("runs/b.json", **{"server.port": 8001, "server.max_num_seqs": 8}),
    )
    assert len(study.arms) == 1


def test_what_the_client_did_makes_no_other_arm():
    study = built(
        raw("runs/a.json", model="m", date="1", request_rate=4, **{"bench.seed": 1}),
        raw("runs/b.json", model="m", date="2", request_rate="inf", **{"bench.seed": 2}),
    )
    assert len(study.arms) == 1
    assert len(study.cells[0].runs) == 2


def test_a_thousand_servers_are_named_in_no_time():
    runs = [raw(f"runs/{i}.json", run_id=str(i), **{f"k{j}": j for j in range(9)})
            for i in range(1000)]  # fmt: skip
    begun = time.perf_counter()
    assert len(built(*runs).arms) == 1000
    assert time.perf_counter() - begun < 3
