from __future__ import annotations

from pathlib import Path

import pytest

from collectors import model_check
from collectors.host import Host
from tests.collectors.plans import arm, planned

VLLM = ("vllm",)


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def test_a_model_of_the_hub_is_a_note_unless_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    found = model_check.look(planned(arm(model="org/m")), Host(VLLM), serve=True)
    assert found.problems == []
    assert "the server fetches it" in found.notes[0]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = model_check.look(planned(arm(model="org/m")), Host(VLLM), serve=True)
    assert "HF_HUB_OFFLINE is set" in str(found.problems[0])
    assert model_check.look(planned(), Host(VLLM), serve=False).problems == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    host = Host(VLLM, models={"m": str(tmp_path / "x")})
    (problem,) = model_check.look(planned(), host, serve=True).problems
    assert str(problem) == f"model m: {tmp_path / 'x'} is no folder; name it: --model NAME=FOLDER"
    (problem,) = model_check.look(planned(arm(model="/no/such")), Host(VLLM), serve=True).problems
    assert "/no/such is no folder" in str(problem)


def test_a_folder_without_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 3}')
    host = Host(VLLM, models={"m": str(tmp_path)})
    found = model_check.look(planned(), host, serve=True)
    assert "no weights in" in str(found.problems[0])
    assert found.shapes["m"].layers == 3
    random = Host(VLLM, models={"m": str(tmp_path)}, random_weights=True)
    assert model_check.look(planned(), random, serve=True).problems == []
    (tmp_path / "config.json").unlink()
    assert "config.json" in str(model_check.look(planned(), host, serve=True).problems[0])


def test_a_model_that_the_collector_makes_needs_no_folder() -> None:
    made = planned(arm(model="made"), made_model={"made": {}}, random_weights=True)
    found = model_check.look(made, Host(VLLM), serve=True)
    assert (found.problems, found.notes) == ([], [])
