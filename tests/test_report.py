"""The report as files: links lead to pages, hostile names do no harm, nothing stale stays."""

from __future__ import annotations

import json
import math
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analysis.claims import kinds
from analysis.model import Outcome, ServerSide, Skipped, Source
from analysis.pipeline import Analysis, analyse
from analysis.report import MANIFEST, TOP, markdown_table, pages, run_rows, summary_rows, write
from tests import reports, whole
from tests.builders import arm, cell, figure, printed, run, startup, study
from tests.collected import simulated, write_run
from tests.test_markdown import TEXTS, Page, converter, seen

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
HOSTILE = [
    "../../x", "/etc/passwd", "", "..", "a b", "a/b", "A-B", "index", "README", "rules", "findings",
    "findings.json", "index.md", "runs.csv", "arms", "claims", "](http://evil) [x", "<script>x",
    '--8<-- "index.md"', "a|b", "x" * 300, "漢" * 300, "é\u202e\x00\n", "con", "#", "{{ 7 * 7 }}",
]  # fmt: skip


def targets(files: dict[str, str]) -> list[tuple[str, str]]:
    """(page, file that it links to) of every link in the Markdown pages."""
    found = []
    for page, source in files.items():
        if page.endswith(".md"):
            for target in LINK.findall(source):
                path = target.partition("#")[0]
                found.append((page, posixpath.normpath(posixpath.join(page, "..", path))))
    return found


def everything(text: str, name: str | None = None) -> Analysis:
    """An analysis in which each thing that a file can say is this text."""
    of = text if name is None else name
    log = replace(
        startup({"kv_tokens": 1000.0}, arm=of, file=text, config={text: text, "flag": text}),
        source=Source(text, text),
    )
    known = arm(of, log, about=text, model=text, host=text)
    known = replace(known, config={text: text, **known.config})
    one = run(
        {"failed": 1}, id=text, arm=of, workload=text, config={text: text}, file=text, key=text
    )
    one = replace(one, server=ServerSide(served={text: 1, "other": 2}))
    capped = cell(known, one)
    free = cell(known, replace(one, id=text + "2", concurrency=None), concurrency=None)
    right = cell("plain", run(id="plain", arm="plain", workload=text))
    number = reports.estimate(
        1.0, 0.5, 2.0, name=text, definition=text, interval=text, warnings=(text, text),
        sources=(Source(text, text), Source("", text)),
    )  # fmt: skip
    check = Outcome("SA101", text, "SUSPECT", text, text)
    full: dict[str, Any] = {
        "says": text, "said_in": text, "reasons": (text, text), "numbers": (number,),
        "assumptions": (text, text), "confounds": (text, text), "flips": text,
        "next_experiment": text, "checks": (check, replace(check, run=text + "3")),
    }  # fmt: skip
    findings = [reports.finding("first", of, **full), reports.finding(of, of, repeats="first")]
    found = study(capped, free, right, name=of, title=text, about=text, warnings=[text, text])
    return reports.analysis(
        reports.report(found, findings), skipped=[Skipped(text, text), Skipped("", text)]
    )


# ---- the shipped results


@pytest.fixture(scope="module")
def shipped() -> dict[str, str]:
    return pages(whole.shipped())


def test_every_link_of_the_shipped_report_leads_to_one_of_its_pages(
    shipped: dict[str, str],
) -> None:
    found = targets(shipped)
    assert len(found) > 500
    assert [link for link in found if link[1] not in shipped] == []


def test_every_page_of_the_shipped_report_is_linked(shipped: dict[str, str]) -> None:
    linked = {target for _, target in targets(shipped)}
    alone = [page for page in shipped if page.endswith(".md") and page not in linked]
    # An arm of study.toml that no run belongs to is reached from no table.
    assert {page for page in alone if "/arms/" not in page} <= {"index.md"}


def test_the_shipped_report_holds_its_data_and_its_schema(shipped: dict[str, str]) -> None:
    assert set(TOP) - {"files"} == {name for name in shipped if "/" not in name}
    assert json.loads(shipped["findings.json"])["schema"] == 1
    assert shipped["findings.schema.json"] == (
        ROOT / "analysis/schema/findings.schema.json"
    ).read_text("utf-8")


