from __future__ import annotations

from pathlib import Path

import pytest

from collectors import command_check
from collectors.errors import Problem
from collectors.fit import UTILISATION
from collectors.help_texts import ROUTER, SERVE
from collectors.host import Host
from collectors.schedule import plan
from collectors.study_file import read_study, shipped
from tests.collectors.helps import ROUTER_17, answers
from tests.collectors.plans import arm, planned, workload

HOST = Host(vllm=("vllm",), router=("vllm-router",), datasets={"w": Path("x.json")})
KNOWN = command_check.dialects(answers())


@pytest.mark.parametrize("study", shipped())
def test_every_command_line_of_the_shipped_studies_is_taken(study: str) -> None:
    assert command_check.problems(plan(read_study(study)), HOST, KNOWN) == ()


def test_each_part_is_checked_and_everything_is_told() -> None:
    made = planned(
        arm("one", flags=["--disable-log-requests"]),
        arm("two", flags=["--disable-log-requests"]),
        arm("three", replicas=2, router="roundrobin", router_flags=["--routing-logic", "x"]),
        work=[workload(flags=["--dataset-name", "sharegtp", "--sharegpt-out-len", "3"])],
    )
    lines = [str(problem) for problem in command_check.problems(made, HOST, KNOWN)]
    assert len(lines) == 5
    assert lines[0].startswith("arms 'one', 'two': --disable-log-requests is no flag")
    assert "did you mean 'round_robin'?" in lines[1]
    assert "production-stack" in lines[2]
    assert "did you mean 'sharegpt'?" in lines[3]
    assert "did you mean '--sharegpt-output-len'?" in lines[4]


def test_the_other_router_is_told_once() -> None:
    text = ROUTER_17.replace("--worker-urls", "--static-backends")
    made = planned(arm("r", replicas=2, router="random"), arm("q", replicas=2, router="random"))
    found = command_check.problems(made, HOST, command_check.dialects(answers(router=text)))
    assert [problem.what for problem in found] == ["vllm-router"]
    assert "another project of that name" in str(found[0])


def test_without_a_help_text_nothing_is_said() -> None:
    failed = {SERVE: Problem("help", "none"), ROUTER: Problem("help", "none")}
    made = planned(arm(flags=["--no-such-flag"]))
    assert command_check.problems(made, HOST, command_check.dialects(failed)) == ()


def test_the_default_share_of_memory_is_the_installed_versions() -> None:
    assert command_check.utilisation(KNOWN) == 0.92
    assert command_check.utilisation({}) == UTILISATION
    old = answers()[SERVE].text.replace("default value of 0.92", "default value of 0.9")  # type: ignore[union-attr]
    assert command_check.utilisation(command_check.dialects(answers(serve=old))) == 0.9


def test_only_arms_behind_a_router_need_one() -> None:
    made = planned(
        arm("a"), arm("b", replicas=2, router="direct"), arm("c", replicas=2, router="random")
    )
    assert [a.name for a in command_check.routed(made)] == ["c"]
