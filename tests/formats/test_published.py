"""analysis.formats.published: tables as printed, their rounding, and every wrong description."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.formats import published
from analysis.formats._printed import UNITS, number_of, printed, scalar_of
from analysis.model import (
    Figure,
    Ignored,
    Lengths,
    Level,
    Quoted,
    Record,
    Run,
    Skipped,
    Source,
    Startup,
)

WRITEUP = Path(__file__).parents[2] / "results" / "writeup"

RUNS = """
table = "t.csv"
holds = "runs"
said_in = "here"
[columns.arm]
field = "arm"
[columns.work]
field = "workload"
[columns.cap]
field = "concurrency"
[columns.rate]
field = "request_rate"
[columns.gpus]
field = "gpus"
[columns.ttft]
metric = "mean_ttft"
unit = "ms"
[columns.n]
metric = "completed"
unit = "1"
rounding = "exact"
[columns.tps]
metric = "output_throughput"
unit = "tok/s"
rounding = 2.5
basis = "assumed"
"""
HEADER = "arm,work,cap,rate,gpus,ttft,n,tps\n"


def read(tmp_path: Path, table: str, description: str | None) -> list[Record]:
    (tmp_path / "t.csv").write_bytes(table.encode())
    if description is not None:
        (tmp_path / "t.toml").write_text(description)
    return published.read(tmp_path / "t.csv", "s/t.csv")


def reasons(found: list[Record]) -> list[str]:
    assert all("\n" not in item.reason for item in found if isinstance(item, Skipped))
    return [item.reason for item in found if isinstance(item, Skipped)]


def bounds(figure: Figure) -> tuple[float, float, float]:
    return figure.value, figure.lo, figure.hi


class TestPrinted:
    @pytest.mark.parametrize(
        ("text", "half"),
        [("1813", 0.5), ("15.6", 0.05), ("15.60", 0.005), ("2,839.5", 0.05), ("0", 0.5),
         ("1.2e3", 50.0), (".5", 0.05), ("-42", 0.5)],
    )  # fmt: skip
    def test_half_a_unit_of_the_last_digit(self, text: str, half: float) -> None:
        number = number_of(text)
        assert number is not None
        figure = printed("x", number, "1", Source("f", "k"))
        assert figure.value == float(text.replace(",", ""))
        assert figure.lo == pytest.approx(figure.value - half, rel=1e-15)
        assert figure.hi == pytest.approx(figure.value + half, rel=1e-15)
        assert figure.basis == "printed"

    def test_ends_are_the_floats_nearest_to_what_was_typed(self) -> None:
        figure = printed("x", Decimal("43.1"), "ms", Source("f", "k"))
        assert (*bounds(figure), figure.unit) == (0.0431, 0.04305, 0.04315, "s")
        gib = printed("x", Decimal("11.57"), "GiB", Source("f", "k"))
        assert bounds(gib) == (11.57 * 2**30, 11.565 * 2**30, 11.575 * 2**30)
        assert gib.unit == "B"

    @given(st.decimals(min_value=0, max_value=10**6, places=3), st.sampled_from(sorted(UNITS)))
    def test_the_value_lies_in_its_interval(self, number: Decimal, unit: str) -> None:
        figure = printed("x", number, unit, Source("f", "k"))
        assert figure.lo < figure.value < figure.hi

    @pytest.mark.parametrize(
        "text",
        ["", "n/a", "nan", "inf", "1,5", "12,34", "1 000", "5 ms", "0x10", "1" * 60, "1e-99", "١"],
    )
    def test_what_is_no_number(self, text: str) -> None:
        assert number_of(text) is None

    @pytest.mark.parametrize(
        ("text", "value"),
        [("4", 4), ("0.5", 0.5), ("True", True), ("false", False), ("inf", "inf"), ("nan", "nan"),
         ("1xL4", "1xL4"), ("1_000", "1_000"), ("-3", -3)],
    )  # fmt: skip
    def test_settings(self, text: str, value: object) -> None:
        assert scalar_of(text) == value
        assert type(scalar_of(text)) is type(value)


class TestRuns:
    def test_a_row_is_a_run(self, tmp_path: Path) -> None:
        (run,) = read(tmp_path, HEADER + 'a,w,10,5,2,"1,234.5",100,500\n', RUNS)
        assert isinstance(run, Run)
        assert (run.id, run.source) == ("s/t.csv#1", Source("s/t.csv", "row 1"))
        assert run.level is Level.PUBLISHED
        assert (run.arm, run.workload, run.concurrency, run.requested_rate) == ("a", "w", 10, 5.0)
        assert run.config == {"gpus": 2}
        ttft = run.figures["mean_ttft"]
        assert bounds(ttft) == (1.2345, 1.23445, 1.23455)
        assert ttft.source == Source("s/t.csv", "row 1, ttft")
        assert (run.figures["completed"].basis, run.figures["completed"].lo) == ("exact", 100)
        tps = run.figures["output_throughput"]
        assert (bounds(tps), tps.basis) == ((500.0, 497.5, 502.5), "assumed")

    def test_empty_cells_are_absent(self, tmp_path: Path) -> None:
        found = read(tmp_path, HEADER + "\n,,,inf,,,7,\na,w,inf,,1,2,3,4\n", RUNS)
        first, second = found
        assert isinstance(first, Run)
        assert isinstance(second, Run)
        assert (first.id, first.arm, first.concurrency) == ("s/t.csv#2", "", None)
        assert list(first.figures) == ["completed"]
        assert first.config == {}
        assert first.requested_rate == math.inf
        assert (second.concurrency, second.requested_rate) == (None, math.inf)

    @pytest.mark.parametrize(
        ("row", "told"),
        [
            ("a,w,10,5,2,fast,1,1", "row 2, ttft is 'fast', expected a number"),
            ("a,w,10,5,2,-3,1,1", "row 2, ttft is -3, expected no negative number"),
            ("a,w,ten,5,2,1,1,1", "row 2: concurrency is 'ten', expected a count"),
            ("a,w,0,5,2,1,1,1", "row 2: concurrency is '0', expected a count"),
            ("a,w,1.5,5,2,1,1,1", "row 2: concurrency is '1.5', expected a count"),
            ("a,w,1,0,2,1,1,1", "row 2: request_rate is '0', expected a number or inf"),
            ("a,w,1,max,2,1,1,1", "row 2: request_rate is 'max', expected a number or inf"),
            ("a,w,1,1,1,,,", "row 2 holds no figure"),
            ("a,w,1", "row 2 has 3 cells, the header 8"),
            ("a,w,1,1,1,2,1,234,5", "row 2 has 9 cells, the header 8"),
        ],
    )
    def test_a_bad_row_costs_only_itself(self, tmp_path: Path, row: str, told: str) -> None:
        good = "a,w,10,5,2,1,1,1\n"
        found = read(tmp_path, HEADER + good + row + "\n" + good, RUNS)
        assert [item.id for item in found if isinstance(item, Run)] == ["s/t.csv#1", "s/t.csv#3"]
        (reason,) = reasons(found)
        assert reason.startswith(told)

    def test_a_table_saved_by_a_spreadsheet(self, tmp_path: Path) -> None:
        table = ("\ufeff" + HEADER + "a, w ,1,1,1, 2.5 ,1,1\n").replace("\n", "\r\n")
        (run,) = read(tmp_path, table, RUNS)
        assert isinstance(run, Run)
        assert run.workload == "w"
        assert run.figures["mean_ttft"].value == 0.0025


class TestDescription:
    def test_none(self, tmp_path: Path) -> None:
        (reason,) = reasons(read(tmp_path, HEADER, None))
        assert reason.startswith("a table without a description: put t.toml beside it")

    @pytest.mark.parametrize(
        ("old", "new", "told"),
        [
            ('table = "t.csv"', 'table = "u.csv"', "table is 'u.csv', expected \"t.csv\""),
            ('table = "t.csv"', "", 'table is missing, expected "t.csv"'),
            ('holds = "runs"', 'holds = "run"', "holds is 'run', expected runs, startup, lengths"),
            ('holds = "runs"', "", "holds is missing"),
            ('said_in = "here"', "said_in = 3", "said_in is 3, expected text"),
            ('said_in = "here"', 'said_inn = "x"', "the key said_inn is not known: did you mean"),
            ('said_in = "here"', 'zzz = "x"', "the key zzz is not known: expected table, holds"),
            ('table = "t.csv"', "table = ", "not valid TOML: "),
            ("[columns.ttft]\nmetric", "[columns.ttft]\nmetrik", "the key columns.ttft.metrik is"
             " not known: did you mean metric?"),
            ('unit = "ms"', "", "columns.ttft.unit is missing, expected s, ms, tok/s"),
            ('unit = "ms"', 'unit = "sec"', "columns.ttft.unit is 'sec', expected s, ms"),
            ('unit = "ms"', 'unit = "tok"', 'unit is "tok", but mean_ttft is in s, ms'),
            ('unit = "ms"', "unit = 1", "columns.ttft.unit is 1, expected text"),
            ('"mean_ttft"', '"meen_ttft"', 'columns.ttft.metric is "meen_ttft", expected a metric'),
            ('field = "arm"', 'field = "arm"\nmetric = "itl"', "columns.arm needs either field or"),
            ('field = "arm"', "", "columns.arm needs either field or metric"),
            ("rounding = 2.5", "rounding = -1", "columns.tps.rounding is -1, expected"),
            ("rounding = 2.5", "rounding = inf", "columns.tps.rounding is inf, expected"),
            ("rounding = 2.5", "rounding = true", "columns.tps.rounding is True, expected"),
            ('"assumed"', '"hunch"', 'columns.tps.basis "hunch" is not known: expected exact'),
            ('"assumed"', '"asumed"', "did you mean assumed?"),
        ],
    )  # fmt: skip
    def test_a_wrong_one(self, tmp_path: Path, old: str, new: str, told: str) -> None:
        assert old in RUNS
        found = read(tmp_path, HEADER + "a,w,1,1,1,1,1,1\n", RUNS.replace(old, new, 1))
        (reason,) = reasons(found)
        assert reason.startswith("t.toml: ")
        assert told in reason

    @pytest.mark.parametrize("columns", ["", "columns = 3", "[columns]"])
    def test_no_columns(self, tmp_path: Path, columns: str) -> None:
        description = f'table = "t.csv"\nholds = "runs"\n{columns}'
        assert "no [columns.NAME] table" in reasons(read(tmp_path, HEADER, description))[0]

    def test_a_column_that_is_no_table(self, tmp_path: Path) -> None:
        description = 'table = "t.csv"\nholds = "runs"\n[columns]\narm = "arm"'
        assert (
            "columns.arm is 'arm', expected a table"
            in reasons(read(tmp_path, HEADER, description))[0]
        )

    def test_not_text(self, tmp_path: Path) -> None:
        (tmp_path / "t.toml").write_bytes(b"\xff\xfe")
        assert "not valid TOML" in reasons(read(tmp_path, HEADER, None))[0]

    def test_a_column_that_the_table_lacks(self, tmp_path: Path) -> None:
        (reason,) = reasons(read(tmp_path, "arm,work\na,b\n", RUNS))
        assert reason.startswith("no column cap, rate, gpus and 3 more, which t.toml describes; ")

    def test_an_empty_table(self, tmp_path: Path) -> None:
        (reason,) = reasons(read(tmp_path, "", RUNS))
        assert "the header has nothing" in reason

    def test_a_column_that_nothing_describes_is_told_and_the_rest_read(
        self, tmp_path: Path
    ) -> None:
        found = read(tmp_path, "extra," + HEADER + "1,a,w,1,1,1,1,1,1\n", RUNS)
        assert isinstance(found[0], Run)
        (reason,) = reasons(found)
        assert reason.startswith("t.toml does not describe the column extra; the other columns")

    def test_two_columns_of_one_name(self, tmp_path: Path) -> None:
        (reason,) = reasons(read(tmp_path, "arm," + HEADER + "a,a,w,1,1,1,1,1,1\n", RUNS))
        assert reason.startswith("two columns of the header have the same name")

    def test_a_cell_too_long_for_csv(self, tmp_path: Path) -> None:
        (reason,) = reasons(read(tmp_path, HEADER + "a" * 200_000, RUNS))
        assert reason.startswith("not a CSV: field larger than field limit")

    def test_sniff(self, tmp_path: Path) -> None:
        assert published.sniff(tmp_path / "x.csv", b"a,b")
        assert not published.sniff(tmp_path / "x.json", b"a,b")
        assert not published.sniff(tmp_path / "summary.csv", b"a,b")
        (tmp_path / "summary.toml").touch()
        assert published.sniff(tmp_path / "summary.csv", b"a,b")


class TestStartup:
    TEXT = (
        'table = "t.csv"\nholds = "startup"\n[columns.arm]\nfield = "arm"\n'
        '[columns.flag]\nfield = "flag"\n[columns.kv]\nmetric = "kv_bytes"\nunit = "GiB"\n'
    )

    def test_rows(self, tmp_path: Path) -> None:
        found = read(tmp_path, "arm,flag,kv\na,on,1.5\nb,,\nc,,-1\n", self.TEXT)
        first = found[0]
        assert isinstance(first, Startup)
        assert (first.arm, first.config) == ("a", {"flag": "on"})
        assert first.figures["kv_bytes"].unit == "B"
        assert bounds(first.figures["kv_bytes"]) == (1.5 * 2**30, 1.45 * 2**30, 1.55 * 2**30)
        assert len(found) == 3
        assert reasons(found)[0].startswith("row 2 holds no figure")

    def test_a_metric_that_no_startup_has(self, tmp_path: Path) -> None:
        text = self.TEXT.replace("kv_bytes", "kv_byte")
        assert "did you mean kv_bytes?" in reasons(read(tmp_path, "arm,flag,kv\n", text))[0]


class TestLengths:
    TEXT = (
        'table = "t.csv"\nholds = "lengths"\n[columns.p]\nmetric = "prompt_tokens"\nunit = "tok"\n'
        '[columns.o]\nmetric = "output_tokens"\nunit = "tok"\n'
    )

    def test_rows(self, tmp_path: Path) -> None:
        found = read(tmp_path, "p,o\n5,7\n1,x\n-1,3\n2.5,3\n,3\n8,0\n", self.TEXT)
        first = found[0]
        assert isinstance(first, Lengths)
        assert (first.prompt.tolist(), first.output.tolist()) == ([5, 8], [7, 0])
        told = reasons(found)
        assert told[0].startswith("row 2, o is 'x'")
        assert told[1].startswith("row 3: lengths are -1 and 3")
        assert told[2].startswith("row 4: lengths are 2.5 and 3")
        assert told[3].startswith("row 5 has no prompt_tokens")

    def test_no_row(self, tmp_path: Path) -> None:
        assert reasons(read(tmp_path, "p,o\n", self.TEXT)) == [
            "no row with a prompt and an output length"
        ]


class TestQuoted:
    TEXT = 'table = "t.csv"\nholds = "quoted"\n' + "".join(
        f'[columns.{name[0]}]\nfield = "{name}"\n'
        for name in ("quantity", "value", "unit", "context")
    )

    def test_rows(self, tmp_path: Path) -> None:
        rows = (
            "q,v,u,c\nTTFT,43,ms,book\nchange,-42,percent,\nratio,2.7,ratio,\nplain,8,,\n"
            "hope,slight improvement,,\nbad,some,ms,\n,5,ms,\nodd,5,furlong,\n"
            "TTFT,44,ms,\nnone,,,\n"
        )
        quoted, *rest = read(tmp_path, rows, self.TEXT)
        assert isinstance(quoted, Quoted)
        assert {name: (f.value, f.unit) for name, f in quoted.figures.items()} == {
            "TTFT": (0.043, "s"), "change": (-42.0, "%"), "ratio": (2.7, ""), "plain": (8.0, ""),
        }  # fmt: skip
        assert bounds(quoted.figures["TTFT"])[1:] == (0.0425, 0.0435)
        assert quoted.figures["TTFT"].source == Source("s/t.csv", "row 1, v")
        assert [item.reason for item in rest if isinstance(item, Ignored)] == [
            "row 5 is in words, not a figure (hope: slight improvement)"
        ]
        told = reasons(rest)
        assert told[0].startswith("row 6 quotes 'some' for 'bad', expected a name and a number")
        assert told[1].startswith("row 7 quotes '5' for ''")
        assert told[2].startswith("row 8: the unit is 'furlong', expected one of s, ms")
        assert told[3].startswith("row 9 quotes 'TTFT' again")
        assert told[4].startswith("row 10 quotes '' for 'none'")

    def test_a_description_without_a_value(self, tmp_path: Path) -> None:
        text = self.TEXT.replace('field = "value"', 'field = "context"')
        assert reasons(read(tmp_path, "q,v,u,c\n", text)) == [
            "no column has field = value, quoted figures need it"
        ]

    def test_an_unknown_field(self, tmp_path: Path) -> None:
        text = self.TEXT.replace('field = "value"', 'field = "valeu"')
        assert "did you mean value?" in reasons(read(tmp_path, "q,v,u,c\n", text))[0]

    def test_only_words(self, tmp_path: Path) -> None:
        (item,) = read(tmp_path, "q,v,u,c\na,b,,\n", self.TEXT)
        assert isinstance(item, Ignored)


class TestWriteUp:
    """The tables that ship, read as they are."""

    @staticmethod
    def of(name: str) -> list[Record]:
        return published.read(WRITEUP / f"{name}.csv", f"writeup/{name}.csv")

    def test_quantization(self) -> None:
        runs = [run for run in self.of("quantization_l40s") if isinstance(run, Run)]
        assert len(runs) == 6
        assert bounds(runs[0].figures["mean_itl"]) == (0.0431, 0.04305, 0.04315)
        assert bounds(runs[0].figures["duration"]) == (1813.0, 1812.5, 1813.5)
        assert runs[0].figures["num_prompts"].basis == "exact"
        assert (runs[0].concurrency, runs[0].requested_rate) == (10, 10.0)
        assert "max_num_seqs" not in runs[0].config
        assert runs[4].config["max_num_seqs"] == 8
        assert "mean_ttft" not in runs[5].figures

    def test_parallelism_counts_what_all_clients_have_in_flight(self) -> None:
        runs = [run for run in self.of("parallelism_l4") if isinstance(run, Run)]
        assert len(runs) == 23
        (doubled,) = [run for run in runs if run.concurrency != run.config["max_concurrency"]]
        assert (doubled.concurrency, doubled.config["max_concurrency"]) == (2, 1)
        assert {run.requested_rate for run in runs} == {math.inf}

    def test_startup(self) -> None:
        found = [item for item in self.of("startup_logs") if isinstance(item, Startup)]
        assert len(found) == 7
        assert found[0].figures["kv_tokens"].value == 75_824
        assert found[0].figures["kv_tokens"].lo == 75_824
        assert found[2].figures["reported_max_concurrency"].value == 198.5
        assert "model_bytes" not in found[4].figures

    def test_lengths(self) -> None:
        (found,) = self.of("sharegpt_lengths")
        assert isinstance(found, Lengths)
        assert (len(found.prompt), found.prompt.max(), found.output.max()) == (100, 817, 771)
        assert int((found.prompt + found.output > 1024).sum()) == 4

    def test_quoted(self) -> None:
        quoted, words = self.of("quoted_by_the_book")
        assert isinstance(quoted, Quoted)
        assert isinstance(words, Ignored)
        assert len(quoted.figures) == 9
        assert quoted.figures["p4d TP=4 total TPS"].value == 3926


def test_a_table_of_tens_of_thousands_of_columns(tmp_path: Path) -> None:
    names = [f"c{n}" for n in range(30_000)]
    described = "".join(f'{name}.field = "{name}"\n' for name in names)
    head = 'table = "t.csv"\nholds = "runs"\n[columns]\nm.metric = "mean_ttft"\nm.unit = "s"\n'
    table = f"m,{','.join(names)}\n1.0,{','.join('x' * len(names))}\n"
    (found,) = read(tmp_path, table, head + described)
    assert isinstance(found, Run)
    assert len(found.config) == 30_000


@pytest.mark.parametrize("row", ["1.0\n", "1.0,\n"])
def test_more_rows_than_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    monkeypatch.setattr(published, "MOST_ROWS", 2)
    described = 'table = "t.csv"\nholds = "runs"\n[columns.m]\nmetric = "mean_ttft"\nunit = "s"\n'
    found = read(tmp_path, "m\n" + row * 9, described)
    assert len(found) == 3
    assert "more than 2 rows; the first were read, split the table" in reasons(found)
