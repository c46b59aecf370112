"""An append-only file of records, each with its size and a checksum.

A process that ends at any moment leaves complete records, and at most one torn record at the end of
the file. The next reader moves the torn record to another file. For any other damage it raises
CorruptFile and leaves the file unchanged. When ``append`` returns, the record is in the file, but
not necessarily on disk (see ``sync``).

The file begins with a header: `MAGIC`, the size of the label (4 bytes), the label, the salt and a
checksum of all these (4 bytes each). Then follow the records: size of the payload, checksum, kind
(4, 4 and 1 bytes), payload. Numbers are big-endian, checksums are CRC-32.

The salt is random, and the checksum of each record starts from it. A payload often comes from a
client. Without the salt, calldata could contain the bytes of a complete record. Inside a torn
record, these bytes would then look like the next record. Files of the first format (`OLD_MAGIC`)
have no salt. They stay readable, and a rewrite adds a salt.
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

MAGIC: Final = b"fastevm-records2"
OLD_MAGIC: Final = b"fastevm-records1"  # of files without a salt
SALT_BYTES: Final = 4
MAX_RECORD_BYTES: Final = 256 * 1024 * 1024
MAX_KIND: Final = 15
NEW_SUFFIX: Final = ".new"
CUT_SUFFIX: Final = ".cut-"  # a number follows
HEAD: Final = struct.Struct(">IIB")  # size of the payload, checksum, kind

# The head of a record with at most MAX_RECORD_BYTES and a kind from 1 to MAX_KIND.
_HEAD_PATTERN: Final = rb"(?=[\x00-\x10][\s\S]{7}[\x01-\x0f])"


class StorageError(ValueError):
    """A file or directory has invalid content. The message names it."""


class CorruptFile(StorageError):
    """A record is damaged and is not a torn record at the end. Nothing was changed.

    ``offset``: the byte where the record begins. ``before`` and ``after``: the number of intact
    records before and after it.
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
        """The byte offset where the record begins."""
        return self.end - len(self.payload) - HEAD.size


class Damage(NamedTuple):
    """The bytes from ``start`` to ``end`` contain no complete record.

    ``is_tail``: the bytes are a torn last record.
    """

    start: int
    end: int
    is_tail: bool


class FileHeader(NamedTuple):
    """The bytes before the first record, and the salt of all records (0: no salt)."""

    data: bytes
    salt: int


