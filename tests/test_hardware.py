"""The GPU table: every name finds its GPU, every figure has its source, bad tables are refused."""

import re
import tomllib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.hardware import (
    FIGURES,
    TableError,
    find_gpu,
    gpus,
    nearest,
    read_table,
    requirement,
)
from analysis.model import Source

NAMES = (
    "T4", "L4", "A10G", "L40S", "RTX 4070", "RTX 4090", "RTX 5090", "A100 PCIe 40GB",
    "A100 SXM 40GB", "A100 PCIe 80GB", "A100 SXM 80GB", "H100 PCIe", "H100 SXM", "H200", "B200",
    "MI300X",
)  # fmt: skip


def gpu(name):
    found = find_gpu(name)
    assert found is not None, name
    return found


def test_the_table_holds_every_gpu_it_should():
    assert tuple(gpu.name for gpu in gpus()) == NAMES


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 SXM 40GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA B200", "B200"),
        ("Tesla T4", "T4"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("AMD Instinct MI300X OAM", "MI300X"),
        ("nvidia l40s", "L40S"),
        ("NVIDIA_L40S", "L40S"),
        ("  RTX4090 ", "RTX 4090"),
        ("4070", "RTX 4070"),
        ("1xL40S", "L40S"),
        ("2 x L4", "L4"),
    ],
)
def test_a_gpu_is_found_by_what_tools_print(printed, name):
    assert gpu(printed).name == name


@pytest.mark.parametrize(
    "name",
    ["", "A100", "H100", "A10", "L40", "RTX 4070 Ti SUPER", "H100 NVL", "CPU", "x", "NVIDIA"],
)
def test_an_unknown_or_ambiguous_name_finds_nothing(name):
    assert find_gpu(name) is None


@given(st.text(max_size=40))
def test_no_name_breaks_the_search(name):
    assert all(suggested in NAMES for suggested in nearest(name))
    assert find_gpu(name) is None or find_gpu(name) in gpus()


@given(st.sampled_from(NAMES), st.booleans(), st.sampled_from(["", "-", "_", "  "]))
def test_case_and_separators_do_not_matter(name, upper, separator):
    spelt = name.replace(" ", separator)
    assert gpu(spelt.upper() if upper else spelt.lower()).name == name


def test_nearest_names_are_suggested_likeliest_first():
    assert nearest("L40")[0] == "L40S"
    assert set(nearest("H100")[:2]) == {"H100 PCIe", "H100 SXM"}
    assert all(name.startswith("A100") for name in nearest("A100"))
    assert nearest("quantum abacus") == ()
    assert nearest("") == ()


def test_a_figure_is_in_base_units_with_its_source():
    figure = gpu("L40S").figure("bandwidth")
    assert (figure.value, figure.unit, figure.basis) == (864e9, "B/s", "datasheet")
    assert figure.lo == figure.hi == figure.value
    assert figure.source == Source("hardware.toml", "L40S, bandwidth")


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("L40S", "memory_bytes", 46068 * 2**20),
        ("H200", "memory_bytes", 143771 * 2**20),
        ("MI300X", "memory_bytes", 192 * 2**30),  # no driver's figure: the data sheet's
        ("L4", "bandwidth", 300e9),
        ("RTX 4070", "bandwidth", 504e9),
        ("A100 SXM 80GB", "bandwidth", 2039e9),
        ("H200", "bandwidth", 4800e9),
        ("L40S", "bf16_flops", 362.05e12),
        ("A100 PCIe 40GB", "bf16_flops", 312e12),
        ("T4", "flops", 65e12),
        ("L4", "flops", 121e12),
        ("H100 SXM", "link_bandwidth", 450e9),
        ("L4", "link_bandwidth", 32e9),
    ],
)
def test_known_figures(name, field, value):
    assert gpu(name).figure(field).value == pytest.approx(value)


def test_every_figure_of_every_gpu_is_physical():
    for one in gpus():
        for field in FIGURES:
            if field == "bf16_flops" and not one.supports("bf16"):
                continue
            assert one.figure(field).value > 0
        assert one.link.bandwidth < one.bandwidth < one.flops, one.name
        assert 10 * 2**30 < one.memory_bytes < 256 * 2**30


def test_drivers_never_report_more_memory_than_the_data_sheet_in_gib():
    table = tomllib.loads(files("analysis").joinpath("hardware.toml").read_text("utf-8"))
    for entry in table["gpu"]:
        if "usable_mib" in entry:  # ECC takes a sixteenth of GDDR6, nothing of HBM
            assert 0.93 < entry["usable_mib"] / 1024 / entry["memory_gb"] <= 1.0, entry["name"]


