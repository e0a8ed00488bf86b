"""analysis.formats.vllm_bench: every layout and version, and every way a record can be no run."""

from __future__ import annotations

import gzip
import json
import math
import shutil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from analysis import ragged
from analysis.formats import vllm_bench
from analysis.model import Level, Record, Run, Skipped, Source

DATA = Path(__file__).parents[1] / "data"
BOOK = Path(__file__).parents[2] / "results" / "book-ch09"

OLD: dict[str, Any] = {
    # What benchmark_serving.py of vLLM 0.6 wrote, with its own extra percentiles.
    "date": "20241001-120000", "backend": "vllm", "model_id": "m", "tokenizer_id": "m",
    "best_of": 1, "num_prompts": 10, "request_rate": "inf", "burstiness": 1.0,
    "max_concurrency": None, "duration": 2.0, "completed": 9, "total_input_tokens": 90,
    "total_output_tokens": 45, "request_throughput": 4.5, "output_throughput": 22.5,
    "total_token_throughput": 67.5, "mean_ttft_ms": 103.5, "median_ttft_ms": 90.0,
    "std_ttft_ms": 1.0, "p50_ttft_ms": 90.0, "p99.9_itl_ms": 40.0, "p99_e2el_ms": 900.0,
    "mean_tpot_ms": 20.0, "mean_itl_ms": 20.5,
}  # fmt: skip


def record(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**OLD, **changes}.items() if value is not ...}


def read(tmp_path: Path, text: str | bytes, name: str = "a.json") -> list[Record]:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return vllm_bench.read(path, name)


def one(tmp_path: Path, **changes: Any) -> Run:
    (found,) = read(tmp_path, json.dumps(record(**changes)))
    assert isinstance(found, Run), found
    return found


def refused(tmp_path: Path, **changes: Any) -> str:
    (found,) = read(tmp_path, json.dumps(record(**changes)))
    assert isinstance(found, Skipped)
    assert found.file == "a.json"
    assert "\n" not in found.reason
    return found.reason


class TestFigures:
    def test_milliseconds_become_seconds_and_keep_the_key_of_the_file(self, tmp_path: Path) -> None:
        run = one(tmp_path)
        figure = run.figures["mean_ttft"]
        assert (figure.value, figure.lo, figure.hi) == (0.1035, 0.1035, 0.1035)
        assert (figure.unit, figure.basis) == ("s", "exact")
        assert figure.source == Source("a.json", "mean_ttft_ms")
        assert run.figures["p99.9_itl"].value == 0.04
        assert run.figures["p50_ttft"].value == 0.09
        assert run.figures["p99_e2el"].value == 0.9
        assert "mean_ttft_ms" not in run.figures

    def test_counts_and_rates_have_their_units(self, tmp_path: Path) -> None:
        units = {name: figure.unit for name, figure in one(tmp_path).figures.items()}
        assert units["completed"] == ""
        assert units["total_input_tokens"] == "tok"
        assert units["request_throughput"] == "1/s"
        assert units["output_throughput"] == "tok/s"
        assert units["duration"] == "s"

    def test_failed_is_what_the_file_says_or_what_is_missing_from_the_prompts(
        self, tmp_path: Path
    ) -> None:
        derived = one(tmp_path).figures["failed"]
        assert (derived.value, derived.source.key) == (1, "num_prompts - completed")
        stated = one(tmp_path, failed=3).figures["failed"]
        assert (stated.value, stated.source.key) == (3, "failed")
        assert "failed" not in one(tmp_path, num_prompts=...).figures

    def test_more_completed_than_sent_is_a_warning(self, tmp_path: Path) -> None:
        run = one(tmp_path, completed=12)
        assert run.warnings == ("completed exceeds num_prompts by 2",)
        assert "failed" not in run.figures

    def test_an_optional_null_is_absent(self, tmp_path: Path) -> None:
        run = one(tmp_path, mean_ttft_ms=None, total_token_throughput=None)
        assert "mean_ttft" not in run.figures
        assert "total_token_throughput" not in run.figures


