"""Simulates a full disk: the operating system prevents a node's files from growing."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

BALLAST_NAME: Final = "ballast"
PIECE: Final = 1 << 20  # bytes written at a time


@contextmanager
def full_disk(pid: int, directory: Path, *, is_own: bool) -> Iterator[None]:
    """Prevents files in ``directory`` of process ``pid`` from growing, within a ``with`` block.

    If ``is_own`` is true, the directory is on a separate small file system, and a large file fills
    it (ENOSPC). Otherwise a resource limit of the process stops each file at the size of the
    smallest log (EFBIG). Raises OSError if the process has ended.
    """
    if is_own:
        with _ballast(directory):
            yield
        return
    size = min(path.stat().st_size for path in directory.glob("*.log"))
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def _ballast(directory: Path) -> Iterator[None]:
    """Writes a file until the file system is full. Removes the file afterwards."""
    path = directory / BALLAST_NAME
    piece = PIECE
    with path.open("wb", buffering=0) as file:
        try:
            while piece:
                try:
                    file.write(bytes(piece))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    piece //= 2
            yield
        finally:
            path.unlink()
