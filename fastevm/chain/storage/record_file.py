"""An append-only file of records, each with its size and a checksum.

A process that ends at any moment leaves whole records and at most one torn record at the end. The
next reader moves the torn record to another file. For any other damage it raises CorruptFile and
leaves the file unchanged. When ``append`` returns, the record is in the file, but not necessarily
on disk (see ``sync``).
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

log = logging.getLogger(__name__)

MAGIC: Final = b"fastevm-records1"
MAX_RECORD_BYTES: Final = 256 * 1024 * 1024
MAX_KIND: Final = 15
NEW_SUFFIX: Final = ".new"
CUT_SUFFIX: Final = ".cut-"  # a number follows
HEAD: Final = struct.Struct(">IIB")  # size of the payload, checksum, kind

# The head of a record with at most MAX_RECORD_BYTES and a kind from 1 to MAX_KIND.
_HEAD_PATTERN: Final = rb"(?=[\x00-\x10][\s\S]{7}[\x01-\x0f])"


class StorageError(ValueError):
    """A file or directory with invalid content. The message names it."""


class CorruptFile(StorageError):
    """A damaged record that is not a torn record at the end. Nothing was changed.

    ``offset``: the byte where it begins. ``before`` and ``after``: whole records around it.
    """

    def __init__(self, path: Path, offset: int, before: int, after: int) -> None:
        self.path, self.offset, self.before, self.after = path, offset, before, after
        super().__init__(
            f"{path}: the record at byte {offset} is damaged; {before} records before it and "
            f"{after} after it are intact. Nothing was changed: see `fastevm db verify` and "
            f"`fastevm db repair`"
        )


class Record(NamedTuple):
    """One record: its kind, its payload, and the byte offset where it ends."""

    kind: int
    payload: bytes
    end: int

    @property
    def start(self) -> int:
        """The byte offset where it begins."""
        return self.end - len(self.payload) - HEAD.size


class Damage(NamedTuple):
    """The bytes from ``start`` to ``end`` contain no whole record. ``is_tail``: a torn last
    record.
    """

    start: int
    end: int
    is_tail: bool


class RecordFile:
    """Records of one file. ``label`` (any bytes) identifies the owner and must not change.

    One thread may append; ``sync`` may run in another. Raises :class:`StorageError` if the file is
    not a record file or has another label.
    """

    def __init__(self, path: Path, label: bytes) -> None:
        self.path, self.label = path, label
        self._header = file_header(label)
        self._exchange = Lock()  # guards the descriptor while `rewrite` replaces it
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self.size = os.fstat(self._file).st_size
        self.cut_bytes = 0
        if self.size < len(self._header) and self._begins(self.size):
            self.clear()  # new, or the process ended while it wrote the header
        elif not self._begins(len(self._header)):
            os.close(self._file)
            raise StorageError(f"{path} is no file of this version and chain")

    @property
    def is_empty(self) -> bool:
        """Whether there are no records."""
        return self.size == len(self._header)

    def append(self, kind: int, payload: bytes) -> int:
        """Appends a record and returns its byte offset. Raises OSError (for example if the disk is
        full) and leaves the file unchanged.
        """
        start = self.size
        self._write(encode_record(kind, payload))
        return start

    def read(self, start: int) -> Record:
        """Returns the record at a byte offset, from any thread. Raises OSError or StorageError."""
        return read_record(self._file, start, str(self.path))

    def records(self, start: int | None = None) -> Iterator[Record]:
        """Yields all records from a byte offset on; a torn last one is cut off. Raises
        CorruptFile.
        """
        header = len(self._header)
        for found in scan(self._file, self.size, header if start is None else start):
            if isinstance(found, Record):
                yield found
            elif found.is_tail:
                self._cut(found.start)
                return
            else:
                before = _record_count(scan(self._file, found.start, header))
                after = _record_count(scan(self._file, self.size, found.end))
                raise CorruptFile(self.path, found.start, before, after)

    def clear(self) -> None:
        """Removes all records. The header survives even if the process ends meanwhile."""
        if self.size >= len(self._header):
            os.ftruncate(self._file, len(self._header))
            self.size = len(self._header)
            return
        os.ftruncate(self._file, 0)
        self.size = 0
        self._write(self._header)

    def rewrite(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Replaces all records atomically."""
        with self.replacement() as fresh:
            for kind, payload in records:
                fresh.append(kind, payload)

    @contextlib.contextmanager
    def replacement(self) -> Iterator[RecordFile]:
        """Opens an empty file for appending, which replaces this one when the context ends.

        An exception leaves the records unchanged.
        """
        fresh = RecordFile(self.path.with_name(self.path.name + NEW_SUFFIX), self.label)
        try:
            fresh.clear()  # an unfinished rewrite left it
            yield fresh
            fresh.sync()
        except BaseException:
            fresh.close()
            raise
        fresh.path.replace(self.path)
        sync_directory(self.path.parent)
        with self._exchange:
            os.close(self._file)
            self._file, self.size = fresh._file, fresh.size

    def sync(self) -> None:
        """Waits until everything is on disk and survives a power loss."""
        with self._exchange:
            os.fdatasync(self._file)

    def close(self) -> None:
        """Closes the file; nothing may be written afterwards."""
        with self._exchange:
            os.close(self._file)

    def _begins(self, size: int) -> bool:
        return os.pread(self._file, size, 0) == self._header[:size]

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

    def _cut(self, offset: int) -> None:
        """Moves a torn record from the end to a file of its own."""
        self.cut_bytes = self.size - offset
        aside = set_aside(self.path, CUT_SUFFIX, os.pread(self._file, self.cut_bytes, offset))
        log.warning(
            "%s: the last record is torn; its %d bytes are cut off and kept in %s",
            self.path, self.cut_bytes, aside.name,
        )  # fmt: skip
        os.ftruncate(self._file, offset)
        self.size = offset
        self.sync()