class TestRun:
    def test_a_bare_file(self, tmp_path: Path) -> None:
        run = one(tmp_path)
        assert (run.id, run.source) == ("a.json", Source("a.json", ""))
        assert run.level is Level.SUMMARY
        assert run.requests is None
        assert (run.arm, run.workload) == ("", "")

    @pytest.mark.parametrize(
        ("value", "rate"), [("inf", math.inf), (None, math.inf), (..., math.inf), (10, 10.0),
                            (0.5, 0.5), ("4", 4.0)]
    )  # fmt: skip
    def test_request_rate(self, tmp_path: Path, value: Any, rate: float) -> None:
        assert one(tmp_path, request_rate=value).requested_rate == rate

    def test_request_rate_as_python_prints_infinity(self, tmp_path: Path) -> None:
        assert one(tmp_path, request_rate=math.inf).requested_rate == math.inf

    @pytest.mark.parametrize("value", [0, -1, "fast", True, math.nan])
    def test_a_rate_that_is_none(self, tmp_path: Path, value: Any) -> None:
        assert "request_rate is" in refused(tmp_path, request_rate=value)

    @pytest.mark.parametrize(
        ("value", "cap"), [(None, None), (..., None), ("", None), (10, 10), (8.0, 8)]
    )
    def test_concurrency(self, tmp_path: Path, value: Any, cap: int | None) -> None:
        assert one(tmp_path, max_concurrency=value).concurrency == cap

    @pytest.mark.parametrize("value", [0, -4, 2.5, "ten", True, [1], math.inf, math.nan])
    def test_a_cap_that_is_none(self, tmp_path: Path, value: Any) -> None:
        assert "max_concurrency is" in refused(tmp_path, max_concurrency=value)

    def test_every_other_key_is_kept(self, tmp_path: Path) -> None:
        config = one(
            tmp_path, gpu="L4", tp=2, eager=False, label=None, rtfx=0.5, nested={"b": [1, 2.5]},
            long="x" * 900, huge=list(range(40_000)), request_goodput=None,
        ).config  # fmt: skip
        assert config["date"] == "20241001-120000"
        assert config["best_of"] == 1
        assert (config["gpu"], config["tp"], config["eager"], config["label"]) == (
            "L4", 2, False, None,
        )  # fmt: skip
        assert config["nested"] == '{"b":[1,2.5]}'
        assert len(str(config["long"])) == len(str(config["huge"])) == 500
        assert str(config["huge"]).startswith("[0, 1, 2")
        known = {"duration", "mean_ttft_ms", "p99.9_itl_ms", "max_concurrency", "request_rate"}
        assert not known & set(config)

    def test_a_setting_of_nan_does_not_cost_the_record(self, tmp_path: Path) -> None:
        assert math.isnan(float(str(one(tmp_path, extra=math.nan).config["extra"])))


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"duration": ...}, "duration missing among the keys date, backend, model_id and"),
            ({"duration": ..., "completed": ...}, "duration, completed missing"),
            ({"duration": -1.0}, "duration is -1.0, expected no negative number"),
            ({"duration": 0}, "duration is 0 although"),
            ({"duration": 1e300}, "duration is 1e+300, expected a finite number below 1e+18"),
            ({"mean_ttft_ms": 1e-300}, "is 1e-300, expected 0 or a number above 1e-60"),
            ({"completed": 10**400}, "expected a finite number below 1e+18"),
            ({"max_concurrency": 10**400}, "expected a positive count or null"),
            ({"duration": "2"}, 'duration is "2", expected a number'),
            ({"duration": None}, "duration is null, expected a number"),
            ({"duration": True}, "duration is true, expected a number"),
            ({"duration": [1]}, "duration is [1], expected a number"),
            ({"duration": math.nan}, "duration is NaN, expected a finite number"),
            ({"mean_ttft_ms": math.nan}, "mean_ttft_ms is NaN, expected a finite number"),
            ({"p99_itl_ms": math.inf}, "p99_itl_ms is Infinity, expected a finite number"),
            ({"mean_itl_ms": -0.5}, "mean_itl_ms is -0.5, expected no negative number"),
            ({"completed": 2.5}, "completed is 2.5, expected a whole number"),
            ({"completed": 0}, "completed is 0 (10 failed): nothing was measured"),
            ({"completed": 0, "num_prompts": ...}, "(how many failed is not recorded)"),
            ({"completed": 0, "errors": "x"}, "completed is 0 (10 failed): "),
            ({"completed": 0, "errors": ["", "refused\nmore"]}, "the first with: refused)"),
            ({"completed": 0, "errors": [""]}, "completed is 0 (10 failed): "),
            ({"completed": 0, "errors": ["Traceback (most\n  File\nKeyError: 'a'\n"]},
             "the first with: KeyError: 'a')"),
        ],
    )  # fmt: skip
    def test_reason(self, tmp_path: Path, changes: dict[str, Any], told: str) -> None:
        assert told in refused(tmp_path, **changes)

    def test_a_number_out_of_range(self, tmp_path: Path) -> None:
        text = json.dumps(record(mean_ttft_ms=1.5)).replace("1.5", "1e999", 1)
        (found,) = read(tmp_path, text)
        assert isinstance(found, Skipped)
        assert "1e999" in found.reason

    def test_the_real_run_in_which_everything_failed(self) -> None:
        (found,) = vllm_bench.read(DATA / "bench" / "all-failed-0.28.json", "x.json")
        assert isinstance(found, Skipped)
        assert found.reason.startswith(
            "completed is 0 (2 failed, the first with: "
            "aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host"
        )
        assert len(found.reason) < 400

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ('{"duration": 1, "completed": 2,}', "not valid JSON: JSON is malformed: trailing"),
            ('{"duration": 1, "completed": 2', "not complete (30 bytes, beginning"),
            ("[1, 2]", "not valid JSON: Expected `object`"),
        ],
    )
    def test_bad_json(self, tmp_path: Path, text: str, told: str) -> None:
        found = read(tmp_path, text)
        assert all(isinstance(item, Skipped) for item in found)
        assert told in str(found[0])


