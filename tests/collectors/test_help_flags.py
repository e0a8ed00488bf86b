from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.help_flags import parse
from tests.collectors.helps import BENCH_28, ROUTER_15, ROUTER_17, SERVE_28, SERVE_32

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True)
FORMS = st.sampled_from([None, "?", "*", "+", "bool", "choices", "switch"])
ARITY = {
    None: "one", "?": "optional", "*": "any", "+": "some",
    "bool": "none", "choices": "one", "switch": "none",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "least"), [(SERVE_28, 380), (BENCH_28, 100), (ROUTER_15, 45), (ROUTER_17, 60)]
)
def test_finds_all_flags_of_real_texts(text: str, least: int) -> None:
    flags = parse(text)
    assert len(flags) >= least
    assert all(name in flag.names for name, flag in flags.items())


def test_reads_each_form_of_a_flag() -> None:
    flags = parse(SERVE_28)
    assert flags["-tp"] is flags["--tensor-parallel-size"]
    assert flags["-tp"].arity == "one"
    assert flags["-tp"].default == "1"
    assert flags["--no-enforce-eager"].arity == "none"
    assert flags["--no-enforce-eager"].name == "--enforce-eager"
    assert flags["--api-key"].arity == "some"
    assert flags["--hf-token"].arity == "optional"
    assert "fp8" in flags["--kv-cache-dtype"].choices
    assert parse(ROUTER_15)["--worker-urls"].arity == "any"


def test_an_open_list_of_choices_is_no_list_to_hold_one_to() -> None:
    flags = parse(SERVE_32)
    assert flags["--tool-call-parser"].choices == ()
    assert flags["--model-impl"].arity == "one"
    assert flags["--model-impl"].choices == ()
    assert flags["--device-memory-utilization"] is flags["--gpu-memory-utilization"]


def test_an_example_in_the_description_is_no_flag_of_its_own() -> None:
    # The router's examples begin lines with --policy and --prefill.
    assert parse(ROUTER_15)["--policy"].choices[1] == "round_robin"


def test_keys_of_json_come_from_the_default_that_is_shown() -> None:
    keys = parse(SERVE_32)["--compilation-config"].keys
    assert "mode" in keys
    assert "level" not in keys
    assert parse(SERVE_32)["--seed"].keys == frozenset()


@given(st.dictionaries(NAMES, FORMS, max_size=8))
def test_agrees_with_argparse_itself(options: dict[str, str | None]) -> None:
    parser = argparse.ArgumentParser(prog="x", add_help=False)
    expected = {}
    for name, form in options.items():
        flag = f"--{name}"
        if name.startswith("no-"):
            continue
        try:
            if form == "bool":
                parser.add_argument(flag, action=argparse.BooleanOptionalAction, help="a switch")
                expected[f"--no-{name}"] = "none"
            elif form == "switch":
                parser.add_argument(flag, action="store_true")
            elif form == "choices":
                parser.add_argument(flag, choices=["a", "b"], help="one of two")
            else:
                parser.add_argument(flag, nargs=form, default=3, help="so (default: %(default)s)")
        except argparse.ArgumentError:
            continue
        expected[flag] = ARITY[form]
    assert {name: flag.arity for name, flag in parse(parser.format_help()).items()} == expected


@given(st.text())
def test_noise_is_no_error(text: str) -> None:
    parse(text)