def _record_count(found: Iterator[Record | Damage]) -> int:
    return sum(isinstance(item, Record) for item in found)


def scan(descriptor: int, size: int, start: int) -> Iterator[Record | Damage]:
    """Yields the records of an open file of ``size`` bytes from an offset on, and damaged ranges.

    A torn tail is what an interrupted append can leave: a record that reaches to or beyond the end
    of the file with no whole record after its beginning, or only zero bytes.
    """
    while start < size:
        record = _record_at(descriptor, start, size)
        if record is not None:
            start = record.end
            yield record
            continue
        end = _next_record(descriptor, start, size)
        is_tail = end == size and _may_be_torn(descriptor, start, size)
        yield Damage(start, end, is_tail)
        start = end


def _record_at(descriptor: int, start: int, size: int) -> Record | None:
    """Returns the whole record at an offset of a file of ``size`` bytes."""
    head = os.pread(descriptor, HEAD.size, start)
    if len(head) < HEAD.size:
        return None
    length, checksum, kind = HEAD.unpack(head)
    end = start + HEAD.size + length
    if length > MAX_RECORD_BYTES or end > size:
        return None
    payload = os.pread(descriptor, length, start + HEAD.size)
    if len(payload) < length or record_checksum(kind, payload) != checksum:
        return None
    return Record(kind, payload, end)


def _next_record(descriptor: int, start: int, size: int) -> int:
    """Returns where the next whole record begins after a damaged one, or the end of the file.

    That is where the damaged record ends, unless its size is damaged. A torn record whose payload
    contains the bytes of a record counts as damage, so that nothing is cut off by mistake.
    """
    head = os.pread(descriptor, HEAD.size, start)
    if len(head) == HEAD.size:
        end = int(start + HEAD.size + HEAD.unpack(head)[0])
        if _record_at(descriptor, end, size) is not None:
            return end
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as data:
        for found in re.compile(_HEAD_PATTERN).finditer(data, start + 1):
            if _record_at(descriptor, found.start(), size) is not None:
                return found.start()
    return size


def _may_be_torn(descriptor: int, start: int, size: int) -> bool:
    tail = os.pread(descriptor, MAX_RECORD_BYTES, start)
    if len(tail) < HEAD.size or not any(tail):
        return True
    return bool(start + HEAD.size + HEAD.unpack_from(tail)[0] >= size)


def encode_record(kind: int, payload: bytes) -> bytes:
    """Returns the bytes of a record in a file. Raises StorageError if it is too large."""
    if len(payload) > MAX_RECORD_BYTES:
        raise StorageError(f"a record of {len(payload)} bytes, limit {MAX_RECORD_BYTES}")
    return HEAD.pack(len(payload), record_checksum(kind, payload), kind) + payload


def read_record(descriptor: int, start: int, name: str) -> Record:
    """Returns the record at a byte offset of an open file. ``name``: for errors.

    Raises OSError, or StorageError if no whole record begins there.
    """
    record = _record_at(descriptor, start, os.fstat(descriptor).st_size)
    if record is None:
        raise StorageError(f"{name}: no whole record begins at byte {start}")
    return record


def set_aside(path: Path, suffix: str, data: bytes) -> Path:
    """Writes bytes to a new file beside ``path``, flushes it and returns its path.

    Its name ends with the first free number, so no file is overwritten.
    """
    number = 1
    while True:
        aside = path.with_name(f"{path.name}{suffix}{number}")
        try:
            with aside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            number += 1
            continue
        sync_directory(path.parent)
        return aside


def copy_aside(path: Path, suffix: str) -> Path:
    """Copies a file to a new name as `set_aside` does. Returns the path of the copy."""
    from shutil import copyfileobj  # with three compressors, which no node needs that starts

    aside = set_aside(path, suffix, b"")
    with path.open("rb") as source, aside.open("wb") as target:
        copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    return aside


def replace_file(path: Path, data: bytes) -> None:
    """Replaces a file atomically."""
    fresh = path.with_name(path.name + NEW_SUFFIX)
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Flushes new and changed names in a directory to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_header(label: bytes) -> bytes:
    """Returns the bytes before the first record."""
    return MAGIC + struct.pack(">I", len(label)) + label


def record_checksum(kind: int, payload: bytes) -> int:
    """Returns the CRC-32 of the kind and the payload."""
    return zlib.crc32(payload, zlib.crc32(bytes([kind])))
