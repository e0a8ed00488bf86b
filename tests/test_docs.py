"""What the documents say is true: commands run, links resolve, the site builds in both states."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.claims import read_claim
from analysis.evidence import FACTS
from analysis.judge import judge_study
from analysis.load import load
from analysis.reference import GPU_FACTS, Ref
from analysis.study import convert, read_study
from collectors.schedule import plan
from collectors.study_file import parse_study
from tests.generated_docs import TABLES, common_keys, when_keys

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    # Findings are generated; the page in docs/includes/ is only ever shown in their place.
    if not {"findings", "includes"} & set(path.relative_to(ROOT).parts)
)
CI_BLOCK = re.compile(r"<!-- ci -->\n```console\n(.*?)```", re.DOTALL)
ANY_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")

ONE_RESULT = {
    "date": "20250101-000000",
    "backend": "vllm",
    "model_id": "some/model",
    "num_prompts": 100,
    "request_rate": "inf",
    "max_concurrency": 4,
    "duration": 50.0,
    "completed": 100,
    "total_input_tokens": 20_000,
    "total_output_tokens": 10_000,
    "request_throughput": 2.0,
    "output_throughput": 200.0,
    "total_token_throughput": 600.0,
    "mean_ttft_ms": 40.0,
    "median_ttft_ms": 38.0,
    "p99_ttft_ms": 90.0,
    "mean_tpot_ms": 19.5,
    "median_tpot_ms": 19.4,
    "p99_tpot_ms": 22.0,
    "mean_itl_ms": 19.5,
    "median_itl_ms": 19.3,
    "p99_itl_ms": 30.0,
}


def commands(block: str) -> list[str]:
    """The command lines of a console block, without prompt and comment."""
    lines = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.join(shlex.split(line, comments=True)) for line in lines]


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command as a reader would who has activated .venv, at 80 columns."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {"PATH": path, "COLUMNS": "80", "NO_COLOR": "1", "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def anchors(path: Path) -> set[str]:
    """The anchors that a Markdown file's headings get."""
    headings = re.findall(
        r"^#+ +(.+?) *$", ANY_BLOCK.sub("", path.read_text("utf-8")), re.MULTILINE
    )
    kept = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", words) for words in kept}


def test_readme_has_marked_commands() -> None:
    assert CI_BLOCK.findall((ROOT / "README.md").read_text("utf-8"))


