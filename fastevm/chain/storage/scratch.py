"""Unnamed temporary files. The system frees their disk space when the process ends."""

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
NO_SALT: Final = 0  # nothing searches for records in this file


class ScratchFile:
    """An unnamed file. Its disk space is freed when the object is deleted.

    One thread may write; any thread may read what was written before. Raises OSError if the file
    cannot be created or written.
    """

    def __init__(self, directory: Path | None = None) -> None:
        """Creates the file on the disk of ``directory`` (None: the system's temporary
        directory).
        """
        # tempfile imports modules that the start of most nodes does not need
        from tempfile import TemporaryFile

        with TemporaryFile(dir=directory, buffering=0) as file:
            self.descriptor = os.dup(file.fileno())
        self.size = 0
        weakref.finalize(self, os.close, self.descriptor)

    def append(self, data: bytes) -> int:
        """Appends bytes. Returns their offset."""
        start = self.size
        self.put(data, start)
        return start

    def put(self, data: bytes, start: int) -> None:
        """Writes bytes at an offset. Raises OSError if not all of them were written."""
        written = os.pwrite(self.descriptor, data, start)
        if written != len(data):
            raise OSError(f"{written} of {len(data)} bytes written to a temporary file")
        self.size = max(self.size, start + len(data))

    def read(self, start: int, size: int) -> bytes:
        """Returns the bytes at an offset. At the end of the file these are fewer than ``size``."""
        return os.pread(self.descriptor, size, start)


class ScratchBlocks:
    """The old blocks of a chain without a data directory."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._file: ScratchFile | None = None  # created on demand: most chains never need it

    def keep(self, block: Block, receipts: Sequence[Receipt]) -> int:
        """Writes a block with its receipts. Returns the offset for `read`."""
        if self._file is None:
            self._file = ScratchFile(self._directory)
        return self._file.append(encode_record(BLOCK, pack_body(block, receipts), NO_SALT))

    def read(self, position: int) -> Record:
        """Returns the record at an offset. Raises OSError or StorageError if there is none."""
        assert self._file is not None
        name = "the temporary file of old blocks"
        return read_record(self._file.descriptor, position, name, NO_SALT)
