"""Every module of analysis/formats keeps the contract, and no file has two owners."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from analysis.formats import format_of, formats
from analysis.formats._files import head_of

TESTS = Path(__file__).parents[1]
FOLDER = TESTS.parent / "analysis" / "formats"


def test_each_module_of_the_folder_is_registered_by_name() -> None:
    modules = sorted(p.stem for p in FOLDER.glob("*.py") if not p.name.startswith("_"))
    assert [module.__name__.rpartition(".")[2] for module in formats()] == modules


@pytest.mark.parametrize("module", formats(), ids=lambda module: module.__name__)
def test_each_exports_the_contract_and_has_a_case_file(module: object) -> None:
    name = module.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
    assert list(inspect.signature(module.sniff).parameters) == ["path", "head"]  # type: ignore[attr-defined]
    assert list(inspect.signature(module.read).parameters) == ["path", "file"]  # type: ignore[attr-defined]
    assert inspect.getdoc(module)
    assert (TESTS / "formats" / f"test_{name}.py").is_file()


SHIPPED = sorted(
    path
    for folder in (TESTS.parent / "results", TESTS / "data")
    for path in folder.rglob("*")
    if path.is_file() and path.suffix in (".csv", ".json", ".jsonl", ".txt", ".log")
)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_each_shipped_file_has_exactly_one_owner(path: Path) -> None:
    head = head_of(path)
    assert sum(module.sniff(path, head) for module in formats()) == 1
    assert format_of(path, head) is not None


def test_a_file_of_no_format_has_no_owner(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\0\1")
    assert format_of(tmp_path / "x.bin", b"\0\1") is None
