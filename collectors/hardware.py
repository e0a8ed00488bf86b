"""The GPUs of this machine as NVML tells them, and what lies between the chosen ones.

`pynvml` (nvidia-ml-py) is imported only when it is asked. No GPU is an answer, not an error.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

SWITCH = "NVSwitch"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. What NVML does not tell is None."""

    index: int
    """In the order of the PCI bus, as nvidia-smi counts."""
    name: str
    uuid: str
    memory_total: int | None
    """Bytes."""
    memory_free: int | None
    """Bytes."""
    capability: tuple[int, int] | None
    """Compute capability: (8, 9)."""
    sm_clock: float | None
    """Highest clock of the cores, Hz."""
    power_limit: float | None
    """W."""
    bandwidth: float | None
    """Of the memory, by its highest clock and the width of its bus: bytes/s."""


@dataclass(frozen=True, slots=True)
class Link:
    """What joins two GPUs."""

    a: int
    b: int
    nvlinks: int
    """Active NVLinks between the two, directly or through a switch; 0: none."""
    relation: str
    """In words."""

    def __str__(self) -> str:
        return f"GPU {self.a} - GPU {self.b}: {self.relation}"


@dataclass(frozen=True, slots=True)
class Inventory:
    """The GPUs of a machine."""

    driver: str
    cuda: str
    """Newest CUDA version that the driver runs."""
    gpus: tuple[Gpu, ...]
    links: tuple[Link, ...] = ()

    def gpu(self, index: int) -> Gpu | None:
        """The GPU of an index."""
        return next((gpu for gpu in self.gpus if gpu.index == index), None)


@dataclass(frozen=True, slots=True)
class NoGpu:
    """None can be used, and why."""

    reason: str


def inventory(chosen: Sequence[int] = (), nvml: Any = None) -> Inventory | NoGpu:
    """All GPUs, and the links between the chosen ones.

    Args:
        chosen: Indices; none: all.
        nvml: A module like `pynvml`; None: import it.
    """
    if nvml is None:
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return NoGpu("nvidia-ml-py is not installed (pip install nvidia-ml-py)")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return NoGpu(f"NVML does not start: {error}")
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        if not handles:
            return NoGpu("NVML counts no GPU")
        ask = _Ask(nvml)
        cuda = ask(nvml.nvmlSystemGetCudaDriverVersion_v2)
        wanted = [i for i in chosen or range(len(handles)) if 0 <= i < len(handles)]
        return Inventory(
            driver=_text(ask(nvml.nvmlSystemGetDriverVersion)),
            cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else "",
            gpus=tuple(_gpu(ask, index, handle) for index, handle in enumerate(handles)),
            links=tuple(
                _link(ask, (a, handles[a]), (b, handles[b]))
                for a, b in itertools.combinations(wanted, 2)
            ),
        )
    except nvml.NVMLError as error:
        return NoGpu(f"NVML answers with an error: {error}")
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def indices(found: Inventory | NoGpu) -> tuple[int, ...]:
    """The indices of all GPUs; none where there is none."""
    return tuple(gpu.index for gpu in found.gpus) if isinstance(found, Inventory) else ()


def described(found: Inventory | NoGpu) -> dict[str, Any]:
    """For a record: plain values, SI units in the names."""
    if isinstance(found, NoGpu):
        return {"gpus": [], "no_gpu": found.reason}
    return {
        "driver": found.driver,
        "cuda": found.cuda,
        "gpus": [
            {
                "index": gpu.index,
                "name": gpu.name,
                "uuid": gpu.uuid,
                "memory_total_bytes": gpu.memory_total,
                "memory_free_bytes": gpu.memory_free,
                "compute_capability": gpu.capability and ".".join(map(str, gpu.capability)),
                "sm_clock_max_hz": gpu.sm_clock,
                "power_limit_w": gpu.power_limit,
                "memory_bandwidth_bytes_per_s": gpu.bandwidth,
            }
            for gpu in found.gpus
        ],
        "links": [
            {"gpus": [link.a, link.b], "nvlinks": link.nvlinks, "relation": link.relation}
            for link in found.links
        ],
    }


