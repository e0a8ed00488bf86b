from __future__ import annotations

import json
from pathlib import Path

import pytest

from collectors import inspection
from collectors.datasets import Request
from collectors.errors import BadInput
from tests.collectors.words import write_sharegpt, write_tokenizer


def test_a_whole_report(tmp_path: Path) -> None:
    data = write_sharegpt(tmp_path / "s.json", [(10, 20), (30, 40), (1000, 900), (2, 5)])
    model = write_tokenizer(tmp_path / "model")
    (model / "config.json").write_text('{"max_position_embeddings": 1500}')
    saved = tmp_path / "samples.jsonl"
    lines = inspection.report(data, model=str(model), prompts=10, max_model_len=64, save=saved)
    assert lines == [
        "3 prompts of 4, drawn as the client does (seed 0); 1 too short or too long were passed "
        "over; 10 were asked for, and the client would repeat some to get there",
        "Prompt tokens: min 10, max 1,000, mean 346.67, median 30.00",
        "Output tokens: min 20, max 900, mean 320.00, median 40.00",
        "balanced: 1.08 prompt tokens for each output token",
        "  prefill and decode both matter: measure TTFT and ITL apart before choosing",
        "  smaller weights (AWQ, FP8) act on every decode step; prefix caching only where prompts "
        "share a beginning",
        "max_model_len 64 rejects 2 of 3: prompt and output together are longer",
        "max_model_len 1,024 rejects 1 of 3: prompt and output together are longer",
        "max_model_len 1,500 (the model's own) rejects 1 of 3: prompt and output together are "
        "longer",
        "Longest request: 1,900 tokens; --max-model-len 1900 rejects none",
        f"3 prompts written to {saved}",
    ]
    entries = [json.loads(line) for line in saved.read_text().splitlines()]
    assert sorted(entry["input_tokens"] for entry in entries) == [10, 30, 1000]
    assert [path.name for path in tmp_path.glob(".*")] == []


@pytest.mark.parametrize(
    ("prompt", "output", "kind"),
    [(300, 100, "prefill-heavy"), (299, 100, "balanced"), (100, 300, "decode-heavy")],
)
def test_kinds_of_traffic(prompt: float, output: float, kind: str) -> None:
    assert inspection.kind(prompt, output) == kind


def test_each_kind_points_somewhere() -> None:
    assert "speculative decoding" in " ".join(inspection.summary([Request("", 10, 100)]))
    assert "LMCache" in " ".join(inspection.summary([Request("", 100, 10)]))


def test_custom_prompts_say_what_the_client_asks_for(tmp_path: Path) -> None:
    data = tmp_path / "c.jsonl"
    data.write_text('{"prompt": "word word"}\n')
    model = write_tokenizer(tmp_path / "model")
    lines = inspection.report(data, model=str(model), prompts=1)
    assert "Output tokens: min 256, max 256, mean 256.00, median 256.00" in lines
    assert "--custom-output-len" in lines[-1]


def test_what_cannot_be_told_is_one_line(tmp_path: Path) -> None:
    data = write_sharegpt(tmp_path / "s.json", [(1, 1)])
    model = write_tokenizer(tmp_path / "model")
    cases = [
        ({"dataset": tmp_path / "no.json", "model": str(model)}, "No such file"),
        ({"dataset": data}, "no model is named"),
        ({"dataset": data, "model": "org/none"}, "'org/none' is not on this machine"),
        ({"dataset": data, "model": str(tmp_path)}, "no tokenizer.json"),
        ({"dataset": data, "model": str(model)}, "none of its 1 prompts would be sent"),
    ]
    for words, expected in cases:
        with pytest.raises(BadInput, match=expected):
            inspection.report(**words)  # type: ignore[arg-type]
    write_sharegpt(data, [(10, 10)])
    with pytest.raises(BadInput, match="cannot be written"):
        inspection.report(data, model=str(model), save=tmp_path / "no" / "x.jsonl")


def test_samples_never_take_the_place_of_what_they_are_drawn_from(tmp_path: Path) -> None:
    data = write_sharegpt(tmp_path / "s.json", [(10, 10)])
    model = write_tokenizer(tmp_path / "model")
    (tmp_path / "link.json").symlink_to(data)
    (tmp_path / "hard.json").hardlink_to(data)
    before = data.read_bytes()
    for name in ("s.json", "link.json", "hard.json", "model/../s.json"):
        with pytest.raises(BadInput, match="is the dataset itself; name another file"):
            inspection.report(data, model=str(model), save=tmp_path / name)
    with pytest.raises(BadInput, match="is the model's own tokenizer"):
        inspection.report(data, model=str(model), save=model / "tokenizer.json")
    with pytest.raises(BadInput, match="cannot be written: Is a directory"):
        inspection.report(data, model=str(model), save=model)
    assert data.read_bytes() == before
    # The same name again is what somebody does who asks again.
    for _ in range(2):
        inspection.report(data, model=str(model), save=tmp_path / "samples.jsonl")
    assert (tmp_path / "samples.jsonl").read_text().count("\n") == 1
