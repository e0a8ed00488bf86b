"""The study of headroom holds what an experiment on a GPU needs, and a visit can run a part."""

from __future__ import annotations

from collections import Counter

import pytest

from collectors.captures import captures
from collectors.schedule import Selection, plan
from collectors.study_file import read_study

STUDY = read_study("headroom")
WEIGHTS = ("bf16", "awq")
ROOMS = ("ample", "scarce", "binding")


@pytest.mark.parametrize("room", ROOMS)
def test_both_weights_take_turns_at_ten_in_flight(room: str) -> None:
    pair = tuple(f"{weights}-{room}" for weights in WEIGHTS)
    made = plan(STUDY, Selection(arms=pair, workloads=("sharegpt",), concurrency=(10,)))
    assert [set(session.arms) for session in made.sessions] == [set(pair)] * 2
    for name in pair:
        mine = [job for job in made.jobs if job.arm == name]
        assert len(mine) >= 5
        assert {job.prompts for job in mine} == {100}
        assert len({job.seed for job in mine}) == len(mine)
    for session in made.sessions:
        # A repeat of one is followed by the same of the other.
        for first, second in zip(session.jobs[::2], session.jobs[1::2], strict=True):
            assert (first.repeat, {first.arm, second.arm}) == (second.repeat, set(pair))


def test_the_load_curve_and_the_kernels() -> None:
    made = plan(STUDY, Selection(workloads=("sharegpt",)))
    loads = {(job.arm, job.concurrency) for job in made.jobs}
    for weights in WEIGHTS:
        assert {(f"{weights}-ample", n) for n in (1, 10, 32, 128, 256)} <= loads
    assert {("awq-marlin", 10), ("awq-marlin", 128)} <= loads
    assert all(job.prompts >= 10 * job.concurrency for job in made.jobs)
    marlin, machete = STUDY.arms["awq-marlin"], STUDY.arms["awq-ample"]
    assert (marlin.flags, marlin.shares_gpu) == (machete.flags, machete.shares_gpu)


def test_watching_is_the_only_difference_of_twins() -> None:
    twins = ("awq-scarce", "awq-scarce-unwatched")
    made = plan(STUDY, Selection(arms=twins, concurrency=(32,)))
    assert Counter(job.arm for job in made.jobs) == dict.fromkeys(twins, 6)
    assert {session.arms for session in made.sessions} == {twins}
    watched, unwatched = (STUDY.arms[name] for name in twins)
    assert (watched.flags, watched.env, watched.model) == (
        unwatched.flags,
        unwatched.env,
        unwatched.model,
    )
    assert (watched.telemetry, unwatched.telemetry) == (True, False)


def test_prefixes_tuned_flags_and_captures() -> None:
    made = plan(STUDY, Selection(workloads=("prefix_repetition",)))
    assert {job.arm for job in made.jobs} >= {"bf16-tuned", "awq-tuned", "bf16-ample", "awq-ample"}
    assert STUDY.arms["bf16-tuned"].flags == STUDY.arms["awq-tuned"].flags
    assert {(job.arm, job.name) for job in captures(STUDY, Selection(), ()).jobs} == {
        (arm, f"profile-b{batch}")
        for arm in ("bf16-ample", "awq-ample", "awq-marlin")
        for batch in (1, 10, 128)
    }
