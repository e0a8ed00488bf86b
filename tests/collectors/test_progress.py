"""Progress on a terminal and elsewhere, by a clock of the test's own."""

from __future__ import annotations

import io

import pytest

from collectors.progress import Progress, clock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def walked(stream: io.StringIO, estimate: float | None = None) -> str:
    now = [0.0]
    progress = Progress(3, stream, estimate, lambda: now[0])
    progress.tell("one: server starts")
    now[0] = 20
    progress.begins("arm one (1 of 2), work-c2-r1")
    progress.tell("note")
    now[0] = 40
    progress.ends("work-c2-r1: complete")
    progress.begins("arm two (2 of 2), work-c2-r1")
    progress.close()
    return stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0:00:00"), (59.6, "0:01:00"), (3723, "1:02:03"), (-5, "0:00:00"), (360000, "100:00:00")],
)
def test_times(seconds: float, told: str) -> None:
    assert clock(seconds) == told


def test_lines_where_there_is_no_terminal() -> None:
    assert walked(io.StringIO()).splitlines() == [
        "one: server starts",
        "run 1 of 3: arm one (1 of 2), work-c2-r1; 0:00:20 elapsed",
        "note",
        "work-c2-r1: complete",
        "run 2 of 3: arm two (2 of 2), work-c2-r1; 0:00:40 elapsed, about 0:00:40 left",
    ]


def test_the_estimate_until_a_run_is_over() -> None:
    assert "0:00:20 elapsed, about 0:01:20 left" in walked(io.StringIO(), 100)
    assert "about 0:00:00 left" in walked(io.StringIO(), 1)


def test_a_bar_on_a_terminal() -> None:
    told = walked(Terminal(), 100)
    assert "░" * 24 + " run 1 of 3: arm one" in told
    assert "█" * 8 + "░" * 16 + " run 2 of 3: arm two" in told
    # Lines that stay are written over no bar, and the end is clean.
    assert "\r\x1b[Knote\n" in told
    assert told.endswith("\r\x1b[K")


def test_a_terminal_that_was_closed() -> None:
    assert walked(Gone()) == ""


def test_no_runs() -> None:
    progress = Progress(0, Terminal(), None, lambda: 0.0)
    progress.begins("x")
    assert progress.left is None
