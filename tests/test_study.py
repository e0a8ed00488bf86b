"""study.toml: what it may say, and the one line for each thing it may not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.study import (
    ArmSpec,
    Assign,
    BadInput,
    LeftOut,
    Reference,
    StudySpec,
    WorkloadSpec,
    arm_config,
    convert,
    read_study,
    read_toml,
    slug,
)

FULL = """
title = "Two arms"
order = 3
warnings = ["another host"]

[[arm]]
name = "one"
model = "Qwen/Qwen3-14B"
gpu = "L40S"
max_num_seqs = 8
enable_prefix_caching = false
flags = ["--kv-cache-dtype", "fp8", "--enforce-eager"]

[[arm]]
name = "two"
gpus = 2
tensor_parallel = 2

[[workload]]
name = "chat"
reference = { arm = "one", concurrency = 10 }

[[assign]]
where = { file = "one.json", max_concurrency = 10 }
arm = "one"
workload = "chat"
concurrency = 20
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_full_study(tmp_path):
    spec = read_study(written(tmp_path, FULL))
    assert (spec.title, spec.order, spec.warnings) == ("Two arms", 3, ("another host",))
    assert spec.arm[0] == ArmSpec(
        name="one",
        model="Qwen/Qwen3-14B",
        gpu="L40S",
        max_num_seqs=8,
        enable_prefix_caching=False,
        flags=("--kv-cache-dtype", "fp8", "--enforce-eager"),
    )
    assert (spec.arm[1].gpus, spec.arm[1].tensor_parallel, spec.arm[1].replicas) == (2, 2, 1)
    assert spec.workload == (
        WorkloadSpec(name="chat", reference=Reference(arm="one", concurrency=10)),
    )
    assert spec.assign == (
        Assign(
            where={"file": "one.json", "max_concurrency": 10},
            arm="one",
            workload="chat",
            concurrency=20,
        ),
    )


def test_an_empty_study_is_all_defaults(tmp_path):
    assert read_study(written(tmp_path, "")) == StudySpec()


def test_an_assignment_to_a_workload_alone(tmp_path):
    text = '[[assign]]\nwhere = { label = "x" }\nworkload = "chat"\n'
    assert read_study(written(tmp_path, text)).assign[0].arm == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("titel = 'x'", "unknown key 'titel'; did you mean 'title'?"),
        (
            "[[arm]]\nname = 'a'\nmodle = 'x'",
            "unknown key 'modle' in arm 'a'; did you mean 'model'?",
        ),
        (
            "[[workload]]\nname = 'a'\nreference = { arm = 'a', concurency = 1 }",
            "unknown key 'concurency' in reference of workload 'a'; did you mean 'concurrency'?",
        ),
        ("order = 'first'", "order is 'first'; a whole number is expected, without quotes"),
        ("[[arm]]\nabout = 'x'", "[[arm]] number 1 has no `name`"),
        (
            "[[arm]]\nname = 'a'\ngpus = 0",
            "gpus of arm 'a' is 0; a whole number of at least 1 is expected",
        ),
        (
            "[[arm]]\nname = 'a'\ntensor_parallel = 0",
            "tensor_parallel of arm 'a' is 0; a whole number of at least 1 is expected",
        ),
        (
            "[[arm]]\nname = 'a'\nreplicas = -1",
            "replicas of arm 'a' is -1; a whole number of at least 1 is expected",
        ),
        (
            "[[arm]]\nname = 'a'\nmax_num_seqs = 0",
            "max_num_seqs of arm 'a' is 0; a whole number of at least 1 is expected",
        ),
        (
            "[[arm]]\nname = 'a'\n[[arm]]\nname = 'a'",
            "arm 'a' is described twice; keep one [[arm]] table",
        ),
        (
            "[[arm]]\nname = 'alpha'\n[[assign]]\nwhere = {}\narm = 'alpah'",
            "[[assign]] names arm 'alpah'; did you mean 'alpha'?",
        ),
        ("[[assign]]\nwhere = {}\narm = 'a'", "[[assign]] names arm 'a'; there are none"),
    ],
)
def test_a_study_that_cannot_be_used_says_why_in_one_line(tmp_path, text, says):
    with pytest.raises(BadInput) as error:
        read_study(written(tmp_path, text))
    assert str(error.value) == says
    assert "\n" not in str(error.value)


def test_text_that_is_no_toml(tmp_path):
    with pytest.raises(BadInput, match="not valid TOML: Expected"):
        read_toml(written(tmp_path, "a b"))


