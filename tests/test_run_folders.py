"""analysis.run_folders: a collected run from its files, and what becomes of odd ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.checks.config_moved import check as config_moved
from analysis.claims._common import differences
from analysis.dataset import Study
from analysis.load import load
from analysis.model import Ignored, Level, Run, Skipped, Source, Startup
from analysis.queue_sources import mean_waiting, server_wait
from analysis.scan import scan
from tests.collected import OUT, bench, put, record, simulated, write_run
from tests.traces import server, write

RUN = "s/slotted/chat-c8-r1"
LOG = (Path(__file__).parent / "data/logs/one-gpu-0.26.log").read_text("utf-8")
METRICS = "# HELP a b\n# TYPE a gauge\na 1\n"
SIM = simulated(requests=80)
LEFT = simulated(in_flight=4, slots=2, requests=56)
RIGHT = simulated(in_flight=4, slots=2, requests=60, begin=100.1)


def folder(root: Path, **more: Any) -> Path:
    return write_run(root / RUN, [SIM], **more)


def the_run(root: Path) -> Run:
    (found,) = [one for one in scan(root) if isinstance(one, Run)]
    return found


def reasons(root: Path) -> dict[str, str]:
    return {one.file: one.reason for one in scan(root) if isinstance(one, Skipped)}


def the_study(root: Path) -> Study:
    (found,) = load(root).studies
    return found


# ---- one run


def test_a_run_is_what_its_record_says(tmp_path: Path) -> None:
    folder(tmp_path, flags=["--max-num-seqs", "4"])
    found = the_run(tmp_path)
    assert (found.arm, found.workload, found.concurrency) == ("slotted", "chat", 8)
    assert (found.id, found.source) == (f"{RUN}/bench.json", Source(f"{RUN}/bench.json", ""))
    assert found.level is Level.ENGINE
    assert found.config["max_num_seqs"] == 4
    assert found.config["repeat"] == 1
    assert found.warnings == ()
    assert found.server is not None
    assert [one.engine for one in found.server.steps] == ["server"]
    assert len(found.server.times[0].request) == 80
    assert found.server.served == {"server": 80}
    assert reasons(tmp_path) == {}


@pytest.mark.parametrize("kept", ["steps-server.jsonl", "requests-server.jsonl"])
def test_one_source_of_the_servers_makes_level_e(tmp_path: Path, kept: str) -> None:
    run = folder(tmp_path, evidence=False)
    assert the_run(tmp_path).level is Level.REQUESTS
    put(run / kept, SIM.steps if "steps" in kept else [{"id": "a", "queue": 1.0, "prefill": 1.0,
                                                        "decode": 1.0}])  # fmt: skip
    assert the_run(tmp_path).level is Level.ENGINE


def test_counters_need_both_moments_of_an_engine(tmp_path: Path) -> None:
    run = folder(tmp_path, evidence=False)
    put(run / "metrics-server.before.txt", METRICS)
    put(run / "metrics-other.after.txt", METRICS)
    assert the_run(tmp_path).level is Level.REQUESTS
    put(run / "metrics-server.after.txt", METRICS)
    found = the_run(tmp_path)
    assert found.level is Level.ENGINE
    assert found.server is not None
    assert sorted(one.when for one in found.server.counters) == ["after", "before"]


def test_without_requests_of_the_client_it_is_a_summary(tmp_path: Path) -> None:
    run = folder(tmp_path)
    arrays = ("input_lens", "output_lens", "ttfts", "itls", "start_times", "errors")
    told = {key: held for key, held in bench(SIM).items() if key not in arrays}
    put(run / "bench.json", told)
    found = the_run(tmp_path)
    assert found.level is Level.SUMMARY
    assert found.server is not None
    assert mean_waiting(found) is None


def test_a_source_that_is_damaged_costs_itself_only(tmp_path: Path) -> None:
    run = folder(tmp_path)
    back = [*SIM.steps, {**SIM.steps[0]}]
    put(run / "steps-server.jsonl", back)
    assert the_run(tmp_path).level is Level.ENGINE
    assert reasons(tmp_path) == {
        f"{RUN}/steps-server.jsonl": "its clock goes backwards; collect again"
    }


def test_what_is_kept_for_people_is_no_fault_of_the_folder(tmp_path: Path) -> None:
    run = folder(tmp_path)
    names = ("client.log", "client-1.log", "router.log")
    for name in names:
        put(run / name, "# scraped_at 1.0 server 0.1\na 1\n")
    ignored = {one.file for one in scan(tmp_path) if isinstance(one, Ignored)}
    assert ignored == {f"{RUN}/{name}" for name in names}
    put(run / "metrics-server.before.txt", "# HELP a b\n# TYPE a gauge\n")
    put(tmp_path / "client.log", "x")
    assert reasons(tmp_path).keys() == {"client.log", f"{RUN}/metrics-server.before.txt"}


def test_samples_of_the_counters_are_the_runs(tmp_path: Path) -> None:
    run = folder(tmp_path, evidence=False)
    put(run / "metrics-samples.txt", "# scraped_at 1.0 server 0.1\nvllm:num_requests_running 3\n")
    found = the_run(tmp_path)
    assert found.server is not None
    assert [one.running.tolist() for one in found.server.samples] == [[3.0]]
    # They tell of moments only.
    assert found.level is Level.REQUESTS
    assert reasons(tmp_path) == {}


def test_evidence_beside_no_record_belongs_to_no_run(tmp_path: Path) -> None:
    run = folder(tmp_path)
    for content in (None, "{", json.dumps(record(arm="../x"))):
        (run / "run.json").unlink(missing_ok=True)
        if content is not None:
            put(run / "run.json", content)
        found = reasons(tmp_path)
        why = "belongs to no run: no run.json that can be read lies beside it"
        assert found[f"{RUN}/steps-server.jsonl"] == why
        assert found[f"{RUN}/requests-server.jsonl"] == why
        # The client's file is a result of its own, by nobody's arm.
        assert (the_run(tmp_path).arm, the_run(tmp_path).level) == ("", Level.REQUESTS)


def test_one_file_alone(tmp_path: Path) -> None:
    run = folder(tmp_path)
    assert reasons(run / "run.json") == {"run.json": "no result that can be read lies beside it"}
    assert "belongs to no run" in reasons(run / "steps-server.jsonl")["steps-server.jsonl"]


# ---- results that are not the record's


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"arm": "free"}, "says arm free, and bench.json beside it says slotted"),
        ({"workload": "code"}, "says workload code, and bench.json beside it says chat"),
        ({"repeat": 2}, "says repeat 2, and bench.json beside it says 1"),
        ({"concurrency": 9}, "says in_flight_total 9, and bench.json beside it says 8"),
        ({"study": "t"}, "says study t, and bench.json beside it says s"),
    ],
)
def test_a_record_of_another_folder(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    run = folder(tmp_path)
    put(run / "run.json", record(**change))
    assert reasons(tmp_path)[f"{RUN}/run.json"].startswith(said)
    assert load(tmp_path).studies == ()


def test_a_folder_that_was_renamed_is_still_what_its_record_says(tmp_path: Path) -> None:
    shutil.move(folder(tmp_path), tmp_path / "elsewhere")
    assert the_run(tmp_path).arm == "slotted"


def test_a_result_that_is_not_the_runs_own_is_not_counted_with_it(tmp_path: Path) -> None:
    run = folder(tmp_path)
    put(run / "by-hand.json", bench(simulated(requests=8)))
    assert the_run(tmp_path).figures["completed"].value == 80
    assert "no result of this folder's run" in reasons(tmp_path)[f"{RUN}/by-hand.json"]


def test_a_result_that_cannot_be_read(tmp_path: Path) -> None:
    run = folder(tmp_path)
    put(run / "bench.json", "{")
    assert reasons(tmp_path)[f"{RUN}/run.json"] == "no result that can be read lies beside it"


def test_one_client_of_two_is_not_the_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / RUN, [LEFT, RIGHT])
    put(run / "bench-1.json", "{")
    assert reasons(tmp_path)[f"{RUN}/run.json"] == (
        "2 clients drove it, and 1 result of theirs can be read; collect again"
    )
    assert load(tmp_path).studies == ()


def test_a_copy_of_the_result_elsewhere_is_the_same_run(tmp_path: Path) -> None:
    run = folder(tmp_path)
    for name in ("a.json", "z.json"):
        shutil.copy(run / "bench.json", tmp_path / "s" / name)
    found = the_run(tmp_path)
    assert (found.arm, found.level) == ("slotted", Level.ENGINE)
    assert found.source.file == f"{RUN}/bench.json"
    assert {source.file for source in found.also_in} == {"s/a.json", "s/z.json"}


def test_a_copy_of_the_folder_is_no_repeat(tmp_path: Path) -> None:
    run = folder(tmp_path)
    shutil.copytree(run, run.with_name("chat-c8-r2"))
    assert len(the_study(tmp_path).cells[0].runs) == 1
    assert reasons(tmp_path) == {}


def test_runs_that_are_two_by_their_records_are_two_however_alike(tmp_path: Path) -> None:
    for repeat in (1, 2):
        run = write_run(tmp_path / f"s/slotted/chat-c8-r{repeat}", [SIM], repeat=repeat)
    shutil.copy(run / "bench.json", tmp_path / "s" / "z.json")
    (cell,) = the_study(tmp_path).cells
    assert [one.config["repeat"] for one in cell.runs] == [1, 2]
    assert [len(one.also_in) for one in cell.runs] == [1, 0]


# ---- runs that did not end well


@pytest.mark.parametrize(
    ("name", "state", "wanted", "end"),
    [
        ("chat-c8-r1", "failed", False, "`collect` again makes it anew"),
        ("chat-c8-r1.part", "running", False, "`collect` again makes it anew"),
        ("chat-c8-r1.half-1", "interrupted", True, "`collect` again makes it anew"),
        ("chat-c8-r2.failed-1", "failed", True, "it was made anew"),
        ("chat-c8-r2.half-3", "interrupted", True, "it was made anew"),
        ("chat-c8-r3.failed-1", "failed", False, "`collect` again makes it anew"),
    ],
)
def test_it_is_listed_and_not_measured(
    tmp_path: Path, name: str, state: str, wanted: bool, end: str
) -> None:
    arm = tmp_path / "s" / "slotted"
    write_run(arm / "chat-c8-r2", [SIM], repeat=2)
    left = write_run(arm / name, [simulated(requests=40)], state=state, reason="a\nreason")
    put(left / "server.log", LOG)
    put(left / "client.log", "")
    (found,) = [one for one in scan(tmp_path) if isinstance(one, Skipped)]
    assert found.file == f"s/slotted/{name}/run.json"
    assert found.reason == f"the collector's run is {state} (a reason); {end}"
    assert found.wanted is wanted
    assert the_run(tmp_path).config["repeat"] == 2
    assert not any(isinstance(one, Startup) for one in scan(tmp_path))


def test_a_server_that_died_is_still_said(tmp_path: Path) -> None:
    run = folder(tmp_path, state="failed", reason="x")
    put(run / "server.log", (Path(__file__).parent / "data/logs/died-0.28.log").read_text("utf-8"))
    assert "the server died before it was ready" in reasons(tmp_path)[f"{RUN}/server.log"]


def test_what_a_killed_collector_marks_without_a_record(tmp_path: Path) -> None:
    put(tmp_path / "s/slotted/chat-c8-r1.half-1/run.json", {"schema": 1, "state": "interrupted"})
    (found,) = reasons(tmp_path).values()
    assert found == "no record of a collector's run: its 'study' is no name; collect again"


def test_warm_ups_are_hidden(tmp_path: Path) -> None:
    folder(tmp_path)
    write_run(tmp_path / "s/slotted/.servers/1.1-warmup", [simulated(requests=8)], repeat=0)
    put(tmp_path / "s/slotted/.servers/1.1-server.log", LOG)
    assert len(the_study(tmp_path).runs) == 1
    assert load(tmp_path).skipped == ()


# ---- several engines


def test_two_clients_of_two_servers_are_one_run(tmp_path: Path) -> None:
    write_run(tmp_path / RUN, [LEFT, RIGHT], flags=["--max-num-seqs", "2"])
    found = the_run(tmp_path)
    assert (found.concurrency, found.level) == (8, Level.ENGINE)
    assert found.figures["completed"].value == 116
    duration = max(LEFT.end, RIGHT.end) - LEFT.start[0]
    assert found.figures["duration"].value == pytest.approx(duration)
    assert found.figures["output_throughput"].value == pytest.approx(116 * OUT / duration)
    assert found.figures["p99_ttft"].value > 0
    assert found.server is not None
    assert [one.engine for one in found.server.steps] == ["replica-0", "replica-1"]
    assert found.server.served == {"replica-0": 56, "replica-1": 60}
    queue = (sum(LEFT.queue) + sum(RIGHT.queue)) / 116
    wait, waiting = server_wait(found), mean_waiting(found)
    assert wait is not None
    assert waiting is not None
    assert wait.seconds == pytest.approx(queue)
    # Little's law on the queue itself: L_q = X W_q.
    assert waiting == pytest.approx(queue * 116 / duration)


def test_steps_of_one_engine_of_two_say_nothing_of_the_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / RUN, [LEFT, RIGHT])
    (run / "steps-replica-1.jsonl").unlink()
    found = the_run(tmp_path)
    assert found.warnings == ("steps of 1 of 2 engines: not used",)
    assert mean_waiting(found) is None
    assert found.level is Level.ENGINE


def test_each_engine_of_one_server_has_steps_of_its_own(tmp_path: Path) -> None:
    run = folder(tmp_path, flags=["--data-parallel-size", "2"])
    (run / "steps-server.jsonl").rename(run / "steps-server.0.jsonl")
    assert the_run(tmp_path).warnings == ("steps of 1 of 2 engines: not used",)
    put(run / "steps-server.1.jsonl", SIM.steps)
    found = the_run(tmp_path)
    assert found.server is not None
    assert [one.engine for one in found.server.steps] == ["server.0", "server.1"]


def test_logs_of_replicas_are_one_servers(tmp_path: Path) -> None:
    run = write_run(tmp_path / RUN, [LEFT, RIGHT])
    for number in (0, 1):
        put(run / f"replica-{number}.log", LOG.replace("port': 8000", f"port': 810{number}"))
    put(run / "router.log", "INFO vllm_router: listening\n")
    study = the_study(tmp_path)
    arm = study.arms["slotted"]
    assert arm.startup is not None
    assert arm.startup.source.file == f"{RUN}/replica-0.log"
    assert (arm.spec.replicas, arm.spec.gpus) == (2, 2)
    assert study.skipped == ()
    assert study.runs[0].warnings == ()


def test_replicas_that_were_made_equal_have_what_they_were_driven_with(tmp_path: Path) -> None:
    """The log of one that was started twice tells of both starts, the first one first."""
    servers = [{"name": f"replica-{n}", "kv_tokens": 500_000} for n in (0, 1)]
    run = write_run(tmp_path / RUN, [LEFT, RIGHT], servers=servers)
    put(run / "replica-0.log", LOG + LOG.replace("767,872", "500,000"))
    put(run / "replica-1.log", LOG.replace("767,872", "500,000"))
    study = the_study(tmp_path)
    startup = study.arms["slotted"].startup
    assert startup is not None
    assert startup.figures["kv_tokens"].value == 500_000
    assert startup.figures["kv_tokens"].source == Source(
        f"{RUN}/run.json", "servers, replica-0: kv_tokens"
    )
    assert {"kv_bytes", "reported_max_concurrency"}.isdisjoint(startup.figures)
    assert "model_bytes" in startup.figures
    assert study.runs[0].warnings == ()


def test_replicas_with_unequal_room_are_warned_about(tmp_path: Path) -> None:
    run = write_run(tmp_path / RUN, [LEFT, RIGHT])
    put(run / "replica-0.log", LOG)
    put(run / "replica-1.log", LOG.replace("767,872", "500,000"))
    assert the_run(tmp_path).warnings == ("replicas hold between 500,000 and 767,872 tokens of KV",)


# ---- logs that were cut, arms without a study.toml, repeats


def test_a_log_of_the_start_and_of_one_run(tmp_path: Path) -> None:
    served = "INFO 10-01 10:00:00 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s\n"
    run = folder(tmp_path)
    put(run / "server.log", f"{LOG}[... 12345 bytes of other runs ...]\n{served * 9}")
    startup = the_study(tmp_path).arms["slotted"].startup
    assert startup is not None
    assert startup.figures["kv_tokens"].value == 767_872
    assert startup.figures["model_bytes"].value > 0
    assert the_run(tmp_path).source.file == f"{RUN}/bench.json"


def test_arms_are_described_by_the_record(tmp_path: Path) -> None:
    flags = ["--max-num-seqs", "4", "-tp", "2", "--max-num-batched-tokens", "2048"]
    write_run(tmp_path / RUN, [SIM], flags=flags, definition={"gpus": 2})
    arm = the_study(tmp_path).arms["slotted"]
    assert (arm.spec.model, arm.spec.tensor_parallel, arm.spec.replicas) == ("m", 2, 1)
    assert (arm.spec.max_num_seqs, arm.spec.max_num_batched_tokens) == (4, 2048)
    assert (arm.spec.gpus, arm.spec.version) == (2, "0.28.0")


def test_study_toml_counts_before_the_record_and_the_record_fills_in(tmp_path: Path) -> None:
    write_run(tmp_path / RUN, [SIM], flags=["--max-num-seqs", "4", "-tp", "2"])
    put(tmp_path / "s/study.toml", '[[arm]]\nname = "slotted"\ntensor_parallel = 1\ngpu = "L4"\n')
    arm = the_study(tmp_path).arms["slotted"]
    assert (arm.spec.gpu, arm.spec.tensor_parallel, arm.spec.max_num_seqs) == ("L4", 1, 4)
    assert arm.spec.version == "0.28.0"


def test_what_differs_from_run_to_run_is_no_confound_and_has_not_moved(tmp_path: Path) -> None:
    for arm, slots in (("slotted", 4), ("free", 16)):
        for repeat in (1, 2):
            run = write_run(
                tmp_path / "s" / arm / f"chat-c8-r{repeat}",
                [simulated(slots=slots, requests=80 + repeat)],
                arm=arm, repeat=repeat, order=10 * repeat + slots, order_seed=repeat,
                flags=["--max-num-seqs", str(slots)], date=f"2026113{repeat}-1200{slots:02}",
                collector=f"serving-assay 0.{repeat}", collect=f"collect --x {repeat} --arm {arm}",
                prefix_cache_emptied=repeat == 1, definition={"seed": repeat},
                requests_by_server={"a": 40 + repeat, "b": 40},
            )  # fmt: skip
            log = LOG.replace(
                "non-default args: {",
                f"non-default args: {{'otlp_traces_endpoint': 'http://127.0.0.1:{repeat}{slots}', ",
            )
            put(run / "server.log", log)
    study = the_study(tmp_path)
    assert [len(cell.runs) for cell in study.cells] == [2, 2]
    assert study.skipped == ()
    for cell in study.cells:
        for account in cell.ledgers:
            moved = config_moved(cell, account)
            # Another number of prompts is the only thing that moved.
            assert "num_prompts" in moved.reason or moved.status == "VALID", moved.reason
            assert "differs" not in moved.reason or moved.reason.endswith("in num_prompts")
    assert differences(*study.cells) == ("max_num_seqs: 16 against 4",)


# ---- profiles and samples of GPUs


def test_samples_of_gpus_are_those_of_the_run(tmp_path: Path) -> None:
    run = folder(tmp_path)
    lines = [
        {"t": 1e9 + 0.5 * k, "gpu": 0, "utilization_gpu": 99, "power": 500.0, "clock_sm": 1980}
        for k in range(20)
    ]
    put(run / "gpu.jsonl", lines)
    found = the_run(tmp_path)
    assert found.server is not None
    assert found.server.gpu is not None
    assert found.server.gpu.source == Source(f"{RUN}/gpu.jsonl", "")
    assert len(found.server.gpu.clock) == 20
    assert reasons(tmp_path) == {}


def test_samples_alone_make_no_run_of_level_e(tmp_path: Path) -> None:
    run = folder(tmp_path, evidence=False)
    put(run / "gpu.jsonl", [{"t": 1e9, "gpu": 0, "utilization_gpu": 99}])
    found = the_run(tmp_path)
    assert found.level is Level.REQUESTS
    assert found.server is not None


def test_the_folder_of_a_profile_gives_its_traces_to_the_arm(tmp_path: Path) -> None:
    folder(tmp_path)
    profile = tmp_path / "s/slotted/profile-b8"
    put(profile / "run.json", record(workload="profile"))
    put(profile / "server.log", LOG)
    write(profile / "trace/rank0.pt.trace.json.gz", server(4000.0, batch=8))
    assert reasons(tmp_path) == {}
    arm = the_study(tmp_path).arms["slotted"]
    (trace,) = arm.traces
    assert trace.source.file == "s/slotted/profile-b8/trace/rank0.pt.trace.json.gz"
    assert len(the_study(tmp_path).runs) == 1
    # By its record too, wherever the folder lies.
    shutil.move(profile, tmp_path / "s/elsewhere")
    assert len(the_study(tmp_path).arms["slotted"].traces) == 1


def test_the_traces_of_a_profile_that_did_not_end_well_are_not_used(tmp_path: Path) -> None:
    folder(tmp_path)
    profile = tmp_path / "s/slotted/profile-b8"
    put(profile / "run.json", record(workload="profile", state="failed"))
    write(profile / "rank0.pt.trace.json", server(4000.0, batch=8))
    found = reasons(tmp_path)
    assert "run is failed" in found["s/slotted/profile-b8/rank0.pt.trace.json"]
    assert the_study(tmp_path).arms["slotted"].traces == ()
    # Put aside and made anew: listed, and nothing is wrong.
    shutil.move(profile, profile.with_name("profile-b8.failed-1"))
    put(profile / "run.json", record(workload="profile"))
    write(profile / "rank0.pt.trace.json", server(4000.0, batch=8))
    lost = [one for one in scan(tmp_path) if isinstance(one, Skipped)]
    assert [one.wanted for one in lost] == [True]
    assert len(the_study(tmp_path).arms["slotted"].traces) == 1


def test_a_run_during_which_a_profiler_recorded_is_warned_about(tmp_path: Path) -> None:
    run = folder(tmp_path)
    write(run / "trace/rank0.pt.trace.json", server(4000.0))
    assert "a profiler recorded during this run" in the_run(tmp_path).warnings[0]
    assert len(the_study(tmp_path).arms["slotted"].traces) == 1
