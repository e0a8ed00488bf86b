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
    Reference,
    StudySpec,
    WorkloadSpec,
    arm_config,
    convert,
    nearest,
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
            "unknown key 'modle' in arm[0]; did you mean 'model'?",
        ),
        (
            "[[workload]]\nname = 'a'\nreference = { arm = 'a', concurency = 1 }",
            "unknown key 'concurency' in workload[0].reference; did you mean 'concurrency'?",
        ),
        ("order = 'first'", "Expected `int`, got `str` - at `$.order`"),
        ("[[arm]]\nabout = 'x'", "Object missing required field `name` - at `$.arm[0]`"),
        ("[[arm]]\nname = 'a'\ngpus = 0", "Expected `int` >= 1 - at `$.arm[0].gpus`"),
        (
            "[[arm]]\nname = 'a'\ntensor_parallel = 0",
            "Expected `int` >= 1 - at `$.arm[0].tensor_parallel`",
        ),
        ("[[arm]]\nname = 'a'\nreplicas = -1", "Expected `int` >= 1 - at `$.arm[0].replicas`"),
        (
            "[[arm]]\nname = 'a'\nmax_num_seqs = 0",
            "Expected `int` >= 1 - at `$.arm[0].max_num_seqs`",
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


def test_a_table_nested_too_deeply():
    table: dict[str, object] = {}
    for _ in range(100_000):
        table = {"inner": table}
    with pytest.raises(BadInput, match="nests tables too deeply; give fewer levels"):
        convert(table, Node)


def test_a_word_that_is_nearly_right():
    assert nearest("modle", ["model", "gpu"]) == "did you mean 'model'?"


def test_a_word_like_no_other_lists_what_there_is():
    assert nearest("zzz", ["model", "gpu", "gpu"]) == "known: gpu, model"


def test_a_word_where_there_is_nothing():
    assert nearest("zzz", []) == "there are none"


def test_a_long_list_of_words_is_cut():
    words = [f"key-{letter * 9}" for letter in "abcdefghijklmno"]
    said = nearest("0", words)
    assert said.startswith("known: key-aaaaaaaaa, ")
    assert said.endswith(" and 3 more")


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
        (("--a", "--b", "1", "-c"), {"a": True, "b": "1", "c": True}),
        (("--json={'a'='b'}",), {"json": "{'a'='b'}"}),
        (("--max-num-seqs", "8"), {"max_num_seqs": "8"}),
    ],
)
def test_flags_as_configuration(flags, found):
    config = arm_config(ArmSpec(name="a", flags=flags))
    assert {key: config[key] for key in found} == found
    assert set(config) == {"gpus", "tensor_parallel", "pipeline_parallel", "replicas", *found}


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
