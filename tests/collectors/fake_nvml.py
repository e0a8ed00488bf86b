"""Stands in for NVML, which needs a driver: the library's own constants, types and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pynvml

GIB = 2**30


@dataclass(frozen=True)
class Card:
    """What NVML would tell of one GPU."""

    name: str = "NVIDIA L40S"
    total: int = 46068 * 2**20
    free: int = 45000 * 2**20
    capability: tuple[int, int] = (8, 9)
    memory_mhz: int = 9001
    bus_bits: int = 384
    bus: int = 0
    nvlinks: Sequence[int | None] = ()
    """By link: the PCI bus at its other end; None: a switch's."""
    unsupported: Sequence[str] = ()


@dataclass(frozen=True)
class FakeNvml:
    """A module like pynvml."""

    cards: Sequence[Card] = (Card(),)
    levels: Mapping[tuple[int, int], int] = field(default_factory=dict)
    starts: bool = True

    def __getattr__(self, name: str) -> Any:
        # Constants and errors are the library's; its functions would want a driver.
        if name.startswith("nvmlDevice") and not hasattr(type(self), name):
            raise AttributeError(name)
        return getattr(pynvml, name)

    def nvmlInit(self) -> None:
        if not self.starts:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    def nvmlShutdown(self) -> None:
        pass

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        return self.cards[index]

    def nvmlDeviceGetName(self, card: Card) -> str:
        return card.name

    def nvmlDeviceGetUUID(self, card: Card) -> str:
        return f"GPU-{card.bus}"

    def nvmlDeviceGetMemoryInfo(self, card: Card) -> Any:
        if "memory" in card.unsupported:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        memory = pynvml.c_nvmlMemory_t()
        memory.total, memory.free, memory.used = card.total, card.free, card.total - card.free
        return memory

    def nvmlDeviceGetCudaComputeCapability(self, card: Card) -> tuple[int, int]:
        return card.capability

    def nvmlDeviceGetMaxClockInfo(self, card: Card, kind: int) -> int:
        return card.memory_mhz if kind == pynvml.NVML_CLOCK_MEM else 2520

    def nvmlDeviceGetMemoryBusWidth(self, card: Card) -> int:
        if "bus" in card.unsupported:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return card.bus_bits

    def nvmlDeviceGetEnforcedPowerLimit(self, card: Card) -> int:
        return 350_000

    def nvmlDeviceGetPciInfo(self, card: Card) -> Any:
        return _pci(card.bus)

    def nvmlDeviceGetNvLinkState(self, card: Card, link: int) -> int:
        if not card.nvlinks:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        if link >= len(card.nvlinks):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return int(pynvml.NVML_FEATURE_ENABLED)

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, card: Card, link: int) -> int:
        switch = card.nvlinks[link] is None
        kinds = (pynvml.NVML_NVLINK_DEVICE_TYPE_GPU, pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH)
        return int(kinds[switch])

    def nvmlDeviceGetNvLinkRemotePciInfo(self, card: Card, link: int) -> Any:
        return _pci(card.nvlinks[link] or 0xFF)

    def nvmlDeviceGetTopologyCommonAncestor(self, a: Card, b: Card) -> int:
        return self.levels.get((a.bus, b.bus), int(pynvml.NVML_TOPOLOGY_NODE))


def _pci(bus: int) -> Any:
    info = pynvml.nvmlPciInfo_t()
    info.domain, info.bus, info.device = 0, bus, 0
    return info
