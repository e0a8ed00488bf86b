"""What counts as a secret by its name or its form; the rules of both packages are the same."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.formats import _secrets
from collectors import secret

SECRET = "Zq9PwTr4xyz23"  # noqa: S105 - of nothing
BOTH = pytest.mark.parametrize("rules", [secret, _secrets], ids=["collectors", "analysis"])


def test_the_two_packages_have_one_set_of_rules() -> None:
    assert Path(secret.__file__).read_bytes() == Path(_secrets.__file__).read_bytes()


@BOTH
@pytest.mark.parametrize(
    "name",
    [
        "DB_PASS", "GH_PAT", "SSL_PASSPHRASE", "API_KEYS", "TOKENS", "HF_TOKEN_2", "HF_TOKEN",
        "API_KEY_2", "PGPASSWORD", "MYSQL_PWD", "AWSAccessKeyId", "AWS_ACCESS_KEY_ID", "api_key",
        "accessToken", "clientSecret", "X-Amz-Signature", "X-Amz-Credential", "sig", "key",
        "X-Amz-Security-Token", "x-api-key", "--api-key", "Proxy-Authorization", "Set-Cookie",
        "OTEL_EXPORTER_OTLP_HEADERS", "OPENAI_APIKEY", "openai.api_key",
    ],
)  # fmt: skip
def test_names_of_secrets(rules: object, name: str) -> None:
    assert rules.is_secret(name, SECRET)  # type: ignore[attr-defined]
    assert rules.is_secret(name)  # type: ignore[attr-defined]
    assert SECRET not in rules.masked(f"https://h/?{name}={SECRET}&a=1")  # type: ignore[attr-defined]


@BOTH
@pytest.mark.parametrize(
    "name",
    [
        "tokenizer", "--tokenizer", "max_tokens", "--max-num-batched-tokens", "num_tokens",
        "kv_tokens", "eos_token", "kv_bytes_per_token", "max_token_len", "--ssl-keyfile", "authors",
        "total_token_throughput", "VLLM_USE_V1", "monkey", "bypass", "keys", "compass", "",
    ],
)  # fmt: skip
def test_names_of_no_secrets(rules: object, name: str) -> None:
    assert not rules.is_secret(name, "abcdefgh")  # type: ignore[attr-defined]


def test_some_tokens_with_a_number_are_a_number_of_them() -> None:
    assert not secret.is_secret("TOKENS", "1_024")
    assert not secret.is_secret("tokens", "8k")
    assert secret.is_secret("HF_TOKENS", "a,b")
    # A password may well be a number.
    assert secret.is_secret("DB_PASS", "123456")


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        f"ghp_{SECRET}", f"gho_{SECRET}", f"github_pat_{SECRET}", f"hf_{SECRET}", f"sk-{SECRET}",
        f"sk-proj-{SECRET}", f"glpat-{SECRET}", f"nvapi-{SECRET}", f"xoxb-{SECRET}",
        f"eyJhbGciOiJI.{SECRET}.x", f"Bearer {SECRET}", f"Basic {SECRET}",
        f"-H 'Authorization: Basic {SECRET}'", f"DB_PASS={SECRET}", f"--api-key {SECRET}",
        f"['--api-key', '{SECRET}']", f"api_key=['{SECRET}']", f'{{"password": "a {SECRET} b"}}',
        f"https://user:{SECRET}@host/x", f"s3://{SECRET}@host", f"https://u:p@{SECRET}@host/x",
        f"https://h/x?a=1&sig={SECRET}", f"https://h/x#access_token={SECRET}",
        "-----BEGIN RSA PRIVATE KEY-----\n" + SECRET,
    ],
)  # fmt: skip
def test_secrets_in_a_text(rules: object, text: str) -> None:
    shown = rules.masked(f"before {text} after")  # type: ignore[attr-defined]
    assert SECRET not in shown
    assert "***" in shown
    assert shown.startswith("before ")


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "max_num_batched_tokens=8192", "tokens: 128", "unexpected token: 5", "fusion pass: started",
        "--max-num-batched-tokens 8192 --tokenizer some/model", "a task-specific-thing",
        "Basic configuration, Basic Configuration", "unknown key: something", "hf_overrides=abc",
        "https://docs.example/page?a=b", "tokenizer: Qwen/Qwen3-14B-AWQ", "author=somebody",
        "the bearer of it", "eos_token: <|endoftext|>", "",
    ],
)  # fmt: skip
def test_text_without_secrets(rules: object, text: str) -> None:
    assert rules.masked(text) == text  # type: ignore[attr-defined]


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    shown = secret.masked(text)
    assert shown == _secrets.masked(text)
    assert all(0 <= begin < end <= len(text) for begin, end in secret.found_in(text))


@pytest.mark.parametrize("part", ["a", "a=", "--a ", "://", '"', "eyJ", "-----BEGIN ", "a:", "?a="])
def test_no_text_takes_long(part: str) -> None:
    began = time.monotonic()
    secret.masked(part * (300_000 // len(part)))
    assert time.monotonic() - began < 5
