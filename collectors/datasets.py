"""Files of prompts, read and sampled as `vllm bench serve` does.

ShareGPT (JSON) and custom prompts (JSONL). The draw is the client's own: the same seed, the same
shuffle, the same filter of lengths (`is_valid_sequence` in vLLM's benchmarks/datasets), so that
what is told here is what will be sent.
"""

from __future__ import annotations

import random
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from collectors.errors import Problem

Count = Callable[[Sequence[str]], list[int]]
"""Texts -> tokens of each."""

SHORTEST, LONGEST_PROMPT, LONGEST = 4, 1024, 2048
"""Tokens: a ShareGPT pair outside of these is passed over by the client."""
_BATCH = 256
_MOST_BYTES = 8 << 30
_MOST_TOKENS = 100_000_000


@dataclass(frozen=True, slots=True)
class Pair:
    """A prompt and what answers it."""

    prompt: str
    answer: str = ""
    output_tokens: int | None = None
    """Where the file says how many to ask for."""


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt that the client would send."""

    prompt: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Sample:
    """What the client would send of a file."""

    requests: tuple[Request, ...]
    """Each once: the client repeats some where there are fewer than it is asked for."""
    looked_at: int
    """Pairs that were looked at for them."""
    pairs: int
    """Pairs in the file."""


class _Turn(msgspec.Struct):
    value: str = ""


class _Conversation(msgspec.Struct):
    conversations: list[_Turn] = []


class _Line(msgspec.Struct):
    prompt: str
    output_tokens: int | float | str | None = None


def load(path: Path) -> tuple[Pair, ...] | Problem:
    """All pairs of a file, in its order; a conversation of one turn is none."""
    what = f"dataset {path.name}"
    try:
        if problem := _no_file(path):
            return problem
        if path.suffix == ".jsonl":
            found = tuple(_lines(path))
            return found or Problem(what, "holds no prompt", "a prompt a line")
        talks = msgspec.json.decode(path.read_bytes(), type=list[_Conversation])
    except OSError as error:
        return Problem(what, f"{error.strerror}: {path}", todo="name its file: --dataset NAME=PATH")
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        return Problem(
            what,
            f"cannot be read: {str(error)[:160]}",
            "ShareGPT's JSON (a list of conversations), or .jsonl with a prompt a line",
            "fetch it again, or name another file",
        )
    pairs = tuple(
        Pair(entry.conversations[0].value, entry.conversations[1].value)
        for entry in talks
        if len(entry.conversations) >= 2
    )
    return pairs or Problem(
        what,
        f"holds no prompt that is answered, in {len(talks):,} conversations",
        "conversations of two turns or more",
        "fetch it again, or name another file",
    )


def _lines(path: Path) -> Iterator[Pair]:
    decoder = msgspec.json.Decoder(_Line)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                entry = decoder.decode(line)
                tokens = None if entry.output_tokens is None else int(entry.output_tokens)
            except (msgspec.DecodeError, ValueError, OverflowError) as error:
                raise ValueError(f"line {number}: {error}") from None
            if tokens is not None and not 1 <= tokens <= _MOST_TOKENS:
                raise ValueError(f"line {number}: output_tokens = {entry.output_tokens}")
            yield Pair(entry.prompt, output_tokens=tokens)


def sample(
    pairs: Sequence[Pair],
    prompts: int,
    seed: int,
    count: Count,
    *,
    output_len: int | None = None,
    filtered: bool = True,
    shuffled: bool = True,
) -> Sample:
    """The requests that the client would draw.

    Args:
        pairs: of a file.
        prompts: How many it is asked for.
        seed: Its `--seed`.
        count: Tokens of texts, by the model's own tokenizer.
        output_len: Tokens to ask for, where a flag says so.
        filtered: Whether pairs that are too short or too long are passed over, as of ShareGPT.
        shuffled: Not with `--disable-shuffle`.
    """
    order = list(pairs)
    if shuffled:
        random.Random(seed).shuffle(order)  # noqa: S311 - the client's draw
    chosen: list[Request] = []
    looked_at = 0
    for start in range(0, len(order), _BATCH):
        if len(chosen) >= prompts:
            break
        batch = order[start : start + _BATCH]
        for request in _counted(batch, count, output_len):
            if len(chosen) >= prompts:
                break
            looked_at += 1
            if not filtered or _valid(request, output_len is not None):
                chosen.append(request)
    return Sample(tuple(chosen), looked_at, len(pairs))


def _counted(batch: Sequence[Pair], count: Count, output_len: int | None) -> Iterator[Request]:
    lengths = count([pair.prompt for pair in batch] + [pair.answer for pair in batch])
    for number, pair in enumerate(batch):
        out = lengths[len(batch) + number] if pair.output_tokens is None else pair.output_tokens
        yield Request(pair.prompt, lengths[number], out if output_len is None else output_len)


def _valid(request: Request, any_output: bool) -> bool:
    return (
        SHORTEST <= request.input_tokens <= LONGEST_PROMPT
        and (any_output or request.output_tokens >= SHORTEST)
        and request.input_tokens + request.output_tokens <= LONGEST
    )


def _no_file(path: Path) -> Problem | None:
    """Why a path cannot be read to its end: a device or a pipe has none."""
    told = path.stat()
    if not stat.S_ISREG(told.st_mode):
        return Problem(
            f"dataset {path.name}", f"is no file: {path}", todo="name its file: --dataset NAME=PATH"
        )
    if told.st_size > _MOST_BYTES:
        return Problem(
            f"dataset {path.name}",
            f"has {told.st_size:,} bytes",
            f"{_MOST_BYTES:,} at most",
            "take a part of it",
        )
    return None


def quick_look(path: Path) -> Problem | None:
    """Whether a file is there and can be read, without reading all of it."""
    try:
        if problem := _no_file(path):
            return problem
        with path.open("rb") as file:
            head = file.read(4096).lstrip()
    except OSError as error:
        return Problem(
            f"dataset {path.name}",
            f"{error.strerror}: {path}",
            todo="fetch it, or name its file: --dataset NAME=PATH",
        )
    if not head:
        return Problem(f"dataset {path.name}", "is empty", todo="fetch it again")
    if path.suffix == ".json" and head[:1] != b"[":
        told = head[:40].decode("utf-8", "replace").splitlines()[0]
        return Problem(
            f"dataset {path.name}",
            f"begins with {told!r}",
            "a JSON list",
            "fetch it again: a page or pointer?",
        )
    return None