def test_a_gpu_without_bf16_has_no_bf16_rate():
    with pytest.raises(KeyError, match="T4 has no bf16_flops: it multiplies fp16"):
        gpu("T4").figure("bf16_flops")
    with pytest.raises(KeyError):
        gpu("T4").figure("colour")


def test_types_follow_the_compute_capability():
    least = {"bf16": 8.0, "fp8": 8.9, "fp4": 10.0}
    for one in gpus():
        if (capability := one.cuda_capability) is not None:
            for kind, minimum in least.items():
                assert one.supports(kind) == (capability >= minimum), (one.name, kind)
    assert gpu("L4").supports(" FP8 ")
    assert not gpu("H100 SXM").supports("int4")


def test_what_vllm_runs_depends_on_the_capability_not_on_tensor_types():
    assert gpu("T4").runs("awq") is True
    assert gpu("T4").runs("marlin") is False
    assert gpu("H200").runs("AWQ") is True
    assert gpu("A10G").runs("fp8") is False
    assert gpu("A10G").runs("fp8_weight_only") is True
    assert gpu("L4").runs("fp8") is True
    assert gpu("MI300X").runs("fp8") is True
    assert gpu("MI300X").runs("awq") is False
    assert gpu("L4").runs("handwriting") is None


def test_every_entry_names_its_document():
    for one in gpus():
        assert one.source and one.note and one.link.counts
        assert re.fullmatch(r"https://\S+", one.url)
    rule = requirement("marlin")
    assert rule is not None
    assert "vLLM" in rule.source and "7.5" in rule.note


GOOD = """
[[gpu]]
name = "One"
aliases = ["Uno"]
memory_gb = 8
bandwidth_gb_s = 100
bf16_dense_tflops = 10
compute_capability = "8.0"
types = ["bf16"]
link = { kind = "pcie", gb_s = 16, counts = "one direction" }
source = "a data sheet"

[[vllm_quantization]]
method = "awq"
minimum = 7.5
amd = false
source = "a page"
"""


def test_a_small_good_table_is_read():
    (one,), (rule,) = read_table(GOOD)
    assert one.memory_bytes == 8 * 2**30
    assert (one.url, one.note, rule.note) == ("", "", "")
    assert read_table(GOOD.split("[[vllm")[0])[1] == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('source = "a data sheet"', 'sauce = "a"', "One: unknown key 'sauce'"),
        ('source = "a data sheet"', "", "One: key 'source' is missing"),
        ("[[vllm_quantization]]", "[[vllm]]", "the file: unknown key 'vllm'"),
        ("minimum = 7.5", "least = 7.5", "awq: unknown key 'least'"),
        ("minimum = 7.5", "minimum = 0", "awq: minimum is 0, a number above 0 is needed"),
        ("bf16_dense_tflops = 10", "", "One: one of bf16_ and fp16_dense_tflops is needed"),
        ("= 10\n", "= 10\nfp16_dense_tflops = 10\n", "One: one of bf16_ and fp16_"),
        ("bandwidth_gb_s = 100", "bandwidth_gb_s = true", "bandwidth_gb_s is True"),
        ("bandwidth_gb_s = 100", 'bandwidth_gb_s = "fast"', "bandwidth_gb_s is 'fast'"),
        ("memory_gb = 8", "memory_gb = -8", "memory_gb is -8"),
        ("gb_s = 16", "gb_s = nan", "gb_s is nan"),
        ('= "8.0"', '= "new"', "One: compute_capability 'new'"),
        ('["bf16"]', '["bf16", "bf17"]', "One: unknown type 'bf17'"),
        ('kind = "pcie"', 'kind = "string"', "One: unknown link 'string'"),
        ("gb_s = 16,", "gb_s = 16, up = 1,", "One, link: unknown key 'up'"),
        ('name = "One"', 'nom = "One"', "an entry without a name: unknown key 'nom'"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(old, new, message):
    with pytest.raises(TableError, match=re.escape(message)):
        read_table(GOOD.replace(old, new, 1))


def test_two_gpus_may_not_share_a_name():
    second = GOOD.split("[[vllm")[0].replace('name = "One"', 'name = "Two"')
    with pytest.raises(TableError, match="'Uno' names both One and Two"):
        read_table(GOOD + second)
