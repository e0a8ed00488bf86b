"""Attribution of gaps whose causes are known, negative controls, and every refusal in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.attribution import Attribution, Causes, attribute, causes
from analysis.simulate import Delivery, Engine, Open, StepCost
from analysis.steps import Latency, Steps
from analysis.token_times import Refused
from tests.simulated import COST, simulated, steps_of

FASTER = replace(COST, weights=COST.weights * 0.7)
FREE = Engine()
TIGHT = Engine(kv_blocks=120)
FEW = Engine(max_num_seqs=5)
LOADS = (8, 4, 2)


def arm(cost: StepCost = COST, engine: Engine = FREE) -> list[Steps]:
    return [
        steps_of(
            simulated(30 + 20 * load, load, load, cost=cost, engine=engine),
            counted=engine.replicas == 1,
        )
        for load in LOADS
    ]


@pytest.fixture(scope="module")
def plain() -> list[Steps]:
    return arm()


def between(a: list[Steps], b: list[Steps], latency: Latency = "itl") -> Attribution:
    found = attribute(a[0], b[0], latency, baseline_loads=a[1:], treatment_loads=b[1:])
    assert isinstance(found, Attribution), found
    return found


def refusal(a: list[Steps], b: list[Steps], latency: Latency = "itl", **told: bool) -> str:
    found = attribute(a[0], b[0], latency, baseline_loads=a[1:], treatment_loads=b[1:], **told)
    assert isinstance(found, Refused), found
    return " ".join(found.reasons)


# Known causes


@pytest.mark.parametrize("latency", ["itl", "stay", "duration"])
def test_faster_steps_alone(plain, latency):
    found = between(plain, arm(FASTER), latency)
    assert causes(found) == Causes("acts", "does not act")
    assert found.splits[0].step_cost.share == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("latency", ["stay", "duration"])
@pytest.mark.parametrize("engine", [TIGHT, FEW], ids=["KV", "sequences"])
def test_room_alone(plain, engine, latency):
    found = between(arm(engine=engine), plain, latency)
    assert causes(found) == Causes("does not act", "acts")


def test_both_in_the_wait_and_less_than_nothing_in_the_gap(plain):
    """Fewer sequences and dearer steps: the stay has two causes. In the gap between tokens more
    room explains less than nothing: a queue keeps steps small."""
    slow = arm(replace(COST, weights=COST.weights * 1.4), FEW)
    assert causes(between(slow, plain, "stay")) == Causes("acts", "acts")
    found = between(slow, plain, "itl")
    assert found.splits[0].step_cost.share > 1
    assert found.splits[0].count.value == 0
    assert found.splits[0].content.share < 0


def test_arms_swapped_give_the_same_shares(plain):
    slow = arm(replace(COST, weights=COST.weights * 1.4), FEW)
    forth, back = between(slow, plain, "stay"), between(plain, slow, "stay")
    ours = {s.schedule_of: s for s in forth.splits}
    theirs = {"treatment" if s.schedule_of == "baseline" else "baseline": s for s in back.splits}
    assert ours.keys() == theirs.keys()
    for owner, split in ours.items():
        assert theirs[owner].step_cost.share == pytest.approx(split.step_cost.share)  # type: ignore[index]


def test_one_engine_against_two(plain):
    """Two replicas with half the load each against one engine with dearer steps."""
    pair = arm(engine=Engine(replicas=2, routing="own client"))
    single = arm(replace(COST, weights=COST.weights * 0.6, context=COST.context * 0.7))
    found = attribute(
        pair[0], single[0], "itl", baseline_loads=pair[1:], treatment_loads=single[1:],
        same_kv=False,
    )  # fmt: skip
    assert isinstance(found, Attribution)
    assert isinstance(causes(found), Causes)
    assert found.splits[0].step_cost.share > 1
    assert found.splits[0].content.value > 0


def test_the_same_input_gives_the_same_numbers(plain):
    faster = arm(FASTER)
    assert between(plain, faster) == between(plain, faster)


# Negative controls: equal costs must show no step cost beyond 5 % of the gap


@pytest.mark.parametrize("latency", ["stay", "duration"])
def test_equal_costs_show_no_step_cost(plain, latency):
    for engine in (TIGHT, FEW):
        found = between(plain, arm(engine=engine), latency)
        assert found.splits
        assert abs(found.splits[0].step_cost.share) < 0.05


def test_equal_arms_have_no_gap_to_split(plain):
    again = [
        steps_of(simulated(30 + 20 * load, load, load, cost=replace(COST, noise=0.021)))
        for load in LOADS
    ]
    found = between(plain, again)
    assert found.splits == ()
    assert "There may be no gap" in found.refused[0]
    assert isinstance(causes(found), Refused)


# Refusals


def test_an_open_loop_is_refused(plain):
    run = [steps_of(simulated(200, Open(3.0)))]
    assert "a clock of their own" in refusal(run, run, open_loop=True)


def test_a_short_run_is_refused(plain):
    short = [steps_of(simulated(40, 16))]
    assert "mostly ramp and drain" in refusal(plain, short)


def test_the_duration_of_several_engines_is_refused(plain):
    pair = arm(engine=Engine(replicas=2))
    assert "as long as the slowest" in refusal(pair, plain, "duration")


def test_preemptions_that_no_gap_shows_are_refused(plain):
    engine = Engine(kv_blocks=120, max_num_batched_tokens=128)
    told = [steps_of(simulated(190, 8, 8, engine=engine), counted=True)]
    assert "are in no gap" in refusal(plain, told)
    untold = [steps_of(simulated(190, 8, 8, engine=engine))]
    assert "the server's count of preemptions tells" in refusal(plain, untold)


def test_steps_the_other_arm_never_ran_are_refused(plain):
    """At one load, five at most in one arm and eight in the other: neither knows the other's."""
    found = attribute(arm(engine=FEW)[0], steps_of(simulated(190, 8, 8, cost=FASTER)), "stay")
    assert isinstance(found, Attribution)
    assert any("never the" in words for words in found.refused)


def test_a_load_at_which_steps_cost_something_else_is_refused(plain):
    """A clock that fell at the target load only: what other loads tell does not hold there."""
    run, *others = arm(FASTER)
    slowed = replace(run, table=replace(run.table, duration=run.table.duration * 1.15))
    found = between(plain, [slowed, *others])
    assert found.splits == ()
    assert "The cost model leaves" in found.refused[0]


def test_a_slow_network_counts_as_waiting(plain):
    """A limit: 50 ms on the way to the server are steps waited, as a client sees it."""
    far = Delivery(to_server=0.05, to_client=3e-4)
    runs = [steps_of(simulated(30 + 20 * load, load, load, delivery=far)) for load in LOADS]
    found = causes(between(plain, runs, "ttft"))
    assert isinstance(found, Causes)
    assert found.scheduling == "acts"


def test_few_steps_are_refused():
    short = [steps_of(simulated(12, 1, 3))]
    assert "blocks of steps in a run" in refusal(short, short)
