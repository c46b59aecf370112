"""Files without a name for long traces: the steps of a run leave memory as they come."""

from __future__ import annotations

import os
import weakref
from threading import Lock
from typing import Final, NamedTuple

from fastevm.tracing.values import TracingError

IN_MEMORY: Final = 1 << 20  # bytes of rendered steps that a request may keep in memory


class SpoolRoom:
    """Bytes that the spools of all requests may have together."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0
        self._lock = Lock()

    def take(self, size: int) -> None:
        """Take room; TracingError if there is not so much."""
        with self._lock:
            if self.used + size > self.limit:
                raise TracingError(
                    f"traces that are made or wait to be read fill the {self.limit} bytes that "
                    f"they may have together"
                )
            self.used += size

    def give_back(self, sizes: list[int]) -> None:
        """Give back what was taken."""
        with self._lock:
            self.used -= sum(sizes)


class Spool:
    """The file of one request; disk and ``room`` are free again when nobody holds the object.

    One thread may write, any thread read what was written before. The file is made with the first
    write.
    """

    def __init__(self, room: SpoolRoom) -> None:
        self.room, self.size = room, 0
        self._descriptor = -1
        self._in_memory = 0
        self._taken: list[int] = []
        weakref.finalize(self, room.give_back, self._taken)

    def fits_in_memory(self, size: int) -> bool:
        """Whether so many more bytes may stay in memory; they are counted then."""
        fits = self._in_memory + size <= IN_MEMORY
        self._in_memory += size if fits else 0
        return fits

    def append(self, data: bytes) -> int:
        """Add bytes; where they begin. TracingError without room, here or on the disk."""
        self.room.take(len(data))
        self._taken.append(len(data))
        start = self.size
        try:
            if self._descriptor < 0:
                self._open()
            written = os.pwrite(self._descriptor, data, start)
        except OSError as error:
            raise TracingError(f"the trace could not be written to a file: {error}") from None
        if written != len(data):
            raise TracingError("the trace could not be written to a file: the disk is full")
        self.size += written
        return start

    def read(self, start: int, size: int) -> bytes:
        """The bytes at a position; OSError when the file cannot be read."""
        data = os.pread(self._descriptor, size, start)
        if len(data) != size:
            raise OSError(f"{len(data)} of {size} bytes read from the file of a trace")
        return data

    def _open(self) -> None:
        from tempfile import TemporaryFile  # as in `storage.scratch`

        with TemporaryFile(buffering=0) as file:
            self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)


class SpooledText(NamedTuple):
    """JSON text in a spool, from a position on."""

    spool: Spool
    start: int
    size: int

    def read(self, start: int, size: int) -> bytes:
        """A part of the text; ``start`` counts from its beginning."""
        return self.spool.read(self.start + start, size)
