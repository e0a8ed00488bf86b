"""Any table is a study that can be planned and shown, or lines that say what is wrong."""

from __future__ import annotations

import copy
import datetime
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from collectors import listing
from collectors.errors import BadInput
from collectors.host import Host
from collectors.schedule import plan
from collectors.study_file import parse_study
from tests.collectors.campaigns import arm, study

WHOLE = study(
    arm(
        "one",
        flags=["--max-num-seqs", "4"],
        env={"A": "b"},
        gpus=1,
        replicas=2,
        replica_env=[{"A": "1"}, {"A": "2"}],
        router="round_robin",
        router_flags=["--x", "y"],
        shares_gpu="",
        spans=True,
        about="an arm",
    ),
    arm("two"),
    env={"C": "d"},
    title="a title",
    about="a study",
    seed=5,
    random_weights=False,
    made_model={
        "m": {"hidden": 64, "layers": 2, "heads": 4, "kv_heads": 2, "vocab": 512, "max_len": 64}
    },
)
WHOLE["servers"]["flags"] = ["--dtype", "auto"]
WHOLE["workload"][0] |= {"dataset": "d.json", "request_rate": 2.5, "about": "work"}
WHOLE["workload"][0]["loads"][0] |= {"repeats": 2, "arms": ["one"]}

texts = st.text(max_size=8) | st.sampled_from(
    [
        "../x",
        "a\0b",
        "--port",
        "-tp",
        "2",
        "\x1b[2J",
        "\u202e",
        "a" * 70,
        "one",
        "",
        "a=b",
        "9" * 30,
    ]
)
values = st.recursive(
    st.booleans()
    | st.integers()
    | st.sampled_from([0, -1, 10**6, 2**63, 10**30])
    | st.floats()
    | texts
    | st.just(datetime.date(2026, 1, 1)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def places(at: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path to a value of a table."""
    inner = at.items() if isinstance(at, dict) else enumerate(at) if isinstance(at, list) else ()
    return [path, *(deeper for key, each in inner for deeper in places(each, (*path, key)))]


def told(table: dict[str, Any]) -> str:
    """What is wrong with a study; where nothing is, it is planned and shown."""
    try:
        made = plan(parse_study(table, "s.toml"))
    except BadInput as error:
        lines = str(error).splitlines()
        assert all(line.startswith(("s.toml", "study ")) for line in lines)
        return str(error)
    host = Host(("vllm",), ("router",), Path("r"))
    for line in (*listing.study(made.study), *listing.dry_run(made, host, (0, 1))):
        assert "\0" not in line
    return ""


def test_the_whole_table_is_right() -> None:
    assert told(WHOLE) == ""
    assert len(places(WHOLE)) > 60


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(places(WHOLE)[1:]), values)
@example(("arm", 0, "about"), "\x00")
@example(("title",), "a\nb\x1b[2J")
def test_any_value_in_any_place(path: tuple[Any, ...], value: Any) -> None:
    table = copy.deepcopy(WHOLE)
    at: Any = table
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    told(table)


@settings(deadline=None)
@given(st.sampled_from(places(WHOLE)[1:]), texts, values)
def test_any_key_in_any_table(path: tuple[Any, ...], key: str, value: Any) -> None:
    table = copy.deepcopy(WHOLE)
    at: Any = table
    for each in path:
        at = at[each]
    if isinstance(at, dict):
        at[key] = value
    told(table)


def test_many_arms_and_loads_take_no_time() -> None:
    many = [{"name": f"a{n}", "model": "m"} for n in range(3000)]
    loads = [{"concurrency": n + 1, "prompts": 1, "arms": ["a1"]} for n in range(3000)]
    table = {**WHOLE, "arm": many, "workload": [{"name": "w", "loads": loads}]}
    assert "number of arms = 3000" in told(table)
    assert "has 3,000 loads; needed: at most 1,000" in told(table)


def test_more_runs_than_anybody_waits_for() -> None:
    loads = [{"concurrency": n + 1, "prompts": 1} for n in range(20)]
    table = {**WHOLE, "repeats": 1000, "workload": [{"name": "w", "loads": loads}]}
    assert "has more than 10,000 runs" in told(table)
