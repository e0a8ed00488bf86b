"""The collector looks more often, and waits for nothing that takes no time here."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from collectors import client, run, starting


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in is ready and gone within a moment; a real server is given longer."""
    monkeypatch.setattr(client, "_POLL", 0.03)
    monkeypatch.setattr(client, "MOMENT", 0.3)
    monkeypatch.setattr(run, "MOMENT", 0.5)
    monkeypatch.setattr(starting, "_POLL", 0.03)


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """A shell starts what it runs in the background with interrupts ignored; here they count."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
