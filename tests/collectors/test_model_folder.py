from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import model_folder
from collectors.errors import Problem
from collectors.model_folder import Shape

GIB = 2**30
QWEN3_14B = {
    "hidden_size": 5120, "num_attention_heads": 40, "num_hidden_layers": 40,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 17408, "vocab_size": 151936,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "max_position_embeddings": 40960,
}  # fmt: skip
AWQ = {"quant_method": "awq", "bits": 4}


def test_a_shape_gives_what_the_start_up_log_said() -> None:
    shape = model_folder.shape(QWEN3_14B)
    # The write-up's log: 27.52 GiB of weights, 163,840 bytes of KV a token.
    assert shape.weights == pytest.approx(27.52 * GIB, rel=0.001)
    assert shape.kv_token == 163_840
    assert shape.max_len == 40960


def test_quantised_weights_are_a_lower_bound() -> None:
    shape = model_folder.shape({**QWEN3_14B, "quantization_config": AWQ})
    assert shape.quantization == "awq"
    assert shape.weights is not None
    # 9.44 GiB in the log: scales and zero points come on top.
    assert 0.9 * 9.44 * GIB < shape.weights < 9.44 * GIB


def test_other_shapes() -> None:
    latent = {**QWEN3_14B, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert model_folder.shape(latent).kv_token == 40 * 576 * 2
    assert model_folder.shape(latent).weights is None
    mixed = {**QWEN3_14B, "layer_types": ["full_attention"] * 10 + ["linear_attention"] * 30}
    assert model_folder.shape(mixed).kv_token == 163_840 / 4
    nested = model_folder.shape({"text_config": QWEN3_14B})
    assert nested.layers == 40
    assert model_folder.shape({}) == Shape(None, None, None)
    assert model_folder.shape({**QWEN3_14B, "torch_dtype": "float32"}).kv_token == 2 * 163_840
    fp8 = model_folder.shape({**QWEN3_14B, "quantization_config": {"quant_method": "fp8"}})
    assert fp8.weights is not None
    assert fp8.weights < 0.6 * 27.52 * GIB


KEYS = st.sampled_from([*QWEN3_14B, "quantization_config", "layer_types", "text_config"])
ODD = st.integers() | st.text() | st.none() | st.lists(st.integers())


@given(st.dictionaries(KEYS, ODD))
def test_odd_values_are_unknown_not_errors(config: dict[str, object]) -> None:
    model_folder.shape(config)


def test_weights_on_disk_beat_the_shape(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN3_14B))
    assert model_folder.on_disk(tmp_path) is None
    (tmp_path / "model-1.safetensors").write_bytes(b"x" * 100)
    (tmp_path / "model-2.safetensors").write_bytes(b"x" * 11)
    assert model_folder.on_disk(tmp_path) == 111
    index = tmp_path / "model.safetensors.index.json"
    index.write_text("{}")
    assert model_folder.on_disk(tmp_path) == 111
    index.write_text('{"metadata": {"total_size": 5000}}')
    shape = model_folder.read(tmp_path)
    assert isinstance(shape, Shape)
    assert shape.weights == 5000


def test_a_folder_without_a_config_is_a_problem(tmp_path: Path) -> None:
    problem = model_folder.read(tmp_path)
    assert isinstance(problem, Problem)
    assert "config.json: No such file" in str(problem)
    for text in ("{", "[]", "[" * 100_000):
        (tmp_path / "config.json").write_text(text)
        assert "is no JSON" in str(model_folder.read(tmp_path))


def test_a_name_is_looked_for_in_the_hubs_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert model_folder.find("org/model") is None
    model = tmp_path / "models--org--model"
    snapshot = model / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("abc\n")
    assert model_folder.find("org/model") is None
    (snapshot / "config.json").write_text("{}")
    assert model_folder.find("org/model") == snapshot
    assert model_folder.find(str(snapshot)) == snapshot


@pytest.mark.parametrize(
    ("name", "path"),
    [("org/model", False), ("model", False), ("/models/x", True), ("./x", True), ("a/b/c", True)],
)
def test_a_path_is_told_from_a_name(name: str, path: bool) -> None:
    assert model_folder.is_path(name) is path


@pytest.mark.parametrize("name", ["~nobody-here/x", "x" * 5000, "a/" * 3000, "a\0b", ""])
def test_a_name_that_no_folder_can_have(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert model_folder.find(name) in (None, Path())


@pytest.mark.parametrize("total", ["1e999", "-5", "1" + "0" * 400, '"x"', "null", "true"])
def test_absurd_sizes_are_none(total: str, tmp_path: Path) -> None:
    (tmp_path / "a.safetensors.index.json").write_text(f'{{"metadata": {{"total_size": {total}}}}}')
    assert model_folder.on_disk(tmp_path) in (None, 1)
    huge = dict.fromkeys(("hidden_size", "num_hidden_layers", "vocab_size"), 10**400)
    assert model_folder.shape({**QWEN3_14B, **huge}).weights is None
