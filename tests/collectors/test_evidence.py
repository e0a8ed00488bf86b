"""What a run's record says of the counters of its servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors import evidence, http
from collectors.server import somebody_elses
from collectors.study import Arm


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('# HELP x\nvllm:num_requests_running{engine="0"} 0.0\n', "ok"),
        ("vllm:x 1\n", "ok"),
        ("python_info 1\n", "server: no counter of an engine (--disable-log-stats?)"),
        ("", "server: no counter of an engine (--disable-log-stats?)"),
    ],
)
def test_counters_that_are_switched_off_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    monkeypatch.setattr(http, "get", lambda url, seconds=5: text)
    fleet = somebody_elses(Arm("a", "m"), "http://127.0.0.1:9")
    assert evidence._metrics(tmp_path, fleet) == told
    assert (tmp_path / "metrics-server.after.txt").read_text().endswith(text)
