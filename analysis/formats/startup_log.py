"""What a vLLM server's log says about its start: memory, KV cache, flags, kernels.

Wording from vLLM 0.4 to 0.28. Several workers or engines in one log (tensor, pipeline or data
parallel) print the same fact each: the first is kept, never summed, and `config` says how many
printed it. Printed numbers are intervals of half their last digit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from analysis.formats._files import lines_of, one_line
from analysis.formats._printed import number_of, printed
from analysis.formats._server_args import parse_args
from analysis.model import Figure, Record, Scalar, Skipped, Source, Startup

_SNIFF = re.compile(
    rb"non-default args: |Initializing an? (?:V1 )?LLM engine|vLLM API server version"
    rb"|GPU KV cache size: |[Mm]odel loading took |[Mm]odel weights (?:take|took) "
    rb"|# (?:GPU|cuda) blocks: "
)

_NUMBER = r"(\d+(?:,\d{3})*(?:\.\d+)?)"
_FIGURES: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    # vLLM divides by 2**30 in all of these, also where an old version prints "GB".
    ("model_bytes", "GiB", re.compile(rf"[Mm]odel loading took {_NUMBER} ?Gi?B\b")),
    ("model_bytes", "GiB", re.compile(rf"[Mm]odel weights (?:take|took) {_NUMBER} ?Gi?B\b")),
    ("kv_bytes", "GiB", re.compile(rf"Available KV cache memory: {_NUMBER} ?GiB")),
    ("kv_bytes", "GiB", re.compile(rf"[Rr]eserved for KV [Cc]ache is {_NUMBER} ?GiB")),
    ("kv_bytes", "GiB", re.compile(rf"[Rr]eserved {_NUMBER} ?GiB memory for KV [Cc]ache")),
    ("kv_bytes", "GiB", re.compile(rf"Explicitly set \({_NUMBER}/[\d.]+\) GiB for KV cache")),
    ("kv_tokens", "tok", re.compile(rf"KV cache size: {_NUMBER} tokens")),
    ("max_model_len", "tok", re.compile(rf"Maximum concurrency for {_NUMBER} tokens")),
    ("max_model_len", "tok", re.compile(rf"Using max model len {_NUMBER}")),
    ("max_model_len", "tok", re.compile(rf"\bmax_seq_len={_NUMBER}")),
    ("reported_max_concurrency", "1",
     re.compile(rf"Maximum concurrency for [\d,]+ tokens per request: {_NUMBER}x")),
)  # fmt: skip
_COUNTS = ("kv_tokens", "max_model_len")
_CAPACITY = ("model_bytes", "kv_bytes", "kv_tokens")

_BLOCKS = re.compile(r"# (?:GPU|cuda) blocks: (\d+(?:,\d{3})*)")
_DEFAULT_BLOCK = 16
"""vLLM's tokens a block on a GPU where nothing else is stated."""

_SETTINGS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("version", re.compile(r"\bvLLM API server version v?(\d+\.\d[\w.+-]*)")),
    ("version", re.compile(r"LLM engine \(v(\d+\.\d[\w.+-]*)\)")),
    ("version", re.compile(r"\[[\w.]+:\d+\] .*\bversion (\d+\.\d[\w.+-]*)\s*$")),
    ("max_num_batched_tokens", re.compile(r"[Cc]hunked prefill is enabled with "
                                          r"max_num_batched_tokens=(\d+)")),
    ("attention_backend", re.compile(r"Using (\S+) attention backend")),
    ("attention_backend", re.compile(r"layout for (\w+) backend")),
    ("attention_backend", re.compile(r"Using ([A-Za-z][\w ]*?) backend(?: on V1 engine)?\.")),
    ("flash_attention_version", re.compile(r"Using FlashAttention version (\d+)")),
    ("quantization_kernel", re.compile(r"Using (\w+Kernel) for \w+")),
    ("quantization_kernel", re.compile(r"Using (\w*(?:[Mm]arlin|[Mm]achete)\w*) kernel")),
)  # fmt: skip
_ARGS = re.compile(r"non-default args: (\{.*\})")
_ENGINE = re.compile(r"Initializing an? (?:V1 )?LLM engine")
_ENGINE_KEYS = re.compile(
    r"\b(dtype|quantization|kv_cache_dtype|load_format|tensor_parallel_size|enforce_eager"
    r"|pipeline_parallel_size|data_parallel_size|enable_prefix_caching|block_size)=([\w.+-]+)"
)
_ERROR = re.compile(r"\bERROR\b|^\S*(?:Error|Exception)\b: ")
_PREFIX = re.compile(r"^(?:\([^)]*\) )?(?:ERROR [\d:. -]+\[[^\]]*\] ?)?")

