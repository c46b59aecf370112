"""The journal of pre-confirmations: the published slices of the block under construction.

A slice is written before it is published. If the process ends before the block is sealed, the next
start seals a block with exactly these transactions.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from fastevm.chain.pending_block import PAYLOAD_ID_SIZE, PendingBlock
from fastevm.chain.storage.record_file import Record, RecordFile
from fastevm.core.execution.types import Header
from fastevm.core.primitives import rlp

log = logging.getLogger(__name__)

FILE_NAME: Final = "preconfirmed.log"
DRAFT, SLICE = 1, 2
ROOT_BYTES: Final = 32
MAX_BYTES: Final = 16 * 1024 * 1024  # size above which the slices of earlier blocks are removed


class PreconfirmedBlock(Struct):
    """A block that was published in slices: its draft header, transactions and last receipts
    root.
    """

    payload_id: bytes
    draft: Header
    transactions: list[bytes] = field(default_factory=list)
    receipts_root: bytes = b""

    def __str__(self) -> str:
        count = len(self.transactions)
        return f"{count} pre-confirmed transactions of block {self.draft.number}"


class SliceJournal:
    """The journal of published slices. Only the slices of the newest block matter.

    Only the builder's thread may use this object.
    """

    def __init__(self, directory: Path, label: bytes) -> None:
        self.file = RecordFile(directory / FILE_NAME, label)

    def keep(self, pending: PendingBlock) -> None:
        """Records a slice before it is published. An empty slice needs no record.

        The publication waits for this call, so the file is only cleared at the start of a block,
        and only if it exceeds MAX_BYTES.
        """
        if pending.slice_index == 0:
            if self.file.size > MAX_BYTES:
                self.file.clear()
            self.file.append(DRAFT, pending.payload_id + pending.header.rlp())
        new = pending.transactions[pending.first_new :]
        if new:
            raws = rlp.encode([transaction.raw for transaction in new])
            self.file.append(SLICE, pending.header.receipts_root + raws)

    def newest(self) -> PreconfirmedBlock | None:
        """Returns the block of the newest published slices, or None if there are none."""
        return newest_block(self.file.records())


def newest_block(records: Iterable[Record]) -> PreconfirmedBlock | None:
    """Returns the last block in the records of a journal, or None if there is none."""
    found: PreconfirmedBlock | None = None
    for record in records:
        payload = record.payload
        if record.kind == DRAFT:
            header = Header.decode(payload[PAYLOAD_ID_SIZE:])
            found = PreconfirmedBlock(payload[:PAYLOAD_ID_SIZE], header)
        elif found is not None:
            found.receipts_root = payload[:ROOT_BYTES]
            raws = rlp.decode(payload[ROOT_BYTES:])
            found.transactions += [raw for raw in raws if isinstance(raw, bytes)]
    return found
