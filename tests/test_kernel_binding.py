"""analysis.kernel_binding: traces by study.toml, by a record, by folders, and those of no arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from analysis.kernel_binding import Bound, bind_traces
from analysis.model import KernelTrace, Run, Source
from tests.builders import arm, run

EMPTY = KernelTrace(Source("", ""), "t", 0, "GPU 0", 1.0, 1.0, 0, {}, (), 0)


def bind(
    *files: str, named: Mapping[str, tuple[str, ...]] | None = None, runs: tuple[Run, ...] = (),
    record: str = "", prefix: str = "s/",
) -> Bound:  # fmt: skip
    arms = {name: arm(name, traces=(named or {}).get(name, ())) for name in ("fp16", "awq")}
    traces = [replace(EMPTY, source=Source(file, ""), arm=record) for file in files]
    return bind_traces(traces, arms, runs, prefix)


def owners(bound: Bound) -> dict[str, str]:
    return {trace.source.file: arm for arm, own in bound.of_arm.items() for trace in own}


def test_the_nearest_folder_that_is_named_as_an_arm() -> None:
    files = ("s/awq/trace/r0.json", "s/awq/fp16/r0.json", "s/awq/profile-b10/trace/r0.json")
    assert owners(bind(*files)) == dict(zip(files, ("awq", "fp16", "awq"), strict=True))


def test_a_study_that_is_named_as_an_arm_names_none() -> None:
    assert owners(bind("awq/x/r0.json", prefix="awq/")) == {}


def test_study_toml_comes_first_by_file_or_folder() -> None:
    named = {"fp16": ("p/trace",), "awq": ("q/r0.json",)}
    found = bind("s/p/trace/r0.json", "s/q/r0.json", "s/q/r1.json", named=named)
    assert owners(found) == {"s/p/trace/r0.json": "fp16", "s/q/r0.json": "awq"}
    assert [one.file for one in found.unused] == ["s/q/r1.json"]
    assert "traces = [...]" in found.unused[0].reason
    assert found.absent == ()


def test_a_name_that_nothing_answers_to_is_told_with_the_nearest() -> None:
    found = bind("s/awq/trace/r0.json", named={"awq": ("awq/trce",)})
    assert found.absent[0].startswith("arm 'awq': traces names 'awq/trce', where no profiler's")
    # The folder still says whose it is.
    assert owners(found) == {"s/awq/trace/r0.json": "awq"}


def test_the_record_of_a_collector() -> None:
    assert owners(bind("s/x/r0.json", record="fp16")) == {"s/x/r0.json": "fp16"}
    (unused,) = bind("s/x/r0.json", record="other").unused
    assert "its record names 'other'" in unused.reason


def test_beside_runs_of_one_arm() -> None:
    runs = (run(arm="awq", file="s/b/c10.json"), run(arm="awq", file="s/b/c32.json"))
    assert owners(bind("s/b/trace/r0.json", runs=runs)) == {"s/b/trace/r0.json": "awq"}
    mixed = (*runs, run(arm="fp16", file="s/b/other.json"))
    assert owners(bind("s/b/trace/r0.json", runs=mixed)) == {}
