"""Keeps long answers in parts. Parts in temporary files are read and sent in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fastevm.tracing import SpooledText

PIECE: Final = 1 << 20  # bytes of an answer that are written to a connection in one step


class LongAnswer:
    """JSON text in parts. ``len`` is the total size in bytes, ``id`` the id of the request.

    ``memory`` is the size in bytes of the parts that are not in files.
    """

    __slots__ = ("id", "memory", "parts", "size")

    def __init__(self, parts: Sequence[bytes | SpooledText], call_id: bytes = b"null") -> None:
        self.parts, self.id = parts, call_id
        self.memory = sum(len(part) for part in parts if isinstance(part, bytes))
        self.size = self.memory + sum(part.size for part in parts if isinstance(part, SpooledText))

    def __len__(self) -> int:
        return self.size

    @property
    def is_spooled(self) -> bool:
        """Return whether a file holds a part of the text."""
        return self.size > self.memory

    def answering(self, call_id: bytes, head: bytes, tail: bytes) -> LongAnswer:
        """Return the answer to a request: ``head``, then this text as the result, then ``tail``."""
        return LongAnswer((head, *self.parts, tail), call_id)

    def read(self) -> bytes:
        """Return the whole text. Raises OSError if a file cannot be read."""
        return b"".join(pieces_of(self))


Answer = bytes | LongAnswer


def answer_memory(answer: Answer) -> int:
    """Return the bytes of memory that an answer uses."""
    return answer.memory if isinstance(answer, LongAnswer) else len(answer)


def answer_of(texts: Iterable[bytes]) -> Answer:
    """Join short texts. Long answers stay in parts, so that no single step takes long."""
    parts: list[bytes] = []
    waiting: list[bytes] = []
    size = 0
    for text in texts:
        waiting.append(text)
        size += len(text)
        if size >= PIECE:
            parts.append(b"".join(waiting))
            waiting, size = [], 0
    rest = b"".join(waiting)
    return LongAnswer((*parts, rest)) if parts else rest


def pieces_of(answer: Answer) -> Iterator[bytes | memoryview]:
    """Yield the text of an answer in pieces of at most ``PIECE`` bytes. Raises OSError."""
    for part in answer.parts if isinstance(answer, LongAnswer) else (answer,):
        if isinstance(part, SpooledText):
            for start in range(0, part.size, PIECE):
                yield part.read(start, min(PIECE, part.size - start))
        else:
            view = memoryview(part)
            for start in range(0, len(part), PIECE):
                yield view[start : start + PIECE]
