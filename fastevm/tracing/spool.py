"""Temporary files for long traces, so that steps do not stay in memory."""

from __future__ import annotations

import os
import weakref
from threading import Lock
from typing import Final, NamedTuple

from fastevm.tracing.values import TracingError

IN_MEMORY: Final = 1 << 20  # bytes of rendered steps that a request may keep in memory


class SpoolQuota:
    """The bytes that the spools of all requests use together, and their limit."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0
        self._lock = Lock()

    def reserve(self, size: int) -> None:
        """Reserves bytes. Raises TracingError if the quota does not have enough."""
        with self._lock:
            if self.used + size > self.limit:
                raise TracingError(
                    f"traces that are made or wait to be read fill the {self.limit} bytes that "
                    f"they may have together"
                )
            self.used += size

    def release(self, sizes: list[int]) -> None:
        """Releases reserved bytes."""
        with self._lock:
            self.used -= sum(sizes)


class Spool:
    """The file of one request.

    Deleting the object releases the disk space and the bytes of ``quota``.

    One thread may write; any thread may read what is already written. The first write creates the
    file.
    """

    def __init__(self, quota: SpoolQuota) -> None:
        self.quota, self.size = quota, 0
        self._descriptor = -1
        self._in_memory = 0
        self._taken: list[int] = []
        weakref.finalize(self, quota.release, self._taken)

    def fits_in_memory(self, size: int) -> bool:
        """Returns whether ``size`` more bytes may stay in memory. If so, counts them."""
        fits = self._in_memory + size <= IN_MEMORY
        self._in_memory += size if fits else 0
        return fits

    def append(self, data: bytes) -> int:
        """Appends bytes. Returns their position. Raises TracingError if budget or disk is full."""
        self.quota.reserve(len(data))
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
        """Returns the bytes at a position. Raises OSError if the file cannot be read."""
        data = os.pread(self._descriptor, size, start)
        if len(data) != size:
            raise OSError(f"{len(data)} of {size} bytes read from the file of a trace")
        return data

    def _open(self) -> None:
        from tempfile import TemporaryFile  # imported here, because most traces need no file

        with TemporaryFile(buffering=0) as file:
            self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)


class SpooledText(NamedTuple):
    """JSON text in a spool, starting at a position."""

    spool: Spool
    start: int
    size: int

    def read(self, start: int, size: int) -> bytes:
        """Returns a part of the text. ``start`` is relative to the beginning of the text."""
        return self.spool.read(self.start + start, size)
