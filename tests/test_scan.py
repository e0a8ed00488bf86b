"""analysis.scan: what is read, what is left out, what is refused, and always in the same order."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import shutil
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import scan as scanner
from analysis.formats import vllm_bench
from analysis.model import Ignored, Level, Record, Requests, Run, Skipped, Source
from analysis.scan import merge, scan

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
RESULT: dict[str, Any] = {
    "date": "d", "duration": 2.0, "completed": 4, "total_input_tokens": 8,
    "total_output_tokens": 8, "request_throughput": 2.0, "setup": "one",
}  # fmt: skip


def put(path: Path, data: bytes | str | dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data) if isinstance(data, dict) else data
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def told(root: Path) -> dict[str, str]:
    """File -> reason of everything that is no run."""
    return {r.file: r.reason for r in scan(root) if isinstance(r, Skipped | Ignored)}


def shape(records: list[Record]) -> list[object]:
    """Records in a form that compares by value, arrays included."""
    found = []
    for record in records:
        out = io.BytesIO()
        pickler = pickle.Pickler(out)
        # Of two files read by two processes, equal names are not one object.
        pickler.fast = True
        pickler.dump(record)
        found.append(out.getvalue())
    return list(found)


class TestShipped:
    def test_the_book_holds_27_records_of_23_measurements(self) -> None:
        records = scan(ROOT / "results" / "book-ch09")
        assert all(isinstance(record, Run) for record in records)
        runs = [record for record in records if isinstance(record, Run)]
        assert len(runs) == 23
        twice = [run for run in runs if run.also_in]
        assert len(twice) == 4
        assert [str(source) for run in twice for source in run.also_in] == [
            f"test_serve_results.txt: record {i}" for i in (1, 2, 3, 4)
        ]
        assert twice[0].config["setup"] == "sharegpt-Qwen3"

    def test_nothing_that_ships_is_skipped(self) -> None:
        records = scan(ROOT / "results")
        assert [record for record in records if isinstance(record, Skipped)] == []
        assert len({run.id for run in records if isinstance(run, Run)}) == sum(
            isinstance(record, Run) for record in records
        )

    def test_the_same_with_any_number_of_jobs_and_in_another_place(self, tmp_path: Path) -> None:
        shutil.copytree(DATA, tmp_path / "elsewhere")
        put(tmp_path / "elsewhere" / "bad.json", '{"duration": 1, "completed": 1,}')
        one = scan(tmp_path / "elsewhere")
        assert shape(scan(tmp_path / "elsewhere", jobs=2)) == shape(one)
        shutil.move(tmp_path / "elsewhere", tmp_path / "moved")
        assert shape(scan(tmp_path / "moved", jobs=3)) == shape(one)
        assert not any(str(tmp_path) in repr(record) for record in one)
        assert any(isinstance(record, Run) and record.requests for record in one)

    def test_values_nested_as_deep_as_the_stack_are_read_or_skipped_with_any_number_of_jobs(
        self, tmp_path: Path
    ) -> None:
        limit = sys.getrecursionlimit()
        for depth in range(limit - 80, limit + 10):
            text = json.dumps(RESULT)[:-1] + ', "deep": ' + "[" * depth + "]" * depth + "}"
            put(tmp_path / f"{depth}.json", text)
        one = scan(tmp_path)
        assert {type(record) for record in one} == {Run, Skipped}
        assert shape(scan(tmp_path, jobs=2)) == shape(one)

        def deeper(levels: int) -> list[Record]:
            return deeper(levels - 1) if levels else scan(tmp_path)

        assert shape(deeper(50)) == shape(one)

    def test_a_sweep(self) -> None:
        records = scan(DATA / "sweep")
        assert [type(record).__name__ for record in records] == ["Run", "Ignored", "Ignored"]


class TestWalk:
    def test_order_is_that_of_the_paths(self, tmp_path: Path) -> None:
        for name in ("b/z.json", "b.json", "a/2.json", "a/10.json"):
            put(tmp_path / name, {**RESULT, "date": name})
        found = [record.id for record in scan(tmp_path) if isinstance(record, Run)]
        assert found == ["a/10.json", "a/2.json", "b/z.json", "b.json"]

    def test_folders_nested_deeper_than_the_stack(self, tmp_path: Path) -> None:
        made = [tmp_path]
        for _ in range(sys.getrecursionlimit() + 100):
            made.append(made[-1] / "d")
            made[-1].mkdir()
        deepest = put(made[-1] / "r.json", RESULT)
        try:
            (run,) = scan(tmp_path)
            assert isinstance(run, Run)
            assert run.source.file == deepest.relative_to(tmp_path).as_posix()
        finally:  # the usual removal of a tree recurses
            deepest.unlink()
            for folder in reversed(made[1:]):
                folder.rmdir()

    @pytest.mark.parametrize(
        "text",
        [" \n" * 40_000 + json.dumps(RESULT), json.dumps({"texts": ["word"] * 20_000, **RESULT})],
        ids=["blanks", "a-long-first-value"],
    )
    def test_keys_behind_the_first_64_kib(self, tmp_path: Path, text: str) -> None:
        put(tmp_path / "r.json", text)
        put(tmp_path / "s.json.gz", gzip.compress(text.encode()))
        (run,) = scan(tmp_path)
        assert isinstance(run, Run)
        assert len(run.also_in) == 1

    def test_left_out_silently_or_by_name(self, tmp_path: Path) -> None:
        for name in (".hidden", ".git/x", "study.toml", "claims.toml", "s/study.toml"):
            put(tmp_path / name, "x")
        put(tmp_path / "t.csv", "a\n1\n")
        put(tmp_path / "t.toml", "broken")
        for name in ("README", "README.md", "notes.md", "s/NOTICE", "LICENSE.txt"):
            put(tmp_path / name, "x")
        assert {file: type(record).__name__ for record in scan(tmp_path)
                for file in [getattr(record, "file", "")]} == {
            "t.csv": "Skipped", "README": "Ignored", "README.md": "Ignored",
            "notes.md": "Ignored", "s/NOTICE": "Ignored", "LICENSE.txt": "Ignored",
        }  # fmt: skip

    def test_one_file(self, tmp_path: Path) -> None:
        path = put(tmp_path / "deep" / "r.json", RESULT)
        (run,) = scan(path)
        assert isinstance(run, Run)
        assert run.id == "r.json"
        link = tmp_path / "link.json"
        link.symlink_to(path)
        (linked,) = scan(link)
        assert isinstance(linked, Run)
        assert linked.id == "link.json"

    def test_no_such_folder(self, tmp_path: Path) -> None:
        assert scan(tmp_path / "none") == [Skipped("none", "no such file or folder")]

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        assert scan(tmp_path) == []
        assert scan(tmp_path, jobs=4) == []

    def test_links(self, tmp_path: Path) -> None:
        outside = put(tmp_path / "outside" / "r.json", RESULT)
        root = tmp_path / "root"
        put(root / "a" / "r.json", RESULT)
        (root / "a" / "out.json").symlink_to(outside)
        (root / "a" / "up.json").symlink_to(Path("../../outside/r.json"))
        (root / "b").mkdir()
        (root / "b" / "same.json").symlink_to(root / "a" / "r.json")
        (root / "b" / "loop").symlink_to(root)
        (root / "b" / "nowhere").symlink_to(root / "gone")
        (root / "b" / "self").symlink_to(root / "b" / "self")
        (root / "b" / "folder").symlink_to(tmp_path / "outside")
        records = scan(root)
        assert [run.id for run in records if isinstance(run, Run)] == ["a/r.json", "b/same.json"]
        reasons = told(root)
        for name in ("a/out.json", "a/up.json", "b/folder"):
            assert "points outside the results folder" in reasons[name]
        assert "a link to a folder" in reasons["b/loop"]
        for name in ("b/nowhere", "b/self"):
            assert "leads nowhere or to itself" in reasons[name]

    def test_a_pipe_is_not_opened(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.json")
        assert "no regular file" in told(tmp_path)["pipe.json"]

    def test_a_name_that_is_no_text(self, tmp_path: Path) -> None:
        name = os.fsdecode(b"r\xff.json")
        put(tmp_path / name, RESULT)
        (run,) = scan(tmp_path)
        assert isinstance(run, Run)
        assert run.id == "r\\udcff.json"
        run.id.encode()

    def test_a_name_that_a_terminal_would_obey(self, tmp_path: Path) -> None:
        put(tmp_path / "a\n\x1b[2J\u202eb.json", RESULT)
        (run,) = scan(tmp_path)
        assert isinstance(run, Run)
        assert run.source.file == "a\\n\\x1b[2J\\u202eb.json"

    def test_what_may_not_be_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        put(tmp_path / "a" / "r.json", RESULT)
        put(tmp_path / "b.json", RESULT)
        put(tmp_path / "c.json", RESULT)
        listing, opening, asking = Path.iterdir, Path.open, Path.stat

        def refuse(real: Any, name: str) -> Any:
            def method(self: Path, *args: Any, **kwargs: Any) -> Any:
                if self.name == name:
                    raise PermissionError(13, "Permission denied")
                return real(self, *args, **kwargs)

            return method

        monkeypatch.setattr(Path, "iterdir", refuse(listing, "a"))
        monkeypatch.setattr(Path, "open", refuse(opening, "b.json"))
        monkeypatch.setattr(Path, "stat", refuse(asking, "c.json"))
        assert told(tmp_path) == {
            "a": "the folder cannot be listed: Permission denied",
            "b.json": "cannot be read: Permission denied",
            "c.json": "cannot be read: Permission denied",
        }


class TestUnusable:
    @pytest.mark.parametrize(
        ("name", "data", "reason"),
        [
            ("a.json", b"", "the file is empty"),
            ("a.json.gz", gzip.compress(b"", mtime=0), "the file is empty"),
            ("a.json", b"\xff\xfe{\0", "UTF-16 text, expected UTF-8"),
            ("a.png", b"\x89PNG\0\0", "a binary file, expected a vllm bench serve result"),
            ("a.json", b'{"a": 1, "b": 2, "c": 3, "d": 4}',
             "JSON with the keys a, b, c and 1 more, expected a result of vllm bench serve (keys "),
            ("a.json", b"{}", "JSON with the keys none"),
            ("a.json", b'{"a": 1}\n{"b": 2}\n', "JSON with the keys a, expected"),
            ("a.json", b'[{"x": 1}, 2]', "JSON with the keys x, expected"),
            ("a.json", b"[1, 2]", "a JSON list without an object, expected"),
            ("a.json", b'{"a": 1,}', "not valid JSON (JSON is malformed: trailing comma"),
            ("a.json", b'{"a": [' + b"1, " * 40_000 + b"1]}", "JSON with keys such as a, expected"),
            ("a.json", b'{"a"', "JSON with keys such as none, expected"),
            ("a.json", b"[" * 50_000, "JSON with keys such as none, expected"),
            ("a.toml", b"x = 1", "a TOML file without a.csv beside it"),
            ("a.log", b"hello\nworld", "text that begins 'hello', but no startup line of a vLLM"),
            (
                "a.txt.gz",
                gzip.compress(b"hello", mtime=0),
                "text that begins 'hello', but no startup line",
            ),
            ("a.yaml", b"x: 1", "an unknown file that begins 'x: 1', expected"),
            ("a.json", b"x" * 3_000_000, "an unknown file that begins 'xxxx"),
            ("a.json", b'{"duration": 1, "completed": ' + b"9" * 3_000_000, "the JSON object is"),
        ],
    )  # fmt: skip
    def test_one_clear_line_and_the_rest_is_read(
        self, tmp_path: Path, name: str, data: bytes, reason: str
    ) -> None:
        put(tmp_path / "s" / name, data)
        put(tmp_path / "s" / "z.json", RESULT)
        skipped, run = scan(tmp_path)
        assert isinstance(skipped, Skipped)
        assert isinstance(run, Run)
        assert skipped.file == f"s/{name}"
        assert skipped.reason.startswith(reason)
        assert "\n" not in skipped.reason
        assert len(skipped.reason) < 400

    def test_a_fault_of_a_reader_costs_one_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(path: Path, file: str) -> list[Record]:
            raise ZeroDivisionError("division\nby zero")

        monkeypatch.setattr(vllm_bench, "read", broken)
        put(tmp_path / "a.json", RESULT)
        assert told(tmp_path)["a.json"] == (
            "reading it failed (ZeroDivisionError: division by zero); "
            "please report this with the file"
        )

    def test_a_reader_that_finds_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vllm_bench, "read", lambda path, file: [])
        put(tmp_path / "a.json", RESULT)
        assert told(tmp_path) == {"a.json": "the file holds no record"}

    def test_a_killed_reading_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Pool:
            def __init__(self, workers: int) -> None:
                assert workers == 2

            def __enter__(self) -> Pool:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def submit(self, work: Any, path: Path, file: str) -> Future[list[Record]]:
                future: Future[list[Record]] = Future()
                if file == "a.json":
                    future.set_exception(BrokenProcessPool())
                else:
                    future.set_result(work(path, file))
                return future

        monkeypatch.setattr(scanner, "ProcessPoolExecutor", Pool)
        put(tmp_path / "a.json", RESULT)
        put(tmp_path / "b.json", RESULT)
        skipped, run = scan(tmp_path, jobs=8)
        assert isinstance(run, Run)
        assert isinstance(skipped, Skipped)
        assert skipped.reason.endswith("use --jobs 1")


class TestMerge:
    def test_labels_may_differ_and_settings_are_joined(self, tmp_path: Path) -> None:
        put(tmp_path / "s" / "a.json", RESULT)
        put(tmp_path / "s" / "t" / "b.json", {**RESULT, "setup": "two", "env": "x"})
        (run,) = scan(tmp_path)
        assert isinstance(run, Run)
        assert run.id == "s/a.json"
        assert run.also_in == (Source("s/t/b.json", ""),)
        assert (run.config["setup"], run.config["env"]) == ("one", "x")

    def test_three_places(self, tmp_path: Path) -> None:
        for name in ("a", "b", "c"):
            put(tmp_path / f"{name}.json", RESULT)
        (run,) = scan(tmp_path)
        assert isinstance(run, Run)
        assert [source.file for source in run.also_in] == ["b.json", "c.json"]

    @pytest.mark.parametrize(
        "change", [{"duration": 2.5}, {"date": "e"}, {"p99_ttft_ms": 1.0}, {"failed": 1}]
    )
    def test_another_measurement_is_kept(self, tmp_path: Path, change: dict[str, Any]) -> None:
        put(tmp_path / "a.json", RESULT)
        put(tmp_path / "b.json", {**RESULT, **change})
        assert len(scan(tmp_path)) == 2

    def test_studies_are_apart_unless_the_folder_is_one_study(self, tmp_path: Path) -> None:
        put(tmp_path / "s" / "a.json", RESULT)
        put(tmp_path / "t" / "a.json", RESULT)
        assert len(scan(tmp_path)) == 2
        put(tmp_path / "claims.toml", "")
        assert len(scan(tmp_path)) == 1

    def test_per_request_arrays_are_taken_from_where_they_are(self, tmp_path: Path) -> None:
        arrays = {"ttfts": [0.5], "itls": [[]], "input_lens": [2], "output_lens": [2]}
        put(tmp_path / "a.json", RESULT)
        put(tmp_path / "b.json", {**RESULT, **arrays})
        (run,) = scan(tmp_path)
        assert isinstance(run, Run)
        assert run.level is Level.REQUESTS
        assert isinstance(run.requests, Requests)
        assert np.array_equal(run.requests.ttft, [0.5])

    def test_rows_of_tables_are_never_merged(self) -> None:
        row = Run("t.csv#1", Level.PUBLISHED, Source("t.csv", "row 1"), {})
        assert merge([row, row], one_study=True) == [row, row]