def test_every_kind_has_its_place_on_the_rules_page(shipped: dict[str, str]) -> None:
    # Claim pages link to the heading of their kind.
    source = converter().reset().convert(shipped["rules.md"])
    for name in kinds():
        assert f'id="{name.replace("_", "-")}"' in source


def test_pages_end_in_one_newline_and_have_no_empty_lines_in_a_row(shipped: dict[str, str]) -> None:
    for name, source in shipped.items():
        if name.endswith(".md"):
            assert source.endswith("\n")
            assert not re.search(r"\n\n\n|[ \t]\n|\A\n|\n\n\Z", source), name


# ---- names


def hostile(names: list[str]) -> Analysis:
    """A study of each name, with arms and claims of all names."""
    found = []
    for name in names:
        cells = [
            cell(replace(arm(one), study=name), run(id=f"{name} {one}", arm=one)) for one in names
        ]
        findings = [reports.finding(one, name, says=one or "empty") for one in names]
        findings.append(reports.finding("again", name, repeats="a b"))
        found.append(reports.report(study(*cells, name=name), findings))
    return reports.analysis(*found)


def test_hostile_names_have_a_page_each_within_the_report() -> None:
    names = [*HOSTILE[:9], HOSTILE[11]]
    files = pages(hostile(names))
    # A page for each study, and in each study one for each arm and each claim.
    own = [path for path in files if not path.startswith("files/")]
    assert len(own) == len(TOP) - 1 + len(names) * (1 + len(names) + len(names) + 1)
    for path in files:
        parts = path.split("/")
        assert posixpath.normpath(path) == path
        assert not path.startswith(("/", ".."))
        assert len(parts) in (1, 2, 3)
        assert all(len(part.encode()) < 200 for part in parts)
    folded = [path.casefold() for path in files]
    assert len(set(folded)) == len(files)
    folders = {path.split("/")[0].casefold() for path in files if "/" in path}
    tops = {name.casefold() for name in TOP} | {"rules", "readme.md"}
    assert not folders & tops
    assert [link for link in targets(files) if link[1] not in files] == []


def test_a_repeat_links_to_the_page_of_the_first_even_where_names_collide() -> None:
    findings = [
        reports.finding("a b", reasons=("The first.",)),
        reports.finding("a/b", reasons=("The second.",)),
        reports.finding("again", repeats="a/b"),
    ]
    files = pages(reports.analysis(reports.report(study(cell()), findings)))
    ((_, target),) = [
        link for link in targets({"s/claims/again.md": files["s/claims/again.md"]})
        if "/claims/" in link[1]
    ]  # fmt: skip
    assert "The second." in files[target]


