"""The flags a vLLM server logs: a Python dict as text, read as data and never run."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping

from analysis.formats._secrets import MASK, is_secret, masked
from analysis.model import Scalar

_MOST_CHARACTERS = 20_000
_MOST_TEXT = 500
_PAIR = re.compile(r"'(\w+)': ('(?:[^'\\]|\\.)*'|-?\d+(?:\.\d+)?|True|False|None)(?=[,}])")


def parse_args(text: str) -> dict[str, Scalar]:
    """Flags by name; lists and dicts as compact JSON; secrets masked.

    Where the text is no plain literal (an object's repr stands in it), only the flags with plain
    values are kept.
    """
    text = text[:_MOST_CHARACTERS]
    try:
        found: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        found = {key: ast.literal_eval(value) for key, value in _PAIR.findall(text)}
    if not isinstance(found, dict):
        return {}
    return {str(key): _scalar(_masked(str(key), value)) for key, value in found.items()}


def _masked(key: str, value: object) -> object:
    count = isinstance(value, int | float)
    if is_secret(key) and not count and value not in (None, "", []):
        return MASK
    if isinstance(value, Mapping):
        return {str(inner): _masked(str(inner), held) for inner, held in value.items()}
    if isinstance(value, list | tuple | set):
        # An argument list: what follows `--api-key` is the key.
        held = list(value)
        before = ["", *(item if isinstance(item, str) and item[:1] == "-" else "" for item in held)]
        return [_masked(name, item) for name, item in zip(before, held, strict=False)]
    return masked(value) if isinstance(value, str) else value


def _scalar(value: object) -> Scalar:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]  # served_model_name and the like: one name in a list
    text = value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