def test_marked_readme_commands_run(tmp_path: Path) -> None:
    (tmp_path / "my-folder").mkdir()
    (tmp_path / "my-folder" / "result.json").write_text(json.dumps(ONE_RESULT))
    for block in CI_BLOCK.findall((ROOT / "README.md").read_text("utf-8")):
        for command in commands(block):
            done = run(*shlex.split(command), cwd=tmp_path)
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    served = re.findall(r"mkdocs serve -f (\S+\.yml)", (ROOT / "README.md").read_text("utf-8"))
    assert served
    for config in served:
        done = run("mkdocs", "build", "--strict", "--quiet", "-f", config, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/commands.md"])
def test_make_targets_in_documents_exist(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    # Words in prose are not commands; those in code are.
    text = (ROOT / name).read_text("utf-8")
    named = set(re.findall(r"[`$] ?make (?:[A-Z]+=\S+ )?([a-z-]+)", text))
    assert named
    assert named <= targets


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("analyze", "from analysis.cli import main; main(['--help'])"),
        ("collect", "from collectors.cli import main; main(['--help'])"),
        ("collect inspect", "from collectors.cli import main; main(['inspect', '--help'])"),
    ],
)
def test_help_in_the_docs_is_the_help(name: str, call: str) -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    block = re.search(rf"<!-- help: {name} -->\n```text\n(.*?)```", page, re.DOTALL)
    assert block is not None
    done = run(sys.executable, "-c", call, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert block[1] == done.stdout, f"put this into docs/commands.md:\n{done.stdout}"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_resolve(name: str) -> None:
    path = ROOT / name
    for link in LINK.findall(ANY_BLOCK.sub("", path.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        assert file.is_relative_to(ROOT), f"{link} leaves the project"
        assert file.exists(), f"{link}: no such file"
        if anchor:
            assert anchor in anchors(file), f"{link}: no such heading"


def build_site(folder: Path) -> Path:
    """Builds a copy of the docs strictly, as they were cloned, plus what lies in `folder`."""
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(ROOT / "analysis" / "theme", folder / "analysis" / "theme")
    for path in (ROOT / "docs").rglob("*"):
        inner = path.relative_to(ROOT)
        generated = inner.parts[1] == "findings" and inner.name != "README.md"
        if path.is_file() and not generated:
            (folder / inner).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / inner)
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", "site"]
    done = run(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_site_of_a_fresh_clone_says_to_analyse(tmp_path: Path) -> None:
    site = build_site(tmp_path)
    page = (site / "findings" / "index.html").read_text("utf-8")
    assert "Nothing has been analysed yet" in page
    assert "analyze" in page
    assert not (site / "includes").exists()


def test_site_after_an_analysis_shows_it(tmp_path: Path) -> None:
    findings = tmp_path / "docs" / "findings"
    (findings / "study").mkdir(parents=True)
    (findings / "index.md").write_text("# Findings\n\n- [first](study/first.md)\n")
    (findings / "study" / "first.md").write_text("# First\n\n[all](../README.md)\n")
    site = build_site(tmp_path)
    page = (site / "findings" / "index.html").read_text("utf-8")
    assert 'href="study/first/"' in page
    assert "Nothing has been analysed yet" not in page
    assert (site / "findings" / "study" / "first" / "index.html").is_file()


def test_site_fetches_nothing_from_outside(tmp_path: Path) -> None:
    site = build_site(tmp_path)
    fetching = re.compile(r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//")
    for page in site.rglob("*.html"):
        assert not fetching.search(page.read_text("utf-8")), page


def part(text: str, name: str) -> tuple[int, int]:
    """Where the text between the markers of that name begins and ends."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    return text.index(begin) + len(begin), text.index(end)


@pytest.mark.parametrize("name", list(TABLES))
def test_tables_drawn_up_from_the_code_are_up_to_date(name: str) -> None:
    """UPDATE_DOCS=1 writes them instead."""
    path = ROOT / "docs" / "claims.md"
    text = path.read_text(encoding="utf-8")
    begin, end = part(text, name)
    expected = TABLES[name]() + "\n"
    if os.environ.get("UPDATE_DOCS"):
        text = text[:begin] + expected + text[end:]
        path.write_text(text, encoding="utf-8")
        begin, end = part(text, name)
    assert text[begin:end] == expected


@pytest.mark.parametrize(
    ("heading", "cells"),
    [("## Fields of every claim", common_keys()), ("## When advice holds", when_keys())],
)
def test_tables_of_keys_have_every_key(heading: str, cells: list[str]) -> None:
    text = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    section = text.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    found = [row.split(" | ")[0].removeprefix("| ") for row in rows]
    assert sorted(found) == sorted(cells)


TOML_BLOCKS = [
    (name, block)
    for name in DOCUMENTS
    for block in re.findall(r"^```toml\n(.*?)^```", (ROOT / name).read_text("utf-8"), re.M | re.S)
]


def test_every_example_of_a_claim_is_read() -> None:
    blocks = [block for _, block in TOML_BLOCKS if "[[claim]]" in block]
    assert len(blocks) >= 2
    for block in blocks:
        for table in tomllib.loads(block)["claim"]:
            read_claim(table)


def test_every_example_of_a_study_is_read(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    tables = re.compile(r"^\[\[(arm|workload|assign)\]\]", re.MULTILINE)
    blocks = [(name, block) for name, block in TOML_BLOCKS if tables.search(block)]
    assert {name.endswith("collect.md") for name, _ in blocks} == {True, False}
    for name, block in blocks:
        if name.endswith("collect.md"):
            # What the collector runs; the others are what the analysis reads.
            assert plan(parse_study(tomllib.loads(block), name)).jobs
            continue
        path.write_text(block, encoding="utf-8")
        read_study(path)


def test_every_example_of_a_figure_is_read() -> None:
    lines = [line for _, block in TOML_BLOCKS for line in block.splitlines()]
    examples = [line for line in lines if line.startswith("of = ")]
    assert len(examples) >= 6
    for line in examples:
        ref = convert(tomllib.loads(line)["of"], Ref)
        assert ref.metric in ("", "mean_itl")
        assert ref.fact in ("", *FACTS, *GPU_FACTS)


def test_the_first_example_is_judged_by_the_shipped_study() -> None:
    block = next(block for name, block in TOML_BLOCKS if name == "docs/claims.md")
    (table,) = tomllib.loads(block)["claim"]
    dataset = load(ROOT / "results")
    study = dataset.study("writeup")
    assert study is not None
    judged = judge_study(dataset, replace(study, claims=(table,)))
    assert judged.skipped == ()
    assert [finding.verdict for finding in judged.findings] == ["refuted"]


def test_the_verdicts_in_the_readme_are_printed_ones() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text[text.index("<!-- verdict table: begin -->") : text.index("<!-- verdict table: end")]
    block = part.split("```")[1].removeprefix("text\n")
    printed = (ROOT / "tests/golden/table.txt").read_text(encoding="utf-8")
    rows = re.split(r"\n(?=\S)", block.strip())
    assert len(rows) >= 5
    for row in rows:
        assert row.rstrip() in printed
