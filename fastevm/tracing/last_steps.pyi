"""Keeps the last steps of the newest frame at each depth, in bounded memory."""

from typing import NamedTuple

from fastevm.tracing.observer import Observer

class LastStep(NamedTuple):
    """A step before its op.

    ``top`` and ``second`` are stack words, or 2**64 - 1 for larger ones.
    """

    pc: int
    op: int
    top: int
    second: int

class LastSteps(Observer):
    """Keeps the last 128 steps of the newest frame at each depth.

    After a failure, these are the frames on the path to it, so earlier steps are not needed.
    """

    def __init__(self) -> None: ...
    def steps(self, depth: int) -> list[LastStep]:
        """Returns the last steps of the newest frame at a depth (1: the top frame), in order."""

    def called_at(self, depth: int) -> int | None:
        """Returns the pc of the last call from the frame at a depth into a frame that has steps."""
