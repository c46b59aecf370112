"""The state after one block in a file, so that a long chain need not be executed again.

It is written now and then by a thread, some blocks behind the head, where reorganisations do not
reach. What it saves is counted in gas: so much would have to be executed again without it.
"""

from __future__ import annotations

import logging
import struct
import time
from pathlib import Path
from threading import Event, Thread
from typing import Final, NamedTuple

from fastevm.chain.chain import Chain
from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.metrics import MetricsRegistry
from fastevm.errors import FastevmError
from fastevm.state.layer import Layer
from fastevm.state.shipping import pack_layer, unpack_layer
from fastevm.storage.record_file import RecordFile, StorageError

log = logging.getLogger(__name__)

FILE_NAME: Final = "state.snapshot"
PLACE, STATE = 1, 2
DEPTH: Final = 64  # blocks behind the head
SNAPSHOT_GAS: Final = 5_000_000_000  # executed since the last one
BLOCK_GAS: Final = 100_000  # that an empty block counts for
PIECE_BYTES: Final = 64 * 1024 * 1024
LEAST_PAUSE: Final = 50  # times the seconds that writing took, before the next one
_PLACE: Final = struct.Struct(">32sQ")  # hash of the block, size of the journal of blocks


class Snapshot(NamedTuple):
    """The state after a block, and how long the journal was when it was written."""

    block_hash: bytes
    journal_size: int
    layer: Layer


class SnapshotFile:
    """At most one snapshot, replaced as a whole."""

    def __init__(self, directory: Path, label: bytes) -> None:
        self.file = RecordFile(directory / FILE_NAME, label)

    def write(self, snapshot: Snapshot) -> None:
        """Put a snapshot in the place of the one before; OSError leaves that."""
        state = pack_layer(snapshot.layer)
        pieces = [state[at : at + PIECE_BYTES] for at in range(0, len(state), PIECE_BYTES)]
        place = _PLACE.pack(snapshot.block_hash, snapshot.journal_size)
        self.file.rewrite([(PLACE, place), *((STATE, piece) for piece in pieces)])

    def read(self) -> Snapshot | None:
        """The snapshot; None when there is none, or it cannot be used, which is logged."""
        records = list(self.file.records())
        if not records:
            return None
        try:
            if records[0].kind != PLACE:
                raise StorageError("it does not say which block it is of")
            block_hash, journal_size = _PLACE.unpack(records[0].payload)
            layer = unpack_layer(b"".join(record.payload for record in records[1:]))
        except (ValueError, struct.error) as error:
            log.warning("%s cannot be used: %s", self.file.path, error)
            return None
        return Snapshot(block_hash, journal_size, layer)


class Snapshotter:
    """Watches a chain and writes snapshots from a thread of its own.

    ``journal_size`` gives the size of the blocks' journal, which is read before the head is.
    """

    def __init__(self, chain: Chain, target: SnapshotFile, journal: RecordFile) -> None:
        self.chain, self.target, self.journal = chain, target, journal
        self.metrics = MetricsRegistry()
        self._gas, self._earliest = 0, 0.0
        self._wanted, self._closed = Event(), False
        self._thread = Thread(target=self._run, name="fastevm-snapshots", daemon=True)
        chain.on_head(self._head_moved)
        self._thread.start()

    def count_from(self, block_hash: bytes | None) -> None:
        """Count what is canonical after a block that there is a snapshot of (None: all), as far as
        it matters.
        """
        for number in range(self.chain.head.number, self.chain.genesis.number, -1):
            block = self.chain.block_by_number(number)
            if block is None or block.hash == block_hash or self._gas >= SNAPSHOT_GAS:
                break
            self.count(BLOCK_GAS + block.header.gas_used)

    def count(self, gas: int) -> None:
        """So much more would have to be executed again."""
        self._gas += gas
        if self._gas >= SNAPSHOT_GAS and time.monotonic() >= self._earliest:
            self._wanted.set()

    def close(self) -> None:
        """Write no more."""
        self._closed = True
        self._wanted.set()
        self._thread.join()

    def write(self) -> bool:
        """Write a snapshot now; whether there is a block to write one of."""
        size, chain = self.journal.size, self.chain
        block_hash = chain.canonical_hash(chain.head.number - DEPTH)
        if block_hash is None or block_hash == chain.genesis.hash:
            return False
        started = time.monotonic()
        layer = chain.layer_of(block_hash)
        block = chain.block_by_hash(block_hash)
        if block is None or layer.state_root() != block.header.state_root:
            return False  # changed by a developer: the block's own state is not there any more
        self.target.write(Snapshot(block_hash, size, layer))
        took = time.monotonic() - started
        self._earliest = time.monotonic() + LEAST_PAUSE * took
        self.metrics.set("snapshot_number", block.number)
        self.metrics.set("snapshot_seconds", took)
        return True

    def _head_moved(self, change: HeadChange) -> None:
        self.count(sum(block.header.gas_used + BLOCK_GAS for block in change.added))

    def _run(self) -> None:
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
