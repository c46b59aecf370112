"""Whole states as a stream of chunks, written and read without a Python value for an account."""

from collections.abc import Callable
from typing import final

from fastevm.core.state.layer import Layer

def write_state(layer: Layer, sink: Callable[[bytes], object]) -> None:
    """Call ``sink`` with the chunks of a state, each of about 1 MiB, in their order.

    The GIL is released between the calls. An exception of ``sink`` ends the stream.
    """

@final
class StateReader:
    """Builds a layer from the chunks of `write_state`; for one thread."""

    def add(self, chunk: bytes) -> None:
        """Read the next chunk. ValueError for damaged bytes; the reader is of no use then."""

    def finish(self) -> Layer:
        """The layer, its state root computed. The reader is of no use afterwards."""
