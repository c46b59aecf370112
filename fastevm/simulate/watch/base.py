"""Names of the bases of a watch."""

from msgspec import Struct


class Base(Struct, frozen=True, kw_only=True):
    """A base that a watch stood on. ``sequence`` counts the calls of `Watch.advance` from 1.

    ``number`` and ``hash``: of its block; the hash of a pending block is provisional.
    ``slice_index``: as given to `Watch.advance`.
    """

    sequence: int
    number: int
    hash: bytes
    slice_index: int | None = None
