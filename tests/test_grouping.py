"""Records of a folder become arms, workloads and cells: with a study.toml and without."""

from __future__ import annotations

import time

import pytest

from analysis.dataset import Study
from analysis.grouping import build_study
from analysis.model import (
    HelpText,
    Ignored,
    Lengths,
    Quoted,
    Record,
    Run,
    Scalar,
    Skipped,
    Source,
    Startup,
)
from analysis.study import ArmSpec, Assign, Reference, StudySpec, WorkloadSpec
from tests.builders import run, startup


def raw(file: str = "runs/a.json", *, n: int | None = 10, **config: Scalar) -> Run:
    """A run as a format reader leaves it: no arm, no workload."""
    return run(arm="", workload="", concurrency=n, file=file, id=file, config=config)


def built(*records: Record, folder: str = "", **spec: object) -> Study:
    return build_study("s", StudySpec(**spec), records, folder=folder)


def names(study: Study) -> list[str]:
    return [cell.name for cell in study.cells]


# Arms and workloads by study.toml


def test_rules_say_which_run_is_of_which_arm():
    rules = (
        Assign(where={"label": "x"}, arm="one", workload="chat"),
        Assign(where={"label": "y"}, arm="two", workload="chat", concurrency=20),
    )
    study = built(
        raw("a.json", label="x"),
        raw("b.json", label="y"),
        arm=(ArmSpec(name="two"), ArmSpec(name="one")),
        assign=rules,
    )
    # Arms come in the order of study.toml; the load is what the rule says.
    assert names(study) == ["two on chat, 20 in flight", "one on chat, 10 in flight"]
    assert list(study.arms) == ["two", "one"]


def test_the_first_rule_that_says_something_counts():
    rules = (
        Assign(where={"label": "x"}, workload="chat"),
        Assign(where={}, arm="one", workload="long", concurrency=20),
        Assign(where={}, arm="two", concurrency=40),
    )
    study = built(raw(label="x"), arm=(ArmSpec(name="one"), ArmSpec(name="two")), assign=rules)
    assert names(study) == ["one on chat, 20 in flight"]


def test_a_file_that_names_its_arm_keeps_it():
    own = run(arm="own", workload="mine")
    study = built(own, arm=(ArmSpec(name="one"),), assign=(Assign(where={}, arm="one"),))
    assert names(study) == ["own on mine, 10 in flight"]
    assert list(study.arms) == ["one", "own"]


@pytest.mark.parametrize(
    ("where", "matches"),
    [
        ({"file": "deep/runs/a.json"}, True),
        ({"file": "runs/a.json"}, True),
        ({"file": "a.json"}, True),
        ({"file": "s/a.json"}, False),
        ({"record": "3"}, True),
        ({"record": "4"}, False),
        ({"model_id": "Qwen3-14B"}, True),
        ({"model_id": "Qwen/Qwen3-14B"}, True),
        ({"model_id": "14B"}, False),
        ({"burstiness": 1}, True),
        ({"burstiness": 1.5}, False),
        ({"completed": 100}, True),
        ({"duration": 100.0, "file": "a.json"}, True),
        ({"duration": 99, "file": "a.json"}, False),
        ({"nothing": "x"}, False),
        ({}, True),
    ],
)
def test_what_a_rule_can_look_at(where, matches):
    record = run(
        arm="", workload="w", file="deep/runs/a.json", key="3",
        config={"model_id": "Qwen/Qwen3-14B", "burstiness": 1.0},
    )  # fmt: skip
    study = built(record, arm=(ArmSpec(name="one"),), assign=(Assign(where=where, arm="one"),))
    assert (study.cells[0].arm.name == "one") is matches


# Arms without a study.toml


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
    assert list(study.arms) == ["m tp=1", "deep"]


def test_a_flag_that_is_recorded_twice_is_named_once():
    study = built(
        raw("a.json", **{"model": "m/", "serve.tp": 1, "server.tp": 1}),
        raw("b.json", **{"model": "m/", "serve.tp": 2, "server.tp": 2}),
    )
    assert list(study.arms) == ["m tp=1", "m tp=2"]


def test_servers_that_say_nothing_of_themselves():
    study = built(raw("a.json", x=1), raw("b.json", x=2))
    assert list(study.arms) == ["server x=1", "server x=2"]
    assert list(built(raw("a.json")).arms) == ["server"]


def test_arms_of_the_same_name_are_told_apart():
    study = built(raw("one/fast/a.json", x=1), raw("two/fast/a.json", x=2), run(arm="fast"))
    assert list(study.arms) == ["fast'", "fast''", "fast"]
    assert all(len(cell.runs) == 1 for cell in study.cells)