def test_hostile_names_can_be_written_and_stay_below_the_folder(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    count = len(pages(hostile(HOSTILE[:6])))
    write(pages(hostile(HOSTILE[:6])), out)
    assert count == len([p for p in out.rglob("*") if p.is_file()]) - 1  # the list of files
    assert [p for p in tmp_path.rglob("*") if p.is_file() and out not in p.parents] == []


def test_long_names_can_be_written(tmp_path: Path) -> None:
    write(pages(hostile(["x" * 300, "x" * 301, "漢" * 300, "a b"])), tmp_path)


# ---- what pages say


PLAIN = {name: Page(text) for name, text in pages(everything("BASE")).items() if name[-3:] == ".md"}


def skeleton(page: Page) -> list[tuple[str, str]]:
    """The tags and their classes: what targets and identifiers are made of text does not show."""
    return [(tag, dict(attrs).get("class") or "") for tag, attrs in page.tags]


@settings(deadline=None, max_examples=12)
@given(text=st.one_of(TEXTS, st.sampled_from(HOSTILE)))
def test_no_text_changes_the_structure_of_any_page(text: str) -> None:
    assume(seen(text))
    # Names of pages come from the names, so those stay; everything else is the text.
    files = pages(everything(text, name="BASE"))
    # The pages of raw figures are named after files, which are the text here.
    raw = [name for name in files if name.startswith("files/")]
    assert len(raw) == sum(name.startswith("files/") for name in PLAIN)
    for name, plain in PLAIN.items():
        page = Page(files[name] if name in files else files[raw.pop()])
        assert skeleton(page) == skeleton(plain), name
        assert (
            "BASE" in page.text
            or seen(text).split()[0] in page.text
            or name in ("rules.md", "glossary.md")
        )


@settings(deadline=None, max_examples=10)
@given(text=TEXTS)
def test_no_name_changes_the_structure_of_any_page(text: str) -> None:
    assume(seen(text))
    assume(text not in ("plain", "first"))
    files = pages(everything(text))
    assert len(files) == len(PLAIN) + 3
    shapes = sorted(map(str, (skeleton(page) for page in PLAIN.values())))
    assert shapes == sorted(
        str(skeleton(Page(files[name]))) for name in files if name.endswith(".md")
    )
    assert [link for link in targets(files) if link[1] not in files] == []


def claim_page(**more: Any) -> str:
    one = reports.report(study(cell()), [reports.finding("c", **more)])
    return pages(reports.analysis(one))["s/claims/c.md"]


def row(source: str, first: str) -> list[str]:
    (line,) = [line for line in source.splitlines() if line.startswith(f"| {first} |")]
    return [part.strip() for part in line.strip("|").split(" | ")]


def test_a_number_is_shown_with_as_many_digits_as_its_interval_deserves() -> None:
    number = reports.estimate(0.0431, 0.04305, 0.04315, name="ITL", unit="s", interval="rounding",
                              definition="gaps")  # fmt: skip
    shown = row(claim_page(numbers=(number,)), "ITL")
    assert shown == ["ITL", "43.10 ms", r"\[43.05, 43.15\]", "rounding", "gaps"]


def test_an_exact_number_has_no_interval() -> None:
    number = reports.estimate(12.0, name="slots")
    assert row(claim_page(numbers=(number,)), "slots")[1:3] == ["12", "-"]


def test_a_number_that_is_not_defined_is_said_to_be_so() -> None:
    number = reports.estimate(math.nan, -math.inf, math.inf, name="n")
    assert row(claim_page(numbers=(number,)), "n")[1:3] == ["not defined", r"\[-∞, ∞\]"]


def test_figures_are_listed_once_with_all_numbers_that_rest_on_them() -> None:
    source = Source("a.csv", "row 1, x")
    numbers = (
        reports.estimate(1, name="one", sources=(source, Source("whole.csv", ""))),
        reports.estimate(2, name="two", sources=(source, Source("", "stated: 2"))),
        reports.estimate(3, name="two", sources=(source,)),
    )
    text = claim_page(numbers=numbers).partition("## Where the numbers are")[2]
    assert row(text, "<code>a.csv</code>")[1:] == [
        "[row 1, x](../../files/a.csv.md#row-1-x)",
        "one; two",
    ]
    assert row(text, "<code>whole.csv</code>")[1:] == [
        "[the whole file](../../files/whole.csv.md#file)",
        "one",
    ]
    assert row(text, "the sentence itself")[1:] == ["<code>stated: 2</code>", "two"]


def test_a_claim_without_numbers_says_so() -> None:
    assert "No number of a file was used." in claim_page()


def test_a_check_that_many_runs_fail_is_one_row() -> None:
    checks = tuple(Outcome("SA103", "failures", "SUSPECT", f"{n} failed", f"r{n}") for n in "1234")
    worse = Outcome("SA103", "failures", "INVALID", "9 failed", "r9")
    text = claim_page(checks=(*checks, worse))
    rows = [line for line in text.splitlines() if line.startswith("| SA103")]
    assert len(rows) == 2
    assert "r1, r2 and 2 more" in rows[0]
    assert "1 failed (the first)" in rows[0]
    assert "(the first)" not in rows[1]


def test_a_claim_that_rests_on_nothing_shows_no_level() -> None:
    assert "evidence:" not in claim_page(level=None, verdict="untestable")
    assert "evidence: summary of a run (S)" in claim_page()


def test_the_index_counts_verdicts_and_says_that_everything_was_read() -> None:
    findings = [reports.finding(str(n), verdict=v) for n, v in
                enumerate(["refuted", "supported", "refuted"])]  # fmt: skip
    index = pages(reports.analysis(reports.report(study(cell()), findings)))["index.md"]
    assert '<span class="verdict verdict-refuted">refuted</span> 2 · ' in index
    assert '<span class="verdict verdict-supported">supported</span> 1' in index
    assert "Nothing: every file below the results folder was read." in index


def test_a_study_without_claims_and_without_trouble() -> None:
    found = pages(reports.analysis(study(cell())))
    assert "verdict-suspect" not in found["quality.md"]
    assert "## Claims" not in found["s/index.md"]
    assert "verdict-supported" not in found["index.md"]


def test_a_failed_check_stands_on_the_page_of_data_quality() -> None:
    found = pages(reports.analysis(study(cell("base", run({"failed": 90}, id="r")))))
    lines = found["quality.md"].partition("### Every check")[2].splitlines()
    (line,) = [line for line in lines if "| SA103 failures |" in line]
    assert "<code>r</code>" in line and "verdict-invalid" in line


def test_an_arm_shows_its_settings_and_what_its_server_said() -> None:
    log = startup(
        {"kv_bytes": printed("kv_bytes", "16.40", 2.0**30, "B", file="x.log"),
         "kv_tokens": figure("kv_tokens", 75_824, "tok")},
        config={"attention_backend": "FLASH"}, file="x.log",
    )  # fmt: skip
    known = arm("base", log, max_num_seqs=8, about="What it is.")
    page = pages(reports.analysis(study(cell(known))))["s/arms/base.md"]
    assert "What it is." in page
    assert row(page, "max_num_seqs") == ["max_num_seqs", "8"]
    assert row(page, "kv bytes")[1].startswith(r"16.400 GiB \[16.395")
    assert row(page, "kv tokens")[1] == "75,824 tok"
    assert row(page, "attention backend")[1:] == ["FLASH", "<code>x.log</code>"]
    assert "**Where does the time go?**" in page


# ---- the printed tables


def test_summary_rows_are_the_claims() -> None:
    findings = [reports.finding("a"), reports.finding("b", level=None, verdict="untestable")]
    found = summary_rows(reports.analysis(reports.report(study(cell()), findings)))
    assert found == [
        ("s", "a", "supported", "S", "A reason."), ("s", "b", "untestable", "-", "A reason."),
    ]  # fmt: skip


def test_run_rows_are_the_cells_of_studies_without_claims() -> None:
    silent = study(
        cell("base", run(id="a"), run({"failed": 90}, id="b")),
        cell("other", run(id="c", arm="other")),
    )
    spoken = reports.report(study(cell(), name="t"), [reports.finding("c", "t")])
    rows = run_rows(reports.analysis(silent, spoken))
    assert [row[:3] for row in rows] == [
        ("s", "base on chat, 10 in flight", "INVALID"),
        ("s", "other on chat, 10 in flight", "VALID"),
    ]
    assert rows[1][3].startswith("Binding: client cap.")
    assert "A stay of 9,900 ms" in rows[1][3]


def test_a_markdown_table_escapes_its_cells() -> None:
    assert markdown_table(("A", "B"), [("a|b", "*c*"), ("d\ne", "")]) == (
        "| A | B |\n|---|---|\n| a&#124;b | \\*c\\* |\n| d e |  |"
    )


# ---- writing


def two(claims: tuple[str, ...] = ("a", "b")) -> Analysis:
    return reports.analysis(reports.report(study(cell()), [reports.finding(c) for c in claims]))


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes()
            for p in folder.rglob("*") if p.is_file()}  # fmt: skip


