"""The journal of a chain: every added block, every forced head and every amendment, in order.

Replaying the journal rebuilds the same chain: each block is verified and executed on its parent's
state. Blocks up to the state snapshot are adopted with their receipts, without execution.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fastevm.chain.chain import Chain
from fastevm.chain.storage.archive import Archive
from fastevm.chain.storage.block_record import block_of, hashes_of, pack_body, receipts_of
from fastevm.chain.storage.record_file import Record, RecordFile, StorageError
from fastevm.chain.storage.state_snapshot import Snapshot
from fastevm.core.execution.types import Block, Receipt
from fastevm.core.state.layer import Layer
from fastevm.errors import BlockUnavailableError, FastevmError

log = logging.getLogger(__name__)

FILE_NAME: Final = "blocks.log"
BLOCK, HEAD, AMENDMENT = 1, 2, 3  # kinds of records
HASH_BYTES: Final = 32

Progress = Callable[[int, int, int], None]  # blocks, bytes read, bytes in all


class BlockJournal:
    """Records every change of a chain before it happens. An OSError prevents the change."""

    def __init__(self, directory: Path, label: bytes, *, flush: bool) -> None:
        """Opens the journal. ``flush``: wait for the disk after every record."""
        self.file = RecordFile(directory / FILE_NAME, label)
        self.flush = flush
        # called after an amendment was recorded
        self.on_amendment: Callable[[], None] = lambda: None
        self._replayed: Record | None = None  # the record being replayed

    def keep(self, block: Block, receipts: Sequence[Receipt]) -> int:
        """Records a block before it is added. Returns the byte offset of its record."""
        if self._replayed is not None:
            return self._replayed.start
        return self._write(BLOCK, pack_body(block, receipts))

    def move_head(self, block_hash: bytes) -> None:
        """Records a forced head before it is set."""
        if self._replayed is None:
            self._write(HEAD, block_hash)

    def amend(self, block_hash: bytes, accounts: Mapping[str, Any]) -> None:
        """Records a change of the state after a block. ``accounts``: as in a genesis file."""
        if self._replayed is None:
            self._write(AMENDMENT, block_hash + json.dumps(accounts).encode())
            self.on_amendment()

    def read(self, position: int) -> Record:
        """Returns the record at a byte offset. Raises OSError or StorageError if there is none."""
        return self.file.read(position)

    def has_block(self, block_hash: bytes) -> bool:
        """Returns whether the journal has a block with this hash, on any branch. Reads the whole
        file.
        """
        return any(
            record.kind == BLOCK and hashes_of(record.payload)[0] == block_hash
            for record in self.file.records()
        )

    def continue_archive(self, chain: Chain, archive: Archive) -> int | None:
        """Makes the last block of a loaded archive the head of a chain.

        Returns the byte offset where its record ends, or None if the journal does not have that
        block at the archive's position.
        """
        number = archive.numbers.stop - 1
        try:
            row, old = archive.row(number), archive.read(number)
            if row is None or old is None or old.block.number != number:
                return None
            chain.continue_from(old)
            return self.file.read(row.position).end
        except (OSError, ValueError, BlockUnavailableError) as error:
            log.warning("the index of old blocks does not fit the journal: %s", error)
            return None

    def replay(
        self,
        chain: Chain,
        snapshot: Snapshot | None = None,
        progress: Progress | None = None,
        start: int | None = None,
    ) -> int:
        """Replays all changes on a fresh chain and becomes its journal.

        Returns the number of blocks.

        Blocks up to ``snapshot`` are not executed. ``start``: the byte offset where the record of
        the chain's head ends, if the head is an archived block below the snapshot. Raises
        :class:`CorruptFile`, or :class:`StorageError` for a record that does not fit the chain.
        """
        adopted, skipped, known = 0, set[int](), 0
        if snapshot is not None:
            adopted, skipped = self._adopt(chain, snapshot, progress, start)
            known = snapshot.journal_size
        chain.journal = self
        with chain.keeping_states():
            return adopted + self._replay(chain, known, skipped, progress, start)

    def replay_to(self, chain: Chain, end: int) -> None:
        """Replays the changes before a byte offset on a fresh chain, to get the state at that
        offset.

        Nothing may be recorded during the call. Raises the errors of `replay`.
        """
        chain.journal = self
        with chain.keeping_states():
            self._replay(chain, 0, set(), None, None, end)

    def compact(self, chain: Chain) -> None:
        """Removes all but the canonical blocks and their amendments.

        Do not use the chain afterwards: its archive refers to the old offsets.
        """
        self.file.rewrite(self._canonical_records(chain))

    def readmit(self, chain: Chain, block_hash: bytes) -> None:
        """Adds a recorded block and its ancestors, without states, after the chain has removed them
        from memory.

        Reads the whole file. Raises StorageError if the file does not contain the blocks.
        """
        positions: dict[bytes, tuple[bytes, int]] = {}
        for record in self.file.records():
            if record.kind == BLOCK:
                known, parent_hash = hashes_of(record.payload)
                positions[known] = (parent_hash, record.start)
        branch = []
        while not chain.knows(block_hash):
            if block_hash not in positions:
                raise StorageError(f"{self.file.path} lacks block 0x{block_hash.hex()}")
            block_hash, position = positions[block_hash]
            branch.append(position)
        for position in reversed(branch):
            payload = self.read(position).payload
            chain.readmit(block_of(payload), receipts_of(payload), position)

    def _canonical_records(self, chain: Chain) -> Iterator[tuple[int, bytes]]:
        blocks: set[bytes] = set()
        for record in self.file.records():
            if record.kind == BLOCK:
                block_hash = block_of(record.payload).hash
                if block_hash in blocks or not chain.is_canonical(block_hash):
                    continue
                blocks.add(block_hash)
            elif record.kind == HEAD or not chain.is_canonical(record.payload[:HASH_BYTES]):
                continue
            yield record.kind, record.payload

    def _replay(
        self,
        chain: Chain,
        known: int,
        skipped: set[int],
        progress: Progress | None,
        start: int | None,
        end: int | None = None,
    ) -> int:
        count = 0
        kept = _KeptStates(chain, self.file.records(start))
        for record in self.file.records(start):
            if record.start in skipped:
                continue
            if end is not None and record.start >= end:
                break
            self._replayed = record
            try:
                count += self._play(chain, record, kept, passed=record.end <= known)
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

    def _adopt(
        self, chain: Chain, snapshot: Snapshot, progress: Progress | None, start: int | None
    ) -> tuple[int, set[int]]:
        """Adds the blocks up to the snapshot without execution.

        Returns the number of blocks added, and the offsets of the records that the replay must
        skip: the records of these blocks, amendments that the snapshot's state already contains,
        and, if this node built all blocks, branches that were abandoned before the snapshot.
        """
        skipped: set[int] = set()
        positions: dict[bytes, tuple[bytes, int]] = {}
        newest = chain.head.hash
        for record in self.file.records(start):
            if record.end > snapshot.journal_size:
                break
            if record.kind == BLOCK:
                newest, parent_hash = hashes_of(record.payload)
                positions[newest] = (parent_hash, record.start)
            elif record.kind == HEAD:
                newest = record.payload
            if record.kind == AMENDMENT:
                if record.payload.startswith(snapshot.block_hash):
                    skipped.add(record.start)
            elif chain.partial:
                skipped.add(record.start)
        branch = self._branch(positions, snapshot.block_hash, chain.head.hash)
        if chain.partial:
            skipped.difference_update(self._branch(positions, newest, snapshot.block_hash))
        if not branch and not (chain.partial and chain.head.hash == chain.genesis.hash):
            raise StorageError("the archive is not below the snapshot's block")
        if not branch:
            chain.replace_state(chain.head.hash, snapshot.layer)
        done = 0
        for position in reversed(branch):
            payload = self.read(position).payload
            layer = snapshot.layer if position == branch[0] else None
            chain.adopt(block_of(payload), receipts_of(payload), layer, position)
            done += len(payload)
            if progress is not None:
                progress(chain.head.number, done, self.file.size)
        return len(branch), skipped.union(branch)

    def _branch(
        self, positions: Mapping[bytes, tuple[bytes, int]], newest: bytes, oldest: bytes
    ) -> list[int]:
        """Returns the offsets of the blocks from ``newest`` down to the child of ``oldest``.

        ``positions``: parent and offset by hash. Raises StorageError if ``oldest`` is not an
        ancestor.
        """
        branch = []
        while newest != oldest:
            if newest not in positions:
                raise StorageError(f"{self.file.path} does not lead to the snapshot's block")
            newest, position = positions[newest]
            branch.append(position)
        return branch

    def _play(self, chain: Chain, record: Record, kept: _KeptStates, *, passed: bool) -> bool:
        """Replays one record. Returns whether the record added a block.

        ``passed``: the record was written before the snapshot.
        """
        payload = record.payload
        if record.kind == BLOCK:
            block_hash, parent_hash = hashes_of(payload)
            if passed and not (chain.knows(parent_hash) and chain.has_state(parent_hash)):
                # the block is below the snapshot, or its branch was abandoned before the snapshot
                return False
            chain.add(block_of(payload), is_own=True)
            kept.keep(block_hash)
            return True
        if record.kind == HEAD:
            if not passed or chain.has_state(payload):
                if not chain.knows(payload) and kept.of(payload) is not None:
                    self.readmit(chain, payload)
                chain.set_head(payload, kept.of(payload))
        elif record.kind == AMENDMENT:
            if not passed or chain.has_state(payload[:HASH_BYTES]):
                chain.amend(payload[:HASH_BYTES], json.loads(payload[HASH_BYTES:]))
                kept.keep(payload[:HASH_BYTES])
        else:
            raise StorageError(f"a record of kind {record.kind}, which this version does not know")
        return False


class _KeptStates:
    """Keeps the states of blocks to which a later record moves the head."""

    def __init__(self, chain: Chain, records: Iterator[Record]) -> None:
        self._chain = chain
        self._targets = {record.payload for record in records if record.kind == HEAD}
        self._layers: dict[bytes, Layer] = {}
        for block_hash in self._targets:
            if chain.has_state(block_hash):
                self._layers[block_hash] = chain.layer_of(block_hash)

    def keep(self, block_hash: bytes) -> None:
        """Keeps the state of a block that was added or amended, if a later record needs it."""
        if block_hash in self._targets:
            self._layers[block_hash] = self._chain.layer_of(block_hash)

    def of(self, block_hash: bytes) -> Layer | None:
        """Returns the state of a block, or None if these records did not add the block."""
        return self._layers.get(block_hash)