class TestLayouts:
    RECORDS = tuple(record(date=f"d{i}", duration=float(i)) for i in (1, 2, 3))

    @pytest.mark.parametrize(
        "text",
        [
            "\n".join(map(json.dumps, RECORDS)),
            "\r\n".join(map(json.dumps, RECORDS)) + "\r\n",
            "".join(map(json.dumps, RECORDS)),
            "\n".join(json.dumps(item, indent=4) for item in RECORDS),
            json.dumps(RECORDS),
            json.dumps(RECORDS, indent=1),
            "\ufeff" + "\n".join(map(json.dumps, RECORDS)),
        ],
        ids=["lines", "crlf", "concatenated", "pretty", "list", "pretty-list", "bom"],
    )
    @pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
    def test_several_records(self, tmp_path: Path, text: str, packed: bool) -> None:
        data = gzip.compress(text.encode()) if packed else text.encode()
        found = read(tmp_path, data, "b.json")
        assert [item.id for item in found if isinstance(item, Run)] == [
            "b.json#1", "b.json#2", "b.json#3",
        ]  # fmt: skip
        last = found[2]
        assert isinstance(last, Run)
        assert last.source == Source("b.json", "record 3")
        assert last.figures["duration"].source.key == "record 3: duration"
        assert last.figures["failed"].source.key == "record 3: num_prompts - completed"
        assert last.figures["duration"].value == 3.0

    def test_one_bad_record_costs_only_itself(self, tmp_path: Path) -> None:
        lines = [json.dumps(item) for item in self.RECORDS]
        lines[1:2] = [json.dumps(record(mean_ttft_ms=math.nan)), '{"completed": 3,}', '{"x": 1}']
        found = read(tmp_path, "\n".join(lines) + '\n{"date": "cut')
        assert [type(item).__name__ for item in found] == [
            "Run", "Skipped", "Skipped", "Skipped", "Run", "Skipped",
        ]  # fmt: skip
        reasons = [item.reason for item in found if isinstance(item, Skipped)]
        assert reasons[0].startswith("record 2: mean_ttft_ms is NaN")
        assert reasons[1].startswith("record 3: not valid JSON")
        assert reasons[2].startswith("record 4: no result of vllm bench serve")
        assert reasons[3].startswith("record 6: the JSON object is not complete")

    def test_a_damaged_gzip_keeps_what_came_before(self, tmp_path: Path) -> None:
        noise = [record(note=np.random.default_rng(i).bytes(200).hex()) for i in range(400)]
        data = gzip.compress("\n".join(map(json.dumps, noise)).encode())
        *kept, tail, damage = read(tmp_path, data[: len(data) // 2])
        assert len(kept) > 10
        assert all(isinstance(item, Run) for item in kept)
        assert isinstance(tail, Skipped)
        assert isinstance(damage, Skipped)
        assert damage.reason.startswith("the gzip data is damaged")

    def test_more_records_than_are_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ragged, "MOST_VALUES", 2)
        *kept, told = read(tmp_path, "\n".join(json.dumps(record(date=f"{n}")) for n in range(4)))
        assert [type(item) for item in kept] == [Run, Run]
        assert isinstance(told, Skipped)
        assert told.reason == "more than 2 records; the first were read, split the file"

    def test_a_key_that_stands_twice(self, tmp_path: Path) -> None:
        (found,) = read(tmp_path, json.dumps(record())[:-1] + ', "duration": 3}')
        assert isinstance(found, Skipped)
        assert 'the key "duration" stands twice; keep the right one' in found.reason

    def test_a_broken_list(self, tmp_path: Path) -> None:
        (found,) = read(tmp_path, '[{"duration": 1, "completed": NaN}]')
        assert isinstance(found, Skipped)


class TestRequests:
    ARRAYS: ClassVar[dict[str, Any]] = {
        "input_lens": [3, 4], "output_lens": [3, 0], "ttfts": [0.5, 0.0],
        "itls": [[0.1, 0.2], []], "start_times": [7.0, 7.5], "errors": ["", "Bad Request"],
        "generated_texts": ["a", ""], "latencies": [1, 2],
    }  # fmt: skip

    def test_arrays_make_level_r(self, tmp_path: Path) -> None:
        run = one(tmp_path, **self.ARRAYS)
        assert run.level is Level.REQUESTS
        got = run.requests
        assert got is not None
        assert got.ttft.tolist() == [0.5, 0.0]
        assert got.gaps.tolist() == [0.1, 0.2]
        assert got.offsets.tolist() == [0, 2, 2]
        assert got.input_tokens.tolist() == [3, 4]
        assert got.output_tokens.tolist() == [3, 0]
        assert got.failed.tolist() == [False, True]
        assert got.start is not None
        assert got.start.tolist() == [7.0, 7.5]
        assert not {"errors", "itls", "generated_texts", "latencies"} & set(run.config)

    def test_old_files_without_start_times_or_errors(self, tmp_path: Path) -> None:
        changes = {**self.ARRAYS, "start_times": ..., "errors": ...}
        got = one(tmp_path, **changes).requests
        assert got is not None
        assert got.start is None
        assert got.failed.tolist() == [False, True]

    @pytest.mark.parametrize("key", ["itls", "ttfts", "input_lens", "output_lens"])
    def test_a_missing_array_leaves_a_summary_with_a_warning(
        self, tmp_path: Path, key: str
    ) -> None:
        run = one(tmp_path, **{**self.ARRAYS, key: ...})
        assert (run.level, run.requests) == (Level.SUMMARY, None)
        assert run.warnings == (f"read as a summary: per-request arrays without {key}",)

    def test_arrays_of_unequal_length_leave_a_summary_with_a_warning(self, tmp_path: Path) -> None:
        run = one(tmp_path, **{**self.ARRAYS, "ttfts": [0.5]})
        assert run.requests is None
        assert "differ in length (ttfts 1, itls 2" in run.warnings[0]

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"itls": [[0.1, math.nan], []]}, "itls holds NaN, expected finite numbers"),
            ({"ttfts": [math.inf, 0.0]}, "ttfts holds Infinity, expected finite numbers"),
            ({"ttfts": [None, 0.0]}, "ttfts cannot be read as an array: Expected `float`"),
            ({"itls": [0.1, 0.2]}, "itls cannot be read as an array"),
            ({"input_lens": ["3", 4]}, "input_lens cannot be read as an array"),
            ({"output_lens": [3.5, 4]}, "output_lens cannot be read as an array"),
            ({"start_times": {}}, "start_times cannot be read as an array"),
            ({"errors": {}}, "errors cannot be read as an array"),
            ({"ttfts": [-0.5, 0.0]}, "negative times"),
            ({"itls": [[1e300], []]}, "itls holds a number beyond 1e+18"),
            ({"input_lens": [10**30, 4]}, "input_lens"),
            ({"itls": [[1e-300], []]}, "itls holds a number below 1e-60"),
            ({"start_times": [1e300, 0.0]}, "start_times holds a number beyond 1e+18"),
            ({"itls": [[-0.1], []]}, "negative times"),
        ],
    )
    def test_unusable_arrays(self, tmp_path: Path, changes: dict[str, Any], told: str) -> None:
        assert told in refused(tmp_path, **{**self.ARRAYS, **changes})

    @pytest.mark.parametrize("name", ["detailed-0.26", "detailed-0.28", "two-of-eight-failed-0.28"])
    def test_real_arrays_agree_with_the_summary_of_their_file(self, name: str) -> None:
        (run,) = vllm_bench.read(DATA / "bench" / f"{name}.json", "x.json")
        assert isinstance(run, Run)
        assert run.requests is not None
        got = run.requests
        assert run.figures["completed"].value == (~got.failed).sum()
        assert run.figures["failed"].value == got.failed.sum()
        assert run.figures["mean_ttft"].value == pytest.approx(got.ttft[~got.failed].mean())
        assert run.figures["mean_itl"].value == pytest.approx(got.gaps.mean())
        assert run.figures["p99_itl"].value == pytest.approx(np.percentile(got.gaps, 99))
        assert run.figures["total_output_tokens"].value == got.output_tokens[~got.failed].sum()


