"""Which server log belongs to which run: the nearest above it, or the one study.toml names."""

from __future__ import annotations

import pytest

from analysis.dataset import Study
from analysis.grouping import build_study
from analysis.model import Record, Run, Scalar, Startup
from analysis.study import ArmSpec, Assign, StudySpec
from tests.builders import run, startup

ELSEWHERE = "belongs to no run: lies beside none; name it with log = ... in study.toml"
UNCLEAR = (
    "belongs to no run: logs of different servers lie in one folder here; name the one of each "
    "arm with log = ... in study.toml"
)


def raw(file: str = "runs/a.json", **config: Scalar) -> Run:
    return run(arm="", workload="", file=file, id=file, config=config)


def log(file: str, tokens: int = 1, **config: Scalar) -> Startup:
    return startup({"kv_tokens": tokens}, arm="", file=file, config=config)


def built(*records: Record, folder: str = "", **spec: object) -> Study:
    return build_study("s", StudySpec(**spec), records, folder=folder)  # type: ignore[arg-type]


def bound(study: Study) -> dict[str, Scalar]:
    """The log of each run that has one, by the run's file."""
    return {
        one.source.file: one.config["server.log"]
        for one in study.runs
        if "server.log" in one.config
    }


def skipped(study: Study) -> dict[str, str]:
    return {item.file: item.reason for item in study.skipped}


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


def test_a_log_beside_no_run_is_listed():
    study = built(raw("x/a.json"), log("x/server.log"), log("y/server.log"))
    assert skipped(study) == {"y/server.log": ELSEWHERE}
    assert skipped(built(log("server.log"))) == {"server.log": ELSEWHERE}


def test_a_log_above_a_nearer_one_is_listed():
    study = built(raw("x/a.json"), log("x/server.log"), log("server.log"))
    assert skipped(study) == {"server.log": ELSEWHERE}


def test_logs_of_the_engines_of_one_server_are_one():
    study = built(
        raw("x/a.json"),
        log("x/1.log", 100, max_num_seqs=8, port=8001),
        log("x/2.log", 101, max_num_seqs=8, port=8002),
    )
    assert bound(study) == {"x/a.json": "x/1.log"}
    assert skipped(study) == {}


def test_logs_of_different_servers_in_one_folder_are_of_no_run():
    logs = (log("x/1.log", max_num_seqs=8), log("x/2.log", max_num_seqs=16), log("server.log"))
    study = built(raw("x/a.json"), *logs)
    assert bound(study) == {}
    # Nor does one further up stand in for them.
    assert skipped(study) == {"x/1.log": UNCLEAR, "x/2.log": UNCLEAR, "server.log": ELSEWHERE}


def test_a_log_of_runs_that_are_left_out_is_not_listed():
    study = built(
        raw("x/a.json"), raw("b.json"), log("x/server.log"),
        assign=(Assign(where={"file": "a.json"}, ignore=True),),
    )  # fmt: skip
    assert skipped(study) == {"x/a.json": "left out by study.toml"}


# Logs by name


@pytest.mark.parametrize("folder", ["", "s"])
@pytest.mark.parametrize("name", ["logs/b.log", "./logs/b.log"])
def test_an_arm_names_its_log(folder: str, name: str):
    prefix = f"{folder}/" if folder else ""
    near, far = log(f"{prefix}runs/a.log", 1), log(f"{prefix}logs/b.log", 2, max_num_seqs=4)
    study = built(
        raw(f"{prefix}runs/a.json", kind="one"),
        raw(f"{prefix}runs/b.json", kind="two"),
        near,
        far,
        folder=folder,
        arm=(ArmSpec(name="one"), ArmSpec(name="two", log=name)),
        assign=(Assign(where={"kind": "one"}, arm="one"), Assign(where={"kind": "two"}, arm="two")),
    )
    assert bound(study) == {
        f"{prefix}runs/a.json": f"{prefix}runs/a.log",
        f"{prefix}runs/b.json": f"{prefix}logs/b.log",
    }
    assert study.arms["one"].startup is near
    assert study.arms["two"].startup is far
    assert study.arms["two"].spec.max_num_seqs == 4
    assert skipped(study) == {}


def test_a_named_log_counts_before_a_start_up_table_and_that_before_one_that_lies_near():
    row, far = startup({"kv_tokens": 3}, arm="one"), log("logs/b.log", 2)
    records = (raw("runs/a.json"), log("runs/a.log", 1), far, row)
    rules = (Assign(where={}, arm="one"),)
    study = built(*records, arm=(ArmSpec(name="one", log="logs/b.log"),), assign=rules)
    assert study.arms["one"].startup is far
    study = built(*records, arm=(ArmSpec(name="one"),), assign=rules)
    assert study.arms["one"].startup is row


def test_a_rule_names_the_log_of_its_runs_before_the_arm_does():
    study = built(
        raw("a.json"), raw("b.json"), log("logs/a.log"), log("logs/b.log"), log("logs/c.log"),
        arm=(ArmSpec(name="one", log="logs/a.log"),),
        assign=(
            Assign(where={"file": "b.json"}, log="logs/b.log"),
            Assign(where={}, arm="one", log="logs/c.log"),
        ),
    )  # fmt: skip
    assert bound(study) == {"a.json": "logs/c.log", "b.json": "logs/b.log"}
    # An arm's own log is not idle because its runs have others.
    assert skipped(study) == {}


def test_a_log_of_an_arm_without_runs_is_its_own():
    study = built(log("logs/a.log", 7), arm=(ArmSpec(name="idle", log="logs/a.log"),))
    assert study.arms["idle"].startup is not None
    assert skipped(study) == {}


@pytest.mark.parametrize("name", ["logs/absent.log", "../logs/b.log", "/logs/b.log", "a.json"])
def test_a_named_log_that_was_not_read_is_said_and_the_nearest_stands_in(name: str):
    study = built(
        raw("s/a.json"), log("s/server.log"),
        folder="s", arm=(ArmSpec(name="one", log=name),), assign=(Assign(where={}, arm="one"),),
    )  # fmt: skip
    assert bound(study) == {"s/a.json": "s/server.log"}
    assert skipped(study)["s/study.toml"].startswith(
        f"arm 'one': log {name!r} is no server log that was read in this study; give its path"
    )


def test_a_log_that_a_rule_names_in_vain_is_said():
    study = built(raw("a.json"), assign=(Assign(where={}), Assign(where={}, log="x.log")))
    assert skipped(study) == {
        "study.toml": "[[assign]] number 2: log 'x.log' is no server log that was read in this "
        "study; give its path below the study's folder (there are none)"
    }
