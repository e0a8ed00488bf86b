"""Which captures `collect --profile` makes, and of what servers."""

from __future__ import annotations

import pytest

from collectors.captures import captures
from collectors.errors import BadInput
from collectors.schedule import Selection
from collectors.study_file import parse_study, read_study, shipped
from tests.collectors.campaigns import arm, study

TWO = study(
    arm("one", profile=[1, 8], flags=["--num-gpu-blocks-override", "9"], shares_gpu="g"),
    arm(
        "two",
        replicas=2,
        router="round_robin",
        router_flags=["--x", "1"],
        env={"A": "0", "B": "0"},
        replica_env=[{"A": "1"}, {"A": "2"}],
        telemetry=True,
        spans=True,
    ),
    repeats=3,
)


def test_an_arms_own_batches_or_those_asked_for() -> None:
    one = parse_study(TWO, "s.toml")
    made = captures(one, Selection(), ())
    assert sorted((job.arm, job.name, job.concurrency) for job in made.jobs) == [
        ("one", "profile-b1", 1),
        ("one", "profile-b8", 8),
    ]
    assert made.profiled
    asked = captures(one, Selection(), (2, 4))
    assert {(job.arm, job.name) for job in asked.jobs} == {
        (name, f"profile-b{size}") for name in ("one", "two") for size in (2, 4)
    }
    only = captures(one, Selection(arms=("two",)), (2,))
    assert [job.arm for job in only.jobs] == ["two"]


def test_each_arm_is_one_server_of_its_own_that_nothing_else_watches() -> None:
    made = captures(parse_study(TWO, "s.toml"), Selection(), (4,))
    assert [session.arms for session in made.sessions if len(session.arms) > 1] == []
    assert len(made.sessions) == 2
    two = made.study.arms["two"]
    assert (two.replicas, two.router, two.router_flags, two.replica_env) == (1, "", (), ())
    assert two.env == {"A": "1", "B": "0"}
    assert not two.telemetry
    assert not two.spans


def test_no_batch_anywhere_and_no_such_arm() -> None:
    with pytest.raises(BadInput, match="name the requests that decode at once: --profile 1,10"):
        captures(parse_study(study(), "s.toml"), Selection(), ())
    with pytest.raises(BadInput, match="did you mean 'one'"):
        captures(parse_study(study(), "s.toml"), Selection(arms=("won",)), (1,))


@pytest.mark.parametrize("name", shipped())
def test_every_study_that_ships_can_be_profiled(name: str) -> None:
    one = read_study(name)
    made = captures(one, Selection(), (1, 10))
    assert len(made.jobs) == 2 * len(one.arm)
