"""Study files: what is read, and how each mistake is told."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.errors import BadInput
from collectors.study import Arm, fixes_kv, parse_study, read_study, shipped, with_arm
from tests.collectors.campaigns import study as table
from tests.collectors.campaigns import toml


def test_the_studies_that_ship_can_be_read() -> None:
    assert {"cpu-smoke", "headroom", "parallelism", "quantization"} <= set(shipped())
    for name in shipped():
        assert read_study(name).name == name


def test_a_file_of_the_user_s(tmp_path: Path) -> None:
    found = read_study(str(toml(table(), tmp_path / "my.toml")))
    assert list(found.arms) == ["one"]
    assert list(found.workloads) == ["work"]
    assert found.workload[0].loads[0].concurrency == 2


def test_a_file_hides_no_study_that_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quantization").write_text("")
    assert read_study("quantization").name == "quantization"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("quantisation", "did you mean 'quantization'?"),
        ("Headroom", "did you mean 'headroom'?"),
        ("zzz", ", quantization; a study of your own is a .toml file"),
        ("./none.toml", "no such file is here"),
        ("", "no such study ships"),
        ("a\0b", "no such study ships"),
    ],
)
def test_a_study_that_is_not_there(word: str, told: str) -> None:
    with pytest.raises(BadInput) as error:
        read_study(word)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def changed(*path: Any, to: Any) -> dict[str, Any]:
    found = copy.deepcopy(table())
    at: Any = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = to
    return found


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (changed("repeat", to=3), "s.toml: unknown key 'repeat'; did you mean 'repeats'?"),
        (changed("arm", 0, "flag", to=[]), "s.toml, arm 'one': unknown key 'flag'; did you mean"),
        (changed("servers", to={"flag": []}), "s.toml, servers: unknown key 'flag'; did you mean"),
        (changed("servers", to=5), "s.toml, servers: Expected `object`, got `int`"),
        (changed("workload", 0, "load", to=[]), "unknown key 'load'; did you mean 'loads'?"),
        (
            changed("workload", 0, "loads", 0, "prompt", to=1),
            "workload 'work', load 1: unknown key 'prompt'; did you mean 'prompts'?",
        ),
        (changed("made_model", to={"m": {"layer": 2}}), "did you mean 'layers'?"),
        (changed("made_model", to=5), "made_model is no table"),
        (changed("arm", to=[]), "has no [[arm]]; write at least one [[arm]]"),
        (changed("workload", to={}), "has no [[workload]]"),
        (changed("arm", to=["x"]), "s.toml, arm '': Expected `object`, got `str`"),
        (changed("arm", to=[{"model": "m"}]), "misses the key `name`"),
        (changed("arm", 0, "flags", to=["--max-num-seqs", 4]), "Expected `str`, got `int`"),
        (changed("arm", 0, "gpus", to=0), "arm 'one': gpus = 0; needed: 1 or more"),
        (changed("arm", 0, "gpus", to=True), "Expected `int`, got `bool`"),
        (changed("repeats", to=0), "repeats = 0"),
        (changed("starts", to=-1), "starts = -1"),
        (changed("workload", 0, "request_rate", to=float("nan")), "a number above 0"),
        (changed("workload", 0, "request_rate", to=0), "a number above 0"),
        (changed("workload", 0, "loads", to=[]), "has no loads; write loads = ["),
        (changed("workload", 0, "loads", to=3), "Expected `array`, got `int`"),
        (changed("workload", 0, "loads", 0, "prompts", to=0), "prompts = 0"),
        (changed("workload", 0, "loads", 0, "arms", to=["on"]), "names an arm 'on' that is not"),
        (
            changed("workload", 0, "loads", to=[{"concurrency": 2, "prompts": n} for n in (1, 2)]),
            "drives arm 'one' twice with concurrency = 2",
        ),
        (changed("name", to="../up"), "study '../up': is no name of a folder"),
        (changed("arm", 0, "name", to=".servers"), "is no name of a folder"),
        (changed("workload", 0, "name", to="a/b"), "is no name of a folder"),
        (changed("arm", to=[{"name": "a", "model": "m"}] * 2), "arm 'a': stands twice"),
        (changed("arm", 0, "replicas", to=2), "has 2 replicas and no router"),
        (changed("arm", 0, "router", to="direct"), "has a router (direct) and one server"),
        (changed("arm", 0, "router_flags", to=["--x"]), "has router_flags and no router"),
        (changed("arm", 0, "replica_env", to=[{}, {}]), "has 2 tables in replica_env"),
        (changed("arm", 0, "shares_gpu", to="g"), "its room fixed by one of"),
    ],
)
def test_each_mistake_is_told_in_one_line(broken: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_study(broken, "s.toml")
    assert told in str(error.value)
    assert str(error.value).startswith("s.toml")
    assert "\n" not in str(error.value)
    assert "$" not in str(error.value)


words = st.text("abcdefghij_", min_size=1, max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 99) | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
KEYS = ("name", "arm", "workload", "servers", "made_model", "repeats", "seed", "starts", "about")


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS) | words, values, max_size=4))
def test_any_table_is_a_study_or_a_line(broken: dict[str, Any]) -> None:
    try:
        found = parse_study({**table(), **broken}, "s.toml")
    except BadInput as error:
        assert str(error).startswith("s.toml")
    else:
        assert found.arms
        assert found.workloads


def test_room_for_kv() -> None:
    assert fixes_kv(["--num-gpu-blocks-override", "7"])
    assert fixes_kv(["--kv-cache-memory-bytes=1G"])
    assert not fixes_kv(["--kv-cache-dtype", "fp8"])


def test_an_arm_that_the_study_has_not() -> None:
    one = parse_study(table(), "s.toml")
    assert list(with_arm(one, Arm("mine", "m")).arms) == ["mine"]
    with pytest.raises(BadInput, match="is no name of a folder"):
        with_arm(one, Arm("../mine", "m"))
