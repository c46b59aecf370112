"""Files without a name: room on the disk that a process uses and nobody finds after it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fastevm.chain.storage.block_record import pack_body
from fastevm.chain.storage.record_file import Record, encode_record, read_record
from fastevm.core.execution.types import Block, Receipt

BLOCK: Final = 1


class ScratchFile:
    """Bytes in an unnamed file; the disk has its room back when nobody holds the object.

    One thread may write, any thread read what was written before. OSError when it cannot be made
    or written.
    """

    def __init__(self, directory: Path | None = None) -> None:
        """``directory`` says on which disk; None: where the system keeps temporary files."""
        from tempfile import TemporaryFile  # with all that it loads, for few nodes that start

        with TemporaryFile(dir=directory, buffering=0) as file:
            self.descriptor = os.dup(file.fileno())
        self.size = 0
        weakref.finalize(self, os.close, self.descriptor)

    def append(self, data: bytes) -> int:
        """Add bytes at the end; where they begin."""
        start = self.size
        self.put(data, start)
        return start

    def put(self, data: bytes, start: int) -> None:
        """Write bytes at a position, as a whole or not at all."""
        written = os.pwrite(self.descriptor, data, start)
        if written != len(data):
            raise OSError(f"{written} of {len(data)} bytes written to a temporary file")
        self.size = max(self.size, start + len(data))

    def read(self, start: int, size: int) -> bytes:
        """The bytes at a position; fewer where the file ends."""
        return os.pread(self.descriptor, size, start)


class ScratchBlocks:
    """Where the old blocks of a chain lie that has no data directory."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._file: ScratchFile | None = None  # most chains never need one

    def keep(self, block: Block, receipts: Sequence[Receipt]) -> int:
        """Write a block with its receipts; the position to read it from."""
        if self._file is None:
            self._file = ScratchFile(self._directory)
        return self._file.append(encode_record(BLOCK, pack_body(block, receipts)))

    def read(self, position: int) -> Record:
        """The record at a position; OSError or StorageError when it is not there."""
        assert self._file is not None
        return read_record(self._file.descriptor, position, "the temporary file of old blocks")
