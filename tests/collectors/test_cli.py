"""The command `collect` as a user types it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from collectors import cli, preflight
from collectors.cli import main
from collectors.client import Worker
from collectors.errors import Problem
from collectors.estimate import Estimate
from collectors.hardware import NoGpu
from collectors.preflight import Preflight
from tests.collectors.campaigns import ROOT, STAND_IN, port, study, toml
from tests.collectors.test_bench_worker import vllm
from tests.collectors.words import write_sharegpt, write_tokenizer

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def run(*words: object, capsys: Capture) -> tuple[int, str, str]:
    try:
        code = main([str(word) for word in words])
    except SystemExit as error:
        code = int(error.code or 0)
    found = capsys.readouterr()
    return code, found.out, found.err


def test_list(capsys: Capture) -> None:
    code, out, err = run("--list", capsys=capsys)
    assert (code, err) == (0, "")
    assert "quantization: " in out
    code, out, _ = run("--list", "--study", "headroom", capsys=capsys)
    assert out.startswith("headroom: ")
    assert "quantization" not in out


def test_an_arm_needs_no_more_words(capsys: Capture) -> None:
    code, out, err = run("--arm", "awq", "--dry-run", capsys=capsys)
    assert (code, err) == (0, "")
    lines = [line for line in out.splitlines() if not line.startswith("#")]
    assert len(lines) == 3 * (1 + 2)
    assert all(" vllm " in line for line in lines)
    assert not Path("results").exists()


def test_options_reach_the_commands(tmp_path: Path, capsys: Capture) -> None:
    words = shlex.split(
        "--study quantization --arm fp16 --workload sharegpt --concurrency 3 --repeats 1 "
        "--prompts 7 --results /r --gpus 5 --port 9000 --vllm '/x/vllm' --random-weights "
        "--model Qwen/Qwen3-14B=/m --dataset sharegpt=/d.json --dry-run"
    )
    code, out, _ = run(*words, capsys=capsys)
    assert code == 0
    for told in (
        "CUDA_VISIBLE_DEVICES=5 ",
        " vllm serve /m --served-model-name Qwen/Qwen3-14B --host 127.0.0.1 --port 9000",
        "--load-format dummy",
        "--tokenizer /m ",
        "--dataset-path /d.json --num-prompts 7 --max-concurrency 3 ",
        "--result-dir /r/quantization/fp16/sharegpt-c3-r1 ",
    ):
        assert told in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--study quantisation", "study 'quantisation': no such study ships and no such file"),
        ("--study quantisation", "did you mean 'quantization'?"),
        ("--arm awk", "arm 'awk': is not in the study 'quantization'; did you mean 'awq'?"),
        ("--workload share-gpt", "did you mean 'sharegpt'?"),
        ("--amr awq", "unrecognized arguments: --amr awq; did you mean '--arm'?"),
        ("--dryrun=1", "did you mean '--dry-run'?"),
        ("inspct x", "did you mean 'inspect'?"),
        ("--repeats 0", "'0' is no number of 1 or more"),
        ("--repeats 100000", "'100000' is more than 1,000"),
        ("--study ''", "argument --study: is empty"),
        ("--study .", "study '.': is a folder; needed: a .toml file"),
        ("--port 99999", "'99999' is more than 65,535"),
        ("--vllm '\"a'", "is no command line: No closing quotation"),
        (
            "--gpus 0 --study parallelism --arm replica2_rr",
            "names 1 for arm 'replica2_rr'; needed: 2",
        ),
        ("--model Qwen/Qwen3-14=/m", "the study 'quantization' names no such model; did you mean"),
        ("--dataset share=/d", "names no such dataset; did you mean 'sharegpt'?"),
        ("--dataset prefix_repetition=/d", "names no such dataset"),
        ("--model Qwen/Qwen3-14B=/a --model Qwen/Qwen3-14B=/b", "is given twice; give one"),
        ("--gpus 0,a", "'0,a' is no list such as 0,1"),
        ("--model x", "'x' is no NAME=PATH"),
        ("--check --list", "not allowed with argument"),
        ("--base-url http://127.0.0.1:9", "no server answers at /v1/models; check the address"),
        ("--base-url http://me:5ecret@127.0.0.1:9", "http://***@127.0.0.1:9: no server answers"),
        ("--base-url nonsense", "nonsense: no server answers"),
        ("--base-url http://x --arm a --arm b", "--base-url: 2 arms; needed: one --arm"),
        ("--study headroom --arm awq-scarce --workload sharegpt --concurrency 1", "see --list"),
    ],
)
def test_a_mistake_is_one_line_and_starts_nothing(words: str, told: str, capsys: Capture) -> None:
    code, out, err = run(*shlex.split(words), capsys=capsys)
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1
    assert err.startswith("collect: ")
    assert not Path("results").exists()


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: Capture) -> None:
    code, out, _ = run("--study", "cpu-smoke", "--dry-run", capsys=capsys)
    assert code == 0
    assert f" serve {tmp_path}/cache/serving-assay/models/smoke-qwen3-" in out.replace(
        "./", f"{tmp_path}/"
    )
    assert list(tmp_path.rglob("*")) == []


def test_what_switches_the_evidence_off_is_told(tmp_path: Path, capsys: Capture) -> None:
    file = toml(
        study({"name": "a", "model": "m", "flags": ["--disable-log-stats"]}), tmp_path / "m"
    )
    file = file.rename(tmp_path / "m.toml")
    code, out, _ = run("--study", file, "--dry-run", capsys=capsys)
    assert code == 0
    assert out.startswith("# arm 'a': --disable-log-stats is undone by what records its steps")


def test_every_problem_of_a_study_is_a_line(tmp_path: Path, capsys: Capture) -> None:
    file = toml(study(repeats=0, seed=2**64), tmp_path / "my.toml")
    code, _, err = run("--study", file, capsys=capsys)
    assert code == 2
    assert err.splitlines() == [
        "collect: my.toml: repeats = 0; needed: 1 or more",
        "collect: my.toml: seed of 65 bits; needed: 63 bits at most",
    ]


def test_a_mistake_in_a_file_of_the_user_s(tmp_path: Path, capsys: Capture) -> None:
    file = toml(study(repeat=2), tmp_path / "my.toml")
    code, _, err = run("--study", file, capsys=capsys)
    assert code == 2
    assert err == "collect: my.toml: unknown key 'repeat'; did you mean 'repeats'?\n"


# ---- a server of somebody else


@pytest.fixture
def url() -> Iterator[str]:
    class Models(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = json.dumps({"data": [{"id": "their/model"}]}).encode()
            self.send_response(200 if self.path == "/v1/models" else 404)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Models) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_its_model_is_asked_for(url: str, capsys: Capture) -> None:
    words = ("--workload", "sharegpt", "--dry-run")
    code, out, _ = run("--base-url", f"{url}/", *words, capsys=capsys)
    assert code == 0
    assert "--model their/model" in out
    assert "quantization/server/sharegpt-c10-r1" in out
    _, out, _ = run("--base-url", url, "--arm", "mine", *words, capsys=capsys)
    assert "quantization/mine/" in out
    # An arm that the study has keeps its model.
    _, out, _ = run("--base-url", url, "--arm", "fp16", *words, capsys=capsys)
    assert "--model Qwen/Qwen3-14B " in out


def test_its_name_is_no_path(url: str, capsys: Capture) -> None:
    code, _, err = run("--base-url", url, "--arm", "../up", "--dry-run", capsys=capsys)
    assert code == 2
    assert "'../up': is no name of a folder" in err


# ---- a whole call, without what asks vLLM for its help


def found(*problems: Problem) -> Callable[..., Preflight]:
    told = Preflight(
        problems,
        ("worth knowing",),
        Estimate((), 0, 0),
        {"vllm": "stand-in"},
        NoGpu("not asked"),
    )
    return lambda *_, **__: told


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "check", found())
    monkeypatch.setattr(cli, "_heed_signals", lambda: None)


def call(folder: Path, *more: object, **change: Any) -> list[object]:
    file = toml(study(**change), folder / "my.toml")
    words: list[object] = ["--study", file, "--vllm", shlex.join(STAND_IN), "--port", port()]
    return [*words, "--results", folder / "r", *more]


def test_runs_are_made_and_told(tmp_path: Path, unchecked: None, capsys: Capture) -> None:
    code, out, err = run(*call(tmp_path, "--upload", tmp_path / "up"), capsys=capsys)
    assert code == 0
    assert out.splitlines()[0] == "1 made"
    assert out.splitlines()[1].startswith(f"results in {tmp_path}/r/tried, 0:00:")
    assert "note: worth knowing" in err
    assert "run 1 of 1: arm one (1 of 1), work-c2-r1" in err
    record = json.loads((tmp_path / "r/tried/one/work-c2-r1/run.json").read_text())
    assert record["collect"].startswith("collect --study ")
    assert record["versions"] == {"vllm": "stand-in"}
    assert "processor" in record["machine"]
    assert (tmp_path / "up/tried/one/work-c2-r1/run.json").is_file()
    assert run(*call(tmp_path), capsys=capsys)[1].startswith("1 complete before\n")


def test_a_run_that_fails_is_told_by_the_exit_code(
    tmp_path: Path, unchecked: None, capsys: Capture
) -> None:
    env = {"STAND_IN_LOADING": "die"}
    code, out, _ = run(*call(tmp_path, env=env), capsys=capsys)
    assert code == 1
    assert "failed: tried/one/work-c2-r1: arm 'one', server: ended with status 1" in out
    assert "the same command goes on" in out


def test_no_time(tmp_path: Path, unchecked: None, capsys: Capture) -> None:
    code, out, _ = run(*call(tmp_path, "--deadline", "0"), capsys=capsys)
    assert code == 1
    assert "stopped: no time was left for another run (--deadline); 1 not run" in out


def test_problems_start_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    two = (Problem("GPU", "none here"), Problem("disk", "full"))
    monkeypatch.setattr(preflight, "check", found(*two))
    code, out, err = run(*call(tmp_path), capsys=capsys)
    assert (code, out) == (2, "")
    assert "collect: GPU: none here\ncollect: disk: full\n" in err
    assert "2 found; nothing was started" in err
    assert not (tmp_path / "r").exists()


def test_check_runs_nothing(tmp_path: Path, unchecked: None, capsys: Capture) -> None:
    assert run(*call(tmp_path, "--check"), capsys=capsys)[0] == 0
    assert not (tmp_path / "r").exists()


def test_a_study_that_was_changed(tmp_path: Path, unchecked: None, capsys: Capture) -> None:
    run(*call(tmp_path), capsys=capsys)
    code, _, err = run(*call(tmp_path, prompts=9), capsys=capsys)
    assert code == 2
    assert "was made in another way (prompts differ)" in err


def test_clients_are_forked_where_the_interpreter_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = SimpleNamespace(vllm=(sys.executable, "-m", "vllm"), results=tmp_path)
    servers = SimpleNamespace(name="s", servers=SimpleNamespace(env=vllm(tmp_path)))
    one = SimpleNamespace(study=servers, profiled=False)
    for choice, kind in (("forked", Worker), ("process", type(None))):
        options = SimpleNamespace(client=choice)
        start, worker = cli._client(options, host, one, "m")  # type: ignore[arg-type]
        assert isinstance(worker, kind)
        assert callable(start)
        if worker is not None:
            worker.stop()


# ---- a dataset


def test_lengths_of_a_dataset_are_shown(tmp_path: Path, capsys: Capture) -> None:
    data = write_sharegpt(tmp_path / "s.json", [(10, 20), (30, 40)])
    model = write_tokenizer(tmp_path / "model")
    saved = tmp_path / "samples"
    words = ("inspect", data, "--model", model, "--num-prompts", 2, "--save-samples", saved)
    code, out, err = run(*words, capsys=capsys)
    assert (code, err) == (0, "")
    assert "Prompt tokens: min 10, max 30" in out
    assert saved.is_file()


def test_a_dataset_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    model = write_tokenizer(tmp_path / "model")
    code, out, err = run("inspect", tmp_path / "none.json", "--model", model, capsys=capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("collect: ")
    assert "none.json" in err


# ---- the program


def test_a_reader_that_goes_away_is_no_error() -> None:
    for words in ("--list", "--dry-run"):
        line = f"{sys.executable} -m collectors.cli {words} | head -1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["/bin/bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        assert done.stdout.splitlines()[-1] in ("0", "1")
    closed = f"{sys.executable} -m collectors.cli --list | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["/bin/bash", "-c", closed], cwd=ROOT, capture_output=True, text=True)
    assert (done.stderr, done.returncode in (0, 1)) == ("", True)


def test_nothing_slow_is_imported_for_a_typo() -> None:
    code = (
        "import sys; from collectors.cli import main\n"
        "assert main(['--arm', 'awk']) == 2\n"
        "slow = {'vllm', 'torch', 'transformers', 'pandas', 'numpy', 'fsspec'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, env=dict(os.environ))


def test_signals_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    before = {
        each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    killed: list[bool] = []
    monkeypatch.setattr(cli, "kill_all", lambda: killed.append(True))
    try:
        cli._heed_signals()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert killed == []
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGINT)
        assert killed == [True, True]
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
