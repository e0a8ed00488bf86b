"""analysis.claims.interface: flags against the stored help text."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.evidence import BadClaim, Judgement, Missing
from tests.builders import study
from tests.claims.helpers import judge, measured, with_help

HELP = """usage: serve [-h] [--enable-log-requests] [--policy {fair,random}] [--port PORT]

options:
  -h, --help            show this help message and exit
  --disable-log-stats   Disable logging statistics.
  --max-len LEN         Longest request; see --help=all.
  --mode={fast,slow}    How.
"""
PLAIN = study(measured("a", "mean_itl", 1.0))
AWAY = with_help(PLAIN, HELP)


def interface(*flags: str, **keys: Any) -> Judgement:
    return judge(AWAY, "interface", **{"command": "serve", "flags": flags, **keys})


@pytest.mark.parametrize(
    ("flag", "present", "verdict"),
    [
        ("--port", True, "supported"),
        ("--port", False, "refuted"),
        ("--disable-log-requests", False, "supported"),
        ("--disable-log-requests", True, "refuted"),
        ("--enable-log", True, "refuted"),  # the beginning of a flag is no flag
    ],
)
def test_a_flag_is_there_or_not(flag: str, present: bool, verdict: str) -> None:
    assert interface(flag, present=present).verdict == verdict


def test_the_version_and_the_line_are_said() -> None:
    found = interface("--disable-log-stats")
    assert found.reasons == ("serve 1.0 has --disable-log-stats.",)
    assert str(found.numbers[0].sources[0]) == "help/serve.txt: line 5"
    nowhere = interface("--nope", present=False)
    assert nowhere.numbers[0].sources[0].key == "no line with --nope"
    bare = judge(with_help(PLAIN, HELP, version=""), "interface", command="serve", flags=["--port"])
    assert bare.reasons == ("serve has --port.",)


def test_one_flag_of_several_that_is_not_there_refutes() -> None:
    found = interface("--port", "--nope")
    assert found.verdict == "refuted"
    assert found.reasons == ("serve 1.0 has 1 of 2 flags: --port; it has no --nope.",)


@pytest.mark.parametrize(
    ("flags", "present", "verdict", "words"),
    [
        (("--port", "--max-len"), True, "supported", "has 2 of 2 flags: --port and --max-len."),
        (("--port", "--max-len"), False, "refuted", "has 2 of 2 flags: --port and --max-len."),
        (("--a", "--b", "--c"), False, "supported", "has none of the 3 flags: --a, --b and --c."),
        (("--a", "--b"), True, "refuted", "has none of the 2 flags: --a and --b."),
        (
            ("--a", "--port", "--b"), False, "refuted",
            "has 1 of 3 flags: --port; it has no --a or --b.",
        ),
    ],
)  # fmt: skip
def test_several_flags_are_one_sentence(
    flags: tuple[str, ...], present: bool, verdict: str, words: str
) -> None:
    found = interface(*flags, present=present)
    assert (found.verdict, found.reasons) == (verdict, (f"serve 1.0 {words}",))


def test_the_successor_carries_the_words_of_the_removed_flag() -> None:
    keys = {"present": False}
    right = interface("--disable-log-requests", **keys, successor="--enable-log-requests")
    assert right.verdict == "supported"
    wrong = interface("--disable-log-requests", **keys, successor="--disable-log-stats")
    assert wrong.verdict == "refuted"
    assert wrong.reasons[0] == (
        "What --disable-log-requests did is now done by --enable-log-requests, by its words, and "
        "not by --disable-log-stats, which exists but is another switch."
    )
    absent = interface("--disable-log-requests", **keys, successor="--gone")
    assert absent.reasons[0].endswith("and not by --gone, which does not exist.")


def test_a_flag_whose_words_nothing_carries_has_no_known_successor() -> None:
    found = interface("--swap-space", present=False, successor="--port")
    assert found.verdict == "inconclusive"


@pytest.mark.parametrize(
    ("flag", "choices", "verdict"),
    [
        ("--policy", ("random", "fair"), "supported"),
        ("--policy", ("random",), "refuted"),
        ("--policy", ("random", "fair", "new"), "refuted"),
        ("--mode", ("fast", "slow"), "supported"),
        ("--port", ("1", "2"), "inconclusive"),
    ],
)
def test_the_choices_are_all_of_those_listed(
    flag: str, choices: tuple[str, ...], verdict: str
) -> None:
    assert interface(flag, choices=choices).verdict == verdict


@pytest.mark.parametrize(
    ("flag", "takes"),
    [
        ("--port", True),
        ("--policy", True),
        ("--max-len", True),
        ("--mode", True),
        ("--help", True),  # `--help=all` in the prose
        ("--enable-log-requests", False),
        ("--disable-log-stats", False),
    ],
)
def test_whether_a_flag_takes_a_value(flag: str, takes: bool) -> None:
    found = interface(flag, takes_value=takes)
    assert found.verdict == "supported"
    assert found.reasons[0] == f"{flag} takes {'a' if takes else 'no'} value."
    assert interface(flag, takes_value=not takes).verdict == "refuted"


def test_a_flag_that_is_not_there_takes_nothing_for_granted() -> None:
    found = interface("--nope", takes_value=False)
    assert found.reasons == ("serve 1.0 has no --nope.",)
    assert found.verdict == "refuted"


def test_a_command_without_a_stored_help_is_untestable() -> None:
    with pytest.raises(Missing, match="stored output of `run --help`"):
        interface("--port", command="run")


def test_no_flags_are_the_authors_mistake() -> None:
    with pytest.raises(BadClaim, match="names no flags"):
        interface()
