"""Chooses the attributes of the next block of a chain whose sequencer is another node.

On OP Stack chains only the sequencer knows the L1 block of its next block. This is usually the L1
block of the newest block.
"""

from __future__ import annotations

from fastevm.chain.chain import Chain
from fastevm.core.execution.op_stack.base_time import base_time_deposit, millis_part, next_millis
from fastevm.core.execution.op_stack.l1_attributes import attributes_of, attributes_source_hash
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_fields import DEPOSIT_TX
from fastevm.core.execution.types import ZERO_HASH, Block
from fastevm.core.primitives.replace import replace
from fastevm.node.production.attributes import BlockAttributes, EthereumAttributes


class FollowedL1(EthereumAttributes):
    """The attributes of the next block of a followed chain, with the L1 block of the parent block.

    On Base since Denim, the milliseconds continue from the parent's milliseconds. A chain without
    deposits has Ethereum's attributes.
    """

    def __init__(self, chain: Chain, coinbase: bytes) -> None:
        super().__init__(coinbase)
        self.chain = chain

    def attributes(self, parent: Block, timestamp: int) -> BlockAttributes:
        """Returns the attributes of a child of ``parent`` at ``timestamp`` (seconds)."""
        first = continued_attributes(parent)
        if first is None:
            return super().attributes(parent, timestamp)
        transactions = [first]
        part = millis_part(parent.transactions)
        if part is not None:
            timestamp, part = next_millis(parent.header, part, timestamp)
            transactions.append(base_time_deposit(parent.number + 1, part))
        return BlockAttributes(
            timestamp=timestamp,
            coinbase=parent.header.coinbase,
            prev_randao=parent.header.prev_randao,
            parent_beacon_block_root=parent.header.parent_beacon_block_root or ZERO_HASH,
            transactions=tuple(transactions),
        )

    def fixed_timestamp(self, parent: Block) -> int | None:
        """Returns the timestamp of a child 200 ms after ``parent``, if the rules have BaseTime."""
        part = millis_part(parent.transactions)
        return None if part is None else next_millis(parent.header, part, 0)[0]


def continued_attributes(parent: Block) -> Transaction | None:
    """Returns the L1 attributes transaction of a child with the same L1 block as ``parent``.

    Returns None if the parent has no L1 attributes.
    """
    before = attributes_of(parent.transactions)
    if before is None:
        return None
    known = replace(before, sequence_number=before.sequence_number + 1)
    first = parent.transactions[0]
    return Transaction.build(
        type=DEPOSIT_TX,
        source_hash=attributes_source_hash(known),
        sender=first.sender,
        to=first.to,
        mint=0,
        value=0,
        gas_limit=first.gas_limit,
        is_system=first.is_system,
        data=known.calldata(first.data[:4]),
    )
