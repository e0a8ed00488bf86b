from __future__ import annotations

import pytest

from collectors import workload_lengths
from collectors.datasets import Request


@pytest.mark.parametrize(
    ("line", "mean_input", "mean_output", "most"),
    [
        ("--random-input-len 64 --random-output-len 48 --random-range-ratio 0.25", 64, 48, 140),
        ("--random-prefix-len 100 --output-len 10 --input-len 10", 110, 10, 120),
        ("", 1024, 128, 1152),
        ("--random-range-ratio {}", 1024, 128, 2304),
        ("--dataset-name prefix_repetition --prefix-repetition-suffix-len 44", 300, 128, 428),
    ],
)  # fmt: skip
def test_prompts_made_by_flags(line: str, mean_input: float, mean_output: float, most: int) -> None:
    found = workload_lengths.of_flags(line.split())
    assert found == workload_lengths.Lengths(mean_input, mean_output, (most,), drawn=False)


def test_prompts_of_other_kinds_are_not_known() -> None:
    assert workload_lengths.of_flags(["--dataset-name", "sonnet"]) is None
    assert workload_lengths.of_requests([]) is None


def test_prompts_that_were_counted() -> None:
    found = workload_lengths.of_requests([Request("", 10, 20), Request("", 30, 40)])
    assert found == workload_lengths.Lengths(20, 30, (30, 70), drawn=True)


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("--dataset-name sharegpt", None),
        ("--dataset-name sharegpt --sharegpt-output-len 9", 9),
        ("--dataset-name custom", 256),
        ("--dataset-name custom --custom-output-len -1", None),
        ("--dataset-name custom --output-len 7", 7),
    ],
)
def test_output_length_by_flag(line: str, tokens: int | None) -> None:
    assert workload_lengths.output_len(line.split()) == tokens
