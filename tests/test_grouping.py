"""Records of a folder become arms, workloads and cells: with a study.toml and without."""

from __future__ import annotations

import pytest

from analysis.dataset import Arm, Study, differing
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
from tests.builders import requests, run, startup


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


# Start-up facts


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


# An arm of study.toml and what its log and its table say


LOG = {
    "model": "/srv/own",
    "quantization": "auto_awq",
    "tensor_parallel_size": 2,
    "data_parallel_size": 2,
    "max_num_seqs": 8,
    "block_size": "16",
    "enable_prefix_caching": True,
    "gpu_memory_utilization": 0.9,
    "version": "0.28.0",
    "dtype": "bfloat16",
    "max_num_batched_tokens": None,
    "host": "127.0.0.1",
    "port": 8000,
}


def described(log: dict[str, Scalar] | None = None, *more: Record, **fields: object) -> Arm:
    """An arm of study.toml with these fields, whose run has a log that says this."""
    study = built(
        raw("x/a.json"),
        startup({"max_model_len": 40960}, arm="", file="x/a.log", config=log or LOG),
        *more,
        arm=(ArmSpec(name="one", **fields),),
        assign=(Assign(where={}, arm="one"),),
    )
    assert list(study.arms) == ["one"]
    return study.arms["one"]


def test_what_study_toml_leaves_out_is_taken_from_the_log():
    arm = described(gpu="L4")
    spec = arm.spec
    assert (spec.model, spec.quantization, spec.version) == ("/srv/own", "awq", "0.28.0")
    assert (spec.tensor_parallel, spec.pipeline_parallel, spec.replicas) == (2, 1, 2)
    assert (spec.max_num_seqs, spec.max_model_len, spec.block_size) == (8, 40960, 16)
    assert (spec.enable_prefix_caching, spec.gpu_memory_utilization) == (True, 0.9)
    assert spec.max_num_batched_tokens is None
    assert spec.gpus == 4
    assert arm.config == {
        "model": "/srv/own", "gpu": "L4", "gpus": 4, "tensor_parallel": 2, "pipeline_parallel": 1,
        "replicas": 2, "version": "0.28.0", "quantization": "awq", "max_num_seqs": 8,
        "max_model_len": 40960, "enable_prefix_caching": True, "gpu_memory_utilization": 0.9,
        "block_size": 16, "dtype": "bfloat16",
    }  # fmt: skip


def test_what_study_toml_says_counts_before_the_log():
    fields = {
        "model": "Qwen/Qwen3-14B", "quantization": "fp8", "tensor_parallel": 1, "replicas": 1,
        "gpus": 1, "max_num_seqs": 256, "enable_prefix_caching": False, "version": "1",
        "gpu_memory_utilization": 0.5, "host": "g6e", "max_model_len": 1024, "block_size": 32,
    }  # fmt: skip
    arm = described(**fields)
    assert {key: getattr(arm.spec, key) for key in fields} == fields
    assert {key: arm.config[key] for key in fields} == fields
    assert arm.config["dtype"] == "bfloat16"


def test_gpus_that_are_given_stand():
    assert described(gpus=8).spec.gpus == 8
    assert described({"x": 1}, tensor_parallel=4).spec.gpus == 4
    assert described({"x": 1}).spec.gpus == 1


def test_flags_of_study_toml_count_before_the_log_and_fill_in_too():
    arm = described(flags=("--max-num-seqs 4 -tp 1", "--enforce-eager"))
    assert (arm.spec.max_num_seqs, arm.spec.tensor_parallel) == (4, 1)
    assert (arm.config["max_num_seqs"], arm.config["enforce_eager"]) == (4, True)


@pytest.mark.parametrize("value", ["often", 1, None])
def test_a_truth_value_that_is_none_is_left_out(value):
    assert described({"enable_prefix_caching": value, "x": 1}).spec.enable_prefix_caching is None


@pytest.mark.parametrize("value", ["much", True, float("inf"), float("nan"), 1])
def test_a_share_that_is_none_is_left_out(value):
    assert described({"gpu_memory_utilization": value}).spec.gpu_memory_utilization is None


def test_a_row_of_a_table_counts_before_the_log():
    row = startup({"max_model_len": 1024}, arm="one", config={"max_num_seqs": "16"})
    arm = described(LOG, row)
    assert (arm.spec.max_num_seqs, arm.spec.max_model_len) == (16, 1024)
    assert arm.spec.version == "0.28.0"
    assert arm.startup is row


def test_arms_with_logs_are_compared_by_one_name_a_fact():
    one = described(LOG | {"tensor_parallel_size": 1})
    other = described(LOG | {"quantization": "awq_marlin", "max_num_seqs": 16}, tensor_parallel=1)
    assert differing(one, other) == {"max_num_seqs": (8, 16)}


def test_an_arm_that_only_a_file_names_has_what_its_row_says():
    row = startup({"max_model_len": 1024}, arm="own", config={"max_num_seqs": 16, "tp": 4})
    arm = built(run(arm="own", config={"max_num_seqs": 8, "seed": 1}), row).arms["own"]
    assert arm.config == {"max_model_len": 1024, "max_num_seqs": 8, "tensor_parallel": 4}
    assert (arm.spec.max_num_seqs, arm.spec.gpus) == (8, 4)


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


def test_a_run_with_refused_requests_is_of_the_workload_of_its_twin():
    # Four prompts of 100, 200, 300 and 400 tokens, of which the last was refused.
    sizes = {"input_tokens": [100, 200, 300, 400], "output_tokens": [2, 2, 2, 0]}
    gaps = [[0.1], [0.1], [0.1], []]
    partly = run(
        {"num_prompts": 4, "completed": 3, "total_input_tokens": 600}, arm="a", workload="",
        requests=requests([0.1] * 4, gaps, failed=[False] * 3 + [True], **sizes),
    )  # fmt: skip
    whole = run({"num_prompts": 4, "total_input_tokens": 1000}, arm="b", workload="")
    study = built(partly, whole)
    assert study.workloads == ("4 prompts of 1,000 tokens",)
    bare = run({"num_prompts": None, "completed": None}, arm="a", workload="",
               requests=requests([0.1], [[0.1]]))  # fmt: skip
    assert built(bare).workloads == ("unnamed workload",)


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
