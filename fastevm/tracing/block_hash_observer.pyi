"""An observer that finds reads of block hashes that nobody provided."""

from collections.abc import Container

from fastevm.tracing.observer import Observer

class BlockHashObserver(Observer):
    """Finds the last block of which BLOCKHASH read a hash that is not known.

    ``number``: of the executed block. ``known``: numbers of the blocks whose hashes are known.
    """

    def __init__(self, number: int, known: Container[int]) -> None: ...
    @property
    def missing(self) -> int | None:
        """The number of the last block whose hash was read without being known, or None."""
