"""Model shapes: sizes against published and printed ones, names, bad tables."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.hardware import TableError
from analysis.model import Source
from analysis.models import (
    FIGURES,
    Packing,
    find_model,
    models,
    read_table,
)

GIB = 2**30


def model(name):
    found = find_model(name)
    assert found is not None, name
    return found


def test_the_table_holds_every_model_it_should():
    sizes = ("4B", "8B", "14B", "32B")
    expected = [f"Qwen/Qwen3-{size}{kind}" for size in sizes for kind in ("", "-AWQ")]
    assert [model.name for model in models()] == expected
    assert all(model.source == f"{model.name}, config.json" for model in models())


@pytest.mark.parametrize(
    ("name", "billions"),
    [("4B", 4.02), ("8B", 8.19), ("14B", 14.77), ("32B", 32.76)],
)
def test_parameters_match_the_published_counts(name, billions):
    assert model(f"Qwen/Qwen3-{name}").parameters() / 1e9 == pytest.approx(billions, abs=0.005)
    assert model(f"Qwen3-{name}-AWQ").parameters() == model(f"Qwen3-{name}").parameters()


def test_16_bit_weights_match_the_size_a_server_prints():
    # vLLM: "Model loading took 27.52 GiB"; the rotary table (40,960 x 128 x 2 bytes) is in it.
    weights = model("Qwen3-14B").weight_bytes()
    assert (weights + 40960 * 128 * 2) / GIB == pytest.approx(27.52, abs=0.005)
    assert weights / GIB == pytest.approx(27.52, rel=0.005)


def test_packed_weights_are_the_checkpoint_and_a_server_prints_more():
    # vLLM prints 9.44 GiB with Marlin and 9.62 GiB with Machete for one checkpoint, so the print
    # holds what the kernel made of the weights; the checkpoint itself is 1.6 % less than the first.
    weights = model("Qwen3-14B-AWQ").weight_bytes()
    blocks = 40 * (2 * 5120 * 5120 + 2 * 5120 * 1024 + 3 * 5120 * 17408)
    packed = blocks * (4 + (16 + 4) / 128) / 8
    norms = (40 * (2 * 5120 + 2 * 128) + 5120) * 2
    assert weights == packed + 2 * 151936 * 5120 * 2 + norms
    assert weights / GIB == pytest.approx(9.2914, abs=1e-4)
    assert 0.980 < weights / GIB / 9.44 < 1.0


def test_kv_cache_bytes_of_a_token():
    fourteen = model("Qwen3-14B")
    assert fourteen.kv_bytes_per_token() == 163_840
    assert fourteen.kv_bytes_per_token(tensor_parallel=2) == 81_920
    assert fourteen.kv_bytes_per_token(pipeline_parallel=2) == 81_920
    assert fourteen.kv_bytes_per_token(2, 2) == 40_960
    # 16 GPUs, 8 KV heads: each head is kept twice, none is halved.
    assert fourteen.kv_bytes_per_token(16) == fourteen.kv_bytes_per_token(8) == 20_480
    assert fourteen.kv_bytes_per_token(pipeline_parallel=3) == 14 * 4096
    assert replace(fourteen, kv_dtype_bytes=1).kv_bytes_per_token() == 81_920
    assert model("Qwen3-14B-AWQ").kv_bytes_per_token() == 163_840


@pytest.mark.parametrize(("name", "size"), [("4B", 147_456), ("8B", 147_456), ("32B", 262_144)])
def test_kv_cache_bytes_of_the_other_sizes(name, size):
    assert model(f"Qwen3-{name}").kv_bytes_per_token() == size


@pytest.mark.parametrize(("tp", "pp"), [(0, 1), (1, 0), (-1, 1), (3, 1), (12, 1)])
def test_parallel_degrees_that_do_not_divide_are_refused(tp, pp):
    with pytest.raises(ValueError, match=r"at least 1|do not divide"):
        model("Qwen3-14B").kv_bytes_per_token(tp, pp)


@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 40))
def test_shards_hold_at_least_the_whole_cache_together(tp, pp):
    fourteen = model("Qwen3-14B")
    assert fourteen.kv_bytes_per_token(tp, pp) * tp * pp >= fourteen.kv_bytes_per_token()


def test_the_embedding_a_step_leaves_unread():
    assert model("Qwen3-14B").unread_embedding_bytes() / 1e9 == pytest.approx(1.556, abs=5e-4)
    assert model("Qwen3-14B-AWQ").unread_embedding_bytes() == 151936 * 5120 * 2
    assert model("Qwen3-4B").unread_embedding_bytes() == 0.0


def test_flops_count_the_lm_head_once_and_the_lookup_never():
    fourteen, four = model("Qwen3-14B"), model("Qwen3-4B")
    assert fourteen.flops_per_token() == 2 * (fourteen.parameters() - 151936 * 5120)
    assert four.flops_per_token() == 2 * four.parameters()


def test_figures_name_the_table_and_the_model():
    figure = model("Qwen3-14B").figure("kv_bytes_per_token")
    assert (figure.value, figure.unit, figure.basis) == (163_840, "B", "datasheet")
    assert figure.lo == figure.hi == figure.value
    assert figure.source == Source("models.toml", "Qwen/Qwen3-14B, KV bytes a token")
    assert all(model("Qwen3-32B").figure(field).value > 0 for field in FIGURES)
    with pytest.raises(KeyError):
        model("Qwen3-14B").figure("colour")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Qwen/Qwen3-14B", "Qwen/Qwen3-14B"),
        ("qwen/qwen3-14b-awq", "Qwen/Qwen3-14B-AWQ"),
        ("/srv/models/qwen3-14b-awq/", "Qwen/Qwen3-14B-AWQ"),
        ("Qwen3_4B", "Qwen/Qwen3-4B"),
        (r"C:\models\Qwen3-32B", "Qwen/Qwen3-32B"),
        ("/cache/models--Qwen--Qwen3-8B-AWQ/snapshots/0123abcd", "Qwen/Qwen3-8B-AWQ"),
    ],
)
def test_a_model_is_found_by_hub_name_and_path(name, found):
    assert model(name).name == found


@pytest.mark.parametrize("name", ["", "/", "./tiny", "Qwen/Qwen3-14B-FP8", "qwen3-14b-dummy"])
def test_an_unknown_model_is_not_found(name):
    assert find_model(name) is None


@given(st.text(max_size=60))
def test_no_name_breaks_the_search(name):
    assert find_model(name) is None or find_model(name) in models()


def test_packed_bytes():
    assert Packing(4, 128, True).bytes(256, 8) == 256 * 8 / 2 + 2 * 8 * 2 + 2 * 8 / 2
    assert Packing(4, -1, False).bytes(256, 8) == 256 * 8 / 2 + 8 * 2
    assert Packing(8, 100, False).bytes(256, 8) == 256 * 8 + 3 * 8 * 2


PLAIN = """
[[model]]
name = "a/One"
layers = 2
heads = 2
kv_heads = 1
head_dim = 4
hidden = 8
intermediate = 16
vocab = 32
tie_word_embeddings = true
qk_norm = false
source = "a/One, config.json"
"""
PACKED = """
[[model]]
name = "a/One-AWQ"
of = "a/One"
bits = 4
group_size = 4
zero_point = true
source = "a/One-AWQ, config.json"
"""


def test_a_small_good_table_is_read():
    one, packed = read_table(PLAIN + PACKED)
    block = 2 * 8 * 8 + 2 * 8 * 4 + 3 * 8 * 16 + 2 * 8
    assert one.parameters() == packed.parameters() == 2 * block + 8 + 32 * 8
    assert packed.weight_bytes() < one.weight_bytes()
    assert packed.source == "a/One-AWQ, config.json"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAIN.replace("layers = 2", "layers = 0"), "a/One: layers is 0, a count is needed"),
        (PLAIN.replace("layers = 2", "rows = 2"), "a/One: missing key 'layers'"),
        (PLAIN + "colour = 1", "a/One: unknown key 'colour'"),
        (PLAIN.replace("name", "nom"), "an entry without a name: missing key 'name'"),
        (PLAIN + PLAIN, "a/One is there twice"),
        (PACKED, "a/One-AWQ: 'a/One' is not a model above it"),
        (PLAIN + PACKED + "hidden = 8", "a/One-AWQ: unknown key 'hidden'"),
        (PLAIN.replace("= true", "= 1"), "a/One: tie_word_embeddings is 1, true or false"),
        (PLAIN + PACKED.replace("bits = 4", "bits = 5"), "a/One-AWQ: 4 or 8 bits"),
        (PLAIN + PACKED.replace("= true", "= 1"), "a/One-AWQ: zero_point is 1, true or false"),
        ("[[mode]]\nx = 1", "the file holds ['mode'], only [[model]] is expected"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(text, message):
    with pytest.raises(TableError, match=re.escape(message)):
        read_table(text)
