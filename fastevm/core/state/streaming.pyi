"""Streams whole states in chunks, without creating a Python value for each account."""

from collections.abc import Callable
from typing import final

from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState

def write_state(layer: Layer, sink: Callable[[bytes], object]) -> None:
    """Calls ``sink`` with the chunks of a state in order, each of about 1 MiB.

    Above a remote state, the chunks contain only local changes. The GIL is released between the
    calls. An exception raised by ``sink`` ends the stream.
    """

@final
class StateReader:
    """Builds a layer from the chunks of `write_state`. Not thread-safe.

    ``below``: the remote state below the layer that was written, or None. A layer above a remote
    state has no state root, so no tries are built.
    """

    def __init__(self, below: RemoteState | None = None) -> None: ...
    def add(self, chunk: bytes) -> None:
        """Reads the next chunk. Raises ValueError for damaged data; the reader is unusable then."""

    def finish(self) -> Layer:
        """Returns the layer. Computes its state root unless the layer is above a remote state.

        The reader is unusable afterwards.
        """