def test_a_long_name_is_cut_and_stays_unique():
    study = built(raw("a.json", x="v" * 200 + "1"), raw("b.json", x="v" * 200 + "2"))
    first, second = study.arms
    assert len(first) == 80
    assert second == first + "'"


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


# Server logs


def test_the_nearest_server_log_above_a_run_is_its_own():
    root = startup({"kv_tokens": 1}, arm="", file="server.log", config={"version": "1"})
    near = startup({"kv_tokens": 2}, arm="", file="x/y/server.log", config={"version": "2"})
    other = startup({"kv_tokens": 3}, arm="", file="x/z/server.log", config={"version": "3"})
    middle = startup({"kv_tokens": 4}, arm="", file="x/server.log", config={"version": "4"})
    study = built(raw("x/y/a.json"), raw("b.json"), raw("x/yy/c.json"), near, root, other, middle)
    by_file = {one.source.file: one for one in study.runs}
    assert by_file["x/y/a.json"].config["server.version"] == "2"
    assert by_file["x/y/a.json"].config["server.log"] == "x/y/server.log"
    assert by_file["b.json"].config["server.version"] == "1"
    assert by_file["x/yy/c.json"].config["server.version"] == "4"
    logs = {cell.runs[0].source.file: cell.arm.startup for cell in study.cells}
    assert logs["x/y/a.json"] is near
    assert logs["b.json"] is root


def test_a_log_in_another_folder_is_not_of_the_run():
    study = built(raw("x/a.json"), startup(arm="", file="y/server.log", config={"version": "1"}))
    assert study.runs[0].config == {}
    assert next(iter(study.arms.values())).startup is None


def test_a_table_of_start_up_facts_belongs_to_the_arm_it_names():
    mine = startup({"kv_tokens": 1}, arm="one")
    other = startup({"kv_tokens": 2}, arm="shared")
    study = built(
        run(arm="one"), run(arm="two"), run(arm="three"), mine, other,
        arm=(ArmSpec(name="one"), ArmSpec(name="two", startup="shared")),
    )  # fmt: skip
    assert study.arms["one"].startup is mine
    assert study.arms["two"].startup is other
    assert study.arms["three"].startup is None


def test_an_arm_of_study_toml_finds_the_log_of_its_runs():
    log = startup({"kv_tokens": 1}, arm="", file="x/server.log")
    study = built(
        raw("x/a.json"),
        log,
        arm=(ArmSpec(name="one"),),
        assign=(Assign(where={}, arm="one"),),
    )
    assert study.arms["one"].startup is log


def test_an_arm_that_a_file_names_finds_its_facts_by_name():
    log = startup({"kv_tokens": 1}, arm="own")
    assert built(run(arm="own"), log).arms["own"].startup is log


# What files say of an arm that study.toml does not describe


def test_an_arm_as_its_files_describe_it():
    (found,) = built(
        raw(
            model_id="Qwen/Qwen3-14B",
            gpu="L40S",
            **{
                "serve.tensor_parallel_size": "2",
                "server.pp": 3,
                "server.max_num_seqs": 8,
                "serve.max_num_seqs": 16,
                "vllm_version": 0.11,
                "max_model_len": "40960",
            },
        )
    ).arms.values()
    assert (found.spec.model, found.spec.gpu, found.spec.version) == (
        "Qwen/Qwen3-14B", "L40S", "0.11",
    )  # fmt: skip
    assert (found.spec.tensor_parallel, found.spec.pipeline_parallel, found.spec.gpus) == (2, 3, 6)
    assert found.spec.max_num_seqs == 16  # the sweep's flag comes before the log's
    assert found.spec.max_model_len == 40960
    assert found.config["gpu"] == "L40S"


@pytest.mark.parametrize(
    "value", [0, "0", -1, "-2", 1.5, "8.0", True, "²", "٢", "", "many", "9" * 5000, 10**12, "1\n"]
)
def test_a_number_that_is_no_count_is_left_out(value):
    (found,) = built(raw(tp=value, max_num_seqs=value)).arms.values()
    assert found.spec.tensor_parallel == 1
    assert found.spec.max_num_seqs is None
    assert found.spec.gpus == 1


@pytest.mark.parametrize(("value", "count"), [(8, 8), ("8", 8), ("0008", 8), (10**8, 10**8)])
def test_a_number_that_is_a_count(value, count):
    (found,) = built(raw(max_num_seqs=value)).arms.values()
    assert found.spec.max_num_seqs == count


# Workloads


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"dataset": "a", "dataset_name": "b", "bench.dataset_name": "c"}, "c"),
        ({"dataset": "a", "dataset_name": "b"}, "b"),
        ({"dataset": "a"}, "a"),
        ({"dataset": ""}, "100 prompts of 10,000 tokens"),
        ({}, "100 prompts of 10,000 tokens"),
    ],
)
def test_a_workload_is_named_by_its_data_or_its_size(config, name):
    assert built(raw(**config)).cells[0].workload == name


