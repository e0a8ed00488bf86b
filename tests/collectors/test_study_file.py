"""Study files: what is read, and how each mistake is told."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from collectors.errors import BadInput
from collectors.study import Arm
from collectors.study_file import parse_study, read_study, shipped, with_arm
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
        ("x" * 5000, "no such study ships"),
        (".", "is a folder; needed: a .toml file"),
        ("a\0b", "no such study ships"),
    ],
)
def test_a_study_that_is_not_there(word: str, told: str) -> None:
    with pytest.raises(BadInput) as error:
        read_study(word)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    broken = table(repeats=0, seed=2**64)
    with pytest.raises(BadInput) as error:
        parse_study(broken, "s.toml")
    assert [problem.found for problem in error.value.problems] == [
        "repeats = 0",
        "seed of 65 bits",
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"a = " + b"9" * 5000,
        b"a = " + b"[" * 100_000,
        b"a = " + b"{a=" * 5000,
        b"a = '" + b"x" * (1 << 20) + b"'",
        b"\xff",
        b"a = 1\na = 2",
        b"",
        b"\0",
    ],
)
def test_a_hostile_file_is_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(content)
    with pytest.raises(BadInput) as error:
        read_study(str(path))
    assert str(error.value).startswith("s.toml")
    assert len(str(error.value)) < 400
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
        (changed("repeats", to=100_000), "repeats = 100000; needed: 1,000 at most"),
        (changed("arm", 0, "replicas", to=100_000), "replicas = 100000; needed: 64 at most"),
        (changed("arm", 0, "gpus", to=65), "gpus = 65"),
        (changed("workload", 0, "loads", 0, "concurrency", to=10**7), "100,000 at most"),
        (changed("workload", 0, "loads", 0, "prompts", to=10**9), "1,000,000 at most"),
        (changed("workload", 0, "request_rate", to=float("inf")), "leave it out for as fast"),
        (changed("seed", to=2**70), "seed of 71 bits"),
        (changed("arm", 0, "model", to=""), "arm 'one': model = ''; needed: a model's name"),
        (changed("arm", 0, "model", to="--port"), "model = '--port'"),
        (changed("arm", 0, "model", to="a\0b"), "model = 'a\\x00b'"),
        (changed("arm", 0, "flags", to=["a\0b"]), "flags holds a NUL"),
        (changed("arm", 0, "env", to={"A": "\0"}), "env 'A' holds a NUL"),
        (changed("arm", 0, "env", to={"A=B": ""}), "env names 'A=B'"),
        (changed("arm", 0, "env", to={"": ""}), "env names ''"),
        (changed("servers", to={"env": {"\0": ""}}), "s.toml, servers: env names '\\x00'"),
        (changed("workload", 0, "dataset", to="a\0"), "dataset holds a NUL"),
        (changed("made_model", to={"../x": {}}), "made_model '../x': is no name of a folder"),
        (changed("made_model", to={"a\0": {}}), "is no name of a folder"),
        (changed("made_model", to={"m": {"heads": 0}}), "made_model 'm': heads = 0; needed: 1 to"),
        (changed("made_model", to={"m": {"heads": 7}}), "each must divide the one before"),
        (changed("made_model", to={"m": {"vocab": 10**9}}), "vocab = 1000000000; needed: 254 to"),
        (changed("made_model", to={"m": {"max_len": -1}}), "max_len = -1"),
        (
            changed("arm", 0, "flags", to=["-tp", "2"]),
            "its flags split a server over 2 GPUs, and gpus = 1; write gpus = 2",
        ),
        (changed("arm", 0, "gpus", to=2), "split a server over 1 GPU, and gpus = 2"),
        (changed("servers", to={"flags": ["--data_parallel_size=4"]}), "over 4 GPUs"),
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
    assert all(line.startswith("s.toml") for line in str(error.value).splitlines())
    assert "$" not in str(error.value)


def test_an_arm_that_the_study_has_not() -> None:
    one = parse_study(table(), "s.toml")
    assert list(with_arm(one, Arm("mine", "m")).arms) == ["mine"]
    with pytest.raises(BadInput, match="is no name of a folder"):
        with_arm(one, Arm("../mine", "m"))
    with pytest.raises(BadInput, match="a model's name"):
        with_arm(one, Arm("mine", "\x1b[2J"))
