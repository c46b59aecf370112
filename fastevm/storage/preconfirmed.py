"""The journal of the block under construction: the slices that were published of it.

What is pre-confirmed is a promise. A builder that dies before it sealed its block finds here what
it promised, and seals just that when it comes back.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from fastevm.builder.block_maker import PAYLOAD_ID_SIZE, BlockMaker
from fastevm.builder.pending import PendingBlock
from fastevm.chain.chain import Chain
from fastevm.errors import FastevmError
from fastevm.execution.result import BlockResult
from fastevm.execution.transaction import Transaction
from fastevm.primitives import rlp
from fastevm.storage.framed import FramedFile
from fastevm.types import Block, Header

log = logging.getLogger(__name__)

FILE_NAME: Final = "preconfirmed.log"
DRAFT, SLICE = 1, 2
ROOT_BYTES: Final = 32
MOST_BYTES: Final = 16 * 1024 * 1024  # from which on the slices of old blocks are forgotten


@dataclass(slots=True)
class Promise:
    """What was published of a block: its draft, its transactions, the last slice's receipts."""

    payload_id: bytes
    draft: Header
    transactions: list[bytes] = field(default_factory=list)
    receipts_root: bytes = b""


class SliceJournal:
    """Slices, of which those of the newest block count; belongs to the builder's thread."""

    def __init__(self, directory: Path, label: bytes) -> None:
        self.file = FramedFile(directory / FILE_NAME, label)

    def keep(self, pending: PendingBlock) -> None:
        """A slice is going to be published. Empty ones promise nothing.

        It is on the way of the slice: the file is only cut when it has grown, since that may wait
        for the disk, and only when a block begins.
        """
        if pending.slice_index == 0:
            if self.file.size > MOST_BYTES:
                self.file.clear()
            self.file.append(DRAFT, pending.payload_id + pending.header.rlp())
        new = pending.transactions[pending.first_new :]
        if new:
            raws = rlp.encode([transaction.raw for transaction in new])
            self.file.append(SLICE, pending.header.receipts_root + raws)

    def promise(self) -> Promise | None:
        """What was published last; None when there is nothing."""
        found: Promise | None = None
        for record in self.file.records():
            payload = record.payload
            if record.kind == DRAFT:
                header = Header.decode(payload[PAYLOAD_ID_SIZE:])
                found = Promise(payload[:PAYLOAD_ID_SIZE], header)
            elif found is not None:
                found.receipts_root = payload[:ROOT_BYTES]
                raws = rlp.decode(payload[ROOT_BYTES:])
                found.transactions += [raw for raw in raws if isinstance(raw, bytes)]
        return found


def kept_promise(chain: Chain, promise: Promise) -> tuple[Block, BlockResult] | None:
    """The sealed block of what was promised; None where that is no child of the head or is empty.

    FastevmError when it cannot be executed as it was.
    """
    head = chain.head
    if promise.draft.parent_hash != head.hash or not promise.transactions:
        return None
    draft = replace(
        promise.draft,
        gas_used=0,
        blob_gas_used=None if promise.draft.blob_gas_used is None else 0,
    )
    maker = BlockMaker(
        chain,
        chain.layer_of(head.hash),
        draft,
        chain.schedule_for_child(head, draft.timestamp),
        ancestors=chain.ancestors(head.hash),
        payload_id=promise.payload_id,
    )
    for raw in promise.transactions:
        maker.add(Transaction.decode(raw))
    block, result = maker.seal()
    if block.header.receipts_root != promise.receipts_root:
        raise FastevmError("the receipts are not those that were published")
    return block, result
