"""The whole command as a user runs it: output, exit codes, bad input, sameness."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import PIPE

import pytest

from analysis.cli import main
from analysis.serialise import dumps
from tests.whole import PUBLISHED, RESULTS, ROOT, copy_results, edit, published

GOLDEN = Path(__file__).parent / "golden"
BENCH = Path(__file__).parent / "data" / "bare"


def run(*args: str | Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main([str(arg) for arg in args])
    found = capsys.readouterr()
    return code, found.out, found.err


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def golden(name: str, text: str) -> None:
    """Compare with the stored text; UPDATE_GOLDEN=1 writes it instead."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"see tests/golden/{name}"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the shipped results; what was printed lies beside it."""
    out = tmp_path_factory.mktemp("shipped") / "findings"
    printed, told = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(told):
        assert main([str(RESULTS), "--out", str(out)]) == 0
    assert told.getvalue() == ""
    (out.parent / "printed").write_text(printed.getvalue(), encoding="utf-8")
    return out


def bench_record(**change: object) -> dict[str, object]:
    """A summary of `vllm bench serve`, complete and consistent."""
    record: dict[str, object] = {
        "date": "20260101-000000", "backend": "vllm", "model_id": "some/model",
        "num_prompts": 400, "request_rate": "inf", "max_concurrency": 8, "duration": 500.0,
        "completed": 400, "failed": 0, "total_input_tokens": 40000, "total_output_tokens": 40000,
        "request_throughput": 0.8, "output_throughput": 80.0, "total_token_throughput": 160.0,
        "mean_ttft_ms": 100.0, "median_ttft_ms": 95.0, "p99_ttft_ms": 200.0,
        "mean_itl_ms": 98.0, "median_itl_ms": 97.0, "p99_itl_ms": 120.0,
    }  # fmt: skip
    record.update(change)
    return record


