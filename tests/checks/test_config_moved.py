"""Repeats of one cell must be repeats."""

from __future__ import annotations

import pytest

from analysis.checks import config_moved
from analysis.model import Run
from tests.builders import run
from tests.checks.helpers import outcome


def test_one_run_has_nothing_to_move_against() -> None:
    assert outcome(config_moved, run()).status == "NOT APPLICABLE"


def test_equal_repeats() -> None:
    runs = [run(id=name, config={"model_id": "m", "max_num_seqs": 8}) for name in "ab"]
    for number in (0, 1):
        found = outcome(config_moved, *runs, number=number)
        assert (found.status, found.reason) == ("VALID", "equal to a")


def test_what_a_client_writes_anew_each_time_may_differ() -> None:
    runs = [
        run(id="a", config={"date": "1", "seed": 1, "server.log": "x", "run_number": 0}),
        run(id="b", config={"date": "2", "seed": 2, "server.log": "y", "run_number": 1}),
    ]
    assert outcome(config_moved, *runs, number=1).status == "VALID"


def test_a_key_that_only_one_file_has_did_not_move() -> None:
    runs = [run(id="a"), run(id="b", config={"label": "x", "gpu_memory": 0.9})]
    assert outcome(config_moved, *runs, number=1).status == "VALID"


@pytest.mark.parametrize("key", ["max_num_seqs", "vllm_version", "burstiness", "max_concurrency"])
def test_a_setting_that_moved_is_named(key: str) -> None:
    runs = [run(id="a", config={key: "1"}), run(id="b", config={key: "2"})]
    found = outcome(config_moved, *runs, number=1)
    assert (found.status, found.reason) == ("SUSPECT", f"differs from a in {key}")


@pytest.mark.parametrize("name", ["num_prompts", "total_input_tokens"])
def test_another_amount_of_work_is_named(name: str) -> None:
    found = outcome(config_moved, run(id="a"), run({name: 7}, id="b"), number=1)
    assert found.reason == f"differs from a in {name}"
    assert outcome(config_moved, run(id="a"), run({name: None}, id="b"), number=1).status == (
        "VALID"
    )


def test_another_rate_is_named() -> None:
    found = outcome(config_moved, run(id="a", rate=1.0), run(id="b", rate=2.0), number=1)
    assert found.reason == "differs from a in request_rate"


def test_at_most_five_settings_are_named() -> None:
    keys = "abcdefg"
    runs = [run(id=str(n), config=dict.fromkeys(keys, n)) for n in (1, 2)]
    assert outcome(config_moved, *runs, number=1).reason == "differs from 1 in a, b, c, d, e"


def test_what_was_measured_and_where_the_server_listens_may_differ() -> None:
    runs = [
        run(
            id=str(n),
            config={
                "probe_completed": n,
                "p99_probe_ms": n,
                "gpu_power": 123.4567 + n,
                "events": f"[{n}]",
                "server.port": n,
                "server.served_model_name": str(n),
            },
        )
        for n in (1, 2)
    ]
    assert outcome(config_moved, *runs, number=1).status == "VALID"


def test_another_seed_samples_other_prompts() -> None:
    def tokens(*seeds: int | None) -> str:
        runs = [
            run({"total_input_tokens": 1000 + n}, id=str(n), config={"seed": seed})
            for n, seed in enumerate(seeds)
        ]
        return outcome(config_moved, *runs, number=1).status

    assert tokens(1, 2) == "VALID"
    assert tokens(1, 1) == tokens(None, 2) == tokens(1, None) == "SUSPECT"


def stays(*itls: float | None) -> list[Run]:
    """Runs of 0.1 s + 49 ITLs a request: 9.9 s at the default ITL of 0.2 s."""
    return [run({"mean_itl": itl}, id=str(n)) for n, itl in enumerate(itls)]


def test_stays_too_far_apart_for_one_server() -> None:
    # 0.1 + 49 x 0.2 = 9.9 s; 0.1 + 49 x 1.028 = 50.472 s, 5.1 times as much.
    runs = stays(0.2, 0.21, 1.028)
    for number in range(3):
        found = outcome(config_moved, *runs, number=number)
        assert found.status == "SUSPECT"
        assert found.reason == "3 runs differ 5.1-fold in stay: probably not one server"


@pytest.mark.parametrize(("itl", "status"), [(0.3009, "VALID"), (0.3011, "SUSPECT")])
def test_half_as_long_again_is_the_limit(itl: float, status: str) -> None:
    # 1.5 x 9.9 s = 14.85 s = 0.1 + 49 x 0.30102.
    assert outcome(config_moved, *stays(0.2, itl)).status == status


def test_both_a_setting_and_the_stay() -> None:
    runs = [run({"mean_itl": itl}, id=str(itl), config={"version": str(itl)}) for itl in (0.2, 0.4)]
    assert outcome(config_moved, *runs, number=1).reason == (
        "differs from 0.2 in version; 2 runs differ 2.0-fold in stay: probably not one server"
    )


def test_stays_that_are_not_known_are_not_compared() -> None:
    assert outcome(config_moved, *stays(None, None)).status == "VALID"
    assert outcome(config_moved, *stays(None, 0.2, 0.5)).reason.startswith("2 runs differ 2.5-fold")
    nothing = run({"mean_itl": 0, "mean_ttft": 0}, id="z")
    assert outcome(config_moved, run(id="a"), nothing).status == "VALID"
