"""An observer that finds reads of block hashes that the caller did not provide."""

from collections.abc import Container

from fastevm.tracing.observer import Observer

class BlockHashObserver(Observer):
    """Finds the last block whose hash BLOCKHASH read although it is not known.

    ``number``: the number of the executed block. ``known``: the numbers of the blocks whose hashes
    are known.
    """

    def __init__(self, number: int, known: Container[int]) -> None: ...
    @property
    def missing(self) -> int | None:
        """The number of the last block whose unknown hash was read, or None."""
