"""The journal of a chain: every block that was kept, every move of the head, in their order.

Played back it makes the same chain: each block is verified and executed again on its parent's
state, but for those up to a snapshot of the state, which are taken with their receipts as they are.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fastevm.chain.chain import Chain
from fastevm.errors import FastevmError
from fastevm.storage.block_record import block_of, pack_body, receipts_of
from fastevm.storage.record_file import Record, RecordFile, StorageError
from fastevm.storage.state_snapshot import Snapshot
from fastevm.types import Block, Receipt

log = logging.getLogger(__name__)

FILE_NAME: Final = "blocks.log"
BLOCK, HEAD, AMENDMENT = 1, 2, 3
HASH_BYTES: Final = 32

Progress = Callable[[int, int, int], None]  # blocks, bytes read, bytes in all


class BlockJournal:
    """What a chain tells before it does it; OSError keeps it from doing it."""

    def __init__(self, directory: Path, label: bytes, *, flush: bool) -> None:
        """``flush``: wait for the disk after every record."""
        self.file = RecordFile(directory / FILE_NAME, label)
        self.flush = flush
        self._replayed: Record | None = None  # what is being played back is written already

    def keep(self, block: Block, receipts: Sequence[Receipt]) -> int:
        """A block is going to be part of the chain; where its record begins."""
        if self._replayed is not None:
            return self._replayed.start
        return self._write(BLOCK, pack_body(block, receipts))

    def move_head(self, block_hash: bytes) -> None:
        """A known block is going to be the head, whatever the fork rule says."""
        if self._replayed is None:
            self._write(HEAD, block_hash)

    def amend(self, block_hash: bytes, accounts: Mapping[str, Any]) -> None:
        """The state after a block is going to change; ``accounts`` as in a genesis file."""
        if self._replayed is None:
            self._write(AMENDMENT, block_hash + json.dumps(accounts).encode())

    def read(self, position: int) -> Record:
        """The record that begins there; OSError or StorageError when none does."""
        return self.file.read(position)

    def replay(
        self, chain: Chain, snapshot: Snapshot | None = None, progress: Progress | None = None
    ) -> int:
        """Do to a chain what was done before, and be its journal; how many blocks that were.

        Up to the block of ``snapshot`` nothing is executed: its state is taken from there.
        :class:`StorageError` when a record does not fit the chain, and names it.
        """
        count = 0 if snapshot is None else self._adopt(chain, snapshot, progress)
        known = 0 if snapshot is None else snapshot.journal_size
        chain.journal = self
        with chain.keeping_states():
            return count + self._replay(chain, known, progress)

    def _replay(self, chain: Chain, known: int, progress: Progress | None) -> int:
        count = 0
        for record in self.file.records():
            self._replayed = record
            try:
                count += self._play(chain, record, passed=record.end <= known)
            except (FastevmError, ValueError) as error:
                raise StorageError(
                    f"{self.file.path}: the record that ends at byte {record.end} does not fit "
                    f"the chain: {error}"
                ) from error
            finally:
                self._replayed = None
            if progress is not None:
                progress(count, record.end, self.file.size)
        return count

    def _write(self, kind: int, payload: bytes) -> int:
        start = self.file.append(kind, payload)
        if self.flush:
            self.file.sync()
        return start

    def _adopt(self, chain: Chain, snapshot: Snapshot, progress: Progress | None) -> int:
        """Give the chain its blocks up to the snapshot's, unexecuted; how many there are."""
        positions: dict[bytes, tuple[bytes, int]] = {}
        for record in self.file.records():
            if record.kind == BLOCK and record.end <= snapshot.journal_size:
                header = block_of(record.payload).header
                positions[header.hash] = (header.parent_hash, record.start)
        branch, block_hash = [], snapshot.block_hash
        while block_hash != chain.genesis.hash:
            if block_hash not in positions:
                raise StorageError(f"{self.file.path} does not lead to the snapshot's block")
            block_hash, position = positions[block_hash]
            branch.append(position)
        told = 0
        for position in reversed(branch):
            payload = self.read(position).payload
            layer = snapshot.layer if position == branch[0] else None
            chain.adopt(block_of(payload), receipts_of(payload), layer, position)
            told += len(payload)
            if progress is not None:
                progress(chain.head.number, told, self.file.size)
        return len(branch)

    def _play(self, chain: Chain, record: Record, *, passed: bool) -> bool:
        """Play one record. ``passed``: it was there before the snapshot, which may replace it."""
        payload = record.payload
        if record.kind == BLOCK:
            block = block_of(payload)
            if chain.knows(block.hash):
                return False
            if passed and not chain.knows(block.header.parent_hash):
                return False  # of a branch that was left before the snapshot
            if passed and not chain.has_state(block.header.parent_hash):
                return False
            chain.add(block)
            return True
        if record.kind == HEAD:
            if not passed or chain.has_state(payload):
                chain.set_head(payload)
        elif record.kind == AMENDMENT:
            if not passed or chain.has_state(payload[:HASH_BYTES]):
                chain.amend(payload[:HASH_BYTES], json.loads(payload[HASH_BYTES:]))
        else:
            raise StorageError(f"a record of kind {record.kind}, which this version does not know")
        return False
