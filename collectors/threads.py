"""Some things at once, in threads: all are waited for, and an interruption cancels them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")


def at_once(
    work: Callable[[T], None], items: Iterable[T], most: int, cancel: Callable[[], None]
) -> None:
    """Do the work for all items, at most so many at a time.

    A failure leaves the others alone; an interruption cancels them.

    Raises:
        Whatever the first failure raised, when no work goes on any more.
    """
    waiting: list[Future[None]] = []
    with ThreadPoolExecutor(max(most, 1)) as pool:
        try:
            # An interruption while a thread starts leaves it without anybody who waits for it.
            waiting.extend(pool.submit(work, item) for item in items)
            wait(waiting)
        except BaseException:
            for one in waiting:
                one.cancel()
            cancel()
            raise
    for one in waiting:
        one.result()