def test_a_report_is_written_with_the_list_of_its_files(tmp_path: Path) -> None:
    count = len(pages(two()))
    stale = write(pages(two()), tmp_path / "new" / "out")
    files = tree(tmp_path / "new" / "out")
    listed = files.pop(MANIFEST).decode().splitlines()
    assert [f"{sha256(files[name]).hexdigest()} {name}" for name in sorted(files)] == listed
    assert (count, stale) == (len(files), [])
    assert {name: text.decode() for name, text in files.items()} == pages(two())


def test_a_second_report_equals_the_first_to_the_byte(tmp_path: Path) -> None:
    write(pages(two()), tmp_path)
    first = tree(tmp_path)
    assert write(pages(two()), tmp_path) == []
    assert tree(tmp_path) == first


def test_pages_that_are_no_longer_written_go_and_files_of_others_stay(tmp_path: Path) -> None:
    write(pages(two()), tmp_path)
    mine = tmp_path / "s" / "claims" / "mine.md"
    mine.write_text("mine")
    (tmp_path / "README.md").write_text("mine")
    assert write(pages(two(("b",))), tmp_path) == ["s/claims/a.md"]
    assert not (tmp_path / "s/claims/a.md").exists()
    assert mine.exists()
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_page_that_was_removed_by_hand_is_no_trouble(tmp_path: Path) -> None:
    write(pages(two()), tmp_path)
    (tmp_path / "s/claims/a.md").unlink()
    assert write(pages(two(("b",))), tmp_path) == []


