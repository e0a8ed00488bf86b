"""The shape of the code: imports point one way; nothing is named or printed out of place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("analysis", "collectors")
MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
)
TEMPLATES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "analysis" / "templates").rglob("*")
    if path.is_file()
)

NAMES = (
    "awq", "fp16", "tp2", "pp2", "replica2", "replica2_rr", "replica2_direct", "single_gpu",
    "sharegpt", "prefix_repetition", "writeup", "orca3",
)  # fmt: skip
"""Arms, datasets and studies that ship. Code that knows one of them knows a verdict."""

WORDS_OF_A_FORMAT = {
    # What a GPU's table of number types, a model's config.json and a server's log call things.
    "analysis/hardware.py": {"fp16"},
    "analysis/model_config.py": {"awq"},
    "analysis/formats/startup_log.py": {"awq"},
    "analysis/server_config.py": {"awq"},
}
"""Where such a word is a fact of a file format, and of nothing else."""


STREAMS = {
    # A client that is forked flushes what vLLM printed before it ends.
    "collectors/bench_worker.py": {"sys.stdout", "sys.stderr"},
}
"""Where a module that is no command line may touch a stream."""

NAMES_IN_COLLECTORS = {
    # What `--dataset-name` of vLLM's client calls the forms that it reads, and methods of
    # quantization that a model's config.json names.
    "collectors/options.py": {"sharegpt"},
    "collectors/data_check.py": {"sharegpt"},
    "collectors/datasets.py": {"sharegpt"},
    "collectors/fit.py": {"awq"},
    "collectors/inspection.py": {"awq"},
    "collectors/workload_lengths.py": {"prefix_repetition"},
}


def tree_of(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text("utf-8"))


def imported(module: str) -> Iterator[str]:
    """The modules of ours that a module imports, with dots."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = module.split("/")[0] if node.level else ""
            names = [".".join(filter(None, [package, node.module]))]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in PACKAGES)


def without_docstrings(module: str) -> str:
    """The source with every string that stands alone as a statement blanked out."""
    lines = (ROOT / module).read_text("utf-8").splitlines()
    for node in ast.walk(tree_of(module)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            and node.end_lineno is not None
        ):
            for number in range(node.lineno - 1, node.end_lineno):
                lines[number] = ""
    return "\n".join(lines)


def names_in(text: str) -> set[str]:
    words = "|".join(map(re.escape, NAMES))
    return {name.lower() for name in re.findall(rf"\b(?:{words})\b", text, re.IGNORECASE)}


@pytest.mark.parametrize("module", MODULES)
def test_packages_do_not_import_each_other(module: str) -> None:
    own = module.split("/")[0]
    assert [name for name in imported(module) if name.split(".")[0] != own] == []


def test_the_model_imports_nothing_of_ours() -> None:
    assert list(imported("analysis/model.py")) == []


@pytest.mark.parametrize("module", MODULES)
def test_nothing_imports_the_command_line(module: str) -> None:
    if Path(module).name != "__main__.py":
        assert [name for name in imported(module) if name.endswith(".cli")] == []


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is_for(module: str) -> None:
    docstring = ast.get_docstring(tree_of(module))
    assert docstring
    assert docstring.splitlines()[0].strip()


@pytest.mark.parametrize("module", MODULES)
def test_only_the_command_line_prints(module: str) -> None:
    if Path(module).name == "cli.py":
        return
    for node in ast.walk(tree_of(module)):
        prints = isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
        writes = isinstance(node, ast.Attribute) and ast.unparse(node) in (
            {"sys.stdout", "sys.stderr"} - STREAMS.get(module, set())
        )
        assert not (prints or writes), f"{module}:{node.lineno}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("analysis/")])
def test_analysis_names_no_arm_dataset_or_study(module: str) -> None:
    assert names_in(without_docstrings(module)) - WORDS_OF_A_FORMAT.get(module, set()) == set()


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("collectors/")])
def test_collectors_name_no_arm_dataset_or_study(module: str) -> None:
    known = NAMES_IN_COLLECTORS.get(module, set())
    assert names_in(without_docstrings(module)) - known == set()


def test_what_is_kept_stands_alone() -> None:
    # They run in processes of their own, perhaps in the Python of another environment.
    for module in ("collectors/keeper.py", "collectors/bench_worker.py"):
        assert list(imported(module)) == []


def test_templates_name_no_arm_dataset_or_study() -> None:
    # A glossary explains the terms of the field, some of which are names of arms as well.
    pages = [name for name in TEMPLATES if not name.endswith("glossary.md.jinja")]
    found = {name: names_in((ROOT / name).read_text("utf-8")) for name in pages}
    assert {name: names for name, names in found.items() if names} == {}


def test_the_name_test_sees_code_and_comments_but_not_docstrings(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""AWQ is named here."""\nARM = "tp2"  # and fp16\nFINE = "awq_marlin"\n')
    assert names_in(without_docstrings(str(module))) == {"tp2", "fp16"}
