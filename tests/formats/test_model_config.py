"""analysis.formats.model_config: which JSON is a model's config, and one line for the unfit."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.formats import format_of, model_config, vllm_bench
from analysis.formats._files import head_of
from analysis.model import ModelShape, Record, Skipped, Source
from analysis.scan import scan

CONFIG = Path(__file__).parents[1] / "data" / "model" / "config.json"
SHAPE: dict[str, Any] = json.loads(CONFIG.read_text())
RESULT = {"duration": 2.0, "completed": 4, "total_input_tokens": 8, "total_output_tokens": 8}


def read(path: Path, content: object) -> Record:
    """The one record of a file with this content: bytes, text or something to write as JSON."""
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    (found,) = model_config.read(path, "arm/config.json")
    return found


def reason(path: Path, content: object) -> str:
    found = read(path, content)
    assert isinstance(found, Skipped)
    assert found.file == "arm/config.json"
    assert found.reason == " ".join(found.reason.split())
    assert len(found.reason) < 400
    return found.reason


def test_a_config_is_one_record_with_its_keys_as_they_are() -> None:
    assert format_of(CONFIG, head_of(CONFIG)) is model_config
    (found,) = model_config.read(CONFIG, "arm/config.json")
    assert isinstance(found, ModelShape)
    assert found.source == Source("arm/config.json", "")
    assert found.config == SHAPE


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, lambda data: b"\xef\xbb\xbf" + data, lambda data: b"\n " + data]
)
def test_gzip_byte_order_mark_and_space_change_nothing(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "config.json"
    found = read(path, pack(CONFIG.read_bytes()))
    assert model_config.sniff(path, head_of(path))
    assert isinstance(found, ModelShape)
    assert found.config == SHAPE


def test_numbers_that_only_python_writes_are_read(tmp_path: Path) -> None:
    found = read(tmp_path / "config.json", {**SHAPE, "time_step_limit": [0.0, float("inf")]})
    assert isinstance(found, ModelShape)
    assert found.config["time_step_limit"] == [0.0, float("inf")]


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("config.json", b'{"hidden_size": 64}'),
        ("config.json", b'{"num_hidden_layers": 3}'),
        ("config.json", b'[{"hidden_size": 64, "num_hidden_layers": 3}]'),
        ("notes.txt", b'see "hidden_size" and "num_hidden_layers"'),
        ("a.json", b'{"text": "{\\"hidden_size\\": 1, \\"num_hidden_layers\\": 2}"}'),
        ("warmup.json", CONFIG.read_bytes()),
        ("empty.json", b""),
    ],
)
def test_other_files_are_not_claimed(name: str, head: bytes) -> None:
    assert not model_config.sniff(Path(name), head)


def test_a_benchmark_result_with_such_metadata_stays_a_result() -> None:
    head = json.dumps({**RESULT, "hidden_size": "64", "num_hidden_layers": "3"}).encode()
    assert not model_config.sniff(Path("a.json"), head)
    assert format_of(Path("a.json"), head) is vllm_bench


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"num_local_experts": 8}, "num_local_experts is 8 (a mixture of experts)"),
        ({"model_type": "gemma3"}, "model_type is 'gemma3'"),
        ({"vocab_size": None}, "vocab_size is missing, not a count"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quant_method is 'fp8'"),
        ({"model_type": "a\nb" * 900}, "model_type is 'a\\nb"),
    ],
)
def test_an_unfit_config_is_skipped_with_its_part(
    tmp_path: Path, change: dict[str, object], part: str
) -> None:
    told = reason(tmp_path / "config.json", {**SHAPE, **change})
    assert told.startswith("a model's config.json that sizes cannot be computed from: ")
    assert part in told
    assert "expected a dense decoder (llama, mistral, qwen2, qwen3)" in told


def test_a_model_inside_another_is_skipped_by_name(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    told = reason(path, {"model_type": "llava", "text_config": SHAPE})
    assert model_config.sniff(path, head_of(path))
    assert "text_config is an object (a model inside another)" in told


def nested(levels: int) -> str:
    return json.dumps(SHAPE)[:-1] + ', "x": ' + "[" * levels + "]" * levels + "}"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (CONFIG.read_text()[:-5], "not valid JSON (Expecting"),
        (CONFIG.read_text() + "{}", "not valid JSON (Extra data"),
        (CONFIG.read_bytes()[:-3] + b', "x": "\xff"}', "not valid JSON ('utf-8' codec"),
        (json.dumps(SHAPE)[:-1] + ', "x": ' + "9" * 5000 + "}", "not valid JSON (Exceeds the"),
        (nested(100_000), "not valid JSON (maximum recursion depth"),
        (nested(21), "JSON nested deeper than 20 levels"),
        ({**SHAPE, "x": "y" * (1 << 20)}, "larger than 1,048,576 bytes"),
        (
            gzip.compress(CONFIG.read_bytes(), mtime=0)[:-9],
            "the gzip data is damaged (it ends too early)",
        ),
    ],
)
def test_damaged_and_hostile_files_are_skipped(tmp_path: Path, content: object, told: str) -> None:
    assert told in reason(tmp_path / "config.json", content)


def test_nesting_within_reason_is_read(tmp_path: Path) -> None:
    assert isinstance(read(tmp_path / "config.json", nested(19)), ModelShape)


def test_a_packed_file_that_grows_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    bomb = gzip.compress(json.dumps(SHAPE)[:-1].encode() + b" " * (64 << 20))
    assert len(bomb) < 100_000
    assert "larger than 1,048,576 bytes" in reason(tmp_path / "config.json.gz", bomb)


def test_a_config_goes_through_reading_processes(tmp_path: Path) -> None:
    for arm in ("a", "b"):
        (tmp_path / arm).mkdir()
        (tmp_path / arm / "config.json").write_bytes(CONFIG.read_bytes())
    found = scan(tmp_path, jobs=2)
    assert [r.source.file for r in found if isinstance(r, ModelShape)] == [
        "a/config.json",
        "b/config.json",
    ]
