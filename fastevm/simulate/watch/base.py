"""The identity of the states on which a watch has run."""

from msgspec import Struct


class Base(Struct, frozen=True, kw_only=True):
    """A state on which a watch has run. ``sequence`` counts the calls of `Watch.advance` from 1.

    ``number`` and ``hash`` identify the state's block. The hash of a pending block is provisional.
    ``slice_index``: the argument of `Watch.advance`.
    """

    sequence: int
    number: int
    hash: bytes
    slice_index: int | None = None
