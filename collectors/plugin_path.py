"""Makes a vLLM of any environment find the stat logger: a folder for its PYTHONPATH.

The plugin is not an entry point of the package itself. vLLM takes any installed stat logger for a
wish for statistics and then keeps them in spite of `--disable-log-stats`, so an installed plugin
would change servers that nobody watches, even while it does nothing. A folder is on the path of
one server only, needs no installation, and cannot be registered twice.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from collectors import stat_logger

NAME = "serving_assay_steps"
"""Of the plugin, its module and its distribution: long enough to shadow nothing."""

_METADATA = f"Metadata-Version: 2.1\nName: {NAME.replace('_', '-')}\nVersion: 1\n"
_ENTRY = f"[vllm.stat_logger_plugins]\n{NAME} = {NAME}:StepLogger\n"


def pythonpath(folder: Path) -> str:
    """Write the plugin's module and metadata into a folder of its own.

    Args:
        folder: made where it is missing; holds nothing else.

    Returns:
        The entry for a server's PYTHONPATH.
    """
    source = Path(stat_logger.__file__).read_text("utf-8")
    info = folder / f"{NAME}-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    for path, text in (
        (folder / f"{NAME}.py", source),
        (info / "METADATA", _METADATA),
        (info / "entry_points.txt", _ENTRY),
    ):
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_text(text, "utf-8")
        fresh.replace(path)
    return str(folder.resolve())


def environment(folder: Path, steps: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """What a server's environment needs beside the inherited, for steps to be written.

    Args:
        folder: for the plugin's files.
        steps: folder that the plugin writes to.
        inherited: the environment that the server gets besides, as PYTHONPATH and VLLM_PLUGINS
            are added to and not replaced.
    """
    path = [pythonpath(folder), *filter(None, inherited.get("PYTHONPATH", "").split(os.pathsep))]
    added = {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)),
        stat_logger.VARIABLE: str(steps.resolve()),
    }
    if "VLLM_PLUGINS" in inherited:
        # A list of the plugins that may be loaded; without it all are.
        allowed = [*inherited["VLLM_PLUGINS"].split(","), NAME]
        added["VLLM_PLUGINS"] = ",".join(dict.fromkeys(filter(None, allowed)))
    return added
