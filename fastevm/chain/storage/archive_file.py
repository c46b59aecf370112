"""The file of the archive's index.

It is saved with each state snapshot, so that a start can load it.

If the file is missing or damaged, the index is rebuilt from the journal of blocks. Saved rows and
hashes are only hints: the caller compares results with the whole hash.
"""

from __future__ import annotations

import logging
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from fastevm.chain.storage.record_file import NEW_SUFFIX, sync_directory
from fastevm.chain.storage.scratch import ScratchFile

log = logging.getLogger(__name__)

FILE_NAME: Final = "blocks.index"
MAGIC: Final = b"fastevm-archive1"
CHUNK_BYTES: Final = 1024 * 1024
_SIZES: Final = struct.Struct(">QQQ")  # first number, bytes of rows, bytes of hashes
_CHECKSUM: Final = struct.Struct(">I")  # CRC-32 of everything before it


class SavedArchive(NamedTuple):
    """Index rows of the blocks from ``first`` on, and the sorted records of their hashes."""

    first: int
    rows: ScratchFile
    hashes: ScratchFile


class ArchiveFile:
    """At most one saved archive index, replaced atomically. ``label``: see `RecordFile`."""

    def __init__(self, directory: Path, label: bytes) -> None:
        self.path, self._label = directory / FILE_NAME, label

    def write(self, first: int, rows: tuple[ScratchFile, int], hashes: ScratchFile) -> None:
        """Replaces the file. ``rows``: a file with rows and the size of the rows in bytes.

        Raises OSError and then keeps the old file.
        """
        fresh = self.path.with_name(FILE_NAME + NEW_SUFFIX)
        try:
            with fresh.open("wb", buffering=0) as file:
                self._write(file.fileno(), first, (rows, (hashes, hashes.size)))
        except OSError:
            fresh.unlink(missing_ok=True)  # the disk may be full
            raise
        fresh.replace(self.path)
        sync_directory(self.path.parent)

    def read(self, directory: Path | None) -> SavedArchive | None:
        """Loads the saved index into unnamed files of ``directory``. None if missing or damaged."""
        try:
            with self.path.open("rb") as file:
                found = self._read(file.fileno(), directory)
        except FileNotFoundError:
            return None
        if found is None:
            log.warning("%s is damaged and is rebuilt", self.path)
        return found

    def remove(self) -> None:
        """Removes the file because positions in the journal have changed."""
        self.path.unlink(missing_ok=True)

    def _write(
        self, descriptor: int, first: int, parts: tuple[tuple[ScratchFile, int], ...]
    ) -> None:
        sizes = [size for _, size in parts]
        head = MAGIC + self._label + _SIZES.pack(first, *sizes)
        checksum = zlib.crc32(head)
        _write_whole(descriptor, head)
        for source, size in parts:
            for chunk in _chunks(source.descriptor, 0, size):
                checksum = zlib.crc32(chunk, checksum)
                _write_whole(descriptor, chunk)
        _write_whole(descriptor, _CHECKSUM.pack(checksum))
        os.fsync(descriptor)

    def _read(self, descriptor: int, directory: Path | None) -> SavedArchive | None:
        start = MAGIC + self._label
        head = os.pread(descriptor, len(start) + _SIZES.size, 0)
        if len(head) < len(start) + _SIZES.size or not head.startswith(start):
            return None
        first, *sizes = _SIZES.unpack_from(head, len(start))
        end = len(head) + sum(sizes)
        if end + _CHECKSUM.size != os.fstat(descriptor).st_size:
            return None
        at, checksum = len(head), zlib.crc32(head)
        parts = ScratchFile(directory), ScratchFile(directory)
        for part, size in zip(parts, sizes, strict=True):
            for chunk in _chunks(descriptor, at, size):
                checksum = zlib.crc32(chunk, checksum)
                part.append(chunk)
            at += size
        if os.pread(descriptor, _CHECKSUM.size, end) != _CHECKSUM.pack(checksum):
            return None
        return SavedArchive(first, *parts)


def _chunks(descriptor: int, start: int, size: int) -> Iterator[bytes]:
    """Yields a range of a file in chunks. Raises OSError if the file is too short."""
    end = start + size
    while start < end:
        chunk = os.pread(descriptor, min(CHUNK_BYTES, end - start), start)
        if not chunk:
            raise OSError("a file ended while it was read")
        yield chunk
        start += len(chunk)


def _write_whole(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    if written != len(data):
        raise OSError(f"{written} of {len(data)} bytes written")
