"""The journal of pre-confirmations: the published slices of the block under construction.

A slice is written before it is published. When the process ends before the block is sealed, the
next start seals a block with exactly these transactions.
"""

from __future__ import annotations

import logging
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from fastevm.builder.pending_block import PendingBlock
from fastevm.builder.sliced_block import PAYLOAD_ID_SIZE, SlicedBlock
from fastevm.chain.chain import Chain
from fastevm.errors import FastevmError
from fastevm.execution.block_result import BlockResult
from fastevm.execution.transaction import Transaction
from fastevm.execution.unsigned_sender import with_named_sender
from fastevm.primitives import rlp
from fastevm.primitives.late_dataclass import dataclass
from fastevm.storage.record_file import RecordFile
from fastevm.types import Block, Header

log = logging.getLogger(__name__)

FILE_NAME: Final = "preconfirmed.log"
DRAFT, SLICE = 1, 2
ROOT_BYTES: Final = 32
MAX_BYTES: Final = 16 * 1024 * 1024  # above it the slices of earlier blocks are dropped


@dataclass(slots=True)
class PreconfirmedBlock:
    """A block that was published in slices: its draft, its transactions, its last receipts root."""

    payload_id: bytes
    draft: Header
    transactions: list[bytes] = field(default_factory=list)
    receipts_root: bytes = b""


class SliceJournal:
    """Published slices, of which those of the newest block count; for the builder's thread."""

    def __init__(self, directory: Path, label: bytes) -> None:
        self.file = RecordFile(directory / FILE_NAME, label)

    def keep(self, pending: PendingBlock) -> None:
        """Record a slice before it is published; an empty slice needs no record.

        The slice waits for this. Therefore the file is cleared only when it has grown, and only
        when a block begins.
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
        """The block of the slices that were published last; None when there are none."""
        found: PreconfirmedBlock | None = None
        for record in self.file.records():
            payload = record.payload
            if record.kind == DRAFT:
                header = Header.decode(payload[PAYLOAD_ID_SIZE:])
                found = PreconfirmedBlock(payload[:PAYLOAD_ID_SIZE], header)
            elif found is not None:
                found.receipts_root = payload[:ROOT_BYTES]
                raws = rlp.decode(payload[ROOT_BYTES:])
                found.transactions += [raw for raw in raws if isinstance(raw, bytes)]
        return found


def seal_preconfirmed(
    chain: Chain, preconfirmed: PreconfirmedBlock
) -> tuple[Block, BlockResult] | None:
    """Seal a block with the pre-confirmed transactions.

    None when it has none or is no child of the head. FastevmError when its execution gives another
    result than before.
    """
    head = chain.head
    if preconfirmed.draft.parent_hash != head.hash or not preconfirmed.transactions:
        return None
    draft = replace(
        preconfirmed.draft,
        gas_used=0,
        blob_gas_used=None if preconfirmed.draft.blob_gas_used is None else 0,
    )
    sliced = SlicedBlock(
        chain,
        chain.layer_of(head.hash),
        draft,
        chain.schedule_for_child(head, draft.timestamp),
        ancestors=chain.ancestors(head.hash),
        payload_id=preconfirmed.payload_id,
    )
    for raw in preconfirmed.transactions:
        sliced.add(with_named_sender(Transaction.decode(raw)))
    block, result = sliced.seal()
    if block.header.receipts_root != preconfirmed.receipts_root:
        raise FastevmError("the receipts root differs from the published one")
    return block, result
