"""File names of pages: whatever results are called, safe, bounded and never two the same."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.page_names import MOST_BYTES, file_names, page_names
from tests import reports
from tests.builders import cell, run, study


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("awq on 4 GPUs", "awq-on-4-GPUs"),
        ("../../x", "x"),
        ("/etc/passwd", "etc-passwd"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("a\x00b\nc", "a-b-c"),
        ("C:\\x", "C-x"),
        (".hidden", "hidden"),
        ("<script>", "script"),
        ("v1.2+cu12_x", "v1.2+cu12_x"),
        ("größe 漢", "größe-漢"),
    ],
)
def test_a_name_becomes_a_file_name(name: str, file: str) -> None:
    assert file_names([name]) == {name: file}


def test_names_that_would_be_one_file_get_numbers_in_order() -> None:
    assert file_names(["a b", "a/b", "a-b", "a-b-2"]) == {
        "a b": "a-b", "a/b": "a-b-2", "a-b": "a-b-3", "a-b-2": "a-b-2-2",
    }  # fmt: skip


@pytest.mark.parametrize(
    "pair", [("AWQ", "awq"), ("\u212a8s", "k8s"), ("ﬁt", "fit"), ("straße", "STRASSE")]
)
def test_names_that_some_file_systems_take_for_one_are_kept_apart(pair: tuple[str, str]) -> None:
    first, second = file_names(pair).values()
    assert second == first + "-2" or second.endswith("-2")


def test_a_file_at_the_top_and_its_address_are_taken() -> None:
    names = ["findings.json", "rules", "rules.md", "README.md", "readme", "free"]
    found = file_names(names, ["findings.json", "rules.md", "README.md"])
    assert list(found.values()) == [
        "findings.json-2", "rules-2", "rules.md-2", "README.md-2", "readme-2", "free",
    ]  # fmt: skip


def test_long_names_are_cut_at_a_letter_and_kept_apart() -> None:
    long = ["漢" * 200, "漢" * 201, "x" * 99 + "." + "y" * 9]
    found = list(file_names(long).values())
    assert found == ["漢" * 33, "漢" * 33 + "-2", "x" * 99]
    assert len(found[0].encode()) <= MOST_BYTES


@given(st.lists(st.text(max_size=150), unique=True, max_size=12))
def test_any_names_are_apart_and_stay_in_their_folder(names: list[str]) -> None:
    found = file_names(names, ["index.md"])
    assert list(found) == names
    folded = [unicodedata.normalize("NFKC", file).casefold() for file in found.values()]
    assert len(set(folded)) == len(names)
    assert not {"index", "index.md"} & set(folded)
    for file in found.values():
        assert PurePosixPath(file).name == file
        assert re.fullmatch(r"[\w+][\w.+-]*", file)
        assert not file.endswith(".")
        assert len(f"{file}.md.4194304.part".encode()) <= 255


def test_each_study_counts_its_own_arms_and_claims() -> None:
    one, two = (
        reports.report(
            study(cell("a b", run(arm="a b")), cell("a-b", run(arm="a-b")), name=name),
            [reports.finding("c d", name), reports.finding("C-d", name)],
        )
        for name in ("s t", "s/t")
    )
    names = page_names(reports.analysis(one, two), ["index.md"])
    assert (names.folder("s t"), names.folder("s/t")) == ("s-t", "s-t-2")
    for study_name in ("s t", "s/t"):
        assert names.arm(study_name, "a b") == "arms/a-b.md"
        assert names.arm(study_name, "a-b") == "arms/a-b-2.md"
        assert names.claim(study_name, "c d") == "claims/c-d.md"
        assert names.claim(study_name, "C-d") == "claims/C-d-2.md"


def test_pages_that_mkdocs_shows_at_their_folders_address_are_taken() -> None:
    one = reports.report(study(cell()), [reports.finding("index"), reports.finding("README")])
    names = page_names(reports.analysis(one), [])
    assert names.claim("s", "index") == "claims/index-2.md"
    assert names.claim("s", "README") == "claims/README-2.md"