def write(path: Path, record: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


# ---- output


def test_printed_table_of_the_shipped_results(shipped: Path) -> None:
    printed = (shipped.parent / "printed").read_text(encoding="utf-8")
    golden("table.txt", printed.replace(str(shipped.parent), "OUT"))


def test_pages_of_the_shipped_results(shipped: Path) -> None:
    for name in ("index.md", "writeup/claims/itl-fell-as-the-queue-went.md"):
        golden(name.replace("/", "__"), (shipped / "docs" / name).read_text(encoding="utf-8"))


def test_json_on_standard_output_is_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = copy_results(tmp_path / "results", *PUBLISHED)
    code, out, _ = run(root, "--out", tmp_path / "f", "--format", "json", capsys=capsys)
    assert code == 0
    assert out == (tmp_path / "f/docs/findings.json").read_text(encoding="utf-8")


def test_markdown_on_standard_output_is_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = copy_results(tmp_path / "results", *PUBLISHED)
    args = (root, "--out", tmp_path / "f", "--format", "markdown", "--study", "book-ch09")
    code, out, _ = run(*args, capsys=capsys)
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert code == 0
    assert rows[0] == "| Study | Claim | Verdict | Level | Why |"
    assert all(line.count("|") - line.count("\\|") == 6 for line in rows)


def test_numbers_are_written_with_ten_digits(shipped: Path) -> None:
    text = (shipped / "docs/findings.json").read_text(encoding="utf-8")
    for token in re.findall(r"(?<![\w.\"-])-?\d+\.\d+(?:e[+-]?\d+)?(?=[,\n\s}\]])", text):
        mantissa = token.split("e")[0].replace("-", "").replace(".", "").strip("0")
        assert len(mantissa) <= 10, token


def test_every_number_has_a_source_or_says_what_it_assumes(shipped: Path) -> None:
    document = json.loads((shipped / "docs/findings.json").read_text(encoding="utf-8"))
    for study in document["studies"]:
        for finding in study["findings"]:
            for number in finding["numbers"]:
                named = number["sources"] or number["interval"] in ("extrapolated", "rounding")
                assert named or number["definition"], (finding["id"], number["name"])
                for source in number["sources"]:
                    file = source["file"]
                    tables = ("hardware.toml", "models.toml", "")
                    assert file in tables or (RESULTS / file).is_file(), source


# ---- the same input gives the same bytes


def test_same_bytes_elsewhere_and_with_other_jobs(shipped: Path, tmp_path: Path) -> None:
    elsewhere = copy_results(tmp_path / "some" / "other place")
    assert main([str(elsewhere), "--out", str(tmp_path / "f"), "--jobs", "2"]) == 0
    assert tree(tmp_path / "f") == tree(shipped)


def test_same_bytes_twice_in_one_process(tmp_path: Path) -> None:
    root = copy_results(tmp_path / "results", *PUBLISHED, "cpu-smoke")
    for name in ("once", "again"):
        assert main([str(root), "--out", str(tmp_path / name)]) == 0
    assert tree(tmp_path / "once") == tree(tmp_path / "again")


def test_same_bytes_in_a_process_with_another_hash_seed(shipped: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Seoul", "LC_ALL": "C"}
    command = [sys.executable, "-m", "analysis.cli", str(RESULTS), "--out", str(tmp_path / "f")]
    subprocess.run(command, check=True, env=env, cwd=ROOT, capture_output=True)
    assert tree(tmp_path / "f") == tree(shipped)


def test_no_absolute_path_in_the_output(shipped: Path) -> None:
    for name, data in tree(shipped).items():
        assert str(ROOT).encode() not in data, name


def test_a_second_run_removes_pages_of_claims_that_are_gone(tmp_path: Path) -> None:
    root = copy_results(tmp_path / "results", "writeup", "book-ch09")
    out = tmp_path / "findings"
    main([str(root), "--out", str(out)])
    (out / "mine.md").write_text("a page of the user's own", encoding="utf-8")
    shutil.rmtree(root / "book-ch09")
    main([str(root), "--out", str(out)])
    assert not list(out.glob("docs/book-ch09/**/*.md"))
    assert (out / "mine.md").exists()


# ---- renaming changes names and nothing else


ARMS = {
    "fp16": "zeta-qqa", "awq-tuned": "alpha-qqb", "awq": "mu-qqc", "single": "beta-qqd",
    "tp2": "omega-qqe", "pp2": "chi-qqf", "replica2_direct": "aa-qqg", "replica2_rr": "zz-qqh",
    "replica2_cache": "kk-qqi",
}  # fmt: skip
WORKLOADS = {"sharegpt": "zwork-qqj", "prefix_repetition": "awork-qqk"}


def rename(root: Path) -> dict[str, str]:
    """Rename every arm, workload and study of the first study; returns new -> old."""
    names = {**ARMS, **WORKLOADS}
    folder = root / "writeup"
    for file in ("study.toml", "claims.toml"):
        text = (folder / file).read_text(encoding="utf-8")
        blocks = re.split(r"(?m)^(?=\[\[)", text)
        (folder / file).write_text("".join(_renamed(block, names) for block in blocks))
    startup = {"replica2": "replica2"}
    for file in ("quantization_l40s.csv", "parallelism_l4.csv", "startup_logs.csv"):
        lines = []
        for line in (folder / file).read_text(encoding="utf-8").splitlines():
            cells = [names.get(cell, startup.get(cell, cell)) for cell in line.split(",")]
            lines.append(",".join(cells))
        (folder / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    for other in root.glob("*/claims.toml"):
        if other.parent == folder:
            continue
        text = other.read_text(encoding="utf-8")
        blocks = re.split(r"(?m)^(?=\[\[claim\]\])", text)
        for place, block in enumerate(blocks):
            if "writeup" in block:
                blocks[place] = _rename_references(block, names)
        other.write_text("".join(blocks).replace('"writeup"', '"study-qqz"'), encoding="utf-8")
    edit(folder / "study.toml", 'name = "writeup"', 'name = "study-qqz"')
    claims = folder / "claims.toml"
    claims.write_text(
        claims.read_text(encoding="utf-8").replace('"writeup"', '"study-qqz"'), encoding="utf-8"
    )
    folder.rename(root / "study-qqz")
    return {**{new: old for old, new in names.items()}, "study-qqz": "writeup"}


def _renamed(block: str, names: dict[str, str]) -> str:
    """A table of a TOML file with its arms and workloads renamed, and nothing else of that name."""
    if re.search(r'(?m)^study = "book-ch09"', block):
        return block
    guard = "".join(f"(?<!{key} = )" for key in ("quantization", "method", "type"))
    for old, new in names.items():
        block = re.sub(rf'{guard}"{re.escape(old)}"', f'"{new}"', block)
    return re.sub(r"\{[^{}]*\}", _as_it_was(names), block)


def _as_it_was(names: dict[str, str]) -> Callable[[re.Match[str]], str]:
    """References to the other study keep its own names."""

    def one(found: re.Match[str]) -> str:
        text = found.group(0)
        if 'study = "book-ch09"' in text:
            for old, new in names.items():
                text = text.replace(f'"{new}"', f'"{old}"')
        return text

    return one


def _rename_references(block: str, names: dict[str, str]) -> str:
    """References of another study's claim to cells of the renamed one."""

    def one(found: re.Match[str]) -> str:
        text = found.group(0)
        if 'study = "writeup"' not in text:
            return text
        for old, new in names.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        return text

    return re.sub(r"\{[^{}]*\}", one, block)


def test_renaming_everything_changes_names_and_nothing_else(tmp_path: Path) -> None:
    root = copy_results(tmp_path / "results", *PUBLISHED)
    back = rename(root)
    out = tmp_path / "findings"
    assert main([str(root), "--out", str(out)]) == 0
    text = (out / "docs/findings.json").read_text(encoding="utf-8")
    for new, old in back.items():
        assert new in text, new
        text = text.replace(new, old)
    assert once(json.loads(text)) == once(json.loads(dumps(published())))


def once(value: object) -> object:
    """Each line of a list once: of two studies with arms of one name, some lines are the same."""
    if isinstance(value, dict):
        return {key: once(held) for key, held in value.items()}
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return list(dict.fromkeys(value))
    return [once(item) for item in value] if isinstance(value, list) else value


# ---- a folder without claims.toml


def test_one_bare_result_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "runs" / "result.json", bench_record())
    for target in (file.parent, file):
        out = tmp_path / f"out-{target.name}"
        code, printed, err = run(target, "--out", out, capsys=capsys)
        assert (code, err) == (0, "")
        flat = " ".join(printed.split())
        assert flat.startswith("VALID")
        assert "Binding: client cap. 7.84 of 8 allowed are in flight" in flat
        assert "Between 7.76 (past their first token) and 7.84 (all in flight) requests run" in flat
        assert "before the first token (1.0 %)" in flat


def test_arms_are_the_groups_of_equal_server_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seqs, scale in (("a1", 4, 1.0), ("a2", 4, 1.01), ("b1", 8, 0.5), ("b2", 8, 0.505)):
        record = bench_record(
            max_num_seqs=seqs, duration=500 * scale, request_throughput=0.8 / scale,
            output_throughput=80 / scale, total_token_throughput=160 / scale,
            mean_ttft_ms=100 * scale, mean_itl_ms=98 * scale, date=name,
            p99_itl_ms=120.0, median_itl_ms=97 * scale,
        )  # fmt: skip
        write(tmp_path / "runs" / name / "bench.json", record)
    out = tmp_path / "out"
    code, _, _ = run(tmp_path / "runs", "--out", out, capsys=capsys)
    assert code == 0
    document = json.loads((out / "docs/findings.json").read_text(encoding="utf-8"))
    (study,) = document["studies"]
    assert [arm["name"] for arm in study["arms"]] == [
        "model max_num_seqs=4", "model max_num_seqs=8",
    ]  # fmt: skip
    (pair,) = [a for a in study["answers"] if a["kind"] == "standing.differ"]
    assert "n = 2 and 2" in " ".join(pair["reasons"])
    assert any("max_num_seqs: 4 against 8" in c for c in pair["confounds"])


def test_what_a_study_leaves_out_on_purpose_is_no_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "runs/good.json", bench_record())
    write(tmp_path / "runs/warm.json", bench_record(num_prompts=10, completed=10))
    (tmp_path / "runs/study.toml").write_text(
        "[[assign]]\nwhere = { num_prompts = 10 }\nignore = true\n", encoding="utf-8"
    )
    code, _, err = run(tmp_path / "runs", "--out", tmp_path / "f", "--strict", capsys=capsys)
    assert code == 0
    assert "warm.json: left out by study.toml" in err


# ---- where the report goes


def test_a_report_of_its_own_is_a_site_that_mkdocs_builds(tmp_path: Path) -> None:
    file = write(tmp_path / "runs/result.json", bench_record())
    assert main([str(file), "--out", str(tmp_path / "report")]) == 0
    config = tmp_path / "report/mkdocs.yml"
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    command += ["-f", str(config), "-d", str(tmp_path / "site")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    page = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert "Content-Security-Policy" in page


def test_below_the_docs_of_a_site_only_pages_are_written(tmp_path: Path) -> None:
    file = write(tmp_path / "runs/result.json", bench_record())
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("site_name: mine\n", encoding="utf-8")
    assert main([str(file), "--out", str(tmp_path / "docs/findings")]) == 0
    assert (tmp_path / "docs/findings/index.md").is_file()
    assert not (tmp_path / "docs/findings/mkdocs.yml").exists()


def test_without_out_the_site_here_or_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "runs/result.json", bench_record())
    monkeypatch.chdir(tmp_path)
    assert main([str(file)]) == 0
    assert (tmp_path / "report/mkdocs.yml").is_file()
    (tmp_path / "mkdocs.yml").write_text("site_name: mine\n", encoding="utf-8")
    assert main([str(file)]) == 0
    assert (tmp_path / "docs/findings/index.md").is_file()


# ---- bad input: one clear line each, and the rest still analysed


def bad(folder: Path) -> dict[str, str]:
    """Bad files by name, each with a word its reason must hold."""
    good = json.dumps(bench_record())
    (folder / "empty.json").write_text("", encoding="utf-8")
    (folder / "truncated.json").write_text(good[:200], encoding="utf-8")
    (folder / "other.json").write_text('{"hello": 1}', encoding="utf-8")
    (folder / "nan.json").write_text(good.replace("98.0", "NaN"), encoding="utf-8")
    write(folder / "negative.json", bench_record(duration=-1.0))
    write(folder / "zero.json", bench_record(completed=0, failed=400))
    missing = bench_record()
    del missing["total_output_tokens"]
    write(folder / "missing.json", missing)
    (folder / "longline.json").write_text('{"a": "' + "x" * 5_000_000 + '"}', encoding="utf-8")
    (folder / "binary.json").write_bytes(bytes(range(256)) * 40)
    (folder / "link.json").symlink_to("/etc/passwd")
    with gzip.open(folder / "cut.json.gz", "wb") as file:
        file.write(good.encode())
    whole = (folder / "cut.json.gz").read_bytes()
    (folder / "cut.json.gz").write_bytes(whole[: len(whole) // 2])
    return {
        "empty.json": "empty", "truncated.json": "", "other.json": "hello", "nan.json": "NaN",
        "negative.json": "duration", "zero.json": "completed",
        "missing.json": "total_output_tokens",
        "longline.json": "", "binary.json": "", "link.json": "outside", "cut.json.gz": "",
    }  # fmt: skip


def test_bad_files_are_listed_and_the_rest_is_analysed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    write(folder / "good.json", bench_record())
    expected = bad(folder)
    code, out, err = run(folder, "--out", tmp_path / "f", capsys=capsys)
    assert code == 0
    assert "VALID" in out
    lines = err.splitlines()
    assert len(lines) == len(expected)
    for name, word in expected.items():
        (line,) = [line for line in lines if line.startswith(f"skipped: {name}: ")]
        assert word in line and len(line) < 400, line
    page = (tmp_path / "f" / "docs/index.md").read_text(encoding="utf-8")
    assert all(name.replace("_", "\\_") in page or name in page for name in expected)
    code, _, _ = run(folder, "--out", tmp_path / "f", "--strict", capsys=capsys)
    assert code == 1


def test_no_readable_run_at_all_is_an_input_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    bad(folder)
    code, out, err = run(folder, "--out", tmp_path / "f", capsys=capsys)
    assert (code, out) == (2, "")
    assert "no run could be read" in err.splitlines()[-1]
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('metric = "mean_itl"\nbase', 'metrik = "mean_itl"\nbase', "did you mean 'metric'?"),
        ('kind = "gap_attribution"', 'kind = "gap_atribution"', "did you mean 'gap_attribution'?"),
        ('baseline = "fp16"', 'baseline = "fp61"', "names arm 'fp61', which is not there"),
    ],
)
def test_mistakes_in_claims_are_one_line_with_the_nearest_right_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    root = copy_results(tmp_path / "results", "writeup")
    claims = root / "writeup/claims.toml"
    text = claims.read_text(encoding="utf-8")
    assert old in text
    claims.write_text(text.replace(old, new, 1), encoding="utf-8")
    code, out, err = run(root, "--out", tmp_path / "f", capsys=capsys)
    assert code == 0
    first = err.splitlines()[0]
    assert first.startswith("skipped: writeup/claims.toml: claim ") and said in first
    assert "supported" in out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nowhere"], "no such file or folder"),
        (["doctor"], "a folder of that name is ./doctor"),
        ([], "RESULTS"),
        ([str(RESULTS), "--jobs", "0"], "give 1 to 256"),
        ([str(RESULTS), "--study", "writeupp"], "did you mean 'writeup'?"),
        ([str(RESULTS), "--format", "yaml"], "invalid choice"),
    ],
)
def test_usage_errors_exit_2_with_one_clear_line(
    capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    assert main(args) == 2
    assert said in capsys.readouterr().err


def test_out_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    file = write(tmp_path / "runs/result.json", bench_record())
    code, _, err = run(file, "--out", tmp_path / "file" / "below", capsys=capsys)
    assert code == 2
    assert "cannot be written" in err


def test_a_folder_called_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "doctor/result.json", bench_record())
    monkeypatch.chdir(tmp_path)
    assert main(["./doctor", "--out", "f"]) == 0