def test_a_page_that_somebody_changed_is_theirs(tmp_path: Path) -> None:
    write(pages(two()), tmp_path)
    changed = tmp_path / "s/claims/a.md"
    changed.write_text("mine")
    assert write(pages(two(("b",))), tmp_path) == []
    assert changed.read_text() == "mine"


def test_a_list_of_files_that_another_wrote_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine")
    (tmp_path / "folder").mkdir()
    other = sha256(b"another").hexdigest()
    (tmp_path / MANIFEST).write_text(f"notes.md\n{other} notes.md\n folder\n gone.md\n")
    assert write(pages(two()), tmp_path) == []
    assert (tmp_path / "notes.md").read_text() == "mine"


def test_two_runs_into_one_folder_share_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, inner = Path.replace, iter([True])

    def between(draft: Path, target: Path) -> Path:
        if next(inner, False):  # the other run writes the same page before this one is done
            with monkeypatch.context() as other:
                other.setattr("os.getpid", lambda: 1)
                write({"a.md": "theirs"}, tmp_path)
        return replace(draft, target)

    monkeypatch.setattr(Path, "replace", between)
    write({"a.md": "ours"}, tmp_path)
    assert (tmp_path / "a.md").read_text() == "ours"
    assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST, "a.md"]


def test_a_claim_renamed_in_case_only_keeps_its_page(tmp_path: Path) -> None:
    write(pages(two(("claim",))), tmp_path)
    write(pages(two(("Claim",))), tmp_path)
    assert "s/claims/Claim.md" in tree(tmp_path)


def test_a_list_of_files_that_points_elsewhere_removes_nothing(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("x")
    out = tmp_path / "out"
    write(pages(two()), out)
    held = sha256(b"x").hexdigest()
    names = ("../victim", victim, "", "s/../../victim")
    (out / MANIFEST).write_text("".join(f"{held} {name}\n" for name in names))
    assert write(pages(two()), out) == []
    assert victim.exists()


def test_a_list_of_files_that_is_no_text_is_left_aside(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b"\xff\xfe")
    assert write(pages(two()), tmp_path) == []


def in_place_of_a_folder(out: Path) -> None:
    out.mkdir()
    (out / "s").write_text("a file")


def in_place_of_the_report(out: Path) -> None:
    out.write_text("a file")


def in_place_of_a_page(out: Path) -> None:
    (out / "index.md").mkdir(parents=True)


@pytest.mark.parametrize(
    "block", [in_place_of_a_folder, in_place_of_the_report, in_place_of_a_page]
)
def test_a_folder_that_cannot_be_written_is_the_callers_error(
    tmp_path: Path, block: Callable[[Path], None]
) -> None:
    block(tmp_path / "out")
    with pytest.raises(OSError):
        write(pages(two()), tmp_path / "out")


# ---- the site


def test_a_strict_site_can_be_built_of_hostile_results(tmp_path: Path) -> None:
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "analysis" / "theme", tmp_path / "analysis" / "theme")
    shutil.copytree(
        ROOT / "docs", tmp_path / "docs",
        ignore=lambda folder, names: [n for n in names if folder.endswith("findings")
                                      and n != "README.md"],
    )  # fmt: skip
    names = ["../../x", "README", "rules", "é 漢", "a b", "A-B"]
    texts = [everything(text) for text in ('--8<-- "index.md"', "](x.md) <b>", "[x](y.md){: .z }")]
    found = [*hostile(names).studies, *(report for one in texts for report in one.studies)]
    write(pages(reports.analysis(*found)), tmp_path / "docs" / "findings")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", "site"],
        cwd=tmp_path, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site" / "findings"
    assert (site / "x" / "index.html").is_file()
    assert (site / "rules-2" / "index.html").is_file()
    assert "How verdicts are reached" in (site / "rules" / "index.html").read_text("utf-8")


