"""What a reader found: one record of a kind, or one reason why there is none."""

from __future__ import annotations

from typing import TypeVar

from analysis.model import Record, Skipped

T = TypeVar("T", bound=Record)


def only(found: list[Record], kind: type[T]) -> T:
    (one,) = found
    assert isinstance(one, kind), one
    return one


def refused(found: list[Record]) -> str:
    reason = only(found, Skipped).reason
    assert "\n" not in reason
    return reason
