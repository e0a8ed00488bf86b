from __future__ import annotations

import shlex

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from collectors import successors
from collectors.flags import given, problems, values
from collectors.help_texts import BENCH, ROUTER, SERVE
from tests.collectors.helps import ROUTER_15, ROUTER_17, SERVE_32, dialect


def told(line: str, name: str = SERVE, **texts: str) -> list[str]:
    return [str(problem) for problem in problems(shlex.split(line), dialect(name, **texts), "arm")]


@pytest.mark.parametrize(
    "line",
    [
        "model --max-model-len 4k --tensor-parallel-size=2",
        "model -tp 2 -pp 1",
        "model --max_model_len 4096",
        "model --no-enable-prefix-caching --enable-log-requests",
        "model -O3",
        "model -O 2",
        "model -O=1",
        "model --compilation-config.mode 3 -cc.cudagraph_mode=NONE",
        "model --compilation-config '{\"mode\": 3}'",
        "model --max-num-batched 8192",  # the beginning of one name only
        "model --api-key a b c --seed -1",
        "model --hf-token --disable-log-stats",
        "model --kv-cache-dtype fp8",
    ],
)
def test_what_the_version_takes_is_no_problem(line: str) -> None:
    assert told(line) == []


def test_a_flag_that_is_gone_is_named_with_its_successor() -> None:
    (line,) = told("model --disable-log-requests")
    assert line == (
        "arm: --disable-log-requests is no flag of vllm serve 0.28.0; "
        "drop it: requests are logged only with --enable-log-requests"
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("model --max-modle-len 1", "did you mean '--max-model-len'?"),
        ("model --wholly-other", "see vllm serve --help"),
        ("model --max-num 3", "write the whole name"),
        ("model --seed", "--seed has no value"),
        ("model --seed --enforce-eager", "--seed has no value"),
        ("model --enforce-eager=yes", "is given 'yes' and takes no value"),
        ("model --enforce-eager yes", "'yes' after --enforce-eager belongs to no flag"),
        ("model --seed 1 2", "'2' after --seed belongs to no flag"),
        ("model other", "'other' belongs to no flag"),
        ("model --kv-cache-dtype fp9", "did you mean 'fp8'?"),
        ("model --tensor-parallel-size.x 3 --kv-cache-dtype.x 3", "takes no keys"),
        ("model --swap-space 4", "never swapped"),
    ],
)
def test_what_the_version_refuses_is_told(line: str, words: str) -> None:
    assert any(words in problem for problem in told(line))


def test_a_key_that_the_default_does_not_show_is_told() -> None:
    (line,) = told("model --compilation-config.level 3", serve=SERVE_32)
    assert "'level' is no key of --compilation-config" in line
    assert "use mode" in line


@pytest.mark.parametrize("text", [ROUTER_15, ROUTER_17])
def test_the_other_routers_dialect_is_explained(text: str) -> None:
    lines = told(
        "--static-backends a,b --routing-logic roundrobin --service-discovery static",
        ROUTER,
        router=text,
    )
    assert len(lines) == 3
    assert "production-stack's router, another project of that name" in lines[0]
    assert "write --worker-urls A B" in lines[0]
    assert "write --policy round_robin" in lines[1]
    assert "'static' and takes no value" in lines[2]


def test_a_policy_is_one_of_the_installed_routers() -> None:
    assert "did you mean 'round_robin'?" in told("--policy roundrobin", ROUTER)[0]
    assert told("--policy kv_aware", ROUTER, router=ROUTER_17) == []
    assert "is no choice of vllm-router" in told("--policy kv_aware", ROUTER)[0]


def test_the_router_takes_no_underscores() -> None:
    assert told("--worker_urls a", ROUTER)
    assert told("--dataset_name random", BENCH) == []


@pytest.mark.parametrize(
    ("table", "name"),
    [(successors.SERVE, SERVE), (successors.ROUTER_FLAGS, ROUTER)],
)
def test_successors_are_flags_and_what_they_succeed_is_none(table: dict, name: str) -> None:  # type: ignore[type-arg]
    known = dialect(name).flags
    for flag, successor in table.items():
        assert flag not in known
        assert not successor.flag or successor.flag in known, successor


def test_policies_of_the_other_router_have_a_counterpart() -> None:
    assert set(successors.POLICIES.values()) <= set(
        dialect(ROUTER, router=ROUTER_17).flags["--policy"].choices
    )


def test_values_are_found_in_each_spelling() -> None:
    words = ["m", "--max_model_len=4k", "-tp", "2", "--seed", "1", "--seed", "2", "--enforce-eager"]
    assert values(words, "--max-model-len") == "4k"
    assert values(words, "--tensor-parallel-size", "-tp") == "2"
    assert values(words, "--seed") == "2"
    assert values(words, "--enforce-eager") is None
    assert values(words, "--dtype") is None


@hypothesis_given(st.lists(st.text(min_size=1, max_size=12)))
def test_no_word_is_lost_and_none_is_an_error(words: list[str]) -> None:
    leading, flags = given(words)
    back = list(leading)
    for flag in flags:
        rest = list(flag.values)
        back.append(f"{flag.said}={rest.pop(0)}" if flag.joined else flag.said)
        back += rest
    assert back == words
    problems(words, dialect(SERVE), "arm")
