"""What study.toml says and nothing answers to is one line each, with the nearest right word."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.grouping import build_study
from analysis.load import load
from analysis.model import ModelShape, Record, Source
from analysis.study import ArmSpec, Assign, StudySpec
from tests.builders import run, startup
from tests.test_model_binding import SHAPE


def doubts(*records: Record, folder: str = "", **spec: object) -> list[str]:
    """What is skipped on study.toml."""
    found = build_study("s", StudySpec(**spec), records, folder=folder)  # type: ignore[arg-type]
    file = f"{folder}/study.toml".lstrip("/")
    assert all("\n" not in item.reason for item in found.skipped)
    return [item.reason for item in found.skipped if item.file == file]


def of_arm(*records: Record, **fields: object) -> list[str]:
    """The same of one arm with these fields, which has a run."""
    arm = ArmSpec(name="base", **fields)  # type: ignore[arg-type]
    return doubts(run(arm="base"), *records, arm=(arm,))


# Arms of nothing


def test_an_arm_without_anything() -> None:
    assert doubts(run(arm="other"), arm=(ArmSpec(name="idle"),), folder="f") == [
        "arm 'idle' has no runs, no server log and no row in a start-up table; give it records "
        "with [[assign]], or take the table out"
    ]


def test_an_arm_that_the_files_spell_otherwise() -> None:
    arms = (ArmSpec(name="replica2_r"),)
    for record in (run(arm="replica2_rr"), startup(arm="replica2_rr")):
        assert doubts(record, arm=arms) == [
            "arm 'replica2_r' has no runs, no server log and no row in a start-up table; the files "
            "have runs or start-up facts of 'replica2_rr', or take the table out"
        ]


def test_an_arm_is_not_taken_for_another_that_is_described() -> None:
    arms = (ArmSpec(name="replica2_r"), ArmSpec(name="replica2_rr"))
    assert "[[assign]]" in doubts(run(arm="replica2_rr"), arm=arms)[0]


@pytest.mark.parametrize(
    "record", [run(arm="idle"), startup(arm="idle"), startup(arm="", file="x.log")]
)
def test_runs_or_start_up_facts_are_enough(record: Record) -> None:
    assert doubts(record, arm=(ArmSpec(name="idle", log="x.log"),))[1:] == []


def test_runs_that_are_left_out_are_runs() -> None:
    rules = (Assign(where={"file": "a.json"}, arm="warm", ignore=True),)
    assert doubts(run(arm="", file="a.json"), arm=(ArmSpec(name="warm"),), assign=rules) == []


# GPUs and models


@pytest.mark.parametrize("gpu", ["", "L40S", "NVIDIA L40S", "2x L4"])
def test_a_gpu_that_is_known(gpu: str) -> None:
    assert of_arm(gpu=gpu) == []


@pytest.mark.parametrize(
    ("gpu", "hint"),
    [
        ("L4OS", "did you mean 'L40S' or 'L4'?"),
        ("A100", "did you mean 'A100 PCIe 40GB', 'A100 SXM 40GB' or 'A100 PCIe 80GB'?"),
        ("abacus", "known: A1"),
    ],
)
def test_a_gpu_that_is_not(gpu: str, hint: str) -> None:
    (line,) = of_arm(gpu=gpu)
    assert line.startswith(f"arm 'base': gpu {gpu!r} is not in hardware.toml; {hint}")


@pytest.mark.parametrize("model", ["", "Qwen/Qwen3-14B", "/srv/models/qwen3-14b-awq/"])
def test_a_model_that_is_known(model: str) -> None:
    assert of_arm(model=model) == []


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("Qwen/Qwen3-14B-AQW", "did you mean 'Qwen/Qwen3-14B-AWQ'?"),
        ("own/tiny", "put its config.json beside its runs"),
    ],
)
def test_a_model_that_is_not(model: str, hint: str) -> None:
    assert of_arm(model=model) == [
        f"arm 'base': model {model!r} is in no table and has no config.json here, so that its "
        f"weights and its KV cache are not computed; {hint}"
    ]


def test_a_model_with_a_config_of_its_own_is_known() -> None:
    assert of_arm(ModelShape(Source("runs/config.json", ""), SHAPE), model="own/tiny") == []


def test_a_model_config_that_is_not_there_is_told_once() -> None:
    (line,) = of_arm(model="own/tiny", model_config="absent.json")
    assert "model_config 'absent.json' is no model's config.json" in line


def test_a_model_that_a_log_names_is_no_slip_of_the_author() -> None:
    log = startup(arm="", file="runs/server.log", config={"model": "./own/tiny"})
    assert of_arm(log) == []


# Everything at once


def test_the_shipped_studies_have_no_doubts() -> None:
    skipped = load(Path(__file__).parents[1] / "results").skipped
    assert [item for item in skipped if item.file.endswith("study.toml")] == []


def test_without_a_study_file_there_is_nothing_to_doubt() -> None:
    assert doubts(run(arm=""), startup(arm="x")) == []
