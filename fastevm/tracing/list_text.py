"""Writes JSON arrays. Long arrays go to a spool."""

from collections.abc import Iterable
from typing import Final

from fastevm.tracing.spool import Spool, SpooledText
from fastevm.tracing.values import TRACE_BYTES_LIMIT, TracingError

PIECE: Final = 1 << 16  # bytes of text per write to a spool


def list_text(items: Iterable[bytes], spool: Spool | None) -> bytes | SpooledText:
    """Returns a JSON array of texts, in the spool if it is long.

    Raises TracingError if too long.
    """
    writer = ListWriter(spool)
    for item in items:
        writer.add(item)
    return writer.text()


class ListWriter:
    """Writes a JSON array item by item. Nothing else may write to its spool before `text`."""

    def __init__(self, spool: Spool | None) -> None:
        self.spool, self.start, self.size = spool, -1, 0
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self._separator = b"["

    def add(self, item: bytes) -> None:
        """Adds the text of an item.

        Raises TracingError if the spool is full or the array too long.
        """
        if self.size + self._waiting_size + len(item) > TRACE_BYTES_LIMIT:
            raise TracingError(f"tracing failed: trace exceeds {TRACE_BYTES_LIMIT} bytes")
        self._waiting.append(self._separator + item)
        self._waiting_size += len(item) + 1
        self._separator = b","
        if self.spool is not None and self._waiting_size >= PIECE:
            self._spill(self.spool)

    def text(self) -> bytes | SpooledText:
        """Returns the whole array. Raises TracingError if the spool is full."""
        self._waiting.append(b"[]" if self._separator == b"[" else b"]")
        self._waiting_size += len(self._waiting[-1])
        if self.spool is None or (self.start < 0 and self.spool.fits_in_memory(self._waiting_size)):
            return b"".join(self._waiting)
        self._spill(self.spool)
        return SpooledText(self.spool, self.start, self.size)

    def _spill(self, spool: Spool) -> None:
        text = b"".join(self._waiting)
        start = spool.append(text)
        self.start = start if self.start < 0 else self.start
        self.size += len(text)
        self._waiting, self._waiting_size = [], 0
