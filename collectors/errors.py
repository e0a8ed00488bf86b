"""What can go wrong, as data: what was asked, what was found, what is needed, what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that keeps a run from being measured, told in one line."""

    what: str
    """What was looked at: a file, an arm, a GPU, a flag."""
    found: str
    needed: str = ""
    todo: str = ""

    def __str__(self) -> str:
        line = f"{self.what}: {self.found}"
        if self.needed:
            line += f"; needed: {self.needed}"
        if self.todo:
            line += f"; {self.todo}"
        return line


class CollectError(Exception):
    """Something that the user can put right; the command ends with one line for each problem."""

    def __init__(self, problem: Problem, *more: Problem) -> None:
        """Keep the problems; the message is their lines."""
        self.problems = (problem, *more)
        super().__init__("\n".join(map(str, self.problems)))


class BadInput(CollectError):
    """A study, an option or a file of the user's is wrong: nothing was started."""


class ServerFailed(CollectError):
    """A server did not start or died."""
