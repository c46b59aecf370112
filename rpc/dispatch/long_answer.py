"""Answers of which parts lie in files: they are sent piece by piece and never stand in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fastevm.tracing import SpooledText

PIECE: Final = 1 << 20  # bytes of an answer that are handed to a connection at once


class LongAnswer:
    """JSON text in parts. ``len`` is the size of all in bytes, ``id`` that of the request."""

    __slots__ = ("id", "parts", "size")

    def __init__(self, parts: Sequence[bytes | SpooledText], call_id: bytes = b"null") -> None:
        self.parts, self.id = parts, call_id
        self.size = sum(part.size if isinstance(part, SpooledText) else len(part) for part in parts)

    def __len__(self) -> int:
        return self.size

    def answering(self, call_id: bytes, head: bytes, tail: bytes) -> LongAnswer:
        """The answer to a request, of which this is the result between two other texts."""
        return LongAnswer((head, *self.parts, tail), call_id)

    def read(self) -> bytes:
        """All of it. OSError when a file cannot be read."""
        return b"".join(pieces_of(self))


Answer = bytes | LongAnswer


def pieces_of(answer: Answer) -> Iterator[bytes | memoryview]:
    """The text of an answer in pieces of at most ``PIECE`` bytes. OSError."""
    for part in answer.parts if isinstance(answer, LongAnswer) else (answer,):
        if isinstance(part, SpooledText):
            for start in range(0, part.size, PIECE):
                yield part.read(start, min(PIECE, part.size - start))
        else:
            view = memoryview(part)
            for start in range(0, len(part), PIECE):
                yield view[start : start + PIECE]