def test_a_workload_of_unknown_size():
    one = run({"total_input_tokens": None}, arm="a", workload="")
    other = run({"num_prompts": None, "completed": None}, arm="a", workload="")
    assert built(one).cells[0].workload == "unnamed workload"
    assert built(other).cells[0].workload == "unnamed workload"


def test_the_completed_stand_in_for_the_sent():
    one = run({"num_prompts": None, "completed": 7}, arm="a", workload="")
    assert built(one).cells[0].workload == "7 prompts of 10,000 tokens"


# Cells


def test_equal_loads_are_repeats_and_cells_are_in_order():
    study = built(
        run(arm="b", workload="long", concurrency=32, file="1"),
        run(arm="b", workload="chat", concurrency=None, file="2"),
        run(arm="b", workload="long", concurrency=1, file="3"),
        run(arm="a", workload="chat", concurrency=1, file="4"),
        run(arm="b", workload="long", concurrency=32, file="5"),
        arm=(ArmSpec(name="a"), ArmSpec(name="idle")),
    )
    assert names(study) == [
        "a on chat, 1 in flight",
        "b on long, 1 in flight",
        "b on long, 32 in flight",
        "b on chat, no cap",
    ]
    assert [one.source.file for one in study.cells[2].runs] == ["1", "5"]
    assert list(study.arms) == ["a", "idle", "b"]


# Borrowed lengths


def chat(reference: Reference | None) -> tuple[WorkloadSpec, ...]:
    return (WorkloadSpec(name="chat", reference=reference),)


def rows() -> tuple[Run, ...]:
    printed = {"total_token_throughput": 300.0, "mean_ttft": 0.1, "mean_itl": 0.02}
    return (
        run(printed, bare=True, arm="short", file="short"),
        run(arm="full", concurrency=1, file="one"),
        run({"total_output_tokens": 4_000}, arm="full", concurrency=10, file="ten"),
    )


@pytest.mark.parametrize(
    ("load", "output", "of"), [(None, 50, "at 1 in flight"), (10, 40, "at 10 in flight")]
)
def test_lengths_are_borrowed_from_the_reference(load, output, of):
    study = built(*rows(), workload=chat(Reference(arm="full", concurrency=load)))
    cell = study.cell("short", "chat", 10)
    assert cell.borrows
    assert cell.account("mean_output_tokens").value == output
    assert cell.assumptions[0].instead == f"those of full on chat {of} are assumed"


def test_a_reference_without_a_cap_is_named_without_one():
    full = run(arm="full", concurrency=None, file="one")
    study = built(rows()[0], full, workload=chat(Reference(arm="full")))
    assert study.cells[0].assumptions[0].instead == "those of full on chat are assumed"


@pytest.mark.parametrize(
    "reference",
    [None, Reference(arm="nobody"), Reference(arm="full", concurrency=64)],
)
def test_no_such_reference_lends_nothing(reference):
    study = built(*rows(), workload=chat(reference))
    cell = study.cell("short", "chat", 10)
    assert not cell.borrows
    assert cell.account("mean_output_tokens") is None


# What else lies in the folder


def test_every_other_record_keeps_its_place():
    lengths = Lengths(Source("lengths.csv", ""), [], [])
    quoted = Quoted(Source("quoted.csv", "row 1"), {})
    text = HelpText(Source("help.txt", ""), "serve", "1", "text")
    study = build_study(
        "name",
        StudySpec(title="t"),
        [lengths, quoted, text, Skipped("f", "r"), Ignored("f", "r"), run()],
        folder="a/b",
        claims=[{"id": "c"}],
        claims_file="a/b/claims.toml",
    )
    assert study.lengths == {"lengths.csv": lengths}
    assert study.quoted == (quoted,)
    assert study.help_texts == (text,)
    assert study.claims == ({"id": "c"},)
    assert (study.claims_file, study.folder, study.name) == ("a/b/claims.toml", "a/b", "name")
    assert next(iter(study.arms.values())).spec_file == "a/b/study.toml"
    assert study.skipped == ()


def test_a_study_that_is_the_whole_folder():
    study = built(run())
    assert study.folder == ""
    assert study.arms["base"].spec_file == "study.toml"


def test_no_records_make_an_empty_study():
    study = built()
    assert (study.cells, dict(study.arms), study.runs) == ((), {}, ())


def test_a_start_up_log_alone_makes_no_arm():
    log: Startup = startup({"kv_tokens": 1}, arm="")
    assert built(log).arms == {}
