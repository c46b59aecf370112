"""Finds test files: single files, folders, and archives (.tar, .tar.gz, .tar.zst)."""

import gzip
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from fastevm.errors import FastevmError, install_command

ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".tar.zst")
MAX_FILE_BYTES: Final = 512 * 1024 * 1024  # maximum size of an unpacked test file
CHUNK: Final = 1024 * 1024


class SourceError(FastevmError):
    """A path without tests, or a damaged archive."""


class MissingReader(SourceError):
    """An archive whose reader is not installed."""


def test_files(paths: Sequence[str | Path], suffix: str = ".json") -> Iterator[tuple[str, bytes]]:
    """Yields name and content of every test file below the paths, in order.

    Raises SourceError for a path that does not exist, contains no tests or is damaged.
    """
    for path in map(Path, paths):
        if path.is_dir():
            yield from _from_folder(path, suffix)
        elif is_archive(path):
            yield from _from_archive(path, suffix)
        elif path.is_file():
            yield str(path), path.read_bytes()
        else:
            raise SourceError(f"{path}: no such file, folder or archive")


def is_archive(path: Path) -> bool:
    """Returns whether the path is an existing archive."""
    return path.name.endswith(ARCHIVES) and path.is_file()


def _from_folder(folder: Path, suffix: str) -> Iterator[tuple[str, bytes]]:
    found = False
    for path in sorted(folder.rglob("*")):
        if path.name.endswith(suffix) and path.is_file():
            found = True
            yield str(path.relative_to(folder)), path.read_bytes()
        elif is_archive(path):
            found = True
            yield from _from_archive(path, suffix)
    if not found:
        raise SourceError(f"{folder}: holds no {suffix} file and no archive")


def _from_archive(path: Path, suffix: str) -> Iterator[tuple[str, bytes]]:
    found = False
    try:
        with path.open("rb") as packed, _unpacked(path, packed) as stream:
            readable: Any = stream  # tar streams only need `read`
            with tarfile.open(fileobj=readable, mode="r|") as archive:
                for item in _members(archive, suffix):
                    found = True
                    yield item
            _check_end(stream, archive.offset)
    except MissingReader as error:
        raise SourceError(f"{path}: {error}") from None
    except (SourceError, tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise SourceError(f"{path}: damaged archive: {error}") from None
    if not found:
        raise SourceError(f"{path}: holds no {suffix} file")


def _check_end(stream: "_Counted", end: int) -> None:
    """Checks the end of an archive, because tarfile accepts a stream that ends between two
    files.
    """
    while stream.read(CHUNK):
        pass
    if stream.count < end + tarfile.BLOCKSIZE:
        raise SourceError("the archive is cut off")


@contextmanager
def _unpacked(path: Path, packed: IO[bytes]) -> Iterator["_Counted"]:
    if path.name.endswith(".zst"):
        yield _Counted(_ZstdStream(packed))
    elif path.name.endswith("gz"):
        with gzip.open(packed) as stream:
            yield _Counted(stream)
    else:
        yield _Counted(packed)


class _Counted:
    """A stream that counts the bytes read."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int) -> bytes:
        """Reads ``size`` bytes, fewer only at the end."""
        data: bytes = self._stream.read(size)
        self.count += len(data)
        return data


class _ZstdStream:
    """Reads a zstd stream. Raises SourceError if it is truncated."""

    def __init__(self, packed: IO[bytes]) -> None:
        try:
            import zstandard  # optional dependency: only compressed tests need it
        except ImportError:
            need = f"needs the package zstandard ({install_command('conformance')})"
            raise MissingReader(need) from None
        self._packed = packed
        self._error = zstandard.ZstdError
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready = bytearray()

    def read(self, size: int) -> bytes:
        """Reads ``size`` bytes, fewer only at the end."""
        while len(self._ready) < size and not self._frame.eof:
            chunk = self._packed.read(CHUNK)
            if not chunk:
                raise SourceError("the zstd stream is cut off")
            try:
                self._ready += self._frame.decompress(chunk)
            except self._error as error:
                raise SourceError(str(error)) from None
        taken = bytes(self._ready[:size])
        del self._ready[:size]
        return taken


def _members(archive: tarfile.TarFile, suffix: str) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        if not member.isfile() or not member.name.endswith(suffix):
            continue
        if member.size > MAX_FILE_BYTES:
            raise SourceError(f"{member.name} is larger than {MAX_FILE_BYTES} bytes")
        stream = archive.extractfile(member)
        assert stream is not None
        content = stream.read()
        if len(content) != member.size:
            raise SourceError(f"ends inside {member.name}")
        yield member.name, content
