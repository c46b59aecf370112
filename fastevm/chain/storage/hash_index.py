"""Maps hashes to numbers and uses little memory.

Lookups use the first eight bytes of a hash, so the caller must compare each candidate with the
whole hash. New entries are collected in memory and written as a sorted run. A thread merges runs of
similar size, so that there are few runs. Memory holds the first key of each page of a run.
"""

from __future__ import annotations

import logging
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from threading import Lock, Thread
from typing import Final

from fastevm.chain.storage.scratch import ScratchFile
from fastevm.core.primitives.merge_records import RECORD_SIZE, merge_records

log = logging.getLogger(__name__)

KEY_BYTES: Final = 8
RUN_RECORDS: Final = 1_024  # entries collected in memory before a run is written
PAGE_BYTES: Final = 1_024  # bytes per read
CHUNK_BYTES: Final = 64 * PAGE_BYTES  # bytes of each run in memory while two runs are merged


class HashIndex:
    """An index for one writing thread and many reading threads. Values have at most eight bytes.

    The files are unnamed and on the disk of ``directory`` (None: the system's temporary directory).
    """

    def __init__(self, directory: Path | None = None, run_records: int = RUN_RECORDS) -> None:
        self._directory, self._run_records = directory, run_records
        self._young: dict[bytes, int] = {}
        self._runs: tuple[_Run, ...] = ()  # oldest first
        self._lock = Lock()  # guards the replacement of runs
        self._merger: Thread | None = None

    @property
    def run_count(self) -> int:
        """The number of runs that a lookup may read."""
        return len(self._runs)

    def add(self, key: bytes, value: int) -> None:
        """Maps a hash to ``value``. Newer values are found before older ones."""
        self._young[key] = value

    def flush(self) -> None:
        """If there are enough collected entries, writes them. On OSError they stay in memory."""
        if len(self._young) < self._run_records:
            return
        run = _Run(self._directory)
        run.append(_sorted_records(self._young))
        with self._lock:
            self._runs = (*self._runs, run)
        self._young = {}  # cleared last, because readers check the memory before the runs
        self._merge()

    def find(self, key: bytes) -> Iterator[int]:
        """Yields the candidates for a hash, newest first. Raises OSError for unreadable files."""
        young = self._young.get(key)
        if young is not None:
            yield young
        start = key[:KEY_BYTES]
        number = int.from_bytes(start, "big")
        for run in reversed(self._runs):
            found = run.find(start, number)
            if found:
                yield from found

    def merged(self) -> ScratchFile:
        """Returns a sorted file with all entries; some new entries may appear twice. Thread-safe.

        Raises OSError if the file cannot be written.
        """
        young, runs = (
            dict(self._young),
            self._runs,
        )  # in this order, see `flush`
        result = _Run(self._directory)
        result.append(_sorted_records(young))
        for run in reversed(runs):
            result = _merged(run, result, self._directory)
        return result.file

    def restore(self, records: ScratchFile) -> None:
        """Starts with the entries of a file that `merged` returned."""
        self._runs, self._young = (_Run.of(records),), {}

    def settle(self) -> None:
        """Waits until no merge is in progress."""
        merger = self._merger
        if merger is not None:
            merger.join()

    def _merge(self) -> None:
        if self._merger is None or not self._merger.is_alive():
            self._merger = Thread(target=self._merge_all, name="fastevm-index", daemon=True)
            self._merger.start()

    def _merge_all(self) -> None:
        """Merges adjacent runs until each run has at least twice the size of the next run."""
        try:
            while (pair := _like_sizes(self._runs)) is not None:
                merged = _merged(*pair, self._directory)
                with self._lock:
                    position = self._runs.index(pair[0])
                    self._runs = (*self._runs[:position], merged, *self._runs[position + 2 :])
        except OSError as error:  # the merge is tried again after the next run
            log.error("the index of old blocks stays in many files: %s", error)


class _Run:
    """Sorted records in a separate file."""

    def __init__(self, directory: Path | None) -> None:
        self.file = ScratchFile(directory)
        self._firsts = array("Q")  # the first key of each page

    @classmethod
    def of(cls, file: ScratchFile) -> _Run:
        """Returns a run for a file with sorted records."""
        run = cls.__new__(cls)
        run.file, run._firsts = file, array("Q")
        for at in range(0, file.size, CHUNK_BYTES):
            words = array("Q", file.read(at, CHUNK_BYTES))
            run._firsts.extend(words[:: PAGE_BYTES // KEY_BYTES])
        if sys.byteorder == "little":
            run._firsts.byteswap()
        return run

    def append(self, records: bytes) -> None:
        """Appends entries: whole pages, except in the last call."""
        for at in range(0, len(records), PAGE_BYTES):
            self._firsts.append(int.from_bytes(records[at : at + KEY_BYTES], "big"))
        self.file.append(records)

    def find(self, key: bytes, number: int) -> list[int]:
        """Returns the values of a key."""
        firsts, found = self._firsts, []
        page = max(bisect_left(firsts, number) - 1, 0)
        while page < len(firsts) and firsts[page] <= number:
            records = self.file.read(page * PAGE_BYTES, PAGE_BYTES)
            at = records.find(key)
            while at >= 0:
                if at % RECORD_SIZE == 0:
                    value = records[at + KEY_BYTES : at + RECORD_SIZE]
                    found.append(int.from_bytes(value, "big"))
                at = records.find(key, at + 1)
            page += 1
        return found


def _sorted_records(values: dict[bytes, int]) -> bytes:
    return b"".join(
        sorted(
            [key[:KEY_BYTES] + value.to_bytes(KEY_BYTES, "big") for key, value in values.items()]
        )
    )


def _like_sizes(runs: tuple[_Run, ...]) -> tuple[_Run, _Run] | None:
    """Returns the newest adjacent runs in which the older run is less than twice as large."""
    for older, newer in zip(runs[-2::-1], runs[:0:-1], strict=True):
        if older.file.size < 2 * newer.file.size:
            return older, newer
    return None


def _merged(older: _Run, newer: _Run, directory: Path | None) -> _Run:
    """Merges the records of two runs into a new run."""
    merged, done = _Run(directory), bytearray()
    taken, parts = [0, 0], [b"", b""]
    sides = (older.file, newer.file)
    while True:
        for side, file in enumerate(sides):
            if not parts[side]:
                parts[side] = file.read(taken[side], CHUNK_BYTES)
        if not (parts[0] and parts[1]):
            out, *used = parts[0] or parts[1], len(parts[0]), len(parts[1])
        else:
            out, *used = merge_records(parts[0], parts[1])
        if not out:
            break
        for side, count in enumerate(used):
            taken[side] += count
            parts[side] = parts[side][count:]
        done += out
        whole = len(done) - len(done) % PAGE_BYTES
        merged.append(bytes(done[:whole]))
        del done[:whole]
    merged.append(bytes(done))
    return merged
