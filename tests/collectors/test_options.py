"""Options of the command: what is taken, what is refused in one line, and nothing else happens."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.options import parsed, parsed_inspect

FLAGS = tuple(
    f"--{name}"
    for name in (
        "study", "arm", "workload", "concurrency", "repeats", "prompts", "results", "base-url",
        "gpus", "port", "vllm", "router", "model", "dataset", "client", "upload", "deadline",
        "ready-timeout", "check", "list", "dry-run", "keep-texts",
    )
)  # fmt: skip


def test_what_is_taken() -> None:
    words = (
        "--gpus 2,0 --port 65535 --deadline 0 --vllm 'a \"b c\"' --base-url http://x/ --model a=b=c"
    )
    found = parsed(shlex.split(words))
    assert found.gpus == (2, 0)
    assert (found.port, found.deadline) == (65535, 0.0)
    assert found.vllm == ("a", "b c")
    assert found.base_url == "http://x"
    assert found.model == [("a", "b=c")]
    bare = parsed([])
    assert (bare.study, bare.vllm, bare.base_url, bare.upload, bare.port) == (
        None,
        (),
        "",
        "",
        None,
    )
    assert parsed_inspect(["d", "--model", "m"]).seed == 42


@pytest.mark.parametrize(
    "words",
    [
        "--port 0", "--port 65536", "--port -1", "--port ²", "--port " + "9" * 5000, "--port ''",
        "--repeats 1001", "--repeats 1.5", "--concurrency 100001", "--prompts 1000001",
        "--deadline -1", "--deadline nan", "--deadline inf", "--deadline 1e999", "--deadline x",
        "--ready-timeout nan", "--gpus -1", "--gpus 0,0", "--gpus ''", "--gpus 0,", "--gpus 99999",
        "--vllm '\"a'", "--vllm ''", "--vllm ' '", "--vllm \"''\"", "--router \"'\"",
        "--study ''", "--results ''", "--base-url ''", "--base-url http://[x", "--upload ''",
        "--upload s3://[", "--model =x", "--model x=", "--dataset x", "--client other",
    ],
)  # fmt: skip
def test_what_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        parsed(shlex.split(words))
    assert error.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"collect: argument {words.split()[0]}: ")
    assert told.err.count("\n") == 1
    assert len(told.err) < 400
    assert "invalid _" not in told.err


@pytest.mark.parametrize("word", ["a\0b", "\udcff"])
def test_what_is_no_text(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(["--results", word])
    assert "is no UTF-8 text" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["d"], ["d", "--model", ""], ["d", "--model", "m", "--seed", "-1"]]
)
def test_what_inspect_refuses(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed_inspect(words)
    assert capsys.readouterr().err.startswith("collect inspect: ")


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(FLAGS) | st.text(max_size=12), max_size=5))
def test_any_words_are_options_or_a_line(words: list[str]) -> None:
    try:
        found = parsed(words)
    except SystemExit as error:
        assert error.code in (0, 2)
    else:
        assert found.port is None or 0 < found.port < 65536
