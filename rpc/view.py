"""The view of a block for RPC methods: canonical, side or pre-confirmed; writes its JSON."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

from msgspec import Struct

from fastevm import Layer, blob_base_fee
from fastevm.chain import PendingBlock
from fastevm.core.execution.types import Block, Receipt
from fastevm.core.primitives.hex import quantity
from fastevm.core.primitives.replace import replace
from fastevm.node import Node
from fastevm.rpc.dispatch.workers import require_worker_above_limit
from fastevm.rpc.errors import RpcError
from fastevm.rpc_types.arbitrum import receipt_members
from fastevm.rpc_types.blocks import block_json, block_millis
from fastevm.rpc_types.l1_fees import L1FeeMembers
from fastevm.rpc_types.receipts import ReceiptWriter
from fastevm.rpc_types.transactions import (
    DEPOSIT,
    mined_transaction_json,
    transaction_json,
)
from fastevm.simulate import StateView

ZERO_HASH = bytes(32)
ANCESTORS = 256  # number of hashes that BLOCKHASH can return
PRECONFIRMED = b'"preconfirmed":true'  # added to receipts whose block has no hash yet

Json = dict[str, Any]


class Event(Protocol):
    """A log, mined or simulated."""

    @property
    def address(self) -> bytes: ...
    @property
    def topics(self) -> tuple[bytes, ...]: ...
    @property
    def data(self) -> bytes: ...


class View(Struct, eq=False):
    """A block for the RPC methods: canonical, side or pending.

    Caches results, because the block, its state and its rules do not change.
    """

    node: Node
    block: Block
    pending: PendingBlock | None = None
    _layer: Layer | None = None
    _layer_below: Layer | None = None
    _state: StateView | None = None
    _receipts: Sequence[Receipt] | None = None
    _first_logs: list[int] | None = None
    _writer: ReceiptWriter | None = None
    _l1_fees: L1FeeMembers | None = None
    amendments: int = 0  # the chain's count of state amendments when this view was made

    @classmethod
    def of_pending(cls, node: Node, pending: PendingBlock) -> "View":
        """Return the view of a pre-confirmed block."""
        header = pending.header
        withdrawals = None if header.withdrawals_root is None else ()
        return cls(node, Block(header, pending.transactions, (), withdrawals), pending)

    @property
    def hash(self) -> bytes:
        """The block's hash. 32 zero bytes for the pending block, because its hash is unknown."""
        return ZERO_HASH if self.pending is not None else self.block.hash

    @property
    def block_hash(self) -> bytes | None:
        """The block hash that the block's transactions show; None for the pending block."""
        return None if self.pending is not None else self.block.hash

    @property
    def layer(self) -> Layer:
        """The state after the block."""
        if self._layer is None:
            self._layer = (
                self.node.chain.layer_of(self.block.hash)
                if self.pending is None
                else self.pending.layer
            )
        return self._layer

    @property
    def layer_below(self) -> Layer:
        """The state before the block."""
        if self._layer_below is None:
            self._layer_below = self.node.chain.layer_of(self.block.header.parent_hash)
        return self._layer_below

    def hold(self) -> None:
        """Cache receipts, rules and both states, because a revert removes them from the chain.

        Raises FastevmError if the chain has already dropped them.
        """
        _ = self.receipts, self.layer_below, self.state()

    @property
    def receipts(self) -> Sequence[Receipt]:
        """The receipts of the block's transactions."""
        if self._receipts is None:
            if self.pending is not None:
                self._receipts = self.pending.receipts
            else:
                chain, block_hash = self.node.chain, self.block.hash
                if not chain.in_memory(block_hash):
                    require_worker_above_limit(len(self.block.transactions))
                self._receipts = chain.receipts_of(block_hash)
        return self._receipts

    @property
    def writer(self) -> ReceiptWriter:
        """The writer of the view's receipts and logs."""
        if self._writer is None:
            header = self.block.header
            millis = block_millis(self.block) or 0
            self._writer = ReceiptWriter(self.hash, header.number, header.timestamp, millis)
        return self._writer

    def first_log(self, index: int) -> int:
        """Return the block-wide index of the first log of transaction ``index``."""
        if self._first_logs is None:
            counts = [len(receipt.logs) for receipt in self.receipts]
            self._first_logs = list(accumulate(counts, initial=0))
        return self._first_logs[index]

    def block_json(self, *, full: bool) -> Json:
        """Return the block as a JSON value, with transaction objects if ``full``, else hashes."""
        receipts = self.receipts if full and self.has_deposits else ()
        is_pending = self.pending is not None
        return block_json(
            self.block, self.hash, full=full, is_pending=is_pending, receipts=receipts
        )

    def transaction_json(self, index: int, *, is_placed: bool = True) -> Json:
        """Return transaction ``index`` as JSON. A pre-confirmed transaction has no block hash.

        If ``is_placed`` is false, the transaction looks like a pooled transaction. A deposit then
        keeps the nonce of its receipt, because viem treats another mined transaction with the same
        sender and nonce as a replacement.
        """
        receipt = self.receipts[index] if self.has_deposits else None
        if is_placed:
            return mined_transaction_json(self.block, index, self.block_hash, receipt)
        nonce = None if receipt is None else receipt.deposit_nonce
        return transaction_json(self.block.transactions[index], deposit_nonce=nonce)

    @property
    def l1_fees(self) -> L1FeeMembers:
        """The members of the block's receipts for fees besides gas, on chains of the OP stack."""
        if self._l1_fees is None:
            self._l1_fees = L1FeeMembers(self.block.transactions, self.schedule)
        return self._l1_fees

    @property
    def has_deposits(self) -> bool:
        """Whether the block's first transaction is a deposit, as on chains of the OP stack."""
        transactions = self.block.transactions
        return bool(transactions) and transactions[0].type == DEPOSIT

    @property
    def schedule(self) -> Any:
        """The rules of the block."""
        chain, header = self.node.chain, self.block.header
        if self.pending is None:
            return chain.schedule_of(header.hash)
        parent = chain.block_by_hash(header.parent_hash)
        return chain.schedule_for_child(parent or chain.head, header.timestamp)

    def receipt_text(self, index: int, *, with_block: bool = False) -> bytes:
        """Return the receipt of transaction ``index`` as JSON text.

        With ``with_block``, includes the blob base fee and the timestamp of the block.
        """
        return self._receipt(index, self.receipts[index], self.first_log(index), with_block)

    def receipts_text(self, *, with_block: bool = False) -> bytes:
        """Return the receipts of all transactions as the JSON text of an array."""
        answer, first_log = [], 0
        for index, receipt in enumerate(self.receipts):
            answer.append(self._receipt(index, receipt, first_log, with_block))
            first_log += len(receipt.logs)
        return b"[%b]" % b",".join(answer)

    def log_text(
        self, entry: Event, tx_index: int, log_index: int, *, removed: bool = False
    ) -> bytes:
        """Return a log object as JSON text. ``log_index`` is the index in the block."""
        transaction = self.block.transactions[tx_index]
        return self.writer.log(entry, transaction.hash, tx_index, log_index, removed)

    def state(self) -> StateView:
        """Return the state to execute on, with the block's own environment."""
        if self._state is None:
            self._state = self._made_state()
        return self._state

    def _made_state(self) -> StateView:
        header = self.block.header
        return StateView(
            header=header,
            block_hash=header.hash,
            layer=self.layer,
            ancestors=self._ancestors(),
            schedule=self.schedule,
            config=self.node.config,
        )

    def _ancestors(self) -> tuple[bytes, ...]:
        """Return the hashes that BLOCKHASH can return, newest first.

        The hash of a pre-confirmed block is the parent hash in the next pre-confirmed block.
        """
        chain, header = self.node.chain, self.block.header
        hashes = [header.parent_hash]
        if self.pending is not None:
            hashes = [block.header.parent_hash for block in self.pending.chain()][::-1]
        # the parent of the chain's first block is unknown
        if chain.block_by_hash(hashes[-1]) is None:
            return () if self.node.history is None else tuple(hashes)
        return (*hashes[:-1], *chain.ancestors(hashes[-1]))[:ANCESTORS]

    def _receipt(self, index: int, receipt: Receipt, first_log: int, with_block: bool) -> bytes:
        transaction = self.block.transactions[index]
        more = [self.l1_fees.text(transaction)] if self.has_deposits else []
        more += receipt_members(self.block.header, receipt)
        if with_block:
            more.append(self._block_members(receipt))
        if self.pending is not None:
            more.append(PRECONFIRMED)
        return self.writer.receipt(receipt, transaction, index, first_log, b",".join(more))

    def _block_members(self, receipt: Receipt) -> bytes:
        """Return the members about the block in anvil's receipts. The time is a JSON number."""
        header = self.block.header
        member = b'"blockTimestamp":%d' % header.timestamp
        if header.excess_blob_gas is None or receipt.blob_gas_price is not None:
            return member
        fee = blob_base_fee(header.excess_blob_gas, self.schedule)
        return b'"blobGasPrice":"%b",%b' % (quantity(fee).encode(), member)


def base_of(view: View) -> StateView:
    """Return the state before a block, with the block's own header and rules."""
    if view.block.header.number == 0:
        raise RpcError("server_error", "genesis is not traceable")
    return replace(view.state(), layer=view.layer_below, block_hash=view.hash)
