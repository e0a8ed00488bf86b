"""Plans, studies and summaries as lines for people."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from collectors import listing
from collectors.captures import captures
from collectors.host import Host
from collectors.schedule import Selection, plan
from collectors.study_file import parse_study, read_study, shipped
from collectors.summary import Summary
from tests.collectors.campaigns import arm, study

GOLDEN = Path(__file__).parents[1] / "golden"
HOST = Host(vllm=("vllm",), router=("vllm-router",), results=Path("results"))


def lines_of(name: str, **wanted: object) -> list[str]:
    one = read_study(name)
    made = plan(one, Selection(**wanted))  # type: ignore[arg-type]
    return list(listing.dry_run(made, HOST, tuple(range(8))))


def commands_in(lines: list[str]) -> list[list[str]]:
    return [shlex.split(line) for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("name", ["quantization", "parallelism"])
def test_every_command_of_the_write_up_s_studies(name: str) -> None:
    text = "\n".join(lines_of(name, repeats=1, concurrency=(10,))) + "\n"
    path = GOLDEN / f"dry-run-{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"see tests/golden/{path.name}"


@pytest.mark.parametrize("name", shipped())
def test_each_run_of_each_study_is_printed_with_its_servers(name: str) -> None:
    lines = lines_of(name)
    one = read_study(name)
    clients = [words for words in commands_in(lines) if "bench" in words]
    assert len(clients) == sum(job.clients for job in plan(one).jobs)
    served: set[str] = set()
    for words in commands_in(lines):
        if "--base-url" in words:
            assert words[words.index("--base-url") + 1].rpartition(":")[2] in served
        else:
            served.add(words[words.index("--port") + 1])
    for each in one.arm:
        wanted = {each.model, *each.flags}
        assert any(wanted <= set(words) for words in commands_in(lines))


BENCH = "--model {model} --dataset-name {dataset} --max-concurrency 10 --save-result"
SHAREGPT = (
    "--dataset-path ShareGPT_V3_unfiltered_cleaned_split.json --num-prompts 2000 "
    "--request-rate 10 --burstiness 1.0"
)
PREFIXES = (
    "--num-prompts 1000 --request-rate 5 --prefix-repetition-prefix-len 256 "
    "--prefix-repetition-suffix-len 256 --prefix-repetition-num-prefixes 10 "
    "--prefix-repetition-output-len 128"
)
TUNED = (
    "--gpu-memory-utilization 0.95 --max-model-len 1024 --block-size 16 "
    "--enable-prefix-caching --max-num-seqs 8 --max-num-batched-tokens 8192"
)


@pytest.mark.parametrize(
    ("arm_name", "model", "flags"),
    [
        ("fp16", "Qwen/Qwen3-14B", ""),
        ("awq", "Qwen/Qwen3-14B-AWQ", ""),
        ("awq-tuned", "Qwen/Qwen3-14B-AWQ", TUNED),
    ],
)
@pytest.mark.parametrize(
    ("dataset", "sent"), [("sharegpt", SHAREGPT), ("prefix_repetition", PREFIXES)]
)
def test_no_flag_of_the_write_up_is_missing(
    arm_name: str, model: str, flags: str, dataset: str, sent: str
) -> None:
    found = commands_in(lines_of("quantization", arms=(arm_name,), workloads=(dataset,)))
    server = next(words for words in found if "serve" in words and "bench" not in words)
    client = next(words for words in found if "bench" in words)
    wanted = BENCH.format(model=model, dataset=dataset)
    for line, told in ((server, f"serve {model} {flags}"), (client, f"{wanted} {sent}")):
        joined = f" {' '.join(line)} "
        for flag in told.replace(" --", "\n--").splitlines():
            assert f" {flag.strip()} " in joined


def test_ports_gpus_and_secrets_of_a_dry_run() -> None:
    table = study(
        arm(
            replicas=2, router="round_robin", gpus=2, flags=["-tp", "2", "--api-key", "5ecret-key"]
        ),
        env={"HF_TOKEN": "5ecret-key", "A": "b c"},
    )
    made = plan(parse_study(table, "s.toml"))
    host = Host(vllm=("/opt/x/vllm",), router=("vllm-router",), port=9000)
    lines = list(listing.dry_run(made, host, (4, 5, 6, 7)))
    assert "5ecret" not in "\n".join(lines)
    servers = [line for line in lines if " serve " in line and " bench " not in line]
    assert "CUDA_VISIBLE_DEVICES=4,5 " in servers[0]
    assert "CUDA_VISIBLE_DEVICES=6,7 " in servers[1]
    assert all("A='b c' " in line and " vllm serve " in line for line in servers)
    router, client = (line for line in lines if "--worker" in line or " bench " in line)
    assert "--worker-urls http://127.0.0.1:9000 http://127.0.0.1:9001" in router
    assert "--base-url http://127.0.0.1:9002 " in client


def test_notes_come_first() -> None:
    one = parse_study(study(arm(replicas=2, router="direct"), concurrency=3), "s.toml")
    lines = list(listing.dry_run(plan(one), HOST, (0, 1)))
    assert lines[0].startswith("# arm 'one': 3 in flight cannot be shared by 2 clients; 4 are run")


def test_all_studies() -> None:
    text = "\n".join(listing.studies())
    for name in shipped():
        one = read_study(name)
        assert f"{name}: {one.title}" in text
        for what in (*one.arms, *one.workloads):
            assert f" {what} " in text


@pytest.mark.parametrize(
    ("told", "lines"),
    [
        (Summary(), ["nothing to run"]),
        (Summary(whole=["a"]), ["1 complete before"]),
        (Summary(made=["a", "b"], whole=["c"]), ["2 made, 1 complete before"]),
        (
            Summary(made=["a"], failed={"s/x/r": "no answer"}),
            [
                "failed: s/x/r: no answer",
                "1 made, 1 failed",
                "the same command goes on where this one ended",
            ],
        ),
        (
            Summary(left=list("abcd"), stopped="interrupted", halves=["s/x/r.half-1"]),
            [
                "kept, unfinished: s/x/r.half-1 (a collect was killed there)",
                "not run: 4 (a, b, c ...)",
                "stopped: interrupted; 4 not run",
                "the same command goes on where this one ended",
            ],
        ),
    ],
)
def test_summaries(told: Summary, lines: list[str]) -> None:
    assert list(listing.summary(told)) == lines


def test_a_dry_run_of_captures() -> None:
    one = parse_study(study(arm(profile=[3])), "s.toml")
    made = captures(one, Selection(), ())
    start, server, run, steps = listing.dry_run(made, Host(("vllm",), port=9000), (0,))
    assert start == "# start 1 of one"
    assert '--profiler-config \'{"profiler": "torch"' in server
    assert "one/.servers/p1.1-profile" in server
    assert run == "# tried/one/profile-b3"
    assert steps == (
        "# requests of 256 tokens decode, 3 at once; POST http://127.0.0.1:9000/start_profile; 40 "
        "steps; POST http://127.0.0.1:9000/stop_profile"
    )
