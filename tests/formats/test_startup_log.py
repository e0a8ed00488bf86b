"""analysis.formats.startup_log: real logs, old wording, several engines, dead servers, secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.formats import startup_log
from analysis.formats._server_args import MASK, parse_args
from analysis.model import Figure, Record, Skipped, Source, Startup

LOGS = Path(__file__).parents[1] / "data" / "logs"


def startup(found: list[Record]) -> Startup:
    (one,) = found
    assert isinstance(one, Startup), one
    return one


def read(tmp_path: Path, *lines: str) -> list[Record]:
    path = tmp_path / "server.log"
    path.write_text("\n".join(lines) + "\n")
    return startup_log.read(path, "a/server.log")


def value(figure: Figure) -> tuple[float, float, float, str]:
    return figure.value, figure.lo, figure.hi, figure.basis


class TestRealLogs:
    def test_one_engine(self) -> None:
        found = startup(startup_log.read(LOGS / "one-gpu-0.26.log", "x.log"))
        assert (found.arm, found.source) == ("", Source("x.log", ""))
        figures = found.figures
        gib = 2**30
        assert value(figures["model_bytes"]) == (9.62 * gib, 9.615 * gib, 9.625 * gib, "printed")
        assert value(figures["kv_bytes"])[0] == 117.17 * gib
        assert value(figures["kv_tokens"]) == (767_872, 767_872, 767_872, "exact")
        assert value(figures["max_model_len"])[0] == 40_960
        assert value(figures["reported_max_concurrency"]) == (18.75, 18.745, 18.755, "printed")
        assert figures["kv_tokens"].source == Source("x.log", "line 18")
        line = (LOGS / "one-gpu-0.26.log").read_text().splitlines()[17]
        assert "GPU KV cache size: 767,872 tokens" in line
        assert found.config["version"] == "0.26.0"
        assert found.config["attention_backend"] == "FLASH_ATTN"
        assert found.config["flash_attention_version"] == 3
        assert found.config["quantization_kernel"] == "MacheteLinearKernel"
        assert found.config["max_num_batched_tokens"] == 8192
        assert found.config["load_format"] == "dummy"
        assert "kv_tokens_printed_times" not in found.config

    def test_two_engines_are_not_summed(self) -> None:
        found = startup(startup_log.read(LOGS / "two-engines-0.28.log", "x.log"))
        assert found.figures["kv_tokens"].value == 131_072
        assert found.figures["reported_max_concurrency"].value == 64
        assert found.config["kv_tokens_printed_times"] == 2
        assert found.config["data_parallel_size"] == 2
        assert found.config["attention_backend"] == "CPU_ATTN"
        assert found.config["max_num_seqs"] == 8

    def test_a_server_that_died_at_once(self) -> None:
        (found,) = startup_log.read(LOGS / "died-0.28.log", "x.log")
        assert isinstance(found, Skipped)
        assert found.reason.startswith(
            "the server died before it was ready: AssertionError: Not enough allowed NUMA nodes"
        )


class TestWording:
    @pytest.mark.parametrize(
        ("line", "name", "gib"),
        [
            ("INFO Loading model weights took 27.5185 GB", "model_bytes", 27.5185),
            ("INFO Model loading took 9.62 GiB memory and 2.1 seconds", "model_bytes", 9.62),
            ("INFO model weights take 0.70GiB; non_torch_memory takes", "model_bytes", 0.70),
            ("INFO Model weights take 27.5 GiB", "model_bytes", 27.5),
            ("the rest of the memory reserved for KV Cache is 7.57GiB.", "kv_bytes", 7.57),
            ("Initial free memory 9 GiB, reserved 0.5 GiB memory for KV Cache", "kv_bytes", 0.5),
            ("Explicitly set (0.06/23.54) GiB for KV cache on node 0.", "kv_bytes", 0.06),
        ],
    )
    def test_gib(self, tmp_path: Path, line: str, name: str, gib: float) -> None:
        figure = startup(read(tmp_path, line)).figures[name]
        assert figure.value == pytest.approx(gib * 2**30, rel=1e-12)
        assert figure.lo < figure.value < figure.hi

    def test_the_first_engine_stands_and_one_fact_in_two_wordings_counts_once(
        self, tmp_path: Path
    ) -> None:
        found = startup(
            read(tmp_path, "Model loading took 0.5151 GiB and 3 s", "model weights take 0.52GiB;")
        )
        assert found.figures["model_bytes"].value == 0.5151 * 2**30
        assert "model_bytes_printed_times" not in found.config

    @pytest.mark.parametrize(
        ("lines", "tokens", "basis"),
        [
            (["# GPU blocks: 4739, # CPU blocks: 2048"], 75_824, "assumed"),
            (["# cuda blocks: 10, # CPU blocks: 0", "# cuda blocks: 99"], 160, "assumed"),
            (["non-default args: {'block_size': 32}", "# GPU blocks: 10"], 320, "exact"),
            (["Initializing an LLM engine (v0.6.3) with config: block_size=8, x",
              "# GPU blocks: 10"], 80, "exact"),
            (["# GPU blocks: 10", "GPU KV cache size: 161 tokens"], 161, "exact"),
        ],
    )  # fmt: skip
    def test_blocks(self, tmp_path: Path, lines: list[str], tokens: int, basis: str) -> None:
        found = startup(read(tmp_path, *lines))
        assert value(found.figures["kv_tokens"]) == (tokens, tokens, tokens, basis)

    def test_concurrency_of_old_logs(self, tmp_path: Path) -> None:
        found = startup(read(tmp_path, "Maximum concurrency for 40960 tokens per request: 1.85x"))
        assert value(found.figures["reported_max_concurrency"])[:3] == (1.85, 1.845, 1.855)
        assert found.figures["max_model_len"].value == 40_960

    @pytest.mark.parametrize(
        ("line", "key", "expected"),
        [
            ("vLLM API server version 0.6.3.post1", "version", "0.6.3.post1"),
            ("Initializing an LLM engine (v0.6.3) with config", "version", "0.6.3"),
            ("Initializing a V1 LLM engine (v0.11.0) with config", "version", "0.11.0"),
            ("Using Flash Attention backend on V1 engine.", "attention_backend", "Flash Attention"),
            ("Using XFormers backend.", "attention_backend", "XFormers"),
            ("Using awq_marlin kernel.", "quantization_kernel", "awq_marlin"),
            ("LLM engine (v1.0) Initializing a V1 LLM engine (v1.0): quantization=awq, "
             "enforce_eager=True, dtype=torch.bfloat16, seed=0", "quantization", "awq"),
        ],
    )  # fmt: skip
    def test_settings(self, tmp_path: Path, line: str, key: str, expected: str) -> None:
        found = startup(read(tmp_path, line, "GPU KV cache size: 1 tokens"))
        assert found.config[key] == expected

    def test_engine_settings_have_their_types(self, tmp_path: Path) -> None:
        line = (
            "Initializing a V1 LLM engine (v1.0) with config: dtype=torch.float16, "
            "quantization=None, enforce_eager=True, tensor_parallel_size=2, seed=0"
        )
        config = startup(read(tmp_path, line, "GPU KV cache size: 1 tokens")).config
        assert config == {
            "dtype": "float16", "quantization": None, "enforce_eager": True,
            "tensor_parallel_size": 2, "version": "1.0",
        }  # fmt: skip


class TestNoFacts:
    def test_a_log_that_begins_late(self, tmp_path: Path) -> None:
        (found,) = read(tmp_path, "vLLM API server version 0.9.0", "INFO GET /health 200")
        assert isinstance(found, Skipped)
        assert "log from the start" in found.reason

    def test_a_server_that_died_later_keeps_its_facts(self, tmp_path: Path) -> None:
        found = read(
            tmp_path, "Model loading took 1.0 GiB", "ERROR 01-01 [a.py:1] EngineDeadError: x"
        )
        assert startup(found).figures["model_bytes"].value == 2**30

    def test_the_last_error_is_on_one_line_and_bounded(self, tmp_path: Path) -> None:
        (found,) = read(
            tmp_path, "vLLM API server version 0.9.0", "Using max model len 512",
            "ValueError: first", "torch.OutOfMemoryError: " + "CUDA \t\x00 " * 200, "    ERROR ^^^",
        )  # fmt: skip
        assert isinstance(found, Skipped)
        assert "torch.OutOfMemoryError: CUDA" in found.reason or "ERROR" in found.reason
        assert len(found.reason) < 260

    def test_sniff(self) -> None:
        assert startup_log.sniff(Path("x"), b"\n INFO vLLM API server version 0.6.1")
        assert startup_log.sniff(Path("x.log"), b"a\nb # GPU blocks: 7")
        assert not startup_log.sniff(Path("x.log"), b"Serving Benchmark Result")
        assert not startup_log.sniff(Path("x.json"), b'{"log": "GPU KV cache size: 5"}')


class TestArgs:
    def test_plain(self) -> None:
        assert parse_args("{'a': 1, 'b': 'x', 'c': None, 'd': ['m'], 'e': {'k': [1, 2]}}") == {
            "a": 1, "b": "x", "c": None, "d": "m", "e": '{"k": [1, 2]}',
        }  # fmt: skip

    @pytest.mark.parametrize(
        "text",
        [
            "{'api_key': 'abc123'}", "{'api_key': ['abc123']}", "{'hf_token': 'abc123'}",
            "{'x': {'password': 'abc123'}}", "{'x': ['Bearer abc12345678']}",
            "{'env': 'k=sk-abc12345678'}", "{'x': {'y': ('hf_abc12345678',)}}",
            "{'api_key': 'abc123', 'config': Thing(level=3)}",
        ],
    )  # fmt: skip
    def test_secrets_are_masked(self, text: str) -> None:
        told = str(parse_args(text))
        assert "abc123" not in told
        assert MASK in told

    def test_what_only_sounds_like_a_secret_is_kept(self) -> None:
        text = "{'tokenizer': 't', 'max_num_batched_tokens': 2048, 'api_key': None}"
        assert parse_args(text) == {
            "tokenizer": "t", "max_num_batched_tokens": 2048, "api_key": None,
        }  # fmt: skip

    def test_an_object_in_the_text_costs_only_itself(self) -> None:
        text = "{'model': 'm', 'level': <Level.X: 3>, 'n': 4, 'f': 0.5, 'on': True}"
        assert parse_args(text) == {"model": "m", "n": 4, "f": 0.5, "on": True}

    @pytest.mark.parametrize("text", ["__import__('os').system('x')", "[1]", "(" * 5_000, "{'a'}"])
    def test_nothing_is_ever_run(self, text: str) -> None:
        assert parse_args(text) == {}

    def test_long_values_and_long_texts_are_cut(self) -> None:
        assert len(str(parse_args("{'a': '" + "x" * 900 + "'}")["a"])) == 500
        assert parse_args("{'a': 1, 'b': '" + "x" * 30_000 + "'}") == {"a": 1}
