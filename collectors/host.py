"""What the user says of this machine: commands, files, GPUs; found out where not said."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collectors.study import Workload

_VLLM_MODULE = "vllm.entrypoints.cli.main"


@dataclass(frozen=True, slots=True)
class Host:
    """Where a study runs."""

    vllm: tuple[str, ...]
    """The command that is `vllm`; empty where none is installed."""
    router: tuple[str, ...] = ()
    """The command that is `vllm-router`; empty where none is installed."""
    results: Path = Path("results")
    gpus: tuple[int, ...] = ()
    """Indices that may be used; empty: all there are."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Folder of a model, by the name that the study gives it."""
    datasets: Mapping[str, Path] = field(default_factory=dict)
    """File of a workload's dataset, by the workload's or the file's name."""
    random_weights: bool = False
    """Shapes with random weights, also where the study has real ones."""
    port: int | None = None
    """First port to use; None: whichever are free."""
    upload: str = ""
    """An fsspec URL that each run folder is copied to."""

    def model(self, name: str) -> str:
        """What `vllm serve` is given for a model: a folder, or the name itself."""
        return self.models.get(name, name)

    def dataset(self, workload: Workload) -> Path | None:
        """The file of a workload's dataset, whether it is there or not; None: it has none."""
        if not workload.dataset:
            return None
        return self.datasets.get(
            workload.name, self.datasets.get(workload.dataset, Path(workload.dataset))
        )


def command_of(said: Sequence[str], name: str, module: str = "") -> tuple[str, ...]:
    """The words that start a command.

    Args:
        said: by the user; none: look for it.
        name: of the program, looked for beside this interpreter and on the PATH.
        module: that can be run in its place, if this interpreter has it.

    Returns:
        The words; none where nothing was found.
    """
    if said:
        return tuple(said)
    beside = Path(sys.executable).parent / name
    if beside.is_file():
        return (str(beside),)
    found = shutil.which(name)
    if found:
        return (found,)
    if module and importlib.util.find_spec(module.partition(".")[0]):
        return (sys.executable, "-m", module)
    return ()


def vllm_command(said: Sequence[str] = ()) -> tuple[str, ...]:
    """The words that start `vllm`; none where it is not installed."""
    return command_of(said, "vllm", _VLLM_MODULE)


def router_command(said: Sequence[str] = ()) -> tuple[str, ...]:
    """The words that start `vllm-router`; none where it is not installed."""
    return command_of(said, "vllm-router")
