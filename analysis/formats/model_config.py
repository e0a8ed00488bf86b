"""A model's Hugging Face `config.json`: the shape that weights and KV cache are computed from.

Where the arithmetic cannot describe the model, the file is skipped with the part that is unfit.
"""

from __future__ import annotations

import json
from pathlib import Path

from analysis.formats import vllm_bench, vllm_sweep
from analysis.formats._files import GZIP_ERRORS, UTF8_BOM, blocks_of, one_line
from analysis.model import ModelShape, Record, Skipped, Source
from analysis.model_config import FAMILIES, unfit

_TELLING = (b'"hidden_size"', b'"num_hidden_layers"')
_MOST_BYTES = 1 << 20
"""A config has 1 to 5 KB; a long list of modules that were not quantised makes it 100."""
_MOST_LEVELS = 20


def sniff(path: Path, head: bytes) -> bool:
    """A JSON object that names both keys, and no benchmark result with such metadata."""
    return (
        head.removeprefix(UTF8_BOM).lstrip()[:1] == b"{"
        and all(key in head for key in _TELLING)
        and not vllm_bench.sniff(path, head)
        and not vllm_sweep.sniff(path, head)
    )


def read(path: Path, file: str) -> list[Record]:
    """One `ModelShape`, or `Skipped` with what makes the config unfit."""
    data = b""
    try:
        for block in blocks_of(path):
            data += block
            if len(data) > _MOST_BYTES:
                return [
                    Skipped(
                        file,
                        f"looks like a model's config.json but is larger than {_MOST_BYTES:,} "
                        "bytes, expected a few thousand; put the model's own config.json here",
                    )
                ]
        # The standard library's parser, because configs may hold Infinity, which JSON has not.
        config: object = json.loads(data)
    except GZIP_ERRORS as error:
        reason = f"the gzip data is damaged ({one_line(str(error), 80)}); copy the file again"
        return [Skipped(file, reason)]
    except (ValueError, RecursionError) as error:
        reason = f"not valid JSON ({one_line(str(error), 100)}), expected a model's config.json"
        return [Skipped(file, f"{reason}; copy the file again")]
    if not isinstance(config, dict) or _deeper(config, _MOST_LEVELS):
        reason = f"JSON nested deeper than {_MOST_LEVELS} levels, expected a model's config.json"
        return [Skipped(file, f"{reason}; put the model's own config.json here")]
    if part := unfit(config):
        return [
            Skipped(
                file,
                f"a model's config.json that sizes cannot be computed from: {part}; expected a "
                f"dense decoder ({', '.join(FAMILIES)}) with full attention and weights of 16 "
                "bits or packed to 4 or 8; keep the server's log, which prints their size",
            )
        ]
    return [ModelShape(Source(file, ""), config)]


def _deeper(value: object, levels: int) -> bool:
    """Whether lists and objects lie in one another more than so many levels deep."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper(item, levels - 1) for item in inner)
