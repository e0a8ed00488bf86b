"""A results folder as studies: which folder is one, what study.toml and claims.toml may be."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from analysis.dataset import Dataset
from analysis.load import HERE, load
from analysis.model import Skipped
from analysis.study import BadInput
from tests.collected import simulated, write_run

RESULT = {
    "date": "20260101-000000", "backend": "vllm", "model_id": "some/model", "num_prompts": 100,
    "request_rate": "inf", "max_concurrency": 10, "duration": 100.0, "completed": 100,
    "total_input_tokens": 10_000, "total_output_tokens": 5_000, "mean_ttft_ms": 100.0,
    "mean_itl_ms": 200.0,
}  # fmt: skip
CLAIM = """[[claim]]
id = "c"
kind = "load"
says = "x"
source = "y"
"""


def result(path: Path, **more: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**RESULT, **more}), "utf-8")
    return path


def text(path: Path, words: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words, "utf-8")
    return path


def runs(dataset: Dataset) -> dict[str, list[str]]:
    """Files of the runs by study."""
    return {study.name: sorted(run.source.file for run in study.runs) for study in dataset.studies}


def reasons(dataset: Dataset) -> dict[str, str]:
    files = [item.file for item in dataset.skipped]
    assert len(set(files)) == len(files), "one line a file"
    return {item.file: item.reason for item in dataset.skipped}


# ---- which folder is a study


def test_a_folder_without_any_description_is_one_study(tmp_path: Path) -> None:
    result(tmp_path / "base" / "1.json")
    result(tmp_path / "other" / "1.json", duration=50.0)
    found = load(tmp_path)
    assert runs(found) == {HERE: ["base/1.json", "other/1.json"]}
    assert found.skipped == ()


def test_each_described_child_folder_is_a_study_and_the_rest_is_grouped_beside_it(
    tmp_path: Path,
) -> None:
    result(tmp_path / "a" / "deep" / "1.json")
    text(tmp_path / "a" / "study.toml")
    result(tmp_path / "b" / "1.json")
    text(tmp_path / "b" / "claims.toml")
    result(tmp_path / "c" / "1.json")
    result(tmp_path / "loose.json", duration=50.0)
    assert runs(load(tmp_path)) == {
        "a": ["a/deep/1.json"],
        "b": ["b/1.json"],
        "c": ["c/1.json"],
        HERE: ["loose.json"],
    }


def test_a_described_results_folder_is_one_study_whatever_lies_below(tmp_path: Path) -> None:
    text(tmp_path / "study.toml", 'name = "all"\n')
    result(tmp_path / "a" / "1.json")
    result(tmp_path / "b" / "1.json", duration=50.0)
    text(tmp_path / "b" / "study.toml", 'name = "not read"\n')
    assert runs(load(tmp_path)) == {"all": ["a/1.json", "b/1.json"]}


def test_a_folder_of_one_file(tmp_path: Path) -> None:
    result(tmp_path / "only.json")
    assert runs(load(tmp_path)) == {HERE: ["only.json"]}


def test_a_single_file_is_read_without_what_lies_beside_it(tmp_path: Path) -> None:
    file = result(tmp_path / "one.json")
    result(tmp_path / "two.json", duration=50.0)
    text(tmp_path / "study.toml", 'name = "beside"\n')
    text(tmp_path / "claims.toml", CLAIM)
    found = load(file)
    assert runs(found) == {HERE: ["one.json"]}
    assert found.studies[0].claims == ()


def test_an_empty_folder_holds_no_study(tmp_path: Path) -> None:
    assert load(tmp_path).studies == ()


def test_a_study_of_claims_or_lengths_alone_is_kept_and_one_of_nothing_is_not(
    tmp_path: Path,
) -> None:
    text(tmp_path / "claims" / "claims.toml", CLAIM)
    text(tmp_path / "empty" / "study.toml")
    text(tmp_path / "lengths" / "study.toml")
    text(tmp_path / "lengths" / "l.csv", "p,o\n1,2\n")
    text(
        tmp_path / "lengths" / "l.toml",
        'table = "l.csv"\nholds = "lengths"\nsaid_in = "x"\n'
        '[columns.p]\nmetric = "prompt_tokens"\nunit = "tok"\n'
        '[columns.o]\nmetric = "output_tokens"\nunit = "tok"\n',
    )
    assert [study.name for study in load(tmp_path).studies] == ["claims", "lengths"]


def test_a_study_of_texts_or_quoted_figures_alone_is_kept_for_claims_of_others(
    tmp_path: Path,
) -> None:
    text(tmp_path / "help" / "study.toml")
    text(tmp_path / "help" / "serve.txt", "usage: vllm serve [-h]\n")
    text(tmp_path / "quoted" / "study.toml")
    text(tmp_path / "quoted" / "q.csv", "q,v,u\nTTFT,5,ms\n")
    text(
        tmp_path / "quoted" / "q.toml",
        'table = "q.csv"\nholds = "quoted"\nsaid_in = "x"\n'
        '[columns.q]\nfield = "quantity"\n[columns.v]\nfield = "value"\n'
        '[columns.u]\nfield = "unit"\n',
    )
    found = load(tmp_path)
    assert found.skipped == ()
    assert [study.name for study in found.studies] == ["help", "quoted"]
    assert found.studies[0].help_texts[0].command == "vllm serve"
    assert list(found.studies[1].quoted[0].figures) == ["TTFT"]


def test_hidden_folders_and_plain_files_are_no_studies(tmp_path: Path) -> None:
    text(tmp_path / ".hidden" / "study.toml", 'name = "hidden"\n')
    result(tmp_path / "a" / "1.json")
    assert list(runs(load(tmp_path))) == [HERE]


def test_studies_come_by_order_then_by_name(tmp_path: Path) -> None:
    for name, words in (("a", ""), ("b", "order = 1"), ("c", "order = 1"), ("d", "order = -5")):
        text(tmp_path / name / "study.toml", words)
        result(tmp_path / name / "1.json")
    assert list(runs(load(tmp_path))) == ["d", "b", "c", "a"]


def test_the_result_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    for number in range(4):
        result(tmp_path / "a" / f"{number}.json", duration=50.0 + number)
    text(tmp_path / "a" / "bad.json", "{")
    one, two = load(tmp_path, jobs=1), load(tmp_path, jobs=2)
    assert runs(one) == runs(two)
    assert one.skipped == two.skipped


def test_what_a_study_says_of_itself(tmp_path: Path) -> None:
    text(
        tmp_path / "a" / "study.toml",
        'name = "mine"\ntitle = "My study"\nwarnings = ["w"]\n'
        '[[arm]]\nname = "base"\n[[assign]]\nwhere = { model_id = "some/model" }\narm = "base"\n',
    )
    text(tmp_path / "a" / "claims.toml", CLAIM)
    result(tmp_path / "a" / "1.json")
    (study,) = load(tmp_path).studies
    assert (study.name, study.title, study.folder) == ("mine", "My study", "a")
    assert [run.arm for run in study.runs] == ["base"]
    assert study.arms["base"].spec_file == "a/study.toml"
    assert [claim["id"] for claim in study.claims] == ["c"]
    assert study.claims_file == "a/claims.toml"


def test_a_log_elsewhere_and_a_warm_up_that_is_left_out(tmp_path: Path) -> None:
    """The log of a server of two engines, which says what study.toml does not."""
    log = Path(__file__).parent / "data/logs/two-engines-0.28.log"
    text(tmp_path / "a" / "server-logs" / "dp2.log.txt", log.read_text("utf-8"))
    text(tmp_path / "a" / "server-logs" / "other.log.txt", log.read_text("utf-8"))
    result(tmp_path / "a" / "runs" / "1.json")
    result(tmp_path / "a" / "runs" / "warm.json", duration=50.0)
    text(
        tmp_path / "a" / "study.toml",
        '[[arm]]\nname = "base"\nlog = "server-logs/dp2.log.txt"\n'
        '[[assign]]\nwhere = { model_id = "model" }\narm = "base"\nseed = 42\n'
        '[[assign]]\nwhere = { file = "warm.json" }\nignore = true\n'
        '[[assign]]\nwhere = { file = "wram.json" }\nignore = true\n',
    )
    found = load(tmp_path)
    (study,) = found.studies
    assert runs(found) == {"a": ["a/runs/1.json"]}
    assert study.runs[0].config["seed"] == 42
    base = study.arms["base"]
    assert base.startup is not None
    assert base.startup.source.file == "a/server-logs/dp2.log.txt"
    assert (base.spec.replicas, base.spec.gpus, base.spec.version) == (2, 2, "0.28.0")
    assert base.config["replicas"] == 2
    assert not any("." in key for key in base.config)
    assert reasons(found) == {
        "a/runs/warm.json": "left out by study.toml",
        "a/server-logs/other.log.txt": "belongs to no run: lies beside none; name it with "
        "log = ... in study.toml",
        "a/study.toml": "[[assign]] number 3 matches no record: none has file = 'wram.json'; "
        "did you mean 'warm.json'?",
    }


# ---- choosing and names


def test_a_study_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    text(tmp_path / "quantization" / "study.toml")
    result(tmp_path / "quantization" / "1.json")
    with pytest.raises(BadInput, match=r"no study 'quantisation'.*did you mean 'quantization'\?"):
        load(tmp_path, only=["quantisation"])
    assert len(load(tmp_path, only=["quantization"]).studies) == 1


def test_of_two_studies_of_one_name_the_later_is_left_out(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        text(tmp_path / folder / "study.toml", 'name = "same"\n')
        result(tmp_path / folder / "1.json")
    result(tmp_path / "c" / "1.json")
    text(tmp_path / "c" / "claims.toml")
    found = load(tmp_path)
    assert runs(found) == {"same": ["a/1.json"], "c": ["c/1.json"]}
    assert reasons(found) == {
        "b/study.toml": "the study is left out: it is named 'same', as that of a is; "
        "change its `name`"
    }


@pytest.mark.parametrize(
    ("order", "left_out", "said"), [(1, "study.toml", "of a is"), (2000, "a/study.toml", "beside")]
)
def test_a_study_named_like_the_files_beside_it(
    tmp_path: Path, order: int, left_out: str, said: str
) -> None:
    text(tmp_path / "a" / "study.toml", f'name = "{HERE}"\norder = {order}\n')
    result(tmp_path / "a" / "1.json")
    result(tmp_path / "loose.json", duration=50.0)
    found = load(tmp_path)
    assert len(found.studies) == 1
    assert said in reasons(found)[left_out]


def test_a_child_folder_without_rights_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "closed"):
        text(tmp_path / folder / "study.toml")
        result(tmp_path / folder / "1.json")
    asking, listing = Path.stat, Path.iterdir

    def refuse(real: Any, closed: bool) -> Any:
        def method(self: Path, *args: Any, **kwargs: Any) -> Any:
            if "closed" in (self.parent.name, self.name if closed else ""):
                raise PermissionError(13, "Permission denied")
            return real(self, *args, **kwargs)

        return method

    monkeypatch.setattr(Path, "stat", refuse(asking, False))
    monkeypatch.setattr(Path, "iterdir", refuse(listing, True))
    found = load(tmp_path)
    assert runs(found) == {"a": ["a/1.json"]}
    assert reasons(found) == {"closed": "the folder cannot be listed: Permission denied"}


# ---- files that cannot be used


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("name = ", "not valid TOML"),
        ("nam = 'x'", "unknown key 'nam'; did you mean 'name'?"),
        ("order = 'first'", "order is 'first'; a whole number is expected"),
        ("order = " + "9" * 5000, "not valid TOML"),
        ("arm = " + "[" * 5000, "not valid TOML"),
        ("arm = [{name = 'a'}, {name = 'a'}]", "arm 'a' is described twice"),
        ("[[assign]]\nwhere = {}\narm = 'a'", "[[assign]] names arm 'a'; there are none"),
    ],
)
def test_a_study_file_that_cannot_be_used_costs_no_runs(
    tmp_path: Path, words: str, expected: str
) -> None:
    text(tmp_path / "a" / "study.toml", words)
    result(tmp_path / "a" / "1.json")
    found = load(tmp_path)
    assert runs(found) == {"a": ["a/1.json"]}
    assert expected in reasons(found)["a/study.toml"]
    assert "\n" not in reasons(found)["a/study.toml"]


def test_a_study_file_that_is_not_utf8(tmp_path: Path) -> None:
    text(tmp_path / "study.toml").write_bytes('title = "é"'.encode("latin-1"))
    result(tmp_path / "1.json")
    assert reasons(load(tmp_path)) == {"study.toml": "not UTF-8 text; save the file as UTF-8"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("[[claims]]\nid = 'c'", "unknown key 'claims'; did you mean 'claim'?"),
        ("title = 'x'", "unknown key 'title'; known: claim"),
        ("claim = 'c'", "`claim` must be tables: write [[claim]] above each"),
        ("claim = ['c']", "`claim` must be tables: write [[claim]] above each"),
        ("[claim]\nid = 'c'", "`claim` must be tables: write [[claim]] above each"),
        ("[[claim]\n", "not valid TOML"),
    ],
)
def test_a_claims_file_that_cannot_be_used_costs_no_runs(
    tmp_path: Path, words: str, expected: str
) -> None:
    text(tmp_path / "claims.toml", words)
    result(tmp_path / "1.json")
    found = load(tmp_path)
    assert runs(found) == {HERE: ["1.json"]}
    assert found.studies[0].claims == ()
    assert expected in reasons(found)["claims.toml"]


def test_a_claims_file_without_claims(tmp_path: Path) -> None:
    text(tmp_path / "claims.toml", "# none yet\n")
    result(tmp_path / "1.json")
    assert load(tmp_path).skipped == ()


# ---- links, pipes and odd names


@pytest.mark.parametrize("name", ["study.toml", "claims.toml"])
def test_a_link_out_of_the_results_folder_is_not_followed(tmp_path: Path, name: str) -> None:
    secret = text(tmp_path / "outside.toml", "name = 'stolen'\n")
    root = tmp_path / "results"
    result(root / "a" / "1.json")
    (root / "a" / name).symlink_to(secret)
    found = load(root)
    assert runs(found) == {"a": ["a/1.json"]}
    assert "outside the results folder" in reasons(found)[f"a/{name}"]


def test_the_scan_is_not_the_only_guard_against_links_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = text(tmp_path / "outside.toml", "name = 'stolen'\n")
    root = tmp_path / "results"
    root.mkdir()
    (root / "study.toml").symlink_to(secret)
    monkeypatch.setattr("analysis.load.scan", lambda root, jobs: [])
    found = load(root)
    assert found.skipped == (
        Skipped("study.toml", "points outside the results folder; copy the file in"),
    )


def test_a_link_to_a_file_within_the_results_folder_is_read(tmp_path: Path) -> None:
    text(tmp_path / "shared.toml.txt", 'title = "shared"\n')
    result(tmp_path / "a" / "1.json")
    (tmp_path / "a" / "study.toml").symlink_to("../shared.toml.txt")
    assert load(tmp_path).studies[0].title == "shared"


def test_a_linked_folder_is_a_study_in_its_own_place_only(tmp_path: Path) -> None:
    text(tmp_path / "a" / "study.toml", 'name = "mine"\n')
    result(tmp_path / "a" / "1.json")
    (tmp_path / "b").symlink_to("a")
    found = load(tmp_path)
    assert runs(found) == {"mine": ["a/1.json"]}
    assert "a link to a folder" in reasons(found)["b"]


def test_a_linked_folder_outside_is_no_study(tmp_path: Path) -> None:
    text(tmp_path / "outside" / "study.toml", 'name = "stolen"\n')
    root = tmp_path / "results"
    result(root / "a" / "1.json")
    (root / "b").symlink_to(tmp_path / "outside")
    found = load(root)
    assert list(runs(found)) == [HERE]
    assert "outside the results folder" in reasons(found)["b"]


@pytest.mark.parametrize("target", ["study.toml", "nowhere.toml"])
def test_a_link_to_itself_or_nowhere_is_said_and_left(tmp_path: Path, target: str) -> None:
    (tmp_path / "study.toml").symlink_to(target)
    result(tmp_path / "1.json")
    found = load(tmp_path)
    assert runs(found) == {HERE: ["1.json"]}
    assert "leads nowhere or to itself" in reasons(found)["study.toml"]


def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    text(tmp_path / "claims.toml")
    os.mkfifo(tmp_path / "study.toml")
    result(tmp_path / "1.json")
    found = load(tmp_path)
    assert runs(found) == {HERE: ["1.json"]}
    assert "a pipe" in reasons(found)["study.toml"]


def test_a_folder_in_place_of_a_file_is_a_folder(tmp_path: Path) -> None:
    result(tmp_path / "study.toml" / "1.json")
    text(tmp_path / "claims.toml", CLAIM)
    found = load(tmp_path)
    assert runs(found) == {HERE: ["study.toml/1.json"]}
    assert len(found.studies[0].claims) == 1


def test_a_folder_whose_name_is_no_text(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff"))
    try:
        result(folder / "1.json")
    except OSError:  # pragma: no cover - file systems that take text only
        pytest.skip("this file system has no such names")
    text(folder / "claims.toml", CLAIM)
    found = load(tmp_path)
    assert runs(found) == {"bad\\udcff": ["bad\\udcff/1.json"]}
    assert found.studies[0].claims_file == "bad\\udcff/claims.toml"
    assert len(found.studies[0].claims) == 1


def test_skipped_files_are_sorted_by_name(tmp_path: Path) -> None:
    text(tmp_path / "a" / "study.toml", "x")
    text(tmp_path / "a" / "broken.json", "{")
    text(tmp_path / "z.json", "{")
    result(tmp_path / "a" / "1.json")
    files = [item.file for item in load(tmp_path).skipped]
    assert files == ["a/broken.json", "a/study.toml", "z.json"]


def test_a_folder_that_cannot_be_read_is_the_callers_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        load(tmp_path / "absent")


# ---- studies that a collector made


def collected(root: Path, study: str, arm: str = "a", **more: Any) -> Path:
    sim = simulated(requests=len(study) + 40)
    return write_run(root / arm / "chat-c8-r1", [sim], study=study, arm=arm, **more)


def test_a_study_is_named_by_its_collected_runs(tmp_path: Path) -> None:
    collected(tmp_path, "made")
    found = load(tmp_path)
    assert runs(found) == {"made": ["a/chat-c8-r1/bench.json"]}
    assert found.studies[0].folder == ""
    assert found.skipped == ()


def test_each_folder_of_a_collector_is_a_study(tmp_path: Path) -> None:
    for name in ("one", "other"):
        collected(tmp_path / name, name)
    found = load(tmp_path)
    assert runs(found) == {
        "one": ["one/a/chat-c8-r1/bench.json"],
        "other": ["other/a/chat-c8-r1/bench.json"],
    }
    assert [study.folder for study in found.studies] == ["one", "other"]


def test_runs_of_two_studies_in_one_folder_name_none(tmp_path: Path) -> None:
    collected(tmp_path / "x", "one")
    collected(tmp_path / "y", "other")
    assert list(runs(load(tmp_path))) == [HERE]


def test_a_name_that_study_toml_gives_counts_before_the_collectors(tmp_path: Path) -> None:
    collected(tmp_path, "made")
    text(tmp_path / "study.toml", 'name = "mine"\n')
    assert list(runs(load(tmp_path))) == ["mine"]


def test_a_claims_file_of_a_collected_study(tmp_path: Path) -> None:
    collected(tmp_path / "made", "made")
    text(tmp_path / "made" / "claims.toml", CLAIM)
    (study,) = load(tmp_path).studies
    assert (study.name, len(study.claims)) == ("made", 1)


def test_interrupted_and_failed_runs_are_listed_and_not_measured(tmp_path: Path) -> None:
    run = collected(tmp_path / "made", "made")
    states = {"half-1": "interrupted", "failed-1": "failed", "part": "running"}
    for ending, state in states.items():
        left = run.with_name(f"{run.name}.{ending}")
        write_run(left, [simulated(requests=20)], study="made", arm="a", state=state)
    write_run(run.parent / ".servers" / "1.1-warmup", [simulated(requests=8)], study="made")
    found = load(tmp_path)
    assert runs(found) == {"made": ["made/a/chat-c8-r1/bench.json"]}
    assert {file.rpartition("r1.")[2]: reason for file, reason in reasons(found).items()} == {
        "half-1/run.json": "the collector's run is interrupted; it was made anew",
        "failed-1/run.json": "the collector's run is failed; it was made anew",
        "part/run.json": "the collector's run is running; `collect` again makes it anew",
    }
    assert sorted(item.wanted for item in found.skipped) == [False, True, True]


def test_collected_runs_are_read_alike_by_any_number_of_jobs(tmp_path: Path) -> None:
    for number, arm in enumerate(("a", "a.b", "a-b", "b")):
        collected(tmp_path / "made", "made", arm, date=f"20261130-12000{number}")
    one, two = load(tmp_path, jobs=1), load(tmp_path, jobs=3)
    assert [run.id for run in one.studies[0].runs] == [run.id for run in two.studies[0].runs]
    assert list(one.studies[0].arms) == ["a", "a-b", "a.b", "b"]