class _Ask:
    """Calls NVML; what a GPU or driver does not support is None."""

    def __init__(self, nvml: Any) -> None:
        self.nvml = nvml

    def __call__(self, function: Callable[..., T], *args: object) -> T | None:
        try:
            return function(*args)
        except self.nvml.NVMLError:
            return None


def _text(value: str | bytes | None) -> str:
    # Releases of nvidia-ml-py before 11.515 answer with bytes.
    return value.decode() if isinstance(value, bytes) else value or ""


def _gpu(ask: _Ask, index: int, handle: Any) -> Gpu:
    nvml = ask.nvml
    memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    capability = ask(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    sm_mhz = ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM)
    memory_mhz = ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_MEM)
    bus_bits = ask(nvml.nvmlDeviceGetMemoryBusWidth, handle)
    milliwatts = ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    return Gpu(
        index=index,
        name=_text(ask(nvml.nvmlDeviceGetName, handle)),
        uuid=_text(ask(nvml.nvmlDeviceGetUUID, handle)),
        memory_total=None if memory is None else int(memory.total),
        memory_free=None if memory is None else int(memory.free),
        capability=None if capability is None else (capability[0], capability[1]),
        sm_clock=None if sm_mhz is None else sm_mhz * 1e6,
        power_limit=None if milliwatts is None else milliwatts / 1000,
        # Two transfers a clock: 9,001 MHz on 384 bits are the 864 GB/s of an L40S's data sheet.
        bandwidth=2 * memory_mhz * 1e6 * bus_bits / 8 if memory_mhz and bus_bits else None,
    )


def _link(ask: _Ask, a: tuple[int, Any], b: tuple[int, Any]) -> Link:
    direct = _nvlinks_to(ask, a[1], b[1])
    if direct:
        return Link(a[0], b[0], direct, f"NVLink, {direct} links")
    switched = min(_nvlinks_to(ask, a[1], None), _nvlinks_to(ask, b[1], None))
    if switched:
        return Link(a[0], b[0], switched, f"NVLink through {SWITCH}, {switched} links")
    level = ask(ask.nvml.nvmlDeviceGetTopologyCommonAncestor, a[1], b[1])
    return Link(a[0], b[0], 0, _relation(ask.nvml, level))


def _relation(nvml: Any, level: int | None) -> str:
    words = {
        nvml.NVML_TOPOLOGY_INTERNAL: "on one board (PIX)",
        nvml.NVML_TOPOLOGY_SINGLE: "PCIe through one switch (PIX)",
        nvml.NVML_TOPOLOGY_MULTIPLE: "PCIe through several switches (PXB)",
        nvml.NVML_TOPOLOGY_HOSTBRIDGE: "PCIe through one host bridge (PHB)",
        nvml.NVML_TOPOLOGY_NODE: "PCIe through several host bridges of one NUMA node (NODE)",
        nvml.NVML_TOPOLOGY_SYSTEM: "PCIe and the link between NUMA nodes (SYS)",
    }
    return "not told by NVML" if level is None else words.get(level, f"level {level} of NVML")


def _nvlinks_to(ask: _Ask, handle: Any, other: Any) -> int:
    """Active links to another GPU, or, where none is named, to a switch."""
    nvml = ask.nvml
    bus = None if other is None else _bus(ask(nvml.nvmlDeviceGetPciInfo, other))
    count = 0
    for link in _active(ask, handle):
        kind = ask(nvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
        if other is None:
            count += kind == nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH
        else:
            remote = _bus(ask(nvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link))
            count += remote is not None and remote == bus
    return count


def _active(ask: _Ask, handle: Any) -> Iterator[int]:
    nvml = ask.nvml
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        if ask(nvml.nvmlDeviceGetNvLinkState, handle, link) == nvml.NVML_FEATURE_ENABLED:
            yield link


def _bus(pci: Any) -> tuple[int, int, int] | None:
    return None if pci is None else (pci.domain, pci.bus, pci.device)
