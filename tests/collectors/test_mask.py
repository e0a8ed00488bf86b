"""What is masked in command lines, environments and logs, and what must stay readable."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import mask, secret

SECRET = "Zq9PwTr4xyz23"  # noqa: S105 - of nothing
HELP = Path(__file__).parents[2] / "results" / "writeup" / "help"


@pytest.mark.parametrize(
    "words",
    [
        ["--api-key", SECRET],
        ["--api-key", "first-one", SECRET],
        ["--api-key", SECRET, "--port", "1"],
        [f"--api-key={SECRET}"],
        ["--hf-token", SECRET],
        ["--header", f"Authorization=Bearer {SECRET}"],
        ["--header", "A=1", f"X-Thing={SECRET}"],
        [f"--header=X-Thing={SECRET}"],
        ["--extra-headers", f"X-Thing={SECRET}"],
        ["--metadata", "a=b", f"token={SECRET}"],
        ["--base-url", f"https://user:{SECRET}@host/v1"],
        ["--base-url", f"https://host/v1?api_key={SECRET}&x=1"],
        ["--upload", f"https://host/x?x=1&sas_token={SECRET}"],
        ["--thing", f'{{"api_key": "{SECRET}"}}'],
        ["--thing", f"{{'hf.access_token': '{SECRET}'}}"],
        ["-H", f"Authorization: Basic {SECRET}"],
        ["-H", f"X-Thing: {SECRET}"],
        ["--header", f"Authorization: {SECRET}"],
        ["--thing", f"Proxy-Authorization: Basic {SECRET}"],
        ["--url", f"https://host/x?x=1&sig={SECRET}"],
        ["--url", f"https://host/x?X-Amz-Signature={SECRET}&x=1"],
        ["--url", f"https://host/x?X-Amz-Security-Token={SECRET}"],
        ["--url", f"https://user:{SECRET}@host/v1"],
        [f"DB_PASS={SECRET}"],
        ["--tokens", SECRET],
    ],
)
def test_a_secret_is_masked_wherever_it_stands(words: list[str]) -> None:
    shown = mask.words(["/opt/bin/vllm", *words])
    assert shown[0] == "vllm"
    assert len(shown) == len(words) + 1
    assert SECRET not in " ".join(shown)
    assert secret.MASK in " ".join(shown)
    # What the program prints of it is masked as well, with what stood around it or without.
    hidden = mask.values(words, {})
    assert SECRET in hidden
    assert hidden == sorted(hidden, key=len, reverse=True)


@pytest.mark.parametrize(
    "words",
    [
        ["--max-num-batched-tokens", "8192"],
        ["--max-model-len", "1024", "--ssl-keyfile", "x.pem"],
        ["--tokenizer", "some/model", "--seed", "42"],
        ["--metadata", "arm=token-mix", "keys=3"],
        ["--base-url", "http://127.0.0.1:8000"],
        ["--api-key"],
        ["--tokens", "128"],
        ["--hf-overrides", "hf_overrides", "max_tokens=5", "eos_token=x"],
        ["--thing", "Basic configuration of a task-specific-thing"],
    ],
)
def test_what_is_no_secret_stays(words: list[str]) -> None:
    assert mask.flags(words) == words
    assert mask.values(words, {"OMP_NUM_THREADS": "1", "PATH": "/bin"}) == []


def test_the_tokens_of_a_hub_are_known_by_their_form() -> None:
    assert mask.flags(["--x", f"a hf_{SECRET} b"]) == ["--x", "a *** b"]
    assert mask.values(["--x", f"a hf_{SECRET} b"], {}) == [f"hf_{SECRET}"]


def test_flags_after_a_secret_stay() -> None:
    words = ["--api-key", "a-first-key", "b", "--port", "8000", "-tp", "2"]
    assert mask.flags(words) == ["--api-key", "***", "***", *words[3:]]


def test_no_option_of_the_real_programs_but_secret_ones_is_masked() -> None:
    flags = {
        word.rstrip(",")
        for path in HELP.glob("*.txt")
        for word in path.read_text("utf-8").split()
        if word.startswith("--")
    }
    assert len(flags) > 300
    found = {flag for flag in flags if secret.is_secret(flag.partition("=")[0])}
    assert "--api-key" in found
    # Of credentials, it says whether they may be sent, and takes no word.
    assert {flag for flag in found if not flag.endswith(("key", "token", "credentials"))} == set()
    assert not {flag for flag in found if flag.endswith("tokens")}


def test_environments() -> None:
    inherited = {"HOME": "/x", "VLLM_API_KEY": SECRET, "VLLM_USE_V1": "1", "HF_TOKEN": SECRET}
    given = {"HF_TOKEN": SECRET, "OTEL_EXPORTER_OTLP_HEADERS": f"k={SECRET}", "A": "b"}
    found = mask.environment(given, inherited)
    assert found == {
        "A": "b",
        "HF_TOKEN": "***",
        "OTEL_EXPORTER_OTLP_HEADERS": "***",
        "VLLM_API_KEY": "***",
        "VLLM_USE_V1": "1",
    }
    assert mask.values([], inherited) == [SECRET]
    assert mask.values([], {"URL": f"https://u:{SECRET}@h"}) == [f"u:{SECRET}", SECRET]


def test_a_home_is_a_tilde_and_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert mask.text("/home/me/model /home/mean /home/me") == "~/model /home/mean ~"
    monkeypatch.setenv("HOME", "/")
    assert mask.text("/a/b") == "/a/b"


def test_no_words() -> None:
    assert mask.words([]) == []


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), max_size=6))
def test_any_words_keep_their_number(words: list[str]) -> None:
    assert len(mask.flags(words)) == len(words)
    assert all(len(each) >= 6 for each in mask.values(words, {}))


@settings(deadline=None)
@given(
    st.sampled_from(["--api-key", "--token", "--password"]),
    st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=6),
    st.lists(st.sampled_from(["serve", "--port", "1", "model"]), max_size=4),
)
def test_no_secret_is_shown(flag: str, word: str, others: list[str]) -> None:
    shown = mask.flags([*others, flag, f"Q{word}", "--end"])
    assert f"Q{word}" not in shown
    assert shown[: len(others)] == others
