"""Samples of each GPU twice a second through NVML, one JSON line a GPU.

A line::

    {"t":1796061447.714,"gpu":0,"uuid":"GPU-5c…","utilization_gpu":97,"utilization_memory":61,
     "memory_used":41203793920,"power":312.4,"clock_sm":1755,"clock_memory":2619,
     "throttle_reasons":4,"temperature":61,"pstate":0,"energy":81234.125}

`t` is Unix time in seconds, `gpu` NVML's index (of the host, whatever CUDA_VISIBLE_DEVICES says);
utilization in percent of NVML's own window, memory in bytes, power in W, clocks in MHz, throttle
reasons as NVML's bit mask, temperature in °C, energy in J since the driver was loaded. What a GPU
does not tell is null.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any


class GpuSampler:
    """A thread that samples GPUs into one file until it is stopped."""

    def __init__(self, path: Path, gpus: Sequence[int] = (), period: float = 0.5) -> None:
        """Set up, start nothing.

        Args:
            path: of the file that is appended to.
            gpus: indices by NVML; all where empty.
            period: seconds from one sample to the next.
        """
        self._path = path
        self._gpus = tuple(gpus)
        self._period = period
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._nvml: ModuleType | None = None
        self.samples = 0
        """Lines written."""

    def start(self) -> str:
        """Begin.

        Returns:
            Why there will be no samples, one line; empty where there will be.
        """
        try:
            import pynvml
        except ImportError:
            return "no GPU samples: nvidia-ml-py is not installed (pip install nvidia-ml-py)"
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            return f"no GPU samples: NVML: {error}"
        try:
            gpus = self._gpus or tuple(range(pynvml.nvmlDeviceGetCount()))
            handles = {gpu: pynvml.nvmlDeviceGetHandleByIndex(gpu) for gpu in gpus}
            uuids = {gpu: _text(pynvml.nvmlDeviceGetUUID(handles[gpu])) for gpu in gpus}
        except pynvml.NVMLError as error:
            pynvml.nvmlShutdown()
            return f"no GPU samples: NVML: {error}"
        if not handles:
            pynvml.nvmlShutdown()
            return "no GPU samples: NVML finds no GPU"
        self._nvml = pynvml
        self._over.clear()
        self._thread = threading.Thread(
            target=self._watch, args=(pynvml, handles, uuids), name="gpus", daemon=True
        )
        self._thread.start()
        return ""

    def stop(self) -> None:
        """End; waits for a sample under way, two seconds at most."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(2)
            if not self._thread.is_alive() and self._nvml is not None:
                self._nvml.nvmlShutdown()
        self._thread = self._nvml = None

    def _watch(self, nvml: ModuleType, handles: dict[int, Any], uuids: dict[int, str]) -> None:
        due = time.monotonic()
        while not self._over.is_set():
            lines = []
            for gpu, handle in handles.items():
                line = {"t": round(time.time(), 3), "gpu": gpu, "uuid": uuids[gpu]}
                lines.append(json.dumps({**line, **sample(nvml, handle)}, separators=(",", ":")))
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write("\n".join(lines) + "\n")
                self.samples += len(lines)
            except OSError:
                pass  # A full disk is seen by whoever writes what must be written.
            due = max(due + self._period, time.monotonic() - self._period)
            self._over.wait(max(0.0, due - time.monotonic()))


def sample(nvml: ModuleType, handle: Any) -> dict[str, float | int | None]:
    """What one GPU says of itself now.

    Args:
        nvml: the module pynvml.
        handle: of the GPU.
    """

    def ask(question: Callable[..., Any], *more: Any) -> Any:
        try:
            return question(handle, *more)
        except nvml.NVMLError:
            return None

    use = ask(nvml.nvmlDeviceGetUtilizationRates)
    memory = ask(nvml.nvmlDeviceGetMemoryInfo)
    power = ask(nvml.nvmlDeviceGetPowerUsage)
    energy = ask(nvml.nvmlDeviceGetTotalEnergyConsumption)
    # Newer drivers call them event reasons; the old name goes on in this library.
    reasons = getattr(
        nvml,
        "nvmlDeviceGetCurrentClocksEventReasons",
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons,
    )
    return {
        "utilization_gpu": None if use is None else int(use.gpu),
        "utilization_memory": None if use is None else int(use.memory),
        "memory_used": None if memory is None else int(memory.used),
        "power": None if power is None else power / 1000,
        "clock_sm": ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
        "clock_memory": ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
        "throttle_reasons": ask(reasons),
        "temperature": ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
        "pstate": ask(nvml.nvmlDeviceGetPerformanceState),
        "energy": None if energy is None else energy / 1000,
    }


def _text(word: str | bytes) -> str:
    return word.decode() if isinstance(word, bytes) else word
