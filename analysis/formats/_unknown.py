"""One clear line about a file that no format owns: what it is, and what would have been read."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from analysis.formats._files import UTF8_BOM, one_line, some_of

_EXPECTED = "expected a result of vllm bench serve (keys duration, completed, mean_ttft_ms ...)"
_FORMATS = (
    "expected a vllm bench serve result (JSON), a server's startup log, a table (CSV with a "
    "TOML description) or a stored help text (.txt)"
)
_KEY = re.compile(rb'"((?:[^"\\]|\\.){1,80})"\s*:')


def explain(path: Path, head: bytes) -> str:
    """Why the file was not read; `head` is its beginning, decompressed."""
    if not head:
        return "the file is empty; the writer was probably stopped, run it again"
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "UTF-16 text, expected UTF-8; save it again as UTF-8"
    if b"\0" in head:
        return f"a binary file, {_FORMATS}"
    text = head.removeprefix(UTF8_BOM).lstrip()
    if text[:1] in (b"{", b"["):
        return _json(text)
    if path.suffix == ".toml":
        return (
            f"a TOML file without {path.with_suffix('.csv').name} beside it; a description "
            "carries its table's name, a study's own files are study.toml and claims.toml"
        )
    shown = one_line(text.decode(errors="replace").partition("\n")[0], 60)
    if Path(path.name.removesuffix(".gz")).suffix in (".log", ".txt", ".out", ".err"):
        return (
            f"text that begins {shown!r}, but no startup line of a vLLM server (Model loading "
            "took, GPU KV cache size) and no usage line"
        )
    return f"an unknown file that begins {shown!r}, {_FORMATS}"


def _json(text: bytes) -> str:
    """What a JSON file holds: from all of it, its first line, or the keys its beginning shows."""
    value, trouble = _decoded(text)
    first_line = text.partition(b"\n")[0]
    if trouble and first_line != text and not (line := _decoded(first_line))[1]:
        value, trouble = line
    if trouble and "malformed" in trouble and "trailing characters" not in trouble:
        return f"not valid JSON ({trouble}), {_EXPECTED}"
    if trouble:
        keys = list(dict.fromkeys(key.decode(errors="replace") for key in _KEY.findall(text)))
        return f"JSON with keys such as {some_of(keys[:3]) or 'none'}, {_EXPECTED}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0]
    if isinstance(value, dict):
        return f"JSON with the keys {some_of(list(value)) or 'none'}, {_EXPECTED}"
    return f"a JSON list without an object, {_EXPECTED}"


def _decoded(text: bytes) -> tuple[object, str]:
    try:
        return msgspec.json.decode(text), ""
    except (msgspec.DecodeError, RecursionError) as error:
        return None, one_line(str(error), 100)
