"""An append-only file of records, each encode_record by its size and a checksum.

A process that dies at any moment leaves whole records and at most one torn one at the end, which
the next reader cuts off. A record is in the file (though perhaps not on the disk, see ``sync``)
when ``append`` returns.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

log = logging.getLogger(__name__)

MAGIC: Final = b"fastevm-records1"
MAX_RECORD_BYTES: Final = 256 * 1024 * 1024
NEW_SUFFIX: Final = ".new"
CUT_SUFFIX: Final = ".cut"  # what was cut off is kept beside the file, for who wants to look
_FRAME: Final = struct.Struct(">IIB")  # size of the payload, checksum, kind
_BUFFER_BYTES: Final = 1024 * 1024


class StorageError(ValueError):
    """A file or directory that does not hold what it should; the text names it."""


class Record(NamedTuple):
    """One record: what it is, its bytes, and where in the file it ends."""

    kind: int
    payload: bytes
    end: int

    @property
    def start(self) -> int:
        """Where in the file it begins."""
        return self.end - len(self.payload) - _FRAME.size


class RecordFile:
    """Records of one file. ``label`` (any bytes) tells whose they are and must not change.

    One thread may append; ``sync`` may run in another. :class:`StorageError` for a file that is
    none of these, or that carries another label.
    """

    def __init__(self, path: Path, label: bytes) -> None:
        self.path, self.label = path, label
        self._head = _header(label)
        self._exchange = Lock()  # nobody may wait for a file that is being replaced
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self.size = os.fstat(self._file).st_size
        self.cut_bytes = 0
        if self.size < len(self._head) and self._begins(self.size):
            self.clear()  # new, or its maker died while it wrote the first bytes
        elif not self._begins(len(self._head)):
            os.close(self._file)
            raise StorageError(f"{path} is no file of this version and chain")

    def append(self, kind: int, payload: bytes) -> int:
        """Add a record; where it begins. OSError (a full disk, say) leaves the file as it was."""
        start = self.size
        self._write(encode_record(kind, payload))
        return start

    def read(self, start: int) -> Record:
        """The record that begins there, in any thread; OSError or StorageError when none does."""
        return read_record(self._file, start, str(self.path))

    def records(self) -> Iterator[Record]:
        """All whole records from the start; what follows the last of them is cut off at the end."""
        at = len(self._head)
        with self.path.open("rb", buffering=_BUFFER_BYTES) as file:
            file.seek(at)
            while True:
                frame = file.read(_FRAME.size)
                if len(frame) < _FRAME.size:
                    break
                size, checksum, kind = _FRAME.unpack(frame)
                if size > min(MAX_RECORD_BYTES, self.size - at):
                    break
                payload = file.read(size)
                if len(payload) < size or _checksum(kind, payload) != checksum:
                    break
                at += _FRAME.size + size
                yield Record(kind, payload, at)
        if at < self.size:
            self._cut(at)

    def clear(self) -> None:
        """Forget all records."""
        os.ftruncate(self._file, 0)
        self.size = 0
        self._write(self._head)

    def rewrite(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Put other records in the place of all: afterwards there are the old ones or the new."""
        fresh = RecordFile(self.path.with_name(self.path.name + NEW_SUFFIX), self.label)
        fresh.clear()  # one that was begun and never finished
        for kind, payload in records:
            fresh.append(kind, payload)
        fresh.sync()
        fresh.path.replace(self.path)
        sync_directory(self.path.parent)
        with self._exchange:
            os.close(self._file)
            self._file, self.size = fresh._file, fresh.size

    def sync(self) -> None:
        """Wait until everything is on the disk: what a loss of power does not take."""
        with self._exchange:
            os.fdatasync(self._file)

    def close(self) -> None:
        """Write nothing any more."""
        with self._exchange:
            os.close(self._file)

    def _begins(self, size: int) -> bool:
        return os.pread(self._file, size, 0) == self._head[:size]

    def _write(self, data: bytes) -> None:
        try:
            written = os.write(self._file, data)
            if written != len(data):
                raise OSError(f"{self.path}: {written} of {len(data)} bytes written")
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self.size)
            raise
        self.size += len(data)

    def _cut(self, at: int) -> None:
        self.cut_bytes = self.size - at
        aside = self.path.with_name(self.path.name + CUT_SUFFIX)
        log.warning(
            "%s: the last %d bytes are no whole record and are cut off (kept in %s)",
            self.path, self.cut_bytes, aside.name,
        )  # fmt: skip
        with self.path.open("rb") as source, aside.open("wb") as target:
            source.seek(at)
            shutil.copyfileobj(source, target)
        os.ftruncate(self._file, at)
        self.size = at


def encode_record(kind: int, payload: bytes) -> bytes:
    """A record as it lies in a file; StorageError when it is too large."""
    if len(payload) > MAX_RECORD_BYTES:
        raise StorageError(f"a record of {len(payload)} bytes, limit {MAX_RECORD_BYTES}")
    return _FRAME.pack(len(payload), _checksum(kind, payload), kind) + payload


def read_record(descriptor: int, start: int, name: str) -> Record:
    """The record that begins at a place of an open file; ``name`` is for errors.

    OSError, or StorageError when no whole record begins there.
    """
    frame = os.pread(descriptor, _FRAME.size, start)
    if len(frame) == _FRAME.size:
        size, checksum, kind = _FRAME.unpack(frame)
        if size <= MAX_RECORD_BYTES:
            payload = os.pread(descriptor, size, start + _FRAME.size)
            if len(payload) == size and _checksum(kind, payload) == checksum:
                return Record(kind, payload, start + _FRAME.size + size)
    raise StorageError(f"{name}: no whole record begins at byte {start}")


def replace_file(path: Path, data: bytes) -> None:
    """Put a whole file in the place of another: afterwards it is the old one or the new one."""
    fresh = path.with_name(path.name + NEW_SUFFIX)
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Wait until names that were made or changed in a directory are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _header(label: bytes) -> bytes:
    return MAGIC + struct.pack(">I", len(label)) + label


def _checksum(kind: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(bytes([kind])))
