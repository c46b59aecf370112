"""A block under construction that is closed slice by slice."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from fastevm.chain.chain import Chain
from fastevm.chain.pending_block import PAYLOAD_ID_SIZE, PendingBlock
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.block_access_list import access_list_hash
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.op_stack.l1_attributes import DEPOSITOR
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import ZERO_HASH, Block, Header, Receipt
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.node.production.attributes import BlockAttributes


class SlicedBlock:
    """Executes transactions on a state. Each closed slice is an immutable pending block.

    ``guesses``: on a remote state, guess and record unknown values, to find out what a block reads.
    Without ``guesses``, a transaction that reads an unknown value is refused. ``begins_with``: the
    number of transactions that every block on this parent begins with. ``most_gas``: the maximum
    gas for one chosen transaction; users' deposits are exempt. Any thread may call ``cancel``. Only
    one thread may call the other methods.
    """

    def __init__(
        self,
        chain: Chain,
        layer: Layer,
        draft: Header,
        schedule: ForkSchedule,
        *,
        ancestors: Sequence[bytes],
        payload_id: bytes,
        previous: PendingBlock | None = None,
        guesses: bool = False,
    ) -> None:
        self.payload_id, self.previous = payload_id, previous
        self.begins_with = 0
        self.index = -1
        self._closed: PendingBlock | None = None
        self._sliced = 0  # number of transactions in closed slices
        self._builder = BlockBuilder(
            layer,
            draft,
            schedule,
            chain_id=chain.config.chain_id,
            deposit_contract=chain.config.deposit_contract,
            ancestors=ancestors,
            withdrawals=() if draft.withdrawals_root is not None else None,
            suspends=not guesses and layer.remote_state is not None,
        )
        self._builder.begin()
        self.most_gas = draft.gas_limit

    @property
    def header(self) -> Header:
        """The header. Roots and gas are still those of the draft."""
        return self._builder.header

    @property
    def schedule(self) -> ForkSchedule:
        """The rules of the block."""
        return self._builder.schedule

    @property
    def gas_used(self) -> int:
        """The gas used so far."""
        return self._builder.gas_used

    @property
    def blob_gas_used(self) -> int:
        """The blob gas used so far."""
        return self._builder.blob_gas_used

    @property
    def count(self) -> int:
        """The number of transactions so far."""
        return len(self._builder.transactions)

    @property
    def has_chosen(self) -> bool:
        """Whether the builder has added transactions to those that every block begins with."""
        return self.count > self.begins_with

    def has_gas_for(self, transaction: Transaction, gas_budget: int) -> bool:
        """Returns whether the transaction's gas limit fits into ``gas_budget`` of the block."""
        return self._builder.has_gas_for(transaction, gas_budget)

    def add(self, transaction: Transaction) -> Receipt:
        """Executes a transaction.

        If it is invalid, raises InvalidTransaction and changes nothing.
        """
        return self._builder.add(transaction)

    def cancel(self) -> None:
        """Stops the current transaction.

        `add` then raises InvalidTransaction with code ``cancelled``.
        """
        self._builder.cancel()

    def resume(self) -> None:
        """Accepts transactions again after ``cancel``."""
        self._builder.resume()

    def close_slice(self) -> PendingBlock:
        """Closes a slice. Returns the block so far as an immutable object."""
        self.index += 1
        builder = self._builder
        transactions = builder.transactions
        changes: dict[str, Any] = {
            "state_root": ZERO_HASH,
            "transactions_root": ordered_root([transaction.raw for transaction in transactions]),
            "receipts_root": builder.receipts_root,
            "logs_bloom": builder.logs_bloom,
            "gas_used": builder.gas_used,
        }
        if self.schedule.parameters["commits_to_withdrawals"]:
            # this storage root is unknown until the block is sealed, like the state root
            changes["withdrawals_root"] = ZERO_HASH
        if self.header.block_access_list_hash is not None:
            changes["block_access_list_hash"] = access_list_hash(builder.access_list() or b"")
        if self.header.blob_gas_used is not None:
            changes["blob_gas_used"] = builder.blob_gas_used
        first, self._sliced = self._sliced, len(transactions)
        self._closed = PendingBlock(
            header=replace(self.header, **changes),
            layer=builder.snapshot(),
            transactions=transactions,
            receipts=builder.receipts,
            slice_index=self.index,
            published=time.monotonic(),
            payload_id=self.payload_id,
            first_new=first,
            previous=self.previous,
        )
        return self._closed

    def close_empty_slice(self) -> PendingBlock:
        """Closes a slice without new transactions. Allowed while a transaction executes."""
        assert self._closed is not None, "the first slice has the block's own transactions"
        self.index += 1
        self._closed = replace(
            self._closed,
            slice_index=self.index,
            published=time.monotonic(),
            first_new=len(self._closed.transactions),
        )
        return self._closed

    def finish(self) -> BlockResult:
        """Ends the block without a state root.

        A child can be executed on the layer of the result.
        """
        return self._builder.finish(state_root=False)

    def seal(self) -> tuple[Block, BlockResult]:
        """Ends the block and computes all its roots."""
        return self._builder.seal()


def payload_id(parent_hash: bytes, timestamp: int, attempt: int) -> bytes:
    """Returns a payload id (8 bytes). It differs for each ``attempt`` to build on this parent."""
    seed = parent_hash + timestamp.to_bytes(8, "big") + attempt.to_bytes(8, "big")
    return keccak256(seed)[:PAYLOAD_ID_SIZE]


def open_child_block(
    chain: Chain,
    attributes: BlockAttributes,
    *,
    attempt: int,
    parent: Block | None = None,
    guesses: bool = False,
) -> SlicedBlock:
    """Begins a child of a block, with the transactions of its attributes. See `SlicedBlock`.

    If ``parent`` is None, the parent is the head. The caller must then hold the lock of the
    producer, because the head may move. Raises InvalidTransaction if a transaction of the
    attributes cannot be included.
    """
    parent, timestamp = parent or chain.head, attributes.timestamp
    schedule = chain.schedule_for_child(parent.header, timestamp)
    draft = draft_header(
        parent.header,
        schedule,
        timestamp=timestamp,
        coinbase=attributes.coinbase,
        gas_limit=attributes.gas_limit,
        extra_data=attributes.extra_data,
        prev_randao=attributes.prev_randao,
        parent_beacon_block_root=attributes.parent_beacon_block_root,
    )
    if attributes.base_fee is not None and draft.base_fee_per_gas is not None:
        draft = replace(draft, base_fee_per_gas=attributes.base_fee)
    block = SlicedBlock(
        chain,
        chain.state_before(parent.header, timestamp),
        draft,
        schedule,
        ancestors=chain.ancestors(parent.hash),
        payload_id=payload_id(parent.hash, timestamp, attempt),
        guesses=guesses,
    )
    for transaction in attributes.transactions:
        receipt = block.add(transaction)
        if transaction.sender == DEPOSITOR:
            block.most_gas -= receipt.gas_used
    block.begins_with = block.count
    return block
