"""The order of runs: every cell once a repeat, the same seeds for all arms, no arm always first."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.commands import share
from collectors.errors import BadInput
from collectors.schedule import Plan, Selection, plan
from collectors.study import Study
from collectors.study_file import parse_study, read_study, shipped
from tests.collectors.campaigns import arm, study


def made(**more: Any) -> Study:
    return parse_study(study(**more), "s.toml")


@st.composite
def studies(draw: st.DrawFn) -> Study:
    """Any arms (some on one GPU, some of several servers), loads, repeats, starts and seeds."""
    arms = []
    for number in range(draw(st.integers(1, 4))):
        room = {"flags": ["--num-gpu-blocks-override", "9"], "shares_gpu": "g"}
        replicas = {"replicas": draw(st.integers(2, 3)), "router": draw(st.sampled_from(ROUTERS))}
        kind: Any = draw(st.sampled_from([{}, room, replicas]))
        arms.append(arm(f"arm{number}", **kind))
    loads = draw(
        st.lists(
            st.builds(
                lambda concurrency, prompts, repeats: {
                    "concurrency": concurrency,
                    "prompts": prompts,
                    **({"repeats": repeats} if repeats else {}),
                },
                st.integers(1, 9),
                st.integers(1, 20),
                st.integers(0, 4),
            ),
            min_size=1,
            max_size=3,
            unique_by=lambda load: load["concurrency"],
        )
    )
    table = study(*arms, repeats=draw(st.integers(1, 5)), seed=draw(st.integers(-9, 10**9)))
    table["workload"] = [{"name": name, "loads": loads} for name in ("a", "b")]
    table["starts"] = draw(st.integers(1, 6))
    return parse_study(table, "s.toml")


ROUTERS = ["direct", "round_robin"]


@settings(deadline=None)
@given(studies())
def test_each_cell_is_run_once_a_repeat(one: Study) -> None:
    jobs = plan(one).jobs
    names = Counter((job.arm, job.name) for job in jobs)
    assert set(names.values()) == {1}
    for name in one.arms:
        for work in one.workload:
            for load in work.loads:
                mine = [job for job in jobs if (job.arm, job.workload) == (name, work.name)]
                wanted = load.repeats or one.repeats
                same = [job for job in mine if load.concurrency <= job.concurrency]
                assert {job.repeat for job in same} >= set(range(1, wanted + 1))


@settings(deadline=None)
@given(studies())
def test_all_arms_are_sent_the_same_prompts_and_each_repeat_others(one: Study) -> None:
    jobs = plan(one).jobs
    seeds = {(job.repeat, job.seed) for job in jobs}
    assert len(seeds) == len({repeat for repeat, _ in seeds}) == len({seed for _, seed in seeds})
    assert all(seed >= 0 for _, seed in seeds)


@settings(deadline=None)
@given(studies())
def test_the_order_follows_from_the_seed(one: Study) -> None:
    assert plan(one) == plan(one)


@settings(deadline=None)
@given(studies())
def test_clients_share_what_is_in_flight_and_the_prompts(one: Study) -> None:
    for job in plan(one).jobs:
        assert job.cap * job.clients == job.concurrency
        parts = [share(job.prompts, job.clients, number) for number in range(job.clients)]
        assert sum(parts) == job.prompts
        assert max(parts) - min(parts) <= 1
        assert min(parts) >= 1


@settings(deadline=None)
@given(studies())
def test_sessions_hold_their_own_arms_only_and_share_the_repeats(one: Study) -> None:
    made = plan(one)
    for session in made.sessions:
        assert session.jobs
        assert {job.arm for job in session.jobs} <= set(session.arms)
    starts = min(one.starts or 1, max(job.repeat for job in made.jobs))
    assert {session.start for session in made.sessions} == set(range(1, starts + 1))
    for name in one.arms:
        first = [each for each in made.sessions if name in each.arms]
        assert len({each.start for each in first}) == len(first)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 8))
def test_each_arm_is_started_first_about_equally_often(seed: int, arms: int, starts: int) -> None:
    one = made_of([arm(f"arm{n}") for n in range(arms)], seed, starts)
    made = plan(one)
    firsts = Counter(
        next(each.arms[0] for each in made.sessions if each.start == start)
        for start in range(1, starts + 1)
    )
    counts = [firsts[name] for name in one.arms]
    assert max(counts) - min(counts) <= 1


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(1, 4))
def test_arms_on_one_gpu_take_turns_to_be_driven_first(
    seed: int, repeats: int, starts: int
) -> None:
    room = {"flags": ["--num-gpu-blocks-override", "9"], "shares_gpu": "g"}
    one = made_of([arm("a", **room), arm("b", **room)], seed, starts, repeats)
    firsts: Counter[str] = Counter()
    for session in plan(one).sessions:
        for repeat in {job.repeat for job in session.jobs}:
            firsts[next(job.arm for job in session.jobs if job.repeat == repeat)] += 1
    assert abs(firsts["a"] - firsts["b"]) <= 1


def made_of(arms: list[dict[str, Any]], seed: int, starts: int, repeats: int = 0) -> Study:
    table = study(*arms, repeats=repeats or starts, seed=seed)
    return parse_study({**table, "starts": starts}, "s.toml")


def test_the_order_differs_between_seeds() -> None:
    orders = {
        tuple(each.arms for each in plan(made_of([arm("a"), arm("b"), arm("c")], s, 3)).sessions)
        for s in range(20)
    }
    assert len(orders) > 5


@pytest.mark.parametrize("name", shipped())
def test_no_arm_of_a_study_that_ships_is_always_first(name: str) -> None:
    one = read_study(name)
    made = plan(one)
    if len(one.arm) < 2 or len({each.start for each in made.sessions}) < 2:
        return
    starts = {each.start for each in made.sessions}
    firsts = {next(e.jobs[0].arm for e in made.sessions if e.start == start) for start in starts}
    assert len(firsts) > 1


# ---- what is asked for


def wanted(one: Study, **more: Any) -> Plan:
    return plan(one, Selection(**more))


def test_a_load_that_the_study_does_not_list() -> None:
    one = made(prompts=30, concurrency=4)
    found = {job.concurrency: job.prompts for job in wanted(one, concurrency=(4, 20, 1)).jobs}
    assert found == {4: 30, 20: 80, 1: 30}


def test_numbers_of_the_user_s_win() -> None:
    (job,) = wanted(made(repeats=3), repeats=1, prompts=7).jobs
    assert (job.repeat, job.prompts) == (1, 7)


def test_loads_that_clients_make_the_same_are_run_once() -> None:
    one = parse_study(study(arm(replicas=2, router="direct")), "s.toml")
    found = wanted(one, concurrency=(1, 2), prompts=1)
    (job,) = found.jobs
    assert (job.concurrency, job.cap, job.prompts) == (2, 1, 2)
    assert "1 in flight cannot be shared by 2 clients; 2 are run" in found.notes[0]


def test_arms_that_a_load_does_not_name() -> None:
    table = study(arm("a"), arm("b"))
    table["workload"][0]["loads"][0]["arms"] = ["b"]
    one = parse_study(table, "s.toml")
    found = plan(one)
    assert [job.arm for job in found.jobs] == ["b"]
    assert [each.name for each in found.arms] == ["b"]
    assert plan(one, Selection(arms=("a",))).jobs == ()
    assert [each.name for each in found.workloads] == ["work"]


@pytest.mark.parametrize("what", ["arms", "workloads"])
def test_a_name_that_is_not_there(what: str) -> None:
    with pytest.raises(BadInput, match="is not in the study 'tried'; did you mean"):
        wanted(made(), **{what: ("onw" if what == "arms" else "wrok",)})


@pytest.mark.parametrize("flag", ["--disable-log-stats", "--disable_log_stats", "--disable-log-st"])
def test_a_flag_that_switches_counters_off_is_noted(flag: str) -> None:
    arms = arm("a", flags=[flag], telemetry=True), arm("b"), arm("c", flags=[flag])
    notes = plan(parse_study(study(*arms), "s.toml")).notes
    assert notes[0].startswith("arm 'a': --disable-log-stats is undone by what records its steps")
    assert notes[1].startswith("arm 'c': --disable-log-stats without telemetry leaves no counter")
    assert len(notes) == 2
    assert plan(parse_study(study(arm(flags=["--disable-nccl"])), "s.toml")).notes == ()


def test_a_load_of_one_workload_is_made_up_for_no_other() -> None:
    table = study(arm("one"), concurrency=2)
    table["workload"].append({"name": "more", "loads": [{"concurrency": 5, "prompts": 9}]})
    one = parse_study(table, "s.toml")

    def asked(*loads: int) -> list[tuple[str, int]]:
        return [(job.workload, job.concurrency) for job in plan(one, Selection((), (), loads)).jobs]

    assert asked(5) == [("more", 5)]
    assert sorted(asked(7)) == [("more", 7), ("work", 7)]


def test_prompts_that_never_fill_a_load_are_noted() -> None:
    one = parse_study(study(prompts=4, concurrency=8), "s.toml")
    assert plan(one).notes == ("workload 'work': 4 prompts never make 8 requests in flight",)
