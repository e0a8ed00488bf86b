"""What is masked in text of a file, and what must stay readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.formats import help_text
from analysis.formats._files import one_line
from analysis.formats._secrets import is_secret, masked
from analysis.formats._server_args import parse_args

SECRET = "Zq9PwTr4+x/23=="  # noqa: S105 - of nothing


@pytest.mark.parametrize(
    "text",
    [
        f"https://user:{SECRET.replace('/', '')}@host/x",
        f"--api-key {SECRET}",
        f"WANDB_API_KEY={SECRET}",
        f"HF_TOKEN = {SECRET}",
        f'{{"token": "{SECRET}"}}',
        f"{{'aws_secret_access_key': '{SECRET}'}}",
        f"Authorization: Bearer {SECRET}",
        f"Authorization: Basic {SECRET}",
        f"x-api-key: {SECRET}",
        f"Cookie: {SECRET}",
        f"Bearer {SECRET}",
        f"hf_{SECRET}",
    ],
)
def test_a_secret_is_masked_wherever_it_is_quoted(text: str) -> None:
    for told in (masked(text), one_line(f"ERROR {text}")):
        assert "***" in told
        assert SECRET[:6] not in told
        assert SECRET[-5:] not in told


@pytest.mark.parametrize(
    "text",
    [
        "max_num_batched_tokens=8192",
        "GPU KV cache size: 109,280 tokens",
        "tokens: 128",
        "tokenizer: Qwen/Qwen3-14B-AWQ",
        "names metric 'total_token_throughput', which is not known",
        "https://docs.example/page",
        "author=somebody",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_keys() -> None:
    secret = ("api_key", "x-api-key", "aws_secret_access_key", "credentials", "passwd", "HF_TOKEN")
    assert all(map(is_secret, secret))
    assert not any(map(is_secret, ("tokenizer", "keys", "max_token_len", "authors")))


def test_arguments_of_a_server() -> None:
    args = parse_args(
        f"{{'cmd': ['--api-key', '{SECRET}'], 'credentials': '{SECRET}', 'tokens': 5}}"
    )
    assert SECRET not in str(args)
    assert args["tokens"] == 5


def test_many_blank_lines_before_a_word(tmp_path: Path) -> None:
    # Each line once doubled the time: 60 of them never ended.
    assert not help_text.sniff(tmp_path / "a.txt", b"\n" * 5000 + b"word")
