"""analysis.formats.run_record: what a run's record says, in any schema, whatever stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.formats import format_of, run_record, vllm_bench
from analysis.formats._files import head_of
from analysis.formats._secrets import MASK
from analysis.formats.run_record import flags_of
from analysis.model import Collected, Record, Skipped, Source
from tests.collected import bench, record, simulated

SERVED = {"requests_by_server": {"replica-0": 30, "replica-1": 34}}


def read(tmp_path: Path, content: bytes | dict[str, Any]) -> Record:
    path = tmp_path / "run.json"
    path.write_bytes(json.dumps(content).encode() if isinstance(content, dict) else content)
    (found,) = run_record.read(path, "a/run.json")
    return found


def collected(tmp_path: Path, **more: Any) -> Collected:
    found = read(tmp_path, record(**more))
    assert isinstance(found, Collected), found
    return found


def refused(tmp_path: Path, content: bytes | dict[str, Any]) -> str:
    found = read(tmp_path, content)
    assert isinstance(found, Skipped), found
    assert found.file == "a/run.json"
    assert "\n" not in found.reason
    return found.reason


def test_what_was_run(tmp_path: Path) -> None:
    found = collected(
        tmp_path,
        definition={
            "server_flags": ["--max-num-seqs", "4", "-tp", "2", "--enforce-eager"],
            "gpus": 2, "replicas": 2, "clients": 2, "router": "direct",
        },
        **SERVED,
    )  # fmt: skip
    assert (found.state, found.reason, found.source) == ("complete", "", Source("a/run.json", ""))
    assert (found.arm, found.workload, found.concurrency) == ("slotted", "chat", 8)
    assert (found.clients, found.engines, found.served) == (2, 2, SERVED["requests_by_server"])
    assert found.warnings == ()
    assert found.config == {
        "max_num_seqs": 4, "tensor_parallel_size": 2, "enforce_eager": True, "model": "m",
        "clients": 2, "random_weights": True, "telemetry": True, "seed": 7, "replicas": 2,
        "gpus": 4, "version": "0.28.0", "study": "s", "collector": "serving-assay 0.1.0",
        "collect": "collect --study s", "repeat": 1, "order": 1, "order_seed": 1,
        "prefix_cache_emptied": True,
    }  # fmt: skip


def test_engines_are_servers_times_the_data_parallel_ones_of_each(tmp_path: Path) -> None:
    flags = {"server_flags": ["--data-parallel-size", "2"], "replicas": 3}
    found = collected(tmp_path, definition=flags)
    assert found.engines == found.config["replicas"] == 6


@pytest.mark.parametrize(
    ("used", "gpu"), [([[1], [2]], "NVIDIA L4"), ([[0], [1]], None), ([[]], None), ([None], None)]
)
def test_the_gpu_is_that_of_the_servers_where_it_is_one_kind(
    tmp_path: Path, used: list[object], gpu: str | None
) -> None:
    names = ["NVIDIA T4", "NVIDIA L4", "NVIDIA L4"]
    machine = {"gpus": [{"index": n, "name": name} for n, name in enumerate(names)]}
    servers = [{"name": "x", "gpus": each} for each in used]
    found = collected(tmp_path, machine=machine, servers=servers)
    assert found.config.get("gpu") == gpu


def test_the_room_for_kv_of_each_server(tmp_path: Path) -> None:
    servers = [{"name": "replica-0", "kv_tokens": 512}, {"name": "replica-1", "kv_tokens": None}]
    assert collected(tmp_path, servers=servers).kv_tokens == {"replica-0": 512}


def test_a_version_that_is_not_known_leaves_that_to_the_log(tmp_path: Path) -> None:
    assert "version" not in collected(tmp_path, versions={"vllm": "?"}).config


def test_a_newer_schema_is_read_with_a_warning(tmp_path: Path) -> None:
    found = collected(tmp_path, schema=2, more={"of": "it"})
    assert found.warnings == ("run.json has schema 2, newer than 1; update serving-assay",)


@pytest.mark.parametrize("state", ["failed", "running", "interrupted"])
def test_a_run_that_did_not_end_well_says_why_on_one_line(tmp_path: Path, state: str) -> None:
    found = collected(tmp_path, state=state, reason="the server\nended: --api-key abcdef123")
    assert (found.state, found.reason) == (state, f"the server ended: --api-key {MASK}")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"arm": "../../etc/passwd"}, "its 'arm' is no name"),
        ({"arm": ".."}, "its 'arm' is no name"),
        ({"workload": "a/b"}, "its 'workload' is no name"),
        ({"study": "x\u202ey"}, "its 'study' is no name"),
        ({"study": "x" * 65}, "its 'study' is no name"),
        ({"state": ""}, "its 'state' is no name"),
        ({"state": None}, "its 'state' is no name"),
        ({"arm": ["a"]}, "its 'arm' is no name"),
        ({"concurrency": 0}, "its 'concurrency' is no count"),
        ({"concurrency": -8}, "its 'concurrency' is no count"),
        ({"concurrency": 8.0}, "its 'concurrency' is no count"),
        ({"concurrency": True}, "its 'concurrency' is no count"),
        ({"concurrency": 10**30}, "its 'concurrency' is no count"),
        ({"schema": "1"}, "its 'schema' is no count"),
    ],
)
def test_what_is_relied_on_is_checked(
    tmp_path: Path, change: dict[str, Any], expected: str
) -> None:
    assert expected in refused(tmp_path, record(**change))


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"schema": NaN}', b'{"schema": 1e999}', b"\xff\xfe{", b"{" * 100_000]
)
def test_what_is_no_json(tmp_path: Path, content: bytes) -> None:
    assert refused(tmp_path, content).startswith("not valid JSON: ")


@pytest.mark.parametrize("content", [b"[]", b"3", b"null", b"{}"])
def test_what_is_no_record(tmp_path: Path, content: bytes) -> None:
    assert refused(tmp_path, content).startswith("no record of a collector's run: ")


def test_odd_values_of_what_is_not_relied_on_are_left_out(tmp_path: Path) -> None:
    found = collected(
        tmp_path, repeat=[1], order=10**400, order_seed=1e300, reason=None, versions=[],
        servers={"a": 1}, machine=[{}], requests_by_server={"a": -1, "b": True, "c": "4", "d": 5},
        definition={"server_flags": "--x", "seed": None, "clients": "2", "gpus": 0, "replicas": -1},
    )  # fmt: skip
    assert found.reason == ""
    assert (found.clients, found.engines, found.served) == (None, 1, {"d": 5})
    assert found.config.keys().isdisjoint({"repeat", "order", "order_seed", "gpus", "seed", "x"})
    assert not collected(tmp_path, definition=None or {}).kv_tokens


def test_secrets_are_masked_wherever_they_stand(tmp_path: Path) -> None:
    found = collected(
        tmp_path,
        collect="collect --api-key hunter2hunter2 --upload s3://me:hunter2hunter2@host/x",
        definition={
            "model": "https://me:hunter2hunter2@host/model",
            "server_flags": [
                "--api-key", "hunter2hunter2", "--hf-token=hunter2hunter2",
                "--override", '{"password": "hunter2hunter2"}',
            ],
        },
    )  # fmt: skip
    assert "hunter2" not in repr(found)
    assert found.config["api_key"] == found.config["hf_token"] == MASK


def test_a_long_text_is_cut(tmp_path: Path) -> None:
    found = collected(
        tmp_path, collect="x" * 100_000, definition={"server_flags": ["--y", "z" * 9999]}
    )
    assert len(str(found.config["collect"])) == len(str(found.config["y"])) == 500


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--max-num-seqs", "4"], {"max_num_seqs": 4}),
        (["--max-num-seqs=4"], {"max_num_seqs": 4}),
        (["--max-num-batched-tokens", "8192"], {"max_num_batched_tokens": 8192}),
        (["-tp=2", "-pp", "3"], {"tensor_parallel_size": 2, "pipeline_parallel_size": 3}),
        (["--no-enable-prefix-caching", "--x"], {"enable_prefix_caching": False, "x": True}),
        (["--seed", "-1", "--y", "-z"], {"seed": -1, "y": True}),
        (["--dtype", "bfloat16", "--a.b", "0.5"], {"dtype": "bfloat16", "a.b": 0.5}),
        (["--json", '{"a": 1}'], {"json": '{"a": 1}'}),
        (["model", "--empty="], {"empty": ""}),
        ([3, None, "--x", 4], {"x": 4}),
        ([], {}),
        (None, {}),
        ("--x", {}),
    ],
)  # fmt: skip
def test_flags_by_name(words: object, expected: dict[str, object]) -> None:
    assert flags_of(words) == expected


def test_only_the_collectors_own_run_json_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(bench(simulated(requests=8))))
    assert format_of(path, head_of(path)) is vllm_bench
    path.write_text(json.dumps(record()))
    assert format_of(path, head_of(path)) is run_record
    other = tmp_path / "other.json"
    assert not run_record.sniff(other, head_of(path))
    # What is left where a collector was killed before it wrote anything.
    assert run_record.sniff(path, b'{\n "schema": 1,\n "state": "interrupted"\n}\n')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(record())), JSON))
@settings(max_examples=200, deadline=None)
def test_any_value_under_any_key(change: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        path.write_text(json.dumps({**record(), **change}))
        (found,) = run_record.read(path, "run.json")
    assert isinstance(found, Collected | Skipped)


@given(st.binary(max_size=300), st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_any_bytes(data: bytes, place: int) -> None:
    whole = json.dumps(record()).encode()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        for content in (data, whole[:place] + data + whole[place + len(data) :]):
            path.write_bytes(content)
            (found,) = run_record.read(path, "run.json")
            assert isinstance(found, Collected | Skipped)
