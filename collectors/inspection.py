"""`collect inspect`: the lengths of a dataset, what they mean, and what a limit would reject."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from collectors import datasets, model_folder, tokenizer
from collectors.datasets import Request, Sample
from collectors.errors import BadInput, Problem

PROMPTS = 100
LIMITS = (1024, 2048, 4096, 8192, 32768)
CUSTOM_OUTPUT = 256
"""Tokens that the client asks for with a custom dataset where no flag says otherwise."""
_HEAVY = 3.0
"""Prompt tokens to output tokens, or the reverse, from which one side is called heavy."""

_POINTS_TO = {
    "prefill-heavy": (
        "look at prefill first: prefix caching, KV reuse across requests (LMCache), chunked "
        "prefill, prefill apart from decode",
        "speculative decoding has little to win",
    ),
    "balanced": (
        "prefill and decode both matter: measure TTFT and ITL apart before choosing",
        "smaller weights (AWQ, FP8) act on every decode step; prefix caching only where prompts "
        "share a beginning",
    ),
    "decode-heavy": (
        "look at decode first: speculative decoding, smaller weights (AWQ, FP8), room for more "
        "requests at once",
        "prefix caching has little to win",
    ),
}


def report(
    dataset: Path,
    *,
    model: str = "",
    prompts: int = PROMPTS,
    seed: int = 0,
    max_model_len: int | None = None,
    save: Path | None = None,
    python: str = "",
) -> list[str]:
    """What `collect inspect DATASET` prints, one line each.

    Args:
        dataset: ShareGPT's JSON, or JSONL with a prompt a line.
        model: A folder, or a name that is in the local cache of the hub.
        prompts: How many to draw, as the client's `--num-prompts`.
        seed: The client's `--seed`.
        max_model_len: A limit of a server, tokens, to say what it would reject.
        save: Where the drawn prompts are written, one JSON object a line.
        python: An interpreter that has `tokenizers`, where this one has not.

    Raises:
        BadInput: the dataset or the tokenizer cannot be read, or the file cannot be written.
    """
    if save is not None:
        _spare(save, dataset, "the dataset itself")
    pairs = _known(datasets.load(dataset))
    folder = model_folder.find(model) if model else None
    if folder is None:
        raise BadInput(
            Problem(
                "prompt lengths",
                f"model {model!r} is not on this machine" if model else "no model is named",
                "the model's own tokenizer.json",
                "--model FOLDER, a folder that holds it",
            )
        )
    if save is not None:
        for path in folder.iterdir():
            _spare(save, path, f"the model's own {path.name}")
    count = tokenizer.counter(folder, python)
    if isinstance(count, Problem):
        raise BadInput(count)
    custom = dataset.suffix == ".jsonl"
    told = any(pair.output_tokens is not None for pair in pairs)
    try:
        drawn = datasets.sample(
            pairs,
            prompts,
            seed,
            count,
            output_len=CUSTOM_OUTPUT if custom and not told else None,
            filtered=not custom,
        )
    except tokenizer.TokenizerFailed as error:
        raise BadInput(
            Problem("prompt lengths", str(error), todo="pip install tokenizers")
        ) from None
    if not drawn.requests:
        raise BadInput(
            Problem(
                f"dataset {dataset.name}",
                f"none of its {drawn.pairs:,} prompts would be sent",
                "prompts of 4 to 1,024 tokens, 2,048 with the answer",
            )
        )
    shape = model_folder.read(folder)
    longest = None if isinstance(shape, Problem) else shape.max_len
    lines = [_drawn(drawn, prompts, seed, custom), *summary(drawn.requests, longest, max_model_len)]
    if custom:
        lines.append(
            f"Output: {'the file says how many tokens; ' if told else ''}the client asks for "
            f"{CUSTOM_OUTPUT} unless it is given --custom-output-len (-1: as the file says). "
            "The chat template's tokens are not counted."
        )
    if save is not None:
        lines.append(_save(drawn.requests, save))
    return lines


def _known(found: tuple[datasets.Pair, ...] | Problem) -> tuple[datasets.Pair, ...]:
    if isinstance(found, Problem):
        raise BadInput(found)
    return found


def _drawn(drawn: Sample, prompts: int, seed: int, custom: bool) -> str:
    line = f"{len(drawn.requests):,} prompts of {drawn.pairs:,}, drawn as the client does"
    line += f" (seed {seed})"
    passed = drawn.looked_at - len(drawn.requests)
    if passed and not custom:
        line += f"; {passed:,} too short or too long were passed over"
    if len(drawn.requests) < prompts:
        line += f"; {prompts:,} were asked for, and the client would repeat some to get there"
    return line


def summary(
    requests: Sequence[Request], longest: int | None = None, asked: int | None = None
) -> list[str]:
    """The distribution of lengths, its kind, what that points to, and what limits reject.

    Args:
        requests: At least one.
        longest: The model's own limit, tokens.
        asked: The limit that is asked about, tokens.
    """
    inputs = [request.input_tokens for request in requests]
    outputs = [request.output_tokens for request in requests]
    totals = [a + b for a, b in zip(inputs, outputs, strict=True)]
    what = kind(statistics.fmean(inputs), statistics.fmean(outputs))
    lines = [
        f"Prompt tokens: {_spread(inputs)}",
        f"Output tokens: {_spread(outputs)}",
        f"{what}: {statistics.fmean(inputs) / max(statistics.fmean(outputs), 1e-9):.2f} prompt "
        "tokens for each output token",
        *(f"  {line}" for line in _POINTS_TO[what]),
    ]
    named = {limit for limit in (longest, asked) if limit}
    for limit in sorted({*LIMITS, *named}):
        over = rejected(totals, limit)
        own = " (the model's own)" if limit == longest else ""
        if over or limit in named:
            lines.append(
                f"max_model_len {limit:,}{own} rejects {over:,} of {len(totals):,}: prompt and "
                "output together are longer"
            )
    most = max(totals)
    lines.append(f"Longest request: {most:,} tokens; --max-model-len {most} rejects none")
    return lines


def kind(mean_input: float, mean_output: float) -> str:
    """prefill-heavy, balanced or decode-heavy, by mean tokens."""
    if mean_input >= _HEAVY * mean_output:
        return "prefill-heavy"
    return "decode-heavy" if mean_output >= _HEAVY * mean_input else "balanced"


def rejected(totals: Sequence[int], limit: int) -> int:
    """How many requests a `--max-model-len` refuses: prompt and output together count."""
    return sum(total > limit for total in totals)


def _spread(lengths: Sequence[int]) -> str:
    return (
        f"min {min(lengths):,}, max {max(lengths):,}, mean {statistics.fmean(lengths):,.2f}, "
        f"median {statistics.median(lengths):,.2f}"
    )


def _spare(save: Path, read: Path, what: str) -> None:
    """Samples must not take the place of what they are drawn from, by whatever name."""
    if save.exists() and read.exists() and save.samefile(read):
        raise BadInput(
            Problem(f"--save-samples {save}", f"is {what}", todo="name another file: it is kept")
        )


def _save(requests: Sequence[Request], path: Path) -> str:
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with new.open("wb") as file:
            for request in requests:
                file.write(msgspec.json.encode(request) + b"\n")
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise BadInput(
            Problem(f"--save-samples {path}", f"cannot be written: {error.strerror}")
        ) from None
    return f"{len(requests):,} prompts written to {path}"
