"""The journal of a chain: every block that was kept, every move of the head, in their order.

Played back it makes the same chain: each block is verified and executed again on its parent's
state, so a journal that was tampered with is noticed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from fastevm.chain.storage.framed import FramedFile, Record, StorageError
from fastevm.errors import FastevmError
from fastevm.execution.decoding import decode_block
from fastevm.types import Block

log = logging.getLogger(__name__)

FILE_NAME: Final = "blocks.log"
BLOCK, HEAD, AMENDMENT = 1, 2, 3
HASH_BYTES: Final = 32

Progress = Callable[[int, int, int], None]  # blocks, bytes read, bytes in all


class Replayed(Protocol):
    """What the journal does to a chain when it is played back."""

    def add(self, block: Block) -> Any: ...
    def set_head(self, block_hash: bytes) -> Any: ...
    def amend(self, block_hash: bytes, accounts: Mapping[str, Any]) -> Any: ...
    def block_by_hash(self, block_hash: bytes) -> Block | None: ...


class BlockJournal:
    """What a chain tells before it does it; OSError keeps it from doing it."""

    def __init__(self, directory: Path, label: bytes, *, flush: bool) -> None:
        """``flush``: wait for the disk after every record."""
        self.file = FramedFile(directory / FILE_NAME, label)
        self.flush = flush

    def keep(self, block: Block) -> None:
        """A block is going to be part of the chain."""
        self._write(BLOCK, block.rlp())

    def move_head(self, block_hash: bytes) -> None:
        """A known block is going to be the head, whatever the fork rule says."""
        self._write(HEAD, block_hash)

    def amend(self, block_hash: bytes, accounts: Mapping[str, Any]) -> None:
        """The state after a block is going to change; ``accounts`` as in a genesis file."""
        self._write(AMENDMENT, block_hash + json.dumps(accounts).encode())

    def replay(self, chain: Replayed, progress: Progress | None = None) -> int:
        """Do to a chain what was done before; how many blocks that were.

        :class:`StorageError` when a record does not fit the chain, and names it.
        """
        count = 0
        for record in self.file.records():
            try:
                count += self._play(chain, record)
            except (FastevmError, ValueError) as error:
                raise StorageError(
                    f"{self.file.path}: the record that ends at byte {record.end} does not fit "
                    f"the chain: {error}"
                ) from error
            if progress is not None:
                progress(count, record.end, self.file.size)
        return count

    def _write(self, kind: int, payload: bytes) -> None:
        self.file.append(kind, payload)
        if self.flush:
            self.file.sync()

    def _play(self, chain: Replayed, record: Record) -> bool:
        payload = record.payload
        if record.kind == BLOCK:
            block = decode_block(payload)
            known = chain.block_by_hash(block.hash) is not None
            if not known:
                chain.add(block)
            return not known
        if record.kind == HEAD:
            chain.set_head(payload)
        elif record.kind == AMENDMENT:
            chain.amend(payload[:HASH_BYTES], json.loads(payload[HASH_BYTES:]))
        else:
            raise StorageError(f"a record of kind {record.kind}, which this version does not know")
        return False