class TestSweep:
    FOLDER = "SERVE--max_num_seqs=4-BENCH--max_concurrency=16"

    def test_settings_of_the_folder_and_the_record(self) -> None:
        path = DATA / "sweep" / self.FOLDER / "run=0.json"
        (run,) = vllm_bench.read(path, f"s/{self.FOLDER}/run=0.json")
        assert isinstance(run, Run)
        assert run.config["serve.max_num_seqs"] == 4
        assert run.config["bench.max_concurrency"] == 16
        assert run.config["run_number"] == 0
        assert run.config["max_num_seqs"] == 4
        assert run.concurrency == 16

    @pytest.mark.parametrize(
        ("folder", "expected"),
        [
            ("SERVE--model=a-b-c-tp=2-BENCH--request_rate=inf",
             {"serve.model": "a-b-c", "serve.tp": 2, "bench.request_rate": "inf"}),
            ("BENCH--rate=0.5-eager=True", {"bench.rate": 0.5, "bench.eager": True}),
            ("SERVE--", {}),
            ("plain=1", {}),
            ("MY-SERVE--a=1", {}),
        ],
    )  # fmt: skip
    def test_folder_names(self, folder: str, expected: dict[str, Any], tmp_path: Path) -> None:
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "run=0.json"
        path.write_text(json.dumps(record()))
        (run,) = vllm_bench.read(path, "x")
        assert isinstance(run, Run)
        assert {key: run.config[key] for key in run.config if "." in key} == expected