def test_a_file_that_is_not_utf_8(tmp_path):
    path = tmp_path / "study.toml"
    path.write_bytes(b"title = '\xff'")
    with pytest.raises(BadInput, match="not UTF-8 text; save the file as UTF-8"):
        read_toml(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_toml(tmp_path / "study.toml")


def test_a_folder_of_that_name(tmp_path):
    with pytest.raises(BadInput, match="cannot be read: Is a directory"):
        read_toml(tmp_path)


@pytest.mark.parametrize("text", ["a = " + "9" * 5000, "a = " + "[" * 5000 + "]" * 5000])
def test_a_file_made_to_break_a_parser(tmp_path, text):
    with pytest.raises(BadInput):
        read_toml(written(tmp_path, text))


class Node(msgspec.Struct):
    """A table that may hold one of its own kind, as references in claims do."""

    inner: Node | None = None


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e300", "-1e300"])
def test_a_number_with_which_arithmetic_would_overflow(tmp_path, number):
    path = tmp_path / "study.toml"
    path.write_text(f'[[arm]]\nname = "a"\nflags = [[{number}]]\n', encoding="utf-8")
    with pytest.raises(BadInput, match=r"holds the number .*expected numbers below 1e\+18"):
        read_toml(path)


def test_a_number_that_would_vanish_in_arithmetic(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("order = 1e-300\n", encoding="utf-8")
    with pytest.raises(BadInput, match="holds the number 1e-300, expected 0 or numbers above"):
        read_toml(path)


def test_a_table_nested_too_deeply():
    table: dict[str, object] = {}
    for _ in range(100_000):
        table = {"inner": table}
    with pytest.raises(BadInput, match="nests tables too deeply; give fewer levels"):
        convert(table, Node)


class Even(msgspec.Struct):
    """A table that has a rule of its own."""

    n: int

    def __post_init__(self) -> None:
        if self.n % 2:
            raise ValueError("n must be even")


def test_a_rule_that_no_type_tells_keeps_its_own_words():
    with pytest.raises(BadInput, match="n must be even"):
        convert({"n": 3}, Even)


# An arm's configuration, for naming what differs


def test_fields_without_a_value_are_not_configuration():
    config = arm_config(ArmSpec(name="a", about="words", startup="b", collect_study="c"))
    assert config == {"gpus": 1, "tensor_parallel": 1, "pipeline_parallel": 1, "replicas": 1}


def test_false_and_small_numbers_are_values():
    config = arm_config(ArmSpec(name="a", enable_prefix_caching=False, gpu_memory_utilization=0.0))
    assert config["enable_prefix_caching"] is False
    assert config["gpu_memory_utilization"] == 0.0


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (("--enforce-eager",), {"enforce_eager": True}),
        (("--kv-cache-dtype", "fp8"), {"kv_cache_dtype": "fp8"}),
        (("--kv-cache-dtype=fp8",), {"kv_cache_dtype": "fp8"}),
        (("--a", "--b", "1", "-c"), {"a": True, "b": 1, "c": True}),
        (("--json={'a'='b'}",), {"json": "{'a'='b'}"}),
        (("--max-num-seqs", "8"), {"max_num_seqs": 8}),
    ],
)
def test_flags_as_configuration(flags, found):
    config = arm_config(ArmSpec(name="a", flags=flags))
    assert {key: config[key] for key in found} == found
    assert set(config) == {"gpus", "tensor_parallel", "pipeline_parallel", "replicas", *found}


def test_a_flag_goes_by_the_name_of_its_field():
    flags = ("-tp 2 --pipeline-parallel-size=3", "--data-parallel-size", "4")
    config = arm_config(ArmSpec(name="a", flags=flags))
    assert config == {"gpus": 1, "tensor_parallel": 2, "pipeline_parallel": 3, "replicas": 4}


def test_a_servers_address_and_key_are_no_configuration():
    flags = ("--host 0.0.0.0 --port 8000 --api-key secret --no-enable-prefix-caching",)
    config = arm_config(ArmSpec(name="a", host="g6e", flags=flags))
    assert config["host"] == "g6e"
    assert config["enable_prefix_caching"] is False
    assert not {"port", "api_key", "no_enable_prefix_caching"} & set(config)


def test_where_a_log_lies_is_no_configuration():
    assert "log" not in arm_config(ArmSpec(name="a", log="logs/a.log"))


def test_a_number_that_is_left_out_is_not_one_that_is_given(tmp_path):
    spec = read_study(written(tmp_path, "[[arm]]\nname = 'a'\n[[arm]]\nname = 'b'\ngpus = 1"))
    assert [isinstance(arm.gpus, LeftOut) for arm in spec.arm] == [True, False]
    assert [arm.gpus for arm in spec.arm] == [1, 1]
    assert all(type(value) is not LeftOut for value in arm_config(spec.arm[0]).values())


def test_what_an_assignment_may_say(tmp_path):
    (rule,) = read_study(
        written(tmp_path, "[[assign]]\nwhere = {}\nseed = 42\nlog = 'x.log'\nignore = true")
    ).assign
    assert (rule.seed, rule.log, rule.ignore) == (42, "x.log", True)


# Names of files


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("awq tuned", "awq-tuned"),
        ("a/b\\c", "a-b-c"),
        ("..", "unnamed"),
        ("../../etc/passwd", "etc-passwd"),
        ("", "unnamed"),
        ("v0.1+cu12", "v0.1+cu12"),
        ("모델", "모델"),
    ],
)
def test_a_name_as_a_file_name(name, file):
    assert slug(name) == file


@given(st.text(max_size=40))
def test_a_file_name_is_never_a_path_nor_empty(name):
    found = slug(name)
    assert found
    assert not set(found) & set("/\\:\0\n ")
    assert found.strip(".")
    assert not found.startswith((".", "-"))


def test_tens_of_thousands_of_arms(tmp_path):
    arms = "".join(f'[[arm]]\nname = "a{n}"\n' for n in range(60_000))
    assert len(read_study(written(tmp_path, arms)).arm) == 60_000


def test_a_description_of_very_many_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("analysis.study.MOST_BYTES", 10)
    with pytest.raises(BadInput, match="larger than 10 bytes; split the study"):
        read_toml(written(tmp_path, 'name = "a name"\n'))


@pytest.mark.parametrize("load", [0, -5])
def test_no_load_below_one(tmp_path, load):
    text = f'[[arm]]\nname = "a"\n[[assign]]\nwhere = {{}}\narm = "a"\nconcurrency = {load}\n'
    with pytest.raises(BadInput, match=f"is {load}; a whole number of at least 1 is expected"):
        read_study(written(tmp_path, text))