def test_the_reader_of_the_output_leaves(tmp_path: Path) -> None:
    root = str(RESULTS / "writeup")
    command = [sys.executable, "-m", "analysis.cli", root, "--out", str(tmp_path / "f")]
    with subprocess.Popen(command, cwd=ROOT, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def printed_to(out: Path, stdout: str, *more: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The command with its output going to a file of the system's."""
    file = write(out.parent / "runs/result.json", bench_record())
    command = [sys.executable, "-m", "analysis.cli", str(file), "--out", str(out), *more]
    with Path(stdout).open("w") as target:
        return subprocess.run(
            command, cwd=ROOT, stdout=target, stderr=PIPE, text=True, check=False,
            env={**os.environ, **env},
        )  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_is_full(tmp_path: Path) -> None:
    done = printed_to(tmp_path / "f", "/dev/full")
    assert done.returncode == 2
    assert done.stderr == "analyze: what is printed cannot be written: No space left on device\n"


def test_a_terminal_that_knows_ascii_only(tmp_path: Path) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    done = printed_to(tmp_path / "f", str(tmp_path / "printed"), **ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "printed").read_bytes().isascii()
    done = printed_to(
        tmp_path / "docs/f", str(tmp_path / "printed"), "--format", "json", **ascii_only
    )
    assert (done.returncode, done.stderr) == (0, "")
    written = (tmp_path / "docs/f/docs/findings.json").read_bytes()
    assert (tmp_path / "printed").read_bytes() == written


def test_names_and_sentences_reach_the_terminal_without_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\\u001b[2J" + "x" * 5_000
    write(tmp_path / "s/r\x1b[2J.json", bench_record())
    (tmp_path / "s/claims.toml").write_text(
        f'[[claim]]\nid = "i{evil}"\nkind = "k{evil}"\nsays = "x"\nsource = "y"\n'
        f'[[claim]]\nid = "j{evil}"\nkind = "composite"\nparts = ["{evil}"]\n'
        f'says = "x"\nsource = "y"\n',
        encoding="utf-8",
    )
    for form in ("table", "markdown"):
        code, out, err = run(
            tmp_path / "s", "--out", tmp_path / "f", "--study", f"no\x1b{evil}", capsys=capsys
        )
        assert code == 2
        assert (err + out).replace("\n", "").isprintable()
        code, out, err = run(
            tmp_path / "s", "--out", tmp_path / "f", "--format", form, capsys=capsys
        )
        assert code == 0, err
        assert (err + out).replace("\n", "").isprintable()
        assert max(map(len, err.splitlines())) < 1_500