class TestLinksBelowOut:
    def test_nothing_is_written_through_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "victim").mkdir()
        out = tmp_path / "out"
        out.mkdir()
        (out / "here").symlink_to(tmp_path / "victim")
        with pytest.raises(OSError, match="link"):
            write({"here/a.md": "x"}, out)
        assert list((tmp_path / "victim").iterdir()) == []

    def test_nor_the_list_of_files(self, tmp_path: Path) -> None:
        (tmp_path / "victim").write_text("mine")
        out = tmp_path / "out"
        out.mkdir()
        (out / MANIFEST).symlink_to(tmp_path / "victim")
        with pytest.raises(OSError, match="link"):
            write({"a.md": "x"}, out)
        assert (tmp_path / "victim").read_text() == "mine"

    def test_nothing_is_removed_through_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "victim").mkdir()
        kept = tmp_path / "victim" / "v.txt"
        kept.write_text("mine")
        out = tmp_path / "out"
        out.mkdir()
        (out / "l").symlink_to(tmp_path / "victim")
        held = sha256(b"mine").hexdigest()
        (out / MANIFEST).write_text(f"{held} l/v.txt\n{held} a\0b\n")
        write({"a.md": "x"}, out)
        assert kept.read_text() == "mine"

    def test_a_draft_that_is_a_link_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "w").write_text("mine")
        out = tmp_path / "out"
        out.mkdir()
        (out / f"a.md.{os.getpid()}.part").symlink_to(tmp_path / "w")
        write({"a.md": "x"}, out)
        assert (tmp_path / "w").read_text() == "mine"
        assert (out / "a.md").read_text() == "x"


def test_file_pages_print_what_was_read_and_sort_their_rows(shipped: dict[str, str]) -> None:
    assert "| max num seqs 8 |" in shipped["files/writeup-study.toml.md"]
    models = shipped["files/models.toml.md"]
    assert "| FLOP a token 28.0 GFLOP |" in models
    assert "KV bytes a token 163,840 B" in models
    runs = shipped["files/writeup-parallelism_l4.csv.md"]
    assert "Rows are counted from 1, the header left out." in runs
    numbers = [int(n) for n in re.findall(r"<code>row (\d+)", runs)]
    assert numbers == sorted(numbers)
    assert "no number" not in "".join(v for k, v in shipped.items() if k.startswith("files/"))


def test_suspect_runs_are_named_where_they_do_not_matter(shipped: dict[str, str]) -> None:
    page = shipped["writeup/claims/itl-64-percent-less.md"]
    assert "SA102 delivered-load" in page
    assert "does not bear on a claim of this kind" in page
    assert "NOT CHECKED" in shipped["quality.md"]


def test_the_board_starts_with_a_few_sentences_and_no_title_stands_twice(
    shipped: dict[str, str],
) -> None:
    index = shipped["index.md"]
    assert index[: index.index("Each sentence below")].count("\n- <span") == 5
    # A sentence may be judged in several studies, by other runs; within one it stands once.
    titles = re.findall(r"^\| <span[^|]*\| \[(.*?)\]\(.*\| ([\w-]+) \|$", index, re.M)
    study = [line for line in index.splitlines() if line.endswith("| writeup |")]
    assert len(study) > 150
    assert len(titles) > 200
    assert len(set(titles)) == len(titles)


# ---- what servers told


def test_what_the_servers_said_stands_on_the_page_of_data_quality(tmp_path: Path) -> None:
    two = [simulated(in_flight=4, slots=2, requests=n) for n in (56, 60)]
    write_run(tmp_path / "direct" / "chat-c8-r1", two, arm="direct")
    write_run(tmp_path / "free" / "chat-c8-r1", [simulated(slots=16)], arm="free", evidence=False)
    page = pages(analyse(tmp_path))["quality.md"]
    rows = [row.split(" | ") for row in page.partition("What the servers said")[2].splitlines()]
    (row,) = [row for row in rows if "replica-0" in row[-1]]
    queue = sum(sum(sim.queue) for sim in two) / 116
    served = "replica-0: 56, replica-1: 60 |"
    assert row[1:] == [f"{1000 * queue:.0f} ms", "3.73", "0", "50.0 %", served]
    assert page.count("bench.json") > 0
    assert "server: 400" not in page


def test_without_such_a_run_the_page_has_no_such_part() -> None:
    page = pages(reports.analysis(study(cell())))["quality.md"]
    assert "What the servers said" not in page
