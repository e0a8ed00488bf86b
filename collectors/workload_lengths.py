"""How long a workload's requests are: drawn from its dataset, or as its flags make them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collectors.datasets import Request
from collectors.fit import human
from collectors.flags import values

_DEFAULTS: Mapping[str, float] = {
    "--random-input-len": 1024,
    "--random-output-len": 128,
    "--random-prefix-len": 0,
    "--prefix-repetition-prefix-len": 256,
    "--prefix-repetition-suffix-len": 256,
    "--prefix-repetition-output-len": 128,
}
"""The client's own, as in the help of vLLM 0.26 to 0.32."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of a workload's requests."""

    mean_input: float
    mean_output: float
    totals: tuple[int, ...]
    """Prompt and output together, of each request that is known; of one made by flags, the most."""
    drawn: bool
    """Whether they were counted in a dataset."""


def of_requests(requests: Sequence[Request]) -> Lengths | None:
    """Of prompts that were counted; None: there are none."""
    if not requests:
        return None
    return Lengths(
        statistics.fmean(request.input_tokens for request in requests),
        statistics.fmean(request.output_tokens for request in requests),
        tuple(request.input_tokens + request.output_tokens for request in requests),
        drawn=True,
    )


def of_flags(words: Sequence[str]) -> Lengths | None:
    """Of prompts that the client makes by its flags; None: the dataset is of another kind."""
    name = values(words, "--dataset-name") or "random"
    if name == "random":
        spread = _ratio(values(words, "--random-range-ratio"))
        prompt = _tokens(words, "--random-input-len", "--input-len")
        prefix = _tokens(words, "--random-prefix-len")
        out = _tokens(words, "--random-output-len", "--output-len")
        most = int((prompt + out) * (1 + spread)) + prefix
        return Lengths(prefix + prompt, out, (most,), drawn=False)
    if name == "prefix_repetition":
        prompt = _tokens(words, "--prefix-repetition-prefix-len")
        prompt += _tokens(words, "--prefix-repetition-suffix-len")
        out = _tokens(words, "--prefix-repetition-output-len", "--output-len")
        return Lengths(prompt, out, (prompt + out,), drawn=False)
    return None


def output_len(words: Sequence[str]) -> int | None:
    """Tokens that the flags make the client ask for, whatever the dataset says."""
    name = values(words, "--dataset-name")
    said = values(words, "--output-len") or values(words, f"--{name}-output-len")
    if said is None:
        return 256 if name == "custom" else None
    return human(said)


def _tokens(words: Sequence[str], *names: str) -> int:
    for name in names:
        found = human(values(words, name))
        if found is not None:
            return found
    return int(_DEFAULTS[names[0]])


def _ratio(said: str | None) -> float:
    try:
        return min(max(float(said or 0), 0.0), 1.0)
    except ValueError:
        # Newer clients take a table: one ratio each for prompts and outputs.
        return 1.0
