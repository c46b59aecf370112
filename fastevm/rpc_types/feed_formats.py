"""The formats in which a node writes its feed, under the names of existing feeds.

Sources: flashblocks as op-rbuilder sends them (with the metadata of 2025, which most readers
expect), subblocks as the OP Stack specification defines them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.op_stack.predeploys import message_passer_root
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import ZERO_HASH, Receipt
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.core.primitives.replace import replace
from fastevm.rpc_types.feed import FeedSlice, diff_and_base, encode, slice_of

RECEIPT_TAGS: Mapping[int, str] = {
    0: "Legacy", 1: "Eip2930", 2: "Eip1559", 4: "Eip7702", 126: "Deposit",
}  # fmt: skip


class FeedFormat(Enum):
    """A format of the feed. The values are those of ``--feed-format``.

    FASTEVM messages name the preceding message, so that a reader notices every loss. FLASHBLOCKS
    messages have receipts and balances in their metadata. On OP Stack chains from Isthmus on, they
    also have state root and block hash, as on Unichain. SUBBLOCKS messages have no receipts,
    balances, state root and block hash.
    """

    FASTEVM = "fastevm"
    FLASHBLOCKS = "flashblocks"
    SUBBLOCKS = "subblocks"


def feed_text(pending: PendingBlock, form: FeedFormat, previous_id: str | None = None) -> str:
    """Returns the JSON text of the message for a slice published by this node.

    ``previous_id``: ``block-index`` of the preceding message.
    """
    if form is FeedFormat.FASTEVM:
        return encode(slice_of(pending, previous_id))
    if form is FeedFormat.SUBBLOCKS:
        message = replace(slice_of(pending), block_hash=ZERO_HASH, withdrawals_root=ZERO_HASH)
        return _text(message, {"block_number": message.block_number, "access_list": None})
    block = _with_roots(pending)
    message = replace(slice_of(block), state_root=block.header.state_root)
    metadata = {
        "block_number": message.block_number,
        "new_account_balances": _balances(block),
        "receipts": _receipts(block),
    }
    return _text(message, metadata)


def _text(message: FeedSlice, metadata: Mapping[str, Any]) -> str:
    return json.dumps({**diff_and_base(message), "metadata": metadata}, separators=(",", ":"))


def _with_roots(pending: PendingBlock) -> PendingBlock:
    """Returns the block with its state root, on OP Stack chains since Isthmus.

    These chains change no state after the last transaction, so the hash is that of the final block.
    """
    if pending.header.withdrawals_root != ZERO_HASH:
        return pending
    layer = pending.layer
    withdrawals_root = message_passer_root(layer)
    header = replace(
        pending.header, state_root=layer.state_root(), withdrawals_root=withdrawals_root
    )
    return replace(pending, header=header)


def _balances(pending: PendingBlock) -> dict[str, str]:
    """Returns the balances of senders and recipients in the slice."""
    parties = {
        address: None
        for transaction in pending.transactions[pending.first_new :]
        for address in (transaction.sender, transaction.to)
        if address is not None
    }
    return {hex_bytes(address): quantity(pending.layer.balance(address)) for address in parties}


def _receipts(pending: PendingBlock) -> dict[str, Any]:
    """Returns the receipts of the slice by transaction hash, grouped by type name."""
    first = pending.first_new
    new = zip(pending.transactions[first:], pending.receipts[first:], strict=True)
    return {hex_bytes(item.hash): {_tag(item): _receipt(receipt)} for item, receipt in new}


def _tag(transaction: Transaction) -> str:
    return RECEIPT_TAGS.get(transaction.type, "Eip4844")


def _receipt(receipt: Receipt) -> dict[str, Any]:
    found: dict[str, Any] = {
        "status": quantity(receipt.status or 0),
        "cumulativeGasUsed": quantity(receipt.cumulative_gas_used),
        "logs": [
            {
                "address": hex_bytes(log.address),
                "topics": [hex_bytes(topic) for topic in log.topics],
                "data": hex_bytes(log.data),
            }
            for log in receipt.logs
        ],
    }
    if receipt.deposit_nonce is not None:
        found["depositNonce"] = quantity(receipt.deposit_nonce)
    if receipt.deposit_receipt_version is not None:
        found["depositReceiptVersion"] = quantity(receipt.deposit_receipt_version)
    return found