_WORDS = (
    "GiB", "GB", "tokens", "max", "blocks", "version", "engine", "backend", "ernel", "args",
    "ERROR", "Error", "Exception",
)  # fmt: skip
"""Every line with a fact holds one of these; request lines, nearly all of a log, do not."""


def sniff(path: Path, head: bytes) -> bool:
    """Text with one of the lines that every vLLM server prints when it starts."""
    return head.lstrip()[:1] not in (b"{", b"[") and bool(_SNIFF.search(head))


def read(path: Path, file: str) -> list[Record]:
    """One `Startup`, or `Skipped` with the last error where the server died before any fact."""
    log = _Log(file)
    log.take(lines_of(path))
    if not any(name in log.figures for name in _CAPACITY) and log.error:
        return [Skipped(file, f"the server died before it was ready: {one_line(log.error, 200)}")]
    if not log.figures:
        return [
            Skipped(
                file,
                "a server's log without a startup fact (model GiB, KV cache size); "
                "log from the start, at level INFO",
            )
        ]
    return [Startup(Source(file, ""), "", log.figures, log.settings())]


_MOST_LINE = 20_000
"""Longer lines hold no fact behind this, and would be searched in quadratic time."""


class _Log:
    """Facts gathered line by line; the first of each kind stands."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.figures: dict[str, Figure] = {}
        self.config: dict[str, Scalar] = {}
        self.flags: dict[str, Scalar] = {}
        self.engine: dict[str, Scalar] = {}
        self.times: Counter[tuple[str, str]] = Counter()
        self.blocks: tuple[str, int] | None = None
        self.error = ""

    def take(self, lines: Iterable[str]) -> None:
        for number, line in enumerate(lines, start=1):
            if not any(word in line for word in _WORDS):
                continue
            line = line[:_MOST_LINE]
            self._figures(line, number)
            self._settings(line)
            if _ERROR.search(line) and (said := _PREFIX.sub("", line).strip(" ^~|")):
                self.error = said
        self._tokens_of_blocks()

    def _figures(self, line: str, number: int) -> None:
        for name, unit, pattern in _FIGURES:
            if found := pattern.search(line):
                self.times[name, pattern.pattern] += 1
                value = number_of(found[1])
                if name not in self.figures and value is not None:
                    self.figures[name] = printed(
                        name, value, unit, Source(self.file, f"line {number}"),
                        "exact" if name in _COUNTS else "printed",
                    )  # fmt: skip
        if found := _BLOCKS.search(line):
            self.times["kv_tokens", _BLOCKS.pattern] += 1
            self.blocks = self.blocks or (found[1], number)

    def _settings(self, line: str) -> None:
        for name, pattern in _SETTINGS:
            if name not in self.config and (found := pattern.search(line)):
                text = found[1]
                self.config[name] = _plain_number(text)
        if not self.flags and (args := _ARGS.search(line)):
            self.flags = parse_args(args[1])
        if not self.engine and _ENGINE.search(line):
            self.engine = {key: _plain(value) for key, value in _ENGINE_KEYS.findall(line)}

    def _tokens_of_blocks(self) -> None:
        """KV tokens of old logs, which print blocks: exact where the block's size is stated."""
        if self.blocks is None or "kv_tokens" in self.figures:
            return
        stated = self.flags.get("block_size", self.engine.get("block_size"))
        block = stated if isinstance(stated, int) else _DEFAULT_BLOCK
        value = number_of(self.blocks[0])
        if value is not None:
            self.figures["kv_tokens"] = printed(
                "kv_tokens", value * block, "tok", Source(self.file, f"line {self.blocks[1]}"),
                "exact", "exact" if isinstance(stated, int) else "assumed",
            )  # fmt: skip

    def settings(self) -> dict[str, Scalar]:
        """Flags as given, then what the engine and the log add; and who repeated a fact."""
        repeated = {
            f"{name}_printed_times": max(
                count for (other, _), count in self.times.items() if other == name
            )
            for name in self.figures
        }
        more = {name: times for name, times in repeated.items() if times > 1}
        return {**self.engine, **self.config, **self.flags, **more}


def _plain(text: str) -> Scalar:
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    found = _plain_number(text)
    return found.removeprefix("torch.") if isinstance(found, str) else found


def _plain_number(text: str) -> int | str:
    """A count where the text is one; longer digits are a name, and would overflow."""
    return int(text) if text.isdecimal() and len(text) < 16 else text
