"""A config.json reaches its arm: by name, by folder, or not at all; and figures cite it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.dataset import Arm, Dataset, Study
from analysis.floor import kv_token_bytes, prefill_times, read_bytes, step_floor
from analysis.grouping import build_study
from analysis.load import load
from analysis.model import ModelShape, Record, Source
from analysis.model_binding import bind_models
from analysis.models import FILE, find_model
from analysis.pipeline import analyse
from analysis.quantity import constant
from analysis.study import ArmSpec, StudySpec, arm_config, read_study
from tests.builders import run

SHAPE: dict[str, Any] = json.loads((Path(__file__).parent / "data/model/config.json").read_text())
KV = 2 * 3 * 2 * 16 * 2
"""Bytes a token of it: key and value x layers x KV heads x head size x 16 bits."""
QWEN = "Qwen/Qwen3-14B"


def shape(file: str, **change: object) -> ModelShape:
    return ModelShape(Source(file, ""), {**SHAPE, **change})


def bound(
    *records: Record, arms: tuple[ArmSpec, ...] = (ArmSpec(name="base"),), folder: str = ""
) -> tuple[dict[str, str], dict[str, str]]:
    """File of the config that each arm got, and the reason for each file that was not used."""
    study = build_study("s", StudySpec(arm=arms), records, folder=folder)
    got = {name: a.own_model.file for name, a in study.arms.items() if a.own_model is not None}
    return got, {item.file: item.reason for item in study.skipped}


class TestNearest:
    @pytest.mark.parametrize("place", ["s/a/r1/", "s/a/", "s/", ""])
    def test_in_the_folder_of_the_run_or_above(self, place: str) -> None:
        got, skipped = bound(run(file="s/a/r1/x.json"), shape(f"{place}config.json"))
        assert (got, skipped) == ({"base": f"{place}config.json"}, {})

    def test_the_nearer_one_wins(self) -> None:
        got, skipped = bound(
            run(file="s/a/x.json"), shape("s/config.json"), shape("s/a/config.json.gz")
        )
        assert got == {"base": "s/a/config.json.gz"}
        assert list(skipped) == ["s/config.json"]
        assert "no arm uses" in skipped["s/config.json"]

    @pytest.mark.parametrize(
        "file", ["s/b/config.json", "s/a/r1/config.json", "s/ab/config.json", "s/a/draft.json"]
    )
    def test_beside_below_or_of_another_name_is_not_found_but_said(self, file: str) -> None:
        got, skipped = bound(run(file="s/a/x.json"), shape(file))
        assert got == {}
        assert "no arm uses; put it as config.json in the folder of an arm's runs" in skipped[file]

    def test_each_arm_gets_its_own(self) -> None:
        got, skipped = bound(
            run(arm="one", file="s/one/x.json"),
            run(arm="two", file="s/two/x.json"),
            shape("s/one/config.json"),
            shape("s/two/config.json", num_hidden_layers=5),
            arms=(),
        )
        assert got == {"one": "s/one/config.json", "two": "s/two/config.json"}
        assert skipped == {}

    def test_copies_beside_each_repeat_are_one_model(self) -> None:
        runs = [run(id=name, file=f"s/{name}/x.json") for name in ("r1", "r2", "r3")]
        got, skipped = bound(*runs, shape("s/r1/config.json"), shape("s/r2/config.json"))
        assert got == {"base": "s/r1/config.json"}
        assert skipped == {}

    def test_repeats_below_different_configs_have_no_model(self) -> None:
        runs = [run(id=name, file=f"s/{name}/x.json") for name in ("r1", "r2")]
        got, skipped = bound(
            *runs, shape("s/r1/config.json"), shape("s/r2/config.json", vocab_size=512)
        )
        assert got == {}
        assert list(skipped) == ["s/r1/config.json", "s/r2/config.json"]
        assert all(
            "the runs of arm 'base' lie below 2 config.json that differ" in text
            for text in skipped.values()
        )

    def test_arms_without_runs_have_none(self) -> None:
        got, skipped = bound(shape("config.json"))
        assert (got, list(skipped)) == ({}, ["config.json", "study.toml"])
        assert skipped["study.toml"].startswith("arm 'base' has no runs")


class TestShared:
    def arms(self, one: str, two: str) -> tuple[dict[str, str], dict[str, str]]:
        return bound(
            run(arm="one", file="s/t.csv"),
            run(arm="two", file="s/t.csv"),
            shape("s/config.json"),
            arms=(ArmSpec(name="one", model=one), ArmSpec(name="two", model=two)),
        )

    @pytest.mark.parametrize(
        ("one", "two"),
        [
            ("some/Model", "some/Model"),
            ("some/Model", ""),
            ("some/Model", "model"),
            ("some/a-model", "/srv/A_Model/"),
        ],
    )
    def test_arms_of_one_model_share_a_config(self, one: str, two: str) -> None:
        got, skipped = self.arms(one, two)
        assert got == {"one": "s/config.json", "two": "s/config.json"}
        assert skipped == {}

    def test_arms_of_different_models_cannot(self) -> None:
        got, skipped = self.arms("some/Model", "some/Model-4bit")
        assert got == {}
        assert (
            "above arms of different models (some/Model, some/Model-4bit)"
            in skipped["s/config.json"]
        )

    def test_one_that_names_it_may_have_it(self) -> None:
        got, skipped = bound(
            run(arm="one", file="s/t.csv"),
            run(arm="two", file="s/t.csv"),
            shape("s/config.json"),
            arms=(
                ArmSpec(name="one", model="some/Model", model_config="s/config.json"),
                ArmSpec(name="two", model="some/Model-4bit", model_config="s/absent.json"),
            ),
        )
        assert got == {"one": "s/config.json"}
        assert list(skipped) == ["study.toml"]


class TestNamed:
    @pytest.mark.parametrize("path", ["model/draft.json", "./model/draft.json"])
    def test_a_named_config_wins_over_the_nearest(self, path: str) -> None:
        got, skipped = bound(
            run(file="s/a/x.json"),
            shape("s/a/config.json"),
            shape("s/model/draft.json"),
            arms=(ArmSpec(name="base", model_config=path),),
            folder="s",
        )
        assert got == {"base": "s/model/draft.json"}
        assert list(skipped) == ["s/a/config.json"]

    @pytest.mark.parametrize(
        "path",
        ["a/absent.json", "../t/config.json", "/s/a/config.json", "s/a/config.json", "a/x.json"],
    )
    def test_what_is_not_a_config_of_the_study_is_said_and_not_replaced(self, path: str) -> None:
        got, skipped = bound(
            run(file="s/a/x.json"),
            shape("s/a/config.json"),
            arms=(ArmSpec(name="base", model_config=path),),
            folder="s",
        )
        assert got == {}
        assert skipped["s/study.toml"].startswith(
            f"arm 'base': model_config {path!r} is no model's config.json that was read"
        )

    def test_it_is_a_key_of_study_toml_and_no_difference_between_servers(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "study.toml").write_text('[[arm]]\nname = "a"\nmodel_config = "m/config.json"')
        (described,) = read_study(tmp_path / "study.toml").arm
        assert described.model_config == "m/config.json"
        assert "model_config" not in arm_config(described)


class TestModel:
    def test_its_own_config_wins_over_the_table_and_has_the_arms_name(self) -> None:
        described = ArmSpec(name="base", model=QWEN)
        found, _ = bind_models([described], [run(file="a/x.json")], [shape("a/config.json")])
        model = found["base"]
        assert (model.name, model.layers, model.kv_bytes_per_token()) == (QWEN, 3, KV)
        assert Arm("s", described, {}, own_model=model).model is model

    def test_without_a_config_the_table_is_asked_by_name(self) -> None:
        assert Arm("s", ArmSpec(name="base", model=QWEN), {}).model is find_model(QWEN)
        assert Arm("s", ArmSpec(name="base"), {}).model is None

    def test_a_shape_that_is_unfit_makes_no_model(self) -> None:
        got, _ = bound(run(file="a/x.json"), shape("a/config.json", num_experts=8))
        assert got == {}


def arm_of(tmp_path: Path, **spec: object) -> tuple[Dataset, Study, Arm]:
    """A study below `tmp_path` of one run with a config.json beside it."""
    folder = tmp_path / "results" / "study" / "arm"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(SHAPE))
    result = {
        "duration": 10.0, "completed": 100, "num_prompts": 100, "total_input_tokens": 10_000,
        "total_output_tokens": 5_000, "request_throughput": 10.0, "output_throughput": 500.0,
        "mean_ttft_ms": 40.0, "mean_itl_ms": 10.0, "mean_tpot_ms": 10.0, "max_concurrency": 6,
        "model_id": "own/tiny",
    }  # fmt: skip
    (folder / "x.json").write_text(json.dumps(result))
    fields = {"name": "base", "gpu": "L40S", "model": "own/tiny", **spec}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())
    rule = '[[assign]]\nwhere = {model_id = "own/tiny"}\narm = "base"\n'
    (folder.parent / "study.toml").write_text(f"[[arm]]\n{lines}{rule}")
    dataset = load(tmp_path / "results")
    (study,) = dataset.studies
    return dataset, study, study.arms["base"]


class TestCited:
    FILE = "study/arm/config.json"

    def test_a_floor_cites_the_config_and_not_the_table(self, tmp_path: Path) -> None:
        dataset, study, arm = arm_of(tmp_path)
        assert dataset.skipped == ()
        weights, kv = read_bytes(arm), kv_token_bytes(arm)
        assert weights is not None and kv is not None
        assert arm.model is not None
        assert weights.value == arm.model.weight_bytes() - 256 * 64 * 2
        assert weights.sources == (
            Source(self.FILE, "own/tiny, weights"),
            Source(self.FILE, "own/tiny, input embedding"),
        )
        assert kv.value == KV
        assert kv.sources == (Source(self.FILE, "own/tiny, KV bytes a token on one GPU"),)
        times = prefill_times(arm, constant(100.0, "tok"))
        assert times is not None
        assert Source(self.FILE, "own/tiny, FLOP a token") in times[1].sources
        floor = step_floor(study.cells[0])
        assert floor is not None
        assert FILE not in {source.file for source in floor.total.sources}
        assert self.FILE in {source.file for source in floor.total.sources}

    def test_the_table_is_cited_by_the_name_that_it_has(self) -> None:
        arm = Arm("s", ArmSpec(name="base", model="/srv/models/qwen3-14b"), {})
        found = kv_token_bytes(arm)
        assert found is not None
        assert found.sources == (Source(FILE, f"{QWEN}, KV bytes a token on one GPU"),)

    def test_kv_heads_that_do_not_divide_give_no_figure_instead_of_an_error(
        self, tmp_path: Path
    ) -> None:
        _, study, arm = arm_of(tmp_path, tensor_parallel=3)
        assert kv_token_bytes(arm) is None
        floor = step_floor(study.cells[0])
        assert floor is not None
        assert floor.kv_bytes is None

    def test_the_whole_pipeline_says_the_floor_of_a_model_no_table_has(
        self, tmp_path: Path
    ) -> None:
        arm_of(tmp_path)
        (report,) = analyse(tmp_path / "results").studies
        cited = {
            source.file
            for answer in report.answers
            for number in answer.numbers
            for source in number.sources
        }
        assert self.FILE in cited
        assert FILE not in cited

    def test_what_was_not_used_is_listed(self, tmp_path: Path) -> None:
        dataset, _, arm = arm_of(tmp_path, model_config="model/config.json")
        assert arm.model is None
        assert [item.file for item in dataset.skipped] == [
            "study/arm/config.json",
            "study/study.toml",
        ]
