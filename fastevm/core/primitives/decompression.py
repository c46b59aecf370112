"""Decompression with zlib and a limit of the output, because a megabyte may unpack to a
gigabyte.
"""

import zlib
from typing import Final

GZIP: Final = 31  # wbits value of zlib for a gzip header
ZLIB: Final = 15  # wbits value of zlib for a zlib header
PIECE: Final = 1 << 20  # bytes that are unpacked in one step, while the GIL is released


class TooLarge(ValueError):
    """The unpacked bytes exceed the limit."""


def decompressed(data: bytes | memoryview, limit: int, window: int = GZIP) -> bytes:
    """Returns the unpacked bytes of one gzip or zlib stream.

    Raises `TooLarge` above ``limit`` bytes, and ValueError if the data is not exactly one complete
    stream. The function never holds more than ``limit`` bytes and one chunk.
    """
    stream = zlib.decompressobj(window)
    pieces: list[bytes] = []
    size, rest = 0, data
    while not stream.eof:
        try:
            piece = stream.decompress(rest, PIECE)
        except zlib.error as error:
            raise ValueError(f"invalid compressed data: {error}") from None
        size += len(piece)
        if size > limit:
            raise TooLarge(f"more than {limit} bytes when it is decompressed")
        if not piece and not stream.eof:
            raise ValueError("the compressed data is truncated")
        pieces.append(piece)
        rest = stream.unconsumed_tail
    if stream.unused_data:
        raise ValueError("the compressed data does not end where its last byte is")
    return b"".join(pieces)
