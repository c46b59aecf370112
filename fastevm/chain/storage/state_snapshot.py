"""Snapshots of the state, so that a start does not execute the whole chain again.

A thread writes a snapshot when the blocks since the last snapshot used enough gas. A snapshot's
block is so far behind the head that no reorganisation reaches it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Final, NamedTuple

from fastevm.chain.chain import Chain
from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.storage.archive import Archive
from fastevm.chain.storage.archive_file import ArchiveFile
from fastevm.chain.storage.record_file import Record, RecordFile, StorageError
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.streaming import StateReader, write_state
from fastevm.errors import FastevmError

log = logging.getLogger(__name__)

FILE_NAME: Final = "state.snapshot"
POSITION, CHUNK, END = 1, 3, 4  # kinds of records; 2 was a compressed state
DEPTH: Final = 64  # blocks behind the head
SNAPSHOT_GAS: Final = 5_000_000_000  # gas executed between snapshots
# SNAPSHOT_GAS on a fork: lower, so that a start executes blocks for at most a second
FORK_SNAPSHOT_GAS: Final = 500_000_000
BLOCK_GAS: Final = 100_000  # gas counted for an empty block
AMENDMENT_GAS: Final = 20_000  # gas counted for a change of the state without a block
MIN_PAUSE: Final = 50  # pause after a snapshot, as a multiple of the time that writing it took
THREAD_NICENESS: Final = 10  # lower priority than the threads that serve
_POSITION: Final = struct.Struct(">32sQ")  # hash of the block, size of the journal of blocks


class Snapshot(NamedTuple):
    """The state after a block, and the size of the block journal when the snapshot was written."""

    block_hash: bytes
    journal_size: int
    layer: Layer


class SnapshotFile:
    """A file with at most one snapshot, which is replaced atomically.

    The file is written and read in chunks without the GIL. Memory holds the state and one chunk.
    """

    def __init__(self, directory: Path, label: bytes) -> None:
        self.file = RecordFile(directory / FILE_NAME, label)
        self.archive_file = ArchiveFile(directory, label)

    def write(self, snapshot: Snapshot) -> None:
        """Replaces the snapshot file. After an OSError the previous file is unchanged."""
        with self.file.replacement() as fresh:
            fresh.append(POSITION, _POSITION.pack(snapshot.block_hash, snapshot.journal_size))
            write_state(snapshot.layer, lambda chunk: fresh.append(CHUNK, chunk))
            fresh.append(END, b"")

    def read(self, below: RemoteState | None = None) -> Snapshot | None:
        """Returns the snapshot, or None if it is missing or damaged. Logs damage.

        ``below``: the remote state under a forked chain.
        """
        if self.file.is_empty:
            return None
        try:
            return self._read(below)
        except (ValueError, struct.error) as error:
            log.warning("%s cannot be used: %s", self.file.path, error)
            return None

    def missing_bytes(self, journal_size: int) -> int:
        """Returns how many bytes a journal of this size has lost since the snapshot was written."""
        try:
            first = next(self.file.records(), None)
        except StorageError:  # `read` logs it
            return 0
        return max(0, journal_size_in(first) - journal_size)

    def shorten_journal(self, size: int) -> None:
        """Limits the journal size recorded in the snapshot to ``size`` bytes, after the journal
        lost its end.
        """
        self.file.rewrite(_shortened(self.file.records(), size))

    def _read(self, below: RemoteState | None) -> Snapshot:
        reader, position, kind = StateReader(below), b"", 0
        for record in self.file.records():
            kind = record.kind
            if kind == POSITION:
                position = record.payload
            elif kind == CHUNK:
                reader.add(record.payload)
            elif kind != END:
                raise StorageError(f"a record of kind {kind}, which this version does not know")
        if kind != END:
            raise StorageError("it is not complete")
        block_hash, journal_size = _POSITION.unpack(position)
        return Snapshot(block_hash, journal_size, reader.finish())


def journal_size_in(first: object) -> int:
    """Returns the journal size in the first record of a snapshot; 0 if it is of another kind."""
    if (
        not isinstance(first, Record)
        or first.kind != POSITION
        or len(first.payload) != _POSITION.size
    ):
        return 0
    return int(_POSITION.unpack(first.payload)[1])


def _shortened(records: Iterator[Record], size: int) -> Iterator[tuple[int, bytes]]:
    """Yields the records of a snapshot, with the recorded journal size limited to ``size``."""
    for record in records:
        payload = record.payload
        if record.kind == POSITION:
            block_hash, journal_size = _POSITION.unpack(payload)
            payload = _POSITION.pack(block_hash, min(journal_size, size))
        yield record.kind, payload


class Snapshotter:
    """Writes snapshots of a chain in a separate thread. ``journal``: the journal of blocks."""

    def __init__(self, chain: Chain, target: SnapshotFile, journal: RecordFile) -> None:
        self.chain, self.target, self.journal = chain, target, journal
        self.metrics = MetricsRegistry()
        # A fork's state may be amended at any block, so the head's state is written.
        self._depth = 0 if chain.partial else DEPTH
        self._enough = FORK_SNAPSHOT_GAS if chain.partial else SNAPSHOT_GAS
        self._gas, self._earliest = 0, 0.0
        self._wanted, self._closed = Event(), False
        self._thread = Thread(target=self._run, name="fastevm-snapshots", daemon=True)
        chain.on_head(self._head_moved)
        self._thread.start()

    def count_from(self, block_hash: bytes | None) -> None:
        """Counts the gas of the canonical blocks after a block. None counts all blocks."""
        for number in range(self.chain.head.number, self.chain.genesis.number, -1):
            block = self.chain.block_by_number(number)
            if block is None or block.hash == block_hash or self._gas >= self._enough:
                break
            self.count(BLOCK_GAS + block.header.gas_used)

    def count(self, gas: int) -> None:
        """Adds executed gas to the count since the last snapshot.

        Wakes the thread if the count has reached the amount for the next snapshot.
        """
        self._gas += gas
        if self._gas >= self._enough and time.monotonic() >= self._earliest:
            self._wanted.set()

    def close(self) -> None:
        """Stops the thread after the current snapshot."""
        self._closed = True
        self._wanted.set()
        self._thread.join()

    def write(self) -> bool:
        """Writes a snapshot now. Returns False if there is no suitable block."""
        chain = self.chain
        block_hash = chain.canonical_hash(chain.head.number - self._depth)
        if block_hash is None or (block_hash == chain.genesis.hash and not chain.partial):
            return False
        # read after choosing the block, so that the block's record is before this size
        size = self.journal.size
        self.journal.sync()  # after a power loss the journal must not be shorter than recorded here
        started = time.monotonic()
        layer = chain.layer_of(block_hash)
        block = chain.block_by_hash(block_hash)
        if block is None:
            return False
        if not chain.partial and layer.state_root() != block.header.state_root:
            return False  # `Chain.amend` changed the state, so its root is not the block's
        self.target.write(Snapshot(block_hash, size, layer))
        # saved after the snapshot, because its blocks must be below the snapshot's
        if isinstance(chain.archive, Archive):
            chain.archive.save(self.target.archive_file, block.number)
        took = time.monotonic() - started
        self._earliest = time.monotonic() + MIN_PAUSE * took
        self.metrics.set("snapshot_number", block.number)
        self.metrics.set("snapshot_seconds", took)
        return True

    def _head_moved(self, change: HeadChange) -> None:
        if change.removed and self.chain.partial:
            self._gas = self._enough  # a start cannot use a snapshot of a removed block
        self.count(sum(block.header.gas_used + BLOCK_GAS for block in change.added))

    def _run(self) -> None:
        with contextlib.suppress(OSError, AttributeError):  # not supported by this system
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), THREAD_NICENESS)
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closed:
                return
            self._gas = 0
            try:
                self.write()
            except (OSError, FastevmError) as error:
                log.error("no snapshot could be written: %s", error)
                self.metrics.count("snapshot_failures_total")