class RecordFile:
    """The records of one file. ``label`` (any bytes) identifies the owner and must not change.

    One thread may append; ``sync`` may run in another. Raises :class:`StorageError` if the file is
    not a record file or has another label.
    """

    def __init__(self, path: Path, label: bytes) -> None:
        self.path, self.label = path, label
        self._exchange = Lock()  # guards the descriptor while `rewrite` replaces it
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self.size = os.fstat(self._file).st_size
        self.cut_bytes = 0
        header = read_header(self._file, label)
        if header is not None:
            self._header = header
            return
        if not _is_begun(os.pread(self._file, header_bytes(label), 0), label):
            os.close(self._file)
            raise StorageError(f"{path} is not a file of this version and chain")
        # the file is new, or the process ended while it wrote the header
        self._header = new_header(label)
        os.ftruncate(self._file, 0)
        self.size = 0
        self._write(self._header.data)

    @property
    def is_empty(self) -> bool:
        """Whether there are no records."""
        return self.size == len(self._header.data)

    @property
    def salt(self) -> int:
        """The salt of all checksums. A rewrite of the file changes it."""
        return self._header.salt

    def append(self, kind: int, payload: bytes) -> int:
        """Appends a record. Returns its byte offset. On OSError the file is unchanged."""
        start = self.size
        self._write(encode_record(kind, payload, self.salt))
        return start

    def read(self, start: int) -> Record:
        """Returns the record at a byte offset. Thread-safe. Raises OSError or StorageError."""
        return read_record(self._file, start, str(self.path), self.salt)

    def records(self, start: int | None = None) -> Iterator[Record]:
        """Yields the records from byte ``start`` on. Cuts off a torn tail. Raises CorruptFile."""
        header, salt = len(self._header.data), self.salt
        for found in scan(self._file, self.size, header if start is None else start, salt):
            if isinstance(found, Record):
                yield found
            elif found.is_tail:
                self._cut(found.start)
                return
            else:
                before = _record_count(scan(self._file, found.start, header, salt))
                after = _record_count(scan(self._file, self.size, found.end, salt))
                raise CorruptFile(self.path, found.start, before, after)

    def clear(self) -> None:
        """Removes all records. The header stays intact even if the process ends during the call."""
        if self._header.data.startswith(OLD_MAGIC):
            self.rewrite(())
            return
        os.ftruncate(self._file, len(self._header.data))
        self.size = len(self._header.data)

    def rewrite(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Replaces all records atomically."""
        with self.replacement() as fresh:
            for kind, payload in records:
                fresh.append(kind, payload)

    @contextlib.contextmanager
    def replacement(self) -> Iterator[RecordFile]:
        """Returns a context with an empty file, which replaces this file when the context ends.

        If an exception ends the context, the records are unchanged.
        """
        path = self.path.with_name(self.path.name + NEW_SUFFIX)
        path.unlink(missing_ok=True)  # left by an interrupted rewrite
        fresh = RecordFile(path, self.label)
        try:
            yield fresh
            fresh.sync()
        except BaseException:
            fresh.close()
            raise
        fresh.path.replace(self.path)
        sync_directory(self.path.parent)
        with self._exchange:
            os.close(self._file)
            self._file, self.size, self._header = fresh._file, fresh.size, fresh._header

    def sync(self) -> None:
        """Waits until everything is on disk and survives a power loss."""
        with self._exchange:
            os.fdatasync(self._file)

    def close(self) -> None:
        """Closes the file; nothing may be written afterwards."""
        with self._exchange:
            os.close(self._file)

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
        """Moves a torn record from the end to a separate file."""
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


def scan(descriptor: int, size: int, start: int, salt: int) -> Iterator[Record | Damage]:
    """Yields the records and damaged ranges of an open file of ``size`` bytes from an offset on.

    An interrupted append leaves a torn tail: only zero bytes, or a record that reaches the end of
    the file or beyond, with no complete record after its beginning.
    """
    while start < size:
        record = _record_at(descriptor, start, size, salt)
        if record is not None:
            start = record.end
            yield record
            continue
        end = _next_record(descriptor, start, size, salt)
        is_tail = end == size and _may_be_torn(descriptor, start, size)
        yield Damage(start, end, is_tail)
        start = end


def _record_at(descriptor: int, start: int, size: int, salt: int) -> Record | None:
    """Returns the complete record at an offset of a file of ``size`` bytes, or None."""
    head = os.pread(descriptor, HEAD.size, start)
    if len(head) < HEAD.size:
        return None
    length, checksum, kind = HEAD.unpack(head)
    end = start + HEAD.size + length
    if length > MAX_RECORD_BYTES or end > size:
        return None
    payload = os.pread(descriptor, length, start + HEAD.size)
    if len(payload) < length or record_checksum(kind, payload, salt) != checksum:
        return None
    return Record(kind, payload, end)


def _next_record(descriptor: int, start: int, size: int, salt: int) -> int:
    """Returns the offset of the next complete record after a damaged one, or the end of the file.

    This offset is the end of the damaged record, unless that record's size is damaged.
    """
    head = os.pread(descriptor, HEAD.size, start)
    if len(head) == HEAD.size:
        end = int(start + HEAD.size + HEAD.unpack(head)[0])
        if _record_at(descriptor, end, size, salt) is not None:
            return end
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as data:
        for found in re.compile(_HEAD_PATTERN).finditer(data, start + 1):
            if _record_at(descriptor, found.start(), size, salt) is not None:
                return found.start()
    return size


def _may_be_torn(descriptor: int, start: int, size: int) -> bool:
    tail = os.pread(descriptor, MAX_RECORD_BYTES, start)
    if len(tail) < HEAD.size or not any(tail):
        return True
    return bool(start + HEAD.size + HEAD.unpack_from(tail)[0] >= size)


def encode_record(kind: int, payload: bytes, salt: int) -> bytes:
    """Returns the bytes of a record. Raises StorageError if it is too large."""
    if len(payload) > MAX_RECORD_BYTES:
        raise StorageError(f"a record of {len(payload)} bytes, limit {MAX_RECORD_BYTES}")
    return HEAD.pack(len(payload), record_checksum(kind, payload, salt), kind) + payload


def read_record(descriptor: int, start: int, name: str, salt: int) -> Record:
    """Returns the record at a byte offset of an open file. ``name``: used in errors.

    Raises OSError, or StorageError if no complete record begins there.
    """
    record = _record_at(descriptor, start, os.fstat(descriptor).st_size, salt)
    if record is None:
        raise StorageError(f"{name}: no whole record begins at byte {start}")
    return record


def set_aside(path: Path, suffix: str, data: bytes) -> Path:
    """Writes bytes to a new file beside ``path``, flushes the file and returns its path.

    The name ends with the first free number, so no file is overwritten.
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
    # shutil imports three compressors, which the start of a node does not need
    from shutil import copyfileobj

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


def new_header(label: bytes) -> FileHeader:
    """Returns a header with a new salt."""
    return header_with(label, int.from_bytes(os.urandom(SALT_BYTES), "big"))


def header_with(label: bytes, salt: int) -> FileHeader:
    """Returns the header with this salt."""
    data = _start(MAGIC, label) + struct.pack(">I", salt)
    return FileHeader(data + struct.pack(">I", zlib.crc32(data)), salt)


def old_header(label: bytes) -> FileHeader:
    """Returns the header of the first format."""
    return FileHeader(_start(OLD_MAGIC, label), 0)


def header_bytes(label: bytes) -> int:
    """Returns the size of a header in the current format."""
    return len(header_with(label, 0).data)


def read_header(descriptor: int, label: bytes) -> FileHeader | None:
    """Returns the header of an open file, in either format, or None if it has another header."""
    data = os.pread(descriptor, header_bytes(label), 0)
    old = old_header(label)
    if data.startswith(old.data):
        return old
    salt = data[len(old.data) : len(old.data) + SALT_BYTES]
    header = header_with(label, int.from_bytes(salt, "big"))
    return header if header.data == data else None


def has_header(path: Path, label: bytes) -> bool:
    """Returns whether a file begins with a complete header with this label."""
    with path.open("rb") as file:
        return read_header(file.fileno(), label) is not None


def _start(magic: bytes, label: bytes) -> bytes:
    return magic + struct.pack(">I", len(label)) + label


def _is_begun(data: bytes, label: bytes) -> bool:
    """Returns whether a file contains only the start of a header."""
    starts = (_start(MAGIC, label), _start(OLD_MAGIC, label))
    if len(data) <= len(starts[0]):
        return any(start.startswith(data) for start in starts)
    return len(data) < header_bytes(label) and data.startswith(starts[0])


def record_checksum(kind: int, payload: bytes, salt: int) -> int:
    """Returns the CRC-32 of the kind and the payload, computed from the salt as the initial
    value.
    """
    return zlib.crc32(payload, zlib.crc32(bytes([kind]), salt))