class TestSniff:
    def test_by_content_not_by_name(self) -> None:
        text = json.dumps(record()).encode()
        for name in ("x.json", "x.txt", "x.jsonl", "x"):
            assert vllm_bench.sniff(Path(name), text)
        assert vllm_bench.sniff(Path("x"), b"\xef\xbb\xbf\n[" + text)
        assert not vllm_bench.sniff(Path("x.json"), b'{"duration": 5}')
        assert not vllm_bench.sniff(Path("x.json"), b"duration completed")
        assert not vllm_bench.sniff(Path("warmup.json"), text)


class TestBook:
    """The records of a book's chapter as they were published: both files as they are."""

    def test_all_records_are_read(self) -> None:
        found = [
            item
            for name in ("notebook_results.jsonl", "test_serve_results.txt")
            for item in vllm_bench.read(BOOK / name, name)
        ]
        assert len(found) == 27
        assert all(isinstance(item, Run) for item in found)
        first = found[0]
        assert isinstance(first, Run)
        assert first.figures["duration"].value == 1808.8727294589626
        assert first.figures["mean_itl"].value == pytest.approx(0.04320407404993815, rel=1e-15)
        assert first.requested_rate == 10
        assert first.concurrency == 10

    def test_a_cut_copy_keeps_its_complete_records(self, tmp_path: Path) -> None:
        path = tmp_path / "cut.txt"
        shutil.copy(BOOK / "test_serve_results.txt", path)
        path.write_bytes(path.read_bytes()[:-300])
        found = vllm_bench.read(path, "cut.txt")
        assert [type(item).__name__ for item in found] == ["Run"] * 10 + ["Skipped"]
